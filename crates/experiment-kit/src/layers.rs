//! Layers of settings that mean the same in every program: a settings file, `--set`, `--steps`, `--batch`.

use std::path::Path;

use anyhow::{Result, bail};
use training::{run_directory::read_text, settings::Layers};

use crate::{RunSettings, compare::Comparison};

/// Lays a settings file over what there is. Of the config.toml of a comparison it takes the settings of its runs.
///
/// # Errors
/// If it cannot be read, or as [`Layers::text`].
pub fn lay_file<S: RunSettings>(layers: &mut Layers<S>, file: &Path) -> Result<()> {
    let text = read_text(file)?;
    match toml::from_str::<Comparison<S>>(&text) {
        Ok(comparison) => layers.table(&file.display().to_string(), toml::Table::try_from(comparison.run)?)?,
        Err(_) => layers.text(&file.display().to_string(), &text)?,
    };
    Ok(())
}

/// Lays the values of `--set KEY=VALUE` over what there is, in their order. A key may begin with `run.`, as it stands in
/// the config.toml of a comparison; quotes around a value can be left out.
///
/// # Errors
/// If there is no `=`, no such key, or the value does not fit; the message names the flag.
pub fn lay_pairs<S: RunSettings>(layers: &mut Layers<S>, pairs: &[String]) -> Result<()> {
    for pair in pairs {
        let Some((key, value)) = pair.split_once('=') else {
            bail!("--set {pair}: write KEY=VALUE, such as --set model.width=128");
        };
        let key = key.trim().strip_prefix("run.").unwrap_or(key.trim());
        layers.text(&format!("--set {pair}"), &format!("{key} = {}", toml_value(value.trim())))?;
    }
    Ok(())
}

/// A value as TOML: as it stands where it is TOML already, else as a string, so that quotes can be left out.
fn toml_value(text: &str) -> String {
    let parses = toml::from_str::<toml::Table>(&format!("x = {text}")).is_ok();
    if parses { text.to_owned() } else { toml::Value::String(text.to_owned()).to_string() }
}

/// Sets the number of optimizer steps; warm-up, evaluations and checkpoints move along in proportion. An
/// interval becomes no shorter than a step, and what is off (0) stays off.
///
/// # Errors
/// If the number does not fit a settings file.
pub fn lay_steps<S: RunSettings>(layers: &mut Layers<S>, steps: usize) -> Result<()> {
    let before = layers.settings().training().clone();
    // In 128 bits, where no product of two sizes overflows; 0 stays 0.
    let scale = |size: usize| size as u128 * steps as u128 / before.steps.max(1) as u128;
    let warmup = usize::try_from(scale(before.warmup)).unwrap_or(usize::MAX);
    // Rounded up: rounded down there would be one more, just before the last step.
    let scaled = |every: usize| {
        let up = (every as u128 * steps as u128).div_ceil(before.steps.max(1) as u128);
        usize::try_from(up).unwrap_or(usize::MAX).max(usize::from(every > 0))
    };
    layers.set("--steps", "training.steps", steps)?;
    layers.set("--steps", "training.warmup", warmup)?;
    layers.set("--steps", "training.evaluate_every", scaled(before.evaluate_every))?;
    layers.set("--steps", "training.checkpoint_every", scaled(before.checkpoint_every))?;
    Ok(())
}

/// The micro-batch for another batch: the largest part of it that is no larger than the micro-batch `before`.
pub fn micro_batch_for(batch: usize, before: usize) -> usize {
    if before >= batch {
        return batch;
    }
    (1..=before.min(1 << 16)).rev().find(|m| batch.is_multiple_of(*m)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_micro_batch_divides_its_batch_and_does_not_grow() {
        for batch in 1..200 {
            for before in 1..200 {
                let micro = micro_batch_for(batch, before);
                assert!(micro <= before && batch % micro == 0, "{batch}, {before}: {micro}");
                assert!((micro + 1..=before).all(|larger| batch % larger != 0), "{batch}, {before}: {micro}");
            }
        }
        assert_eq!(micro_batch_for(0, 4), 0, "left to the check of the settings");
        assert_eq!(micro_batch_for(usize::MAX, usize::MAX - 1), 65_535, "soon found, for any size");
    }

    #[test]
    fn quotes_around_a_text_can_be_left_out() {
        for (typed, value) in [("3", "3"), ("true", "true"), ("[1, 2]", "[1, 2]"), ("bytes", "\"bytes\"")] {
            assert_eq!(toml_value(typed), value);
        }
        assert_eq!(toml_value("\"0:l\""), "\"0:l\"");
        assert_eq!(toml_value("0:l"), "\"0:l\"");
    }
}
