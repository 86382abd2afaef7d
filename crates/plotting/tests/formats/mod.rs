//! Readers of the two formats, independent of what wrote them: just enough of PNG and XML to notice a broken file.

use std::fs;
use std::io::Read;
use std::path::Path;

/// A decoded RGB bitmap.
pub struct Png {
    pub width: usize,
    pub height: usize,
    pixels: Vec<u8>,
}

impl Png {
    /// Reads a PNG of 8-bit RGB, checking signature, checksums, order of chunks and the length of the data.
    pub fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap();
        assert_eq!(bytes[..8], *b"\x89PNG\r\n\x1a\n");
        let (mut at, mut kinds, mut packed, mut head) = (8, Vec::new(), Vec::new(), Vec::new());
        while at < bytes.len() {
            let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
            let length = word(at) as usize;
            let kind = &bytes[at + 4..at + 8];
            let data = &bytes[at + 8..at + 8 + length];
            assert_eq!(crc32fast::hash(&bytes[at + 4..at + 8 + length]), word(at + 8 + length));
            match kind {
                b"IHDR" => head = data.to_vec(),
                b"IDAT" => packed.extend_from_slice(data),
                _ => {}
            }
            kinds.push(kind.to_vec());
            at += length + 12;
        }
        assert_eq!((kinds[0].as_slice(), kinds.last().unwrap().as_slice()), (&b"IHDR"[..], &b"IEND"[..]));
        let size = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap()) as usize;
        let (width, height) = (size(0), size(4));
        assert_eq!(head[8..], [8, 2, 0, 0, 0], "8 bits, RGB, not interlaced");
        let mut filtered = Vec::new();
        flate2::read::ZlibDecoder::new(packed.as_slice()).read_to_end(&mut filtered).unwrap();
        assert_eq!(filtered.len(), height * (3 * width + 1));
        let mut pixels = vec![0_u8; 3 * width * height];
        for y in 0..height {
            let line = &filtered[y * (3 * width + 1)..][..3 * width + 1];
            for x in 0..3 * width {
                let of = |dx: usize, dy: usize| {
                    if x < dx || y < dy { 0 } else { i32::from(pixels[(y - dy) * 3 * width + x - dx]) }
                };
                let (left, up, corner) = (of(3, 0), of(0, 1), of(3, 1));
                let guess = match line[0] {
                    0 => 0,
                    1 => left,
                    2 => up,
                    3 => (left + up) / 2,
                    4 => {
                        let estimate = left + up - corner;
                        *[left, up, corner].iter().min_by_key(|v| (estimate - **v).abs()).unwrap()
                    }
                    other => panic!("filter {other}"),
                };
                pixels[y * 3 * width + x] = line[x + 1].wrapping_add(guess as u8);
            }
        }
        Self { width, height, pixels }
    }

    /// Pixels darker than a mid grey in the rows above `row`.
    pub fn dark_pixels_above(&self, row: usize) -> usize {
        self.pixels[..3 * self.width * row].chunks_exact(3).filter(|pixel| pixel.iter().all(|&v| v < 0x80)).count()
    }

    pub fn has_color(&self, color: [u8; 3]) -> bool {
        self.pixels.chunks_exact(3).any(|pixel| pixel == color)
    }
}

/// Panics unless `text` is well-formed XML of the kind that an SVG writer produces.
pub fn check_xml(text: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    let mut roots = 0;
    while let Some(start) = rest.find('<') {
        check_text(&rest[..start]);
        assert!(!open.is_empty() || rest[..start].trim().is_empty(), "text outside the root");
        let end = tag_end(&rest[start..]).expect("a tag is closed") + start;
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name.trim()), "closing tag");
            continue;
        }
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let name_end = tag.find(char::is_whitespace).unwrap_or(tag.len());
        let (name, attributes) = tag.split_at(name_end);
        assert!(!name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric()), "element {name:?}");
        check_attributes(attributes);
        roots += usize::from(open.is_empty());
        if !is_empty {
            open.push(name);
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty() && roots == 1, "left open: {open:?}, {roots} roots");
}

/// Where a tag ends: `>` inside a quoted attribute does not count.
fn tag_end(tag: &str) -> Option<usize> {
    let mut is_quoted = false;
    tag.char_indices()
        .find(|(_, c)| {
            is_quoted ^= *c == '"';
            *c == '>' && !is_quoted
        })
        .map(|(at, _)| at)
}

fn check_attributes(mut rest: &str) {
    let mut names = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return;
        }
        let (name, value) = rest.split_once("=\"").expect("name=\"value\"");
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "-:".contains(c)), "attribute {name:?}");
        assert!(!names.contains(&name), "attribute {name} twice");
        names.push(name);
        let (value, after) = value.split_once('"').expect("closing quote");
        assert!(!value.contains('<'));
        check_text(value);
        rest = after;
    }
}

fn check_text(text: &str) {
    for c in text.chars() {
        let is_allowed =
            matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
        assert!(is_allowed, "character {c:?}");
    }
    for part in text.split('&').skip(1) {
        let entity = part.split_once(';').expect("an entity ends").0;
        assert!(["lt", "gt", "amp", "quot", "apos"].contains(&entity), "entity {entity:?}");
    }
}

#[test]
fn the_checker_notices_what_is_broken() {
    check_xml("<svg a=\"1 &gt; 0\"><b/><title>x &amp; y</title></svg>\n");
    for broken in [
        "<svg>",
        "<svg></a>",
        "<svg/><svg/>",
        "<svg a=1/>",
        "<svg a=\"1\" a=\"2\"/>",
        "<svg>a & b</svg>",
        "<svg>\u{1b}</svg>",
        "<svg>&nbsp;</svg>",
        "text",
    ] {
        let found = std::panic::catch_unwind(|| check_xml(broken));
        assert!(found.is_err(), "{broken}");
    }
}
