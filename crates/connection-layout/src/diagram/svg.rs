//! What an SVG writer needs: short numbers and safe text.

use std::fmt;

/// A length in pixels with one decimal at most, so that files are small and comparable.
#[derive(Clone, Copy)]
pub(crate) struct Px(pub(crate) f64);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Adding 0 turns the -0 that rounding may leave into 0.
        let tenths = (self.0 * 10.0).round() + 0.0;
        write!(f, "{}", tenths / 10.0)
    }
}

/// A number with at most the given decimals and without trailing zeros.
pub(crate) struct Decimals(pub(crate) f64, pub(crate) usize);

impl fmt::Display for Decimals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fixed = format!("{:.*}", self.1, self.0);
        let short = if fixed.contains('.') { fixed.trim_end_matches('0').trim_end_matches('.') } else { &fixed };
        f.write_str(if short == "-0" { "0" } else { short })
    }
}

/// Text with the characters replaced that XML gives a meaning or does not allow.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\t' | '\n' | '\r' => f.write_char(' ')?,
                '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => f.write_char('\u{fffd}')?,
                _ => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_one_decimal_at_most() {
        let written = [12.0, 12.25, -0.04, 0.96, -2.72, 1e4].map(|x| Px(x).to_string());
        assert_eq!(written, ["12", "12.3", "0", "1", "-2.7", "10000"]);
    }

    #[test]
    fn numbers_lose_their_trailing_zeros() {
        assert_eq!(Decimals(0.25, 3).to_string(), "0.25");
        assert_eq!(Decimals(1.0, 2).to_string(), "1");
        assert_eq!(Decimals(100.0, 0).to_string(), "100");
        assert_eq!(Decimals(-0.001, 2).to_string(), "0");
    }

    #[test]
    fn text_cannot_leave_its_element() {
        assert_eq!(
            Escaped("a<b> & \"c\" 'd'\n\u{7}é").to_string(),
            "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39; \u{fffd}é"
        );
    }
}
