//! The tokens that blocks are measured on.

use anyhow::{Result, bail};
use datasets::text::{Batch, Document, IGNORE, RowMode, Rows, Tokenizer};

use crate::model::LlamaConfig;

/// Tokens that go through a model at once.
const BATCH_TOKENS: usize = 4096;
/// Logits that are held for a batch.
const BATCH_LOGITS: usize = 1 << 26;
const MAX_ROWS: usize = 64;

/// Rows of a batch: about 4096 tokens, fewer for a large vocabulary.
pub fn rows_at_once(model: &LlamaConfig, context: usize) -> usize {
    let tokens = BATCH_TOKENS.min(BATCH_LOGITS / model.vocabulary.max(1));
    (tokens / context.max(1)).clamp(1, MAX_ROWS)
}

/// About so many tokens of the documents, laid out as a run lays them out, spread evenly over all of them.
///
/// # Errors
/// If the text cannot be tokenized, or gives no row.
pub fn run_rows(
    documents: &[Document],
    tokenizer: &Tokenizer,
    mode: RowMode,
    model: &LlamaConfig,
    context: usize,
    tokens: usize,
) -> Result<Vec<Batch>> {
    let rows = Rows::build(documents, tokenizer, mode, context)?;
    let wanted = tokens.div_ceil(context).max(1);
    // Batches of equal size, so that they hold about what was asked for.
    let count = wanted.div_ceil(rows_at_once(model, context));
    let batches = rows.spread_batches(wanted.div_ceil(count), count)?;
    check_ids(&batches, model.vocabulary)?;
    Ok(batches)
}

/// About so many tokens of the documents as a pre-trained model expects them: each document is cut into windows of `context`
/// tokens, and each window begins with the special tokens that the tokenizer puts before a text. Windows are spread evenly over
/// all of them.
///
/// # Errors
/// If the text cannot be tokenized, gives no token to predict, or `context` has no room.
pub fn windows(
    documents: &[Document],
    tokenizer: &Tokenizer,
    model: &LlamaConfig,
    context: usize,
    tokens: usize,
) -> Result<Vec<Batch>> {
    let (prefix, _) = tokenizer.template();
    if context < prefix.len() + 2 {
        bail!("--context {context} has no room for a token and the one after it: give at least {}", prefix.len() + 2);
    }
    let mut all: Vec<Vec<i32>> = Vec::new();
    let texts: Vec<&str> = documents.iter().map(|document| document.text.as_str()).collect();
    for text in tokenizer.encode_all(&texts)? {
        for part in text.ids.chunks(context - prefix.len()) {
            // Ids fit: tokenizers with larger ones are refused.
            let window: Vec<i32> = prefix.iter().chain(part).map(|&id| id as i32).collect();
            if window.len() > 1 {
                all.push(window);
            }
        }
    }
    if all.is_empty() {
        bail!("the text has no token to predict: give a longer one");
    }
    let wanted = tokens.div_ceil(context).clamp(1, all.len());
    let chosen: Vec<usize> = (0..wanted).map(|k| (2 * k + 1) * all.len() / (2 * wanted)).collect();
    // A padding token may have come after the model was trained.
    let filler = Some(tokenizer.filler()).filter(|&id| (id as usize) < model.vocabulary).unwrap_or(0) as i32;
    let batches: Vec<Batch> = chosen
        .chunks(rows_at_once(model, context))
        .map(|rows| {
            let (mut inputs, mut targets) = (Vec::new(), Vec::new());
            for (place, &row) in rows.iter().enumerate() {
                inputs.extend(&all[row]);
                targets.extend(&all[row][1..]);
                inputs.resize((place + 1) * context, filler);
                targets.resize((place + 1) * context, IGNORE);
            }
            Batch {
                target_tokens: targets.iter().filter(|target| **target != IGNORE).count(),
                inputs,
                targets,
                row_numbers: rows.iter().map(|&row| row as u32).collect(),
                rows: rows.len(),
                context,
                target_bytes: 0,
            }
        })
        .collect();
    check_ids(&batches, model.vocabulary)?;
    Ok(batches)
}

/// Refuses tokens that the model has no embedding for. A tokenizer may have more tokens than the model, as long as the text
/// does not need them.
fn check_ids(batches: &[Batch], vocabulary: usize) -> Result<()> {
    let largest = batches.iter().flat_map(|batch| batch.inputs.iter().chain(&batch.targets)).max();
    match largest {
        Some(&id) if usize::try_from(id).is_ok_and(|id| id >= vocabulary) => {
            bail!("the tokenizer gives token {id}, and the model has {vocabulary}: it is not the model's own tokenizer")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::Preset;

    fn documents(texts: &[&str]) -> Vec<Document> {
        texts.iter().map(|text| Document { name: String::new(), text: (*text).to_owned() }).collect()
    }

    fn model(vocabulary: usize) -> LlamaConfig {
        LlamaConfig { vocabulary, ..Preset::Smoke.settings().model }
    }

    #[test]
    fn windows_cover_the_documents_one_by_one() {
        let tokenizer = Tokenizer::bytes();
        let batches = windows(&documents(&["abcdefg", "z", "xy"]), &tokenizer, &model(257), 3, 1000).unwrap();
        assert_eq!(batches.len(), 1);
        let rows: Vec<&[i32]> = batches[0].inputs.chunks(3).collect();
        let b = |c: char| c as i32;
        // One letter has no successor.
        assert_eq!(rows, [[b('a'), b('b'), b('c')], [b('d'), b('e'), b('f')], [b('x'), b('y'), 256]]);
        assert_eq!(batches[0].targets[6..], [b('y'), IGNORE, IGNORE]);
        assert_eq!(batches[0].target_tokens, 5);
    }

    #[test]
    fn fewer_tokens_are_spread_over_the_text() {
        let text: String = (0..100).map(|i| char::from(b'0' + i / 10)).collect();
        let batches = windows(&documents(&[&text]), &Tokenizer::bytes(), &model(257), 10, 30).unwrap();
        let first: Vec<i32> = batches.iter().flat_map(|batch| batch.inputs.iter().step_by(10).copied()).collect();
        assert_eq!(first, [b'1', b'5', b'8'].map(i32::from));
    }

    #[test]
    fn a_large_vocabulary_makes_small_batches() {
        assert_eq!(rows_at_once(&model(257), 64), 64);
        assert_eq!(rows_at_once(&model(128_256), 512), 1);
        assert_eq!(rows_at_once(&model(1 << 24), 1 << 20), 1);
    }

    #[test]
    fn a_text_that_cannot_be_used_is_refused() {
        let message = |texts: &[&str], vocabulary, context| {
            let windows = windows(&documents(texts), &Tokenizer::bytes(), &model(vocabulary), context, 8);
            windows.unwrap_err().to_string()
        };
        assert!(message(&["ab"], 90, 4).contains("token 98"));
        assert!(message(&["a", ""], 257, 4).contains("longer"));
        assert!(message(&["ab"], 257, 1).contains("at least 2"));
    }
}
