//! Where an axis is marked, and what the marks say.

/// One labelled mark.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// Position in the coordinates of the axis (log10 of the value on a log axis).
    pub(crate) at: f64,
    pub(crate) label: String,
}

/// The marks of an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ticks {
    pub(crate) labelled: Vec<Tick>,
    /// Positions of marks without label, for fainter grid lines.
    pub(crate) minor: Vec<f64>,
}

impl Ticks {
    /// Those at whole numbers, without a point in their labels.
    pub(crate) fn whole(mut self) -> Self {
        self.labelled.retain(|tick| (tick.at - tick.at.round()).abs() < 1e-9);
        for tick in &mut self.labelled {
            if let Some((whole, rest)) = tick.label.split_once('.')
                && rest.bytes().all(|digit| digit == b'0')
            {
                tick.label = whole.to_owned();
            }
        }
        self
    }
}

/// Marks at multiples of 1, 2 or 5 times a power of ten between `low` and `high`, about `most` of them (at most 1.5 times
/// as many).
///
/// The caller keeps `high - low` finite, positive and not absurdly small beside `high`; whatever is passed, the number
/// of marks is bounded.
pub(crate) fn linear(low: f64, high: f64, most: usize) -> Ticks {
    let raw = (high - low) / most.max(1) as f64;
    if !raw.is_finite() || raw <= 0.0 {
        return Ticks::default();
    }
    let mut exponent = raw.log10().floor() as i32;
    let share = raw / 10_f64.powi(exponent);
    // The step whose ratio to the wanted one is nearest to 1: the bounds are sqrt(2), sqrt(10) and sqrt(50).
    let mut digit = match share {
        ..1.414 => 1,
        ..3.162 => 2,
        ..7.071 => 5,
        _ => 10,
    };
    if digit == 10 {
        (digit, exponent) = (1, exponent + 1);
    }
    let value = |count: f64| {
        // Dividing by a whole power of ten is exact to the last bit where multiplying by 0.1 is not.
        let scaled = count * f64::from(digit);
        if exponent < 0 { scaled / 10_f64.powi(-exponent) } else { scaled * 10_f64.powi(exponent) }
    };
    let step = value(1.0);
    let first = (low / step - 1e-9).ceil();
    let mut marks = Vec::new();
    for i in 0..2 * most + 2 {
        let at = value(first + i as f64);
        if !at.is_finite() || at > high + 1e-9 * step {
            break;
        }
        if marks.last() != Some(&at) {
            marks.push(at);
        }
    }
    let labels = linear_labels(&marks, exponent);
    Ticks { labelled: marks.iter().zip(labels).map(|(&at, label)| Tick { at, label }).collect(), minor: Vec::new() }
}

/// Labels for multiples of some digit times 10^`exponent`, all written in one way.
fn linear_labels(marks: &[f64], exponent: i32) -> Vec<String> {
    let largest = marks.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    if largest == 0.0 {
        return marks.iter().map(|_| "0".to_owned()).collect();
    }
    let magnitude = largest.log10().floor() as i32;
    if !(-3..15).contains(&magnitude) {
        let decimals = usize::try_from(magnitude - exponent).unwrap_or(0).min(15);
        let unit = 10_f64.powi(magnitude);
        let write = |v: f64| {
            let mantissa = crate::fixed(v / unit, decimals);
            if v == 0.0 { "0".to_owned() } else { times_power(&mantissa, magnitude) }
        };
        return marks.iter().map(|&v| write(v).replace('-', "−")).collect();
    }
    // From ten thousand on in thousands or millions, unless that needs more digits than it saves.
    let (unit, suffix) = match magnitude {
        ..4 => (0, ""),
        4..6 => (3, "k"),
        6..9 => (6, "M"),
        9..12 => (9, "G"),
        _ => (12, "T"),
    };
    let (unit, suffix) = if unit - exponent > 2 { (0, "") } else { (unit, suffix) };
    let decimals = usize::try_from(unit - exponent).unwrap_or(0);
    let write = |v: f64| {
        if v == 0.0 {
            return "0".to_owned();
        }
        format!("{}{suffix}", crate::fixed(v / 10_f64.powi(unit), decimals)).replace('-', "−")
    };
    marks.iter().map(|&v| write(v)).collect()
}

/// Marks of a log axis from 10^`low` to 10^`high`, at most about `most` labelled ones.
pub(crate) fn logarithmic(low: f64, high: f64, most: usize) -> Ticks {
    let most = most.max(2);
    // Powers beyond f64 come only from a mistake of the caller; the loop below must stay bounded for them too.
    if !(low.abs() < 400.0 && high.abs() < 400.0 && low < high) {
        return Ticks::default();
    }
    let (first, last) = ((low - 1e-9).ceil() as i32, (high + 1e-9).floor() as i32);
    let decades = usize::try_from(last - first + 1).unwrap_or(0);
    if decades < 2 {
        return within_a_decade(low, high, most);
    }
    let stride = decades.div_ceil(most);
    // Strides of 1, 2, 5, 10, 20 ... decades, counted from 10^0.
    let stride = (0..4).flat_map(|p| [1, 2, 5].map(|d| d * 10_usize.pow(p))).find(|&s| s >= stride).unwrap_or(stride);
    let stride = stride as i32;
    let exponents: Vec<i32> = (first..=last).filter(|e| e.rem_euclid(stride) == 0).collect();
    let mut ticks = Ticks::default();
    let labels = log_labels(&exponents);
    for (&exponent, label) in exponents.iter().zip(labels) {
        ticks.labelled.push(Tick { at: f64::from(exponent), label });
    }
    if stride == 1 && decades <= 8 {
        for exponent in first - 1..=last {
            let digits = (2..10).map(|d| f64::from(exponent) + f64::from(d).log10());
            ticks.minor.extend(digits.filter(|at| (low..=high).contains(at)));
        }
    } else if stride > 1 && decades <= 40 {
        ticks.minor.extend((first..=last).filter(|e| e.rem_euclid(stride) != 0).map(f64::from));
    }
    ticks
}

/// Marks of a log axis that spans at most one whole power of ten: round numbers at equal differences.
fn within_a_decade(low: f64, high: f64, most: usize) -> Ticks {
    // In units of the decade of the lower end, which keeps even 1e-300 away from underflow.
    let base = low.floor() as i32;
    let unit = |at: f64| 10_f64.powf(at - f64::from(base));
    let digits: Vec<f64> = [&[1.0, 2.0, 5.0][..], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]]
        .into_iter()
        .map(|digits| [0, 1].into_iter().flat_map(|e| digits.iter().map(move |d| d * 10_f64.powi(e))).collect())
        .map(|all: Vec<f64>| {
            all.into_iter().filter(|d| (low..=high).contains(&(d.log10() + f64::from(base)))).collect::<Vec<_>>()
        })
        .find(|inside| (3..=most.max(3)).contains(&inside.len()))
        .unwrap_or_else(|| linear(unit(low), unit(high), most.min(3)).labelled.iter().map(|t| t.at).collect());
    let label = |mantissa: f64| {
        let text = crate::significant(mantissa, 6);
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        match base {
            0 => text.to_owned(),
            -3..=3 => {
                let plain = crate::significant(mantissa * 10_f64.powi(base), 6);
                if plain.contains('.') && !plain.contains('e') {
                    plain.trim_end_matches('0').trim_end_matches('.').to_owned()
                } else {
                    plain
                }
            }
            _ => times_power(text, base),
        }
    };
    let mark = |mantissa: f64| Tick { at: mantissa.log10() + f64::from(base), label: label(mantissa) };
    Ticks { labelled: digits.into_iter().filter(|&d| d > 0.0).map(mark).collect(), minor: Vec::new() }
}

fn log_labels(exponents: &[i32]) -> Vec<String> {
    let (low, high) = (exponents.iter().min().copied().unwrap_or(0), exponents.iter().max().copied().unwrap_or(0));
    if low >= -3 && high <= 3 {
        return exponents.iter().map(|&e| crate::fixed(10_f64.powi(e), usize::try_from(-e).unwrap_or(0))).collect();
    }
    if low >= 0 && high <= 9 {
        let suffix = |e: i32| ["", "k", "M", "G"].get(e as usize / 3).copied().unwrap_or("");
        return exponents.iter().map(|&e| format!("1{}{}", "0".repeat(e as usize % 3), suffix(e))).collect();
    }
    exponents.iter().map(|&e| times_power("1", e)).collect()
}

/// `mantissa` times a power of ten as `2×10⁻⁵`; a mantissa of one and powers 0 and 1 are written plainly.
fn times_power(mantissa: &str, exponent: i32) -> String {
    let power = match exponent {
        0 => "1".to_owned(),
        1 => "10".to_owned(),
        _ => format!("10{}", superscript(exponent)),
    };
    match (mantissa, exponent) {
        ("1", _) => power,
        (_, 0) => mantissa.to_owned(),
        _ => format!("{mantissa}×{power}"),
    }
}

fn superscript(number: i32) -> String {
    let raise = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => char::from_u32(0x2070 + u32::from(digit) - u32::from('0')).unwrap_or(digit),
    };
    number.to_string().chars().map(raise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: Ticks) -> Vec<String> {
        ticks.labelled.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn linear_labels_are_written_for_people() {
        for (low, high, most, expected) in [
            (0.0, 1.0, 5, "0 0.2 0.4 0.6 0.8 1.0"),
            (0.0, 10.0, 5, "0 2 4 6 8 10"),
            (-1.1, 1.1, 5, "−1.0 −0.5 0 0.5 1.0"),
            (0.0, 2000.0, 5, "0 500 1000 1500 2000"),
            (0.0, 20_000.0, 4, "0 5k 10k 15k 20k"),
            (0.0, 12_000.0, 3, "0 5k 10k"),
            (2.0e6, 3.0e6, 5, "2.0M 2.2M 2.4M 2.6M 2.8M 3.0M"),
            (0.0, 4e-6, 4, "0 10⁻⁶ 2×10⁻⁶ 3×10⁻⁶ 4×10⁻⁶"),
            (1.772, 1.778, 4, "1.772 1.774 1.776 1.778"),
            (1_234_567.001, 1_234_567.003, 2, "1234567.001 1234567.002 1234567.003"),
            (0.0, 3e20, 3, "0 10²⁰ 2×10²⁰ 3×10²⁰"),
        ] {
            let found = labels(linear(low, high, most)).join(" ");
            assert_eq!(found, expected, "{low} to {high}");
        }
    }

    #[test]
    fn an_axis_that_counts_is_marked_at_whole_numbers() {
        assert_eq!(labels(linear(1.0, 4.0, 6).whole()).join(" "), "1 2 3 4");
        assert_eq!(labels(linear(0.0, 3000.0, 4).whole()).join(" "), "0 1000 2000 3000");
        assert_eq!(labels(linear(0.1, 0.9, 4).whole()), [""; 0]);
    }

    #[test]
    fn log_labels_are_written_for_people() {
        for (low, high, most, expected) in [
            (0.0, 3.0, 6, "1 10 100 1000"),
            (-3.0, 1.0, 6, "0.001 0.01 0.1 1 10"),
            (-6.0, 0.0, 8, "10⁻⁶ 10⁻⁵ 10⁻⁴ 10⁻³ 10⁻² 10⁻¹ 1"),
            (-14.0, 2.0, 6, "10⁻¹⁰ 10⁻⁵ 1"),
            (0.0, 6.0, 8, "1 10 100 1k 10k 100k 1M"),
            (0.1, 0.9, 6, "2 3 4 5 6 7"),
            (0.0, 0.95, 6, "1 2 5"),
            (-5.0, -4.05, 6, "10⁻⁵ 2×10⁻⁵ 5×10⁻⁵"),
            (0.2, 0.35, 5, "1.6 1.8 2 2.2"),
        ] {
            let found = labels(logarithmic(low, high, most)).join(" ");
            assert_eq!(found, expected, "10^{low} to 10^{high}");
        }
    }

    #[test]
    fn the_number_of_marks_is_bounded_for_any_range() {
        let extremes = [0.0, 1.0, -1.0, 1e-300, 1e300, -1e300, f64::MAX, f64::MIN_POSITIVE, f64::NAN, f64::INFINITY];
        for low in extremes {
            for high in extremes {
                for most in [0, 1, 5, 20] {
                    for ticks in [linear(low, high, most), logarithmic(low, high, most)] {
                        assert!(ticks.labelled.len() <= 2 * most.max(5) + 2, "{low} {high} {most}");
                    }
                }
            }
        }
    }
}
