//! Cutting a long text where a byte-level tokenizer would cut it anyway.

/// Bytes after which a piece ends at the next possible place.
pub(super) const PIECE: usize = 1 << 17;

/// Cuts `text` into pieces of about `size` bytes between a character that is not white space and a space or line feed
/// that follows it.
///
/// The splitting pattern of GPT-2 lets white space stand only at the start of a pre-token (or fill one), so it ends a
/// pre-token at each such place, and what follows does not depend on what came before: the ids of the pieces are the ids
/// of the whole. Pieces are encoded on several cores and bound the memory that one long file needs.
pub(super) fn pieces(mut text: &str, size: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    while let Some(cut) = place_to_cut(text, size) {
        let (piece, rest) = text.split_at(cut);
        pieces.push(piece);
        text = rest;
    }
    if !text.is_empty() {
        pieces.push(text);
    }
    pieces
}

fn place_to_cut(text: &str, size: usize) -> Option<usize> {
    if text.len() <= size {
        return None;
    }
    let start = text.floor_char_boundary(size);
    let mut before = text[..start].chars().next_back()?;
    for (i, c) in text[start..].char_indices() {
        if matches!(c, ' ' | '\n') && !before.is_whitespace() {
            return Some(start + i);
        }
        before = c;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cuts_before_the_space_that_follows_a_word() {
        assert_eq!(pieces("one two  three\nfour", 4), ["one two", "  three", "\nfour"]);
        assert_eq!(pieces("one \u{A0} two", 3), ["one", " \u{A0} two"]);
        assert_eq!(pieces("nospacesatall", 4), ["nospacesatall"]);
        assert_eq!(pieces("        ", 2), ["        "]);
        assert!(pieces("", 2).is_empty());
    }

    proptest! {
        #[test]
        fn pieces_are_the_whole(text in "[a\u{20AC} \n\t']{0,60}", size in 1_usize..20) {
            let pieces = pieces(&text, size);
            prop_assert_eq!(pieces.concat(), text.as_str());
            prop_assert!(pieces.iter().all(|piece| !piece.is_empty()));
        }
    }
}
