//! Numbers as people read them: spreads, differences, durations, sizes.
//!
//! Signs are ASCII so that a number copied from a terminal can be pasted into a calculation. What is not finite is
//! printed as `nan`, `inf` or `-inf`, never hidden.

use statistics::{mean, sample_sd};

/// `value` with `decimals` digits behind the point; never `-0.000`.
///
/// ```
/// assert_eq!(plotting::fixed(-0.0004, 3), "0.000");
/// ```
#[must_use]
pub fn fixed(value: f64, decimals: usize) -> String {
    if let Some(text) = not_finite(value) {
        return text.to_owned();
    }
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(digits) if !digits.contains(|c: char| ('1'..='9').contains(&c)) => digits.to_owned(),
        _ => text,
    }
}

/// A difference with its sign, `decimals` digits behind the point; zero has no sign.
///
/// ```
/// assert_eq!(plotting::signed(0.0312, 3), "+0.031");
/// ```
#[must_use]
pub fn signed(value: f64, decimals: usize) -> String {
    let text = fixed(value, decimals);
    let is_zero = !text.contains(|c: char| ('1'..='9').contains(&c));
    if value > 0.0 && (value.is_infinite() || !is_zero) { format!("+{text}") } else { text }
}

/// `value` rounded to `digits` significant digits (at least 1), in plain notation from 0.0001 up to a million, else as
/// `1.2e-7`.
///
/// ```
/// assert_eq!(plotting::significant(0.0012345, 3), "0.00123");
/// assert_eq!(plotting::significant(1234.5, 2), "1200");
/// ```
#[must_use]
pub fn significant(value: f64, digits: usize) -> String {
    if let Some(text) = not_finite(value) {
        return text.to_owned();
    }
    let digits = digits.clamp(1, 17);
    if value == 0.0 {
        return "0".to_owned();
    }
    // The exponent is read from the rounded number: 9.99 to two digits is 10.
    let rounded = format!("{:.*e}", digits - 1, value);
    let (mantissa, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        return format!("{mantissa}e{exponent}");
    }
    let decimals = digits as i32 - 1 - exponent;
    if decimals >= 0 {
        return fixed(value, decimals as usize);
    }
    let unit = 10_f64.powi(-decimals);
    fixed((value / unit).round() * unit, 0)
}

/// Mean and sample standard deviation with `decimals` digits behind the point; the mean alone for one value, a dash for
/// none.
///
/// ```
/// assert_eq!(plotting::mean_sd(&[1.762, 1.775, 1.788], 3), "1.775 ± 0.013");
/// ```
#[must_use]
pub fn mean_sd(values: &[f64], decimals: usize) -> String {
    match values {
        [] => "–".to_owned(),
        [only] => fixed(*only, decimals),
        _ => format!("{} ± {}", fixed(mean(values), decimals), fixed(sample_sd(values), decimals)),
    }
}

/// A span of time given in seconds, in the two units that matter: `350 ms`, `12.3 s`, `2 min 05 s`, `3 h 07 min`.
///
/// ```
/// assert_eq!(plotting::duration(125.0), "2 min 05 s");
/// ```
#[must_use]
pub fn duration(seconds: f64) -> String {
    if let Some(text) = not_finite(seconds) {
        return text.to_owned();
    }
    if seconds < 0.0 {
        return format!("-{}", duration(-seconds));
    }
    // Each limit is where rounding would reach the next unit.
    if seconds == 0.0 {
        return "0 s".to_owned();
    }
    if seconds < 999.5e-6 {
        return format!("{} µs", significant(seconds * 1e6, 3));
    }
    if seconds < 0.9995 {
        return format!("{} ms", significant(seconds * 1e3, 3));
    }
    if seconds < 59.95 {
        return format!("{seconds:.1} s");
    }
    // `as` saturates, so an absurd span is a large number of days.
    let whole = seconds.round() as u64;
    let (days, hours, minutes) = (whole / 86_400, whole / 3600 % 24, whole / 60 % 60);
    match (days, whole / 3600) {
        (0, 0) => format!("{minutes} min {:02} s", whole % 60),
        (0, hours) => format!("{hours} h {minutes:02} min"),
        (days, _) => format!("{days} d {hours:02} h"),
    }
}

/// A size in bytes with a binary unit: `512 B`, `1.5 KiB`, `12.3 MiB`.
///
/// ```
/// assert_eq!(plotting::bytes(12_900_000), "12.3 MiB");
/// ```
#[must_use]
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A count with three significant digits and an SI suffix from a thousand on: `950`, `1.23k`, `60.5M`.
///
/// ```
/// assert_eq!(plotting::si(58_073_600.0), "58.1M");
/// ```
#[must_use]
pub fn si(count: f64) -> String {
    if let Some(text) = not_finite(count) {
        return text.to_owned();
    }
    let mut value = count;
    let mut suffix = "";
    for next in ["k", "M", "G", "T", "P"] {
        if value.abs() < 999.5 {
            break;
        }
        value /= 1000.0;
        suffix = next;
    }
    let decimals = match value.abs() {
        _ if suffix.is_empty() && value.fract() == 0.0 => 0,
        size if size < 9.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    };
    format!("{}{suffix}", fixed(value, decimals))
}

/// A share as a percentage with `decimals` digits behind the point: `0.0132` is `1.3%`.
///
/// ```
/// assert_eq!(plotting::percent(0.0132, 1), "1.3%");
/// ```
#[must_use]
pub fn percent(share: f64, decimals: usize) -> String {
    format!("{}%", fixed(100.0 * share, decimals))
}

fn not_finite(value: f64) -> Option<&'static str> {
    match value {
        v if v.is_nan() => Some("nan"),
        f64::INFINITY => Some("inf"),
        f64::NEG_INFINITY => Some("-inf"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_never_leaves_a_negative_zero() {
        assert_eq!(fixed(-0.0, 2), "0.00");
        assert_eq!(fixed(-0.005, 2), "-0.01");
        assert_eq!(fixed(f64::NAN, 2), "nan");
        for (value, text) in [(0.0312, "+0.031"), (-0.0312, "-0.031"), (0.0001, "0.000"), (-0.0001, "0.000")] {
            assert_eq!(signed(value, 3), text);
        }
        assert_eq!(signed(f64::INFINITY, 1), "+inf");
        assert_eq!(signed(f64::NAN, 1), "nan");
    }

    #[test]
    fn significant_digits() {
        for (value, digits, text) in [
            (1.7753, 3, "1.78"),
            (0.00012345, 2, "0.00012"),
            (1.2345e-7, 2, "1.2e-7"),
            (9.99, 2, "10"),
            (999_999.0, 3, "1.00e6"),
            (123_456.0, 2, "120000"),
            (-42.0, 4, "-42.00"),
            (0.0, 3, "0"),
            (5.0, 0, "5"),
        ] {
            assert_eq!(significant(value, digits), text, "{value} to {digits}");
        }
    }

    #[test]
    fn spreads() {
        assert_eq!(mean_sd(&[], 3), "–");
        assert_eq!(mean_sd(&[1.5], 2), "1.50");
        assert_eq!(mean_sd(&[1.0, 3.0], 1), "2.0 ± 1.4");
        assert_eq!(mean_sd(&[1.0, f64::NAN], 1), "nan ± nan");
    }

    #[test]
    fn durations() {
        for (seconds, text) in [
            (0.0, "0 s"),
            (12.3e-6, "12.3 µs"),
            (0.35, "350 ms"),
            (0.9996, "1.0 s"),
            (12.34, "12.3 s"),
            (59.96, "1 min 00 s"),
            (125.0, "2 min 05 s"),
            (3599.6, "1 h 00 min"),
            (11_220.0, "3 h 07 min"),
            (100_000.0, "1 d 03 h"),
            (-125.0, "-2 min 05 s"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(duration(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn sizes_and_counts() {
        for (count, text) in
            [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (1_048_575, "1.0 MiB"), (u64::MAX, "16.0 EiB")]
        {
            assert_eq!(bytes(count), text);
        }
        for (count, text) in [
            (0.0, "0"),
            (7.0, "7"),
            (0.25, "0.25"),
            (950.0, "950"),
            (999.6, "1.00k"),
            (20_000.0, "20.0k"),
            (999_600.0, "1.00M"),
            (-1234.0, "-1.23k"),
            (58_073_600.0, "58.1M"),
        ] {
            assert_eq!(si(count), text);
        }
    }
}
