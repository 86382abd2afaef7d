//! Text measurement on machines without any installed font: the embedded faces, read just far enough to place glyphs.
//!
//! plotters rasterises glyphs from registered fonts but drops their left side bearing, which makes words look unevenly
//! spaced, and it shows a box for a character that the face lacks. So text for bitmaps is placed glyph by glyph with the
//! numbers read here, and a character that the text face lacks comes from the second face.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

use epaint_default_fonts::{HACK_REGULAR, UBUNTU_LIGHT};
use plotters::style::{FontStyle, register_font};

use crate::PlotError;

/// The CSS font list of every text. The embedded text face is registered under the whole list, so that bitmaps use that
/// face and an SVG names whatever the viewer has, narrow families first since widths were measured with a narrow face.
pub(crate) const TEXT_FAMILY: &str = "Ubuntu, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif";
const FALLBACK_FAMILY: &str = "plotting-fallback";

/// Height of capitals and digits of the text face, in em.
pub(crate) const CAP_HEIGHT: f64 = 0.693;

/// Where one character goes, in em.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Glyph {
    /// Registered name of the face that draws it.
    pub(crate) family: &'static str,
    /// plotters' font size for 1 em of this face; plotters counts from ascender to descender.
    pub(crate) size_per_em: f64,
    pub(crate) advance: f64,
    /// Leftmost ink relative to the pen.
    pub(crate) bearing: f64,
}

/// The registered faces with a cache of the glyphs asked for so far.
pub(crate) struct Fonts {
    text: Face,
    fallback: Face,
    cache: Mutex<HashMap<char, Glyph>>,
}

impl Fonts {
    /// Registers the embedded faces with plotters on the first call.
    pub(crate) fn get() -> Result<&'static Fonts, PlotError> {
        static FONTS: OnceLock<Result<Fonts, &'static str>> = OnceLock::new();
        FONTS
            .get_or_init(|| {
                Ok(Fonts {
                    text: Face::register(TEXT_FAMILY, UBUNTU_LIGHT).ok_or("Ubuntu Light")?,
                    fallback: Face::register(FALLBACK_FAMILY, HACK_REGULAR).ok_or("Hack")?,
                    cache: Mutex::new(HashMap::new()),
                })
            })
            .as_ref()
            .map_err(|name| PlotError::Font(name))
    }

    pub(crate) fn glyph(&self, character: char) -> Glyph {
        // A poisoned lock only means that another thread stopped while it added an entry; entries are whole.
        let mut cache = self.cache.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *cache.entry(character).or_insert_with(|| {
            let (face, id) = [&self.text, &self.fallback]
                .into_iter()
                .find_map(|face| Some((face, face.glyph_id(character)?)))
                .unwrap_or((&self.text, 0));
            face.glyph(id)
        })
    }

    /// Width of `text` at `size` logical pixels per em.
    pub(crate) fn width(&self, text: &str, size: f64) -> f64 {
        text.chars().map(|c| self.glyph(c).advance).sum::<f64>() * size
    }

    /// `text` if it fits into `room`, else as much of its start as does, with an ellipsis.
    pub(crate) fn fit(&self, text: &str, size: f64, room: f64) -> String {
        if self.width(text, size) <= room {
            return text.to_owned();
        }
        let mut width = self.width("…", size);
        let mut kept = String::new();
        for character in text.chars() {
            width += self.glyph(character).advance * size;
            if width > room {
                break;
            }
            kept.push(character);
        }
        kept.truncate(kept.trim_end().len());
        kept.push('…');
        kept
    }

    /// `text` broken at spaces into lines no wider than `room`; what does not fit into `max_lines` ends in an ellipsis.
    pub(crate) fn wrap(&self, text: &str, size: f64, room: f64, max_lines: usize) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut words = text.split_whitespace().peekable();
        while words.peek().is_some() && lines.len() < max_lines {
            let mut line = String::new();
            let last = lines.len() + 1 == max_lines;
            while let Some(word) = words.peek() {
                let longer = if line.is_empty() { (*word).to_owned() } else { format!("{line} {word}") };
                if !last && !line.is_empty() && self.width(&longer, size) > room {
                    break;
                }
                line = longer;
                words.next();
            }
            lines.push(self.fit(&line, size, room));
        }
        lines
    }
}

/// `text` without what XML forbids or a single line cannot show.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            c if c.is_control() => ' ',
            '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// The tables of a TrueType file that glyph placement needs. All reads are checked: a bad offset is a missing glyph.
struct Face {
    family: &'static str,
    bytes: &'static [u8],
    units_per_em: f64,
    size_per_em: f64,
    /// Offset of the format 4 character map.
    cmap: usize,
    hmtx: usize,
    metrics: usize,
    loca: usize,
    loca_is_long: bool,
    glyf: usize,
}

impl Face {
    fn register(family: &'static str, bytes: &'static [u8]) -> Option<Self> {
        let face = Self::parse(family, bytes)?;
        register_font(family, FontStyle::Normal, bytes).ok()?;
        Some(face)
    }

    fn parse(family: &'static str, bytes: &'static [u8]) -> Option<Self> {
        let table = |tag: &[u8; 4]| {
            (0..usize::from(u16_at(bytes, 4)?)).find_map(|i| {
                let entry = 12 + 16 * i;
                (bytes.get(entry..entry + 4)? == tag).then(|| u32_at(bytes, entry + 8).map(|offset| offset as usize))?
            })
        };
        let (head, hhea, map) = (table(b"head")?, table(b"hhea")?, table(b"cmap")?);
        let cmap = (0..usize::from(u16_at(bytes, map + 2)?)).find_map(|i| {
            let offset = map + u32_at(bytes, map + 4 + 8 * i + 4)? as usize;
            (u16_at(bytes, offset)? == 4).then_some(offset)
        })?;
        let units_per_em = f64::from(u16_at(bytes, head + 18)?);
        let (ascender, descender) = (i16_at(bytes, hhea + 4)?, i16_at(bytes, hhea + 6)?);
        Some(Self {
            family,
            bytes,
            units_per_em,
            size_per_em: (f64::from(ascender) - f64::from(descender)) / units_per_em,
            cmap,
            hmtx: table(b"hmtx")?,
            metrics: usize::from(u16_at(bytes, hhea + 34)?).max(1),
            loca: table(b"loca")?,
            loca_is_long: i16_at(bytes, head + 50)? != 0,
            glyf: table(b"glyf")?,
        })
    }

    /// The glyph of `character`, or `None` where the face has none.
    fn glyph_id(&self, character: char) -> Option<u16> {
        let code = u16::try_from(u32::from(character)).ok()?;
        let at = |offset: usize| u16_at(self.bytes, self.cmap + offset);
        let doubled = usize::from(at(6)?);
        let segment = (0..doubled).step_by(2).find(|i| at(14 + i).is_some_and(|end| end >= code))?;
        let start = at(16 + doubled + segment)?;
        if start > code {
            return None;
        }
        let delta = at(16 + 2 * doubled + segment)?;
        let range_at = 16 + 3 * doubled + segment;
        let id = match usize::from(at(range_at)?) {
            0 => code.wrapping_add(delta),
            range => match at(range_at + range + 2 * usize::from(code - start))? {
                0 => 0,
                id => id.wrapping_add(delta),
            },
        };
        (id != 0).then_some(id)
    }

    fn glyph(&self, id: u16) -> Glyph {
        let id = usize::from(id);
        let advance = u16_at(self.bytes, self.hmtx + 4 * id.min(self.metrics - 1)).unwrap_or(0);
        let offset = |id: usize| {
            if self.loca_is_long {
                u32_at(self.bytes, self.loca + 4 * id).map(|v| v as usize)
            } else {
                u16_at(self.bytes, self.loca + 2 * id).map(|v| 2 * usize::from(v))
            }
        };
        // Two equal offsets mean a glyph without ink, such as the space.
        let bearing = match (offset(id), offset(id + 1)) {
            (Some(start), Some(end)) if start < end => i16_at(self.bytes, self.glyf + start + 2),
            _ => None,
        };
        Glyph {
            family: self.family,
            size_per_em: self.size_per_em,
            advance: f64::from(advance) / self.units_per_em,
            bearing: f64::from(bearing.unwrap_or(0)) / self.units_per_em,
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn i16_at(bytes: &[u8], at: usize) -> Option<i16> {
    Some(i16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use plotters::style::IntoFont;

    use super::*;

    #[test]
    fn advances_agree_with_the_rasteriser() {
        let fonts = Fonts::get().unwrap();
        for (family, text) in [(TEXT_FAMILY, "nats per byte, ±0.013 ατθβρκλσ≤≥−×·…–—⁰¹²³⁴⁹₀"), (FALLBACK_FAMILY, "→")]
        {
            let glyph = fonts.glyph(text.chars().next().unwrap());
            assert_eq!(glyph.family, family);
            let font = (family, 1000.0 * glyph.size_per_em).into_font();
            let (width, _) = font.box_size(text).unwrap();
            let ours = fonts.width(text, 1000.0);
            assert!((ours - f64::from(width)).abs() < 2.0, "{text}: {ours} against {width}");
        }
    }

    #[test]
    fn every_character_of_the_house_has_a_glyph() {
        let fonts = Fonts::get().unwrap();
        for c in "⁻⁰¹²³⁴⁵⁶⁷⁸⁹±ατθβρκλσ≤≥→−×·…–—".chars() {
            let found = fonts.text.glyph_id(c).or_else(|| fonts.fallback.glyph_id(c));
            assert!(found.is_some(), "{c}");
        }
        assert_eq!(fonts.text.glyph_id('漢'), None);
        assert_eq!(fonts.text.glyph_id('😀'), None);
    }

    #[test]
    fn bearings_tell_narrow_letters_from_those_that_reach_back() {
        let fonts = Fonts::get().unwrap();
        let bearing = |c| fonts.glyph(c).bearing;
        assert!(bearing('l') > 0.06 && bearing('j') < 0.0 && bearing(' ') == 0.0, "{} {}", bearing('l'), bearing('j'));
    }

    #[test]
    fn long_text_is_cut_and_wrapped_within_the_room() {
        let fonts = Fonts::get().unwrap();
        let text = "a rather long sentence about ± units ".repeat(10);
        assert_eq!(fonts.fit("short", 12.0, 100.0), "short");
        let cut = fonts.fit(&text, 12.0, 100.0);
        assert!(cut.ends_with('…') && fonts.width(&cut, 12.0) <= 100.0, "{cut}");
        let lines = fonts.wrap(&text, 12.0, 200.0, 3);
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| fonts.width(line, 12.0) <= 200.0), "{lines:?}");
        assert!(lines[2].ends_with('…'));
        assert_eq!(fonts.wrap("one two", 12.0, 200.0, 3), ["one two"]);
        assert!(fonts.wrap("  ", 12.0, 200.0, 3).is_empty());
    }

    #[test]
    fn a_cut_font_file_is_refused_or_lacks_glyphs_without_a_panic() {
        for length in [0, 11, 100, 400, 5000, 100_000] {
            let face = Face::parse("cut", &UBUNTU_LIGHT[..length]);
            if let Some(face) = face {
                let _ = face.glyph_id('a').map(|id| face.glyph(id));
            }
        }
    }
}
