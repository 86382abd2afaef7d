//! Holding out a share of the user's documents.

use super::{
    Document, TextError,
    corpus::{leave_out_held_out, total_bytes},
};

pub(super) struct Parts {
    pub train: Vec<Document>,
    pub held_out: Vec<Document>,
    /// Documents on neither side, because their text is held out.
    pub left_out: usize,
    pub rule: String,
}

pub(super) fn check(fraction: f64) -> Result<(), TextError> {
    if (0.0..1.0).contains(&fraction) { Ok(()) } else { Err(TextError::HeldOutFraction { fraction }) }
}

/// Goes through the documents in the order of a hash of their text and holds each out as long as the held-out bytes stay
/// within `fraction` of all bytes. Equal texts are one unit, so that no held-out text is also trained on. If nothing
/// fits, the end of the largest document is held out, of all its copies if there are several.
///
/// Counted in bytes, not in documents, because documents differ in size: of three books one is a third of the text,
/// whatever share was asked for.
pub(super) fn by_fraction(documents: Vec<Document>, fraction: f64) -> Result<Parts, TextError> {
    check(fraction)?;
    if fraction == 0.0 {
        let rule = "nothing is held out".to_owned();
        return Ok(Parts { train: documents, held_out: Vec::new(), left_out: 0, rule });
    }
    let bytes = total_bytes(&documents);
    // Rounded down, and never everything: the share is less than 1.
    let budget = ((bytes as f64 * fraction) as u64).min(bytes.saturating_sub(1));
    let mut keys: Vec<(u64, usize)> = documents.iter().map(|d| key(&d.text)).zip(0..).collect();
    keys.sort_unstable();

    let mut is_held_out = vec![false; documents.len()];
    let mut held = 0;
    for equal in keys.chunk_by(|a, b| a.0 == b.0) {
        let size: u64 = equal.iter().map(|&(_, i)| documents[i].text.len() as u64).sum();
        if held + size <= budget {
            held += size;
            for &(_, i) in equal {
                is_held_out[i] = true;
            }
        }
    }
    if held == 0 {
        return cut_the_largest(documents, budget, fraction);
    }
    let (mut train, mut held_out) = (Vec::new(), Vec::new());
    for (document, is_held_out) in documents.into_iter().zip(is_held_out) {
        if is_held_out {
            held_out.push(document);
        } else {
            train.push(document);
        }
    }
    Ok(Parts {
        train,
        held_out,
        left_out: 0,
        rule: format!(
            "{:.1}% of the bytes were asked for; whole documents, chosen by a hash of their text",
            100.0 * fraction
        ),
    })
}

fn cut_the_largest(mut documents: Vec<Document>, budget: u64, fraction: f64) -> Result<Parts, TextError> {
    let too_little = TextError::TooLittleText { bytes: total_bytes(&documents), fraction };
    // Of equally long ones the hash chooses, so that the order of the files does not.
    let Some(largest) = documents.iter().max_by_key(|d| (d.text.len(), key(&d.text))) else {
        return Err(too_little);
    };
    // Every copy is cut: the end of one must not stay in the training data as part of another. Nothing fitted, so all
    // copies together are larger than the budget.
    let copies: Vec<usize> = (0..documents.len()).filter(|&i| documents[i].text == largest.text).collect();
    let cut = largest.text.len().saturating_sub(budget as usize / copies.len());
    let cut = largest.text.floor_char_boundary(cut);
    if cut == 0 || cut == largest.text.len() {
        return Err(too_little);
    }
    let mut held_out = Vec::with_capacity(copies.len());
    for &i in &copies {
        let document = &mut documents[i];
        let text = document.text.split_off(cut);
        held_out.push(Document { name: format!("{} from byte {cut}", document.name), text });
    }
    // The end may be the whole of a shorter document, and half of a text that repeats itself is equal to the other.
    let left_out = leave_out_held_out(&mut documents, &held_out);
    if documents.is_empty() {
        return Err(too_little);
    }
    let more = match copies.len() - 1 {
        0 => String::new(),
        others => format!(", and of {others} equal document(s)"),
    };
    let rule = format!(
        "{:.1}% of the bytes were asked for and no document is that small; the end of {}{more}",
        100.0 * fraction,
        held_out[0].name
    );
    Ok(Parts { train: documents, held_out, left_out, rule })
}

/// A hash of the text that no version of Rust or of a crate changes: CRC-32 and the length, mixed by the finalizer of
/// SplitMix64.
fn key(text: &str) -> u64 {
    let mut z = u64::from(crc32fast::hash(text.as_bytes())) | (text.len() as u64) << 32;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn documents(texts: &[&str]) -> Vec<Document> {
        texts.iter().enumerate().map(|(i, text)| Document { name: format!("d{i}"), text: (*text).to_owned() }).collect()
    }

    #[test]
    fn a_single_document_loses_its_end_at_a_character_boundary() {
        // 20 bytes, a tenth is 2: the cut at 18 would fall into the last letter (bytes 17 to 19).
        let parts = by_fraction(documents(&["abcdefghijklmnopq\u{20AC}"]), 0.1).unwrap();
        assert_eq!(parts.train[0].text, "abcdefghijklmnopq");
        assert_eq!(parts.held_out[0].text, "\u{20AC}");
        assert_eq!(parts.held_out[0].name, "d0 from byte 17");
    }

    #[test]
    fn few_large_documents_lose_the_end_of_the_largest() {
        let long = "long ".repeat(30);
        let parts = by_fraction(documents(&[&"a".repeat(100), &long, &"c".repeat(50)]), 0.1).unwrap();
        assert_eq!(parts.train.len(), 3);
        assert_eq!(parts.train[1].text.len() + 30, long.len());
        assert_eq!(parts.held_out[0].text, long[120..]);
    }

    /// The end of one copy was held out while the other stayed in the training data whole.
    #[test]
    fn every_copy_of_the_largest_document_loses_its_end() {
        let long = "0123456789".repeat(10);
        let parts = by_fraction(documents(&[&long, "x".repeat(60).as_str(), &long]), 0.1).unwrap();
        // 260 bytes, a tenth is 26: 13 of each copy.
        assert_eq!(parts.train.iter().map(|d| d.text.len()).collect::<Vec<_>>(), [87, 60, 87]);
        assert_eq!(parts.held_out.iter().map(|d| &*d.text).collect::<Vec<_>>(), [&long[87..]; 2]);
        assert_eq!(parts.held_out[1].name, "d2 from byte 87");
        assert!(parts.rule.ends_with("the end of d0 from byte 87, and of 1 equal document(s)"), "{}", parts.rule);
    }

    /// Eight documents "bb" are more than the share of 7 bytes, but the end of the largest is one of them.
    #[test]
    fn a_document_equal_to_the_end_that_is_held_out_is_left_out() {
        let long = format!("{}{}", "a".repeat(53), "bb");
        let mut texts = vec!["bb"; 8];
        texts.push(&long);
        let parts = by_fraction(documents(&texts), 0.029).unwrap();
        assert_eq!(parts.held_out[0].text, "bb");
        assert_eq!((parts.train.len(), parts.left_out), (1, 8));
        // Both halves of a text that repeats itself are the same text.
        assert!(matches!(by_fraction(documents(&["abab"]), 0.5), Err(TextError::TooLittleText { .. })));
    }

    #[test]
    fn too_little_text_is_refused() {
        for texts in [&["a"][..], &[], &["\u{20AC}"]] {
            assert!(matches!(by_fraction(documents(texts), 0.1), Err(TextError::TooLittleText { .. })));
        }
    }

    /// Rounding the share up once held out both copies and left nothing to train on.
    #[test]
    fn the_only_text_is_not_held_out_whole() {
        assert!(matches!(by_fraction(documents(&["a", "a"]), 0.98), Err(TextError::TooLittleText { .. })));
    }

    #[test]
    fn a_share_outside_zero_to_one_is_refused() {
        for fraction in [-0.1, 1.0, 1.5, f64::NAN, f64::INFINITY] {
            assert!(matches!(
                by_fraction(documents(&["some text", "more text"]), fraction),
                Err(TextError::HeldOutFraction { .. })
            ));
        }
    }

    #[test]
    fn no_share_keeps_everything() {
        let parts = by_fraction(documents(&["a", "b"]), 0.0).unwrap();
        assert_eq!((parts.train.len(), parts.held_out.len()), (2, 0));
    }

    #[test]
    fn many_documents_give_the_share_that_was_asked_for() {
        let texts: Vec<String> = (0..2000).map(|i| format!("document {i}").repeat(1 + i % 7)).collect();
        let all = documents(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        let bytes = total_bytes(&all) as f64;
        let parts = by_fraction(all, 0.05).unwrap();
        let share = total_bytes(&parts.held_out) as f64 / bytes;
        assert!((0.0495..=0.05).contains(&share), "{share}");
        // Chosen over the whole list, not from one end: 57 are expected in each half, with a deviation of 5.
        let first_half = parts.held_out.iter().filter(|d| d.name[1..].parse::<usize>().unwrap() < 1000);
        assert!((30..=80).contains(&first_half.count()));
    }

    /// Texts with copies of them: small shares of few texts cut the largest, large shares hold out whole ones.
    fn texts_with_copies() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec(("[ab\u{20AC}]{1,12}", 1_usize..4), 1..16)
            .prop_map(|texts| texts.into_iter().flat_map(|(text, copies)| vec![text; copies]).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]

        #[test]
        fn nothing_is_lost_and_no_text_is_on_both_sides(
            texts in texts_with_copies(),
            fraction in prop_oneof![0.01..0.2_f64, 0.01..0.99_f64],
            turn: prop::sample::Index,
        ) {
            let all = documents(&texts.iter().map(String::as_str).collect::<Vec<_>>());
            let Ok(parts) = by_fraction(all.clone(), fraction) else { return Ok(()) };
            prop_assert!(!parts.train.is_empty() && !parts.held_out.is_empty());
            let texts_of = |documents: &[Document]| {
                let mut texts: Vec<String> = documents.iter().map(|d| d.text.clone()).collect();
                texts.sort();
                texts
            };
            for held_out in &parts.held_out {
                prop_assert!(parts.train.iter().all(|d| d.text != held_out.text));
                // A document that was cut is nowhere in the training data as a whole.
                if let Some((name, _)) = held_out.name.split_once(" from byte ") {
                    let whole = &all.iter().find(|d| d.name == name).unwrap().text;
                    prop_assert!(whole.ends_with(&held_out.text));
                    prop_assert!(parts.train.iter().all(|d| d.text != *whole));
                }
            }
            // Every document is on one side, or in two parts on both, or left out because its text is held out.
            let mut missing = 0;
            for document in &all {
                let find = |side: &[Document], name: &str| side.iter().find(|d| d.name == name).map(|d| d.text.clone());
                let cut = parts.held_out.iter().find(|d| d.name.starts_with(&format!("{} from byte ", document.name)));
                match (find(&parts.train, &document.name), find(&parts.held_out, &document.name), cut) {
                    (Some(text), None, None) | (None, Some(text), None) => prop_assert_eq!(&text, &document.text),
                    (Some(start), None, Some(end)) => prop_assert_eq!(&(start + &end.text), &document.text),
                    (None, None, cut) => {
                        missing += 1;
                        prop_assert!(cut.is_some() || parts.held_out.iter().any(|d| d.text == document.text));
                    }
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            prop_assert_eq!(missing, parts.left_out);
            // Another order of the files gives the same texts.
            let mut turned = all.clone();
            turned.rotate_left(turn.index(all.len()));
            let again = by_fraction(turned, fraction).unwrap();
            prop_assert_eq!(texts_of(&again.held_out), texts_of(&parts.held_out));
            prop_assert_eq!(texts_of(&again.train), texts_of(&parts.train));
        }
    }
}
