//! Settings in layers: a preset, over it a settings file, over it the flags of the command line.
//!
//! Each layer may name any part of the settings; a key that the settings do not have is refused, with the file that it
//! stands in and the nearest key that there is.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use training::settings::Layers;
//!
//! #[derive(Debug, Serialize, Deserialize)]
//! struct Model { layers: usize, width: usize }
//! #[derive(Debug, Serialize, Deserialize)]
//! struct Settings { lr: f64, model: Model }
//!
//! let preset = Settings { lr: 1e-3, model: Model { layers: 8, width: 512 } };
//! let mut layers = Layers::preset(preset)?;
//! layers.text("run.toml", "model.layers = 12")?;
//! layers.set("--lr", "lr", 3e-4)?;
//! assert_eq!((layers.settings().lr, layers.settings().model.layers, layers.settings().model.width), (3e-4, 12, 512));
//!
//! let error = layers.text("run.toml", "model.layer = 12").unwrap_err().to_string();
//! assert!(error.contains("run.toml") && error.contains("`model.layer`") && error.contains("`model.layers`"));
//! # Ok::<(), training::settings::SettingsError>(())
//! ```

use std::{fs, io, path::Path};

use serde::{Serialize, de::DeserializeOwned};
use toml::{Table, Value};

/// What can be wrong with settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A settings file cannot be read.
    #[error("cannot read the settings file {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A settings file is no TOML.
    #[error("{source_name} is not valid TOML: {message}")]
    Syntax {
        /// The file or flag.
        source_name: String,
        /// Where, and what is wrong.
        message: String,
    },
    /// A layer names something that the settings do not have.
    #[error("{source_name} sets `{key}`, which is no setting{}", nearest.as_ref().map_or_else(String::new, |nearest|
        format!("; did you mean `{nearest}`?")))]
    UnknownKey {
        /// The file or flag.
        source_name: String,
        /// The key, with the keys that lead to it.
        key: String,
        /// The valid key that it resembles most.
        nearest: Option<String>,
    },
    /// A value is of the wrong kind or out of range.
    #[error("the settings of {source_name} do not fit: {message}")]
    Value {
        /// The file or flag.
        source_name: String,
        /// Which value, and what is wrong with it.
        message: String,
    },
}

/// Settings of the type `T`, as they are after the layers so far.
#[derive(Clone, Debug)]
pub struct Layers<T> {
    settings: T,
}

impl<T: Serialize + DeserializeOwned> Layers<T> {
    /// Starts from a complete set of settings.
    ///
    /// # Errors
    /// If they cannot be written as TOML and read back: a fault of the type `T`.
    pub fn preset(settings: T) -> Result<Self, SettingsError> {
        let mut layers = Self { settings };
        layers.table("the preset", Table::new())?;
        Ok(layers)
    }

    /// Lays a settings file over what there is.
    ///
    /// # Errors
    /// If it cannot be read, is no TOML, names an unknown key, or has a value that does not fit.
    pub fn file(&mut self, path: &Path) -> Result<&mut Self, SettingsError> {
        let file = path.display().to_string();
        match fs::read_to_string(path) {
            Ok(text) => self.text(&file, &text),
            Err(source) => Err(SettingsError::Read { file, source }),
        }
    }

    /// Lays TOML text over what there is; `source_name` says where it comes from.
    ///
    /// # Errors
    /// As [`file`](Self::file).
    pub fn text(&mut self, source_name: &str, text: &str) -> Result<&mut Self, SettingsError> {
        let table = text.parse::<Table>().map_err(|error| SettingsError::Syntax {
            source_name: source_name.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        })?;
        self.table(source_name, table)
    }

    /// Sets one value; `key` is a dotted path, and `source_name` the flag that it comes from.
    ///
    /// # Errors
    /// If there is no such key, or the value does not fit.
    pub fn set(&mut self, source_name: &str, key: &str, value: impl Serialize) -> Result<&mut Self, SettingsError> {
        let value = Value::try_from(value).map_err(|error| SettingsError::Value {
            source_name: source_name.to_owned(),
            message: format!("`{key}`: {error}"),
        })?;
        let mut parts = key.rsplit('.');
        let mut table = Table::new();
        table.insert(parts.next().unwrap_or_default().to_owned(), value);
        for part in parts {
            table = Table::from_iter([(part.to_owned(), Value::Table(table))]);
        }
        self.table(source_name, table)
    }

    /// As [`set`](Self::set) where the flag was given, and nothing otherwise.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn set_if(
        &mut self,
        source_name: &str,
        key: &str,
        value: Option<impl Serialize>,
    ) -> Result<&mut Self, SettingsError> {
        match value {
            Some(value) => self.set(source_name, key, value),
            None => Ok(self),
        }
    }

    /// Lays a table over what there is. Tables are merged, everything else (lists too) is replaced.
    ///
    /// # Errors
    /// If it names an unknown key or has a value that does not fit; the settings are then as before.
    pub fn table(&mut self, source_name: &str, layer: Table) -> Result<&mut Self, SettingsError> {
        let error = |message: String| SettingsError::Value { source_name: source_name.to_owned(), message };
        let before = to_table(&self.settings).map_err(error)?;
        let mut merged = before.clone();
        merge(&mut merged, layer.clone());
        let settings = merged.try_into::<T>().map_err(|failure| {
            // Where the type refuses unknown fields, its own message comes first: name the nearest key all the same.
            match unknown_key(&layer, &before, &mut Vec::new()) {
                Some(key) if failure.to_string().contains("unknown field") => self.unknown(source_name, key, &before),
                _ => error(failure.to_string().trim_end().to_owned()),
            }
        })?;
        // What the type ignored is not there when the result is written again. A value that was not set before (an
        // `Option`) is, so the settings need no list of their keys.
        let after = to_table(&settings).map_err(error)?;
        if let Some(key) = unknown_key(&layer, &after, &mut Vec::new()) {
            return Err(self.unknown(source_name, key, &after));
        }
        self.settings = settings;
        Ok(self)
    }

    /// The settings after all layers.
    pub fn settings(&self) -> &T {
        &self.settings
    }

    /// The settings after all layers.
    pub fn into_settings(self) -> T {
        self.settings
    }

    fn unknown(&self, source_name: &str, key: Vec<String>, known: &Table) -> SettingsError {
        SettingsError::UnknownKey {
            source_name: source_name.to_owned(),
            nearest: nearest_key(&key, known),
            key: key.join("."),
        }
    }
}

fn to_table(settings: &impl Serialize) -> Result<Table, String> {
    Table::try_from(settings).map_err(|error| format!("the settings cannot be written as TOML: {error}"))
}

fn merge(base: &mut Table, layer: Table) {
    for (key, value) in layer {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(base)), Value::Table(layer)) if !changes_kind(base, &layer) => merge(base, layer),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// Whether the layer chooses another variant of an enum that is tagged by `kind`: the fields of the variant before do
/// not belong to the new one.
fn changes_kind(base: &Table, layer: &Table) -> bool {
    layer.get("kind").is_some_and(|kind| base.get("kind").is_some_and(|before| before != kind))
}

/// The path of the first key of `layer` that `known` lacks.
fn unknown_key(layer: &Table, known: &Table, path: &mut Vec<String>) -> Option<Vec<String>> {
    for (key, value) in layer {
        path.push(key.clone());
        match (value, known.get(key)) {
            (_, None) => return Some(path.clone()),
            (Value::Table(layer), Some(Value::Table(known))) => {
                if let Some(found) = unknown_key(layer, known, path) {
                    return Some(found);
                }
            }
            _ => {}
        }
        path.pop();
    }
    None
}

/// The dotted key that resembles `key` most: one of the same table if one is close, else one of the same last part
/// elsewhere.
fn nearest_key(key: &[String], known: &Table) -> Option<String> {
    let name = key.last()?;
    let mut all = Vec::new();
    all_keys(known, &mut Vec::new(), &mut all);
    let (parent, limit) = (&key[..key.len() - 1], 1 + name.chars().count() / 3);
    all.into_iter()
        .filter_map(|candidate| {
            let distance = edit_distance(name, candidate.last()?);
            let elsewhere = candidate[..candidate.len() - 1] != *parent;
            // A key of another table must match but for a slip, or the suggestion would be a guess.
            let allowed = if elsewhere { 1 } else { limit };
            (distance <= allowed).then(|| (elsewhere, distance, candidate.join(".")))
        })
        .min()
        .map(|(_, _, key)| key)
}

fn all_keys(table: &Table, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    for (key, value) in table {
        path.push(key.clone());
        found.push(path.clone());
        if let Value::Table(table) = value {
            all_keys(table, path, found);
        }
        path.pop();
    }
}

/// Levenshtein's distance: how many insertions, deletions and replacements lead from `a` to `b`.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::schedule::Schedule;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Inner {
        width: usize,
        dropout: Option<f64>,
        schedule: Schedule,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Strict {
        lr: f64,
        betas: [f64; 2],
        inner: Inner,
    }

    fn preset() -> Strict {
        let inner = Inner { width: 8, dropout: None, schedule: Schedule::default() };
        Strict { lr: 0.1, betas: [0.9, 0.999], inner }
    }

    fn layers() -> Layers<Strict> {
        Layers::preset(preset()).unwrap()
    }

    #[test]
    fn later_layers_win_and_the_rest_stays() {
        let mut layers = layers();
        layers.text("a.toml", "lr = 0.2\nbetas = [0.8, 0.9]\n[inner]\nwidth = 16").unwrap();
        layers.set("--lr", "lr", 0.3).unwrap().set("--dropout", "inner.dropout", 0.5).unwrap();
        layers.set_if("--width", "inner.width", None::<usize>).unwrap();
        let inner = Inner { width: 16, dropout: Some(0.5), schedule: Schedule::default() };
        assert_eq!(layers.into_settings(), Strict { lr: 0.3, betas: [0.8, 0.9], inner });
    }

    #[test]
    fn another_kind_of_schedule_drops_the_fields_of_the_one_before() {
        let mut layers = layers();
        layers.text("a.toml", "inner.schedule = { kind = \"linear\" }").unwrap();
        assert_eq!(layers.settings().inner.schedule, Schedule::Linear);
        layers.text("a.toml", "inner.schedule = { kind = \"cosine\", min_ratio = 0.2 }").unwrap();
        layers.text("a.toml", "inner.schedule.min_ratio = 0.3").unwrap();
        assert_eq!(layers.settings().inner.schedule, Schedule::Cosine { min_ratio: 0.3 });
    }

    #[test]
    fn unknown_keys_name_the_file_and_the_nearest_key() {
        for (text, key, nearest) in [
            ("lt = 1.0", "lt", Some("lr")),
            ("[inner]\nwidht = 4", "inner.widht", Some("inner.width")),
            ("width = 4", "width", Some("inner.width")),
            ("[inner.schedule]\nmin_ration = 0.1", "inner.schedule.min_ration", Some("inner.schedule.min_ratio")),
            ("completely_else = 1", "completely_else", None),
        ] {
            let message = layers().text("my.toml", text).unwrap_err().to_string();
            assert!(message.starts_with("my.toml sets `"), "{message}");
            assert!(message.contains(&format!("`{key}`")), "{message}");
            match nearest {
                Some(nearest) => assert!(message.contains(&format!("did you mean `{nearest}`?")), "{message}"),
                None => assert!(!message.contains("did you mean"), "{message}"),
            }
        }
    }

    #[test]
    fn a_value_that_does_not_fit_names_its_source_and_changes_nothing() {
        let mut layers = layers();
        for text in ["lr = \"fast\"", "betas = [0.9]", "inner = 3", "inner.width = -1"] {
            let message = layers.text("my.toml", text).unwrap_err().to_string();
            assert!(message.contains("my.toml"), "{message}");
        }
        assert!(matches!(layers.text("my.toml", "lr ="), Err(SettingsError::Syntax { .. })));
        assert!(matches!(layers.file(Path::new("/no/such.toml")), Err(SettingsError::Read { .. })));
        assert_eq!(*layers.settings(), preset());
    }

    #[test]
    fn distances_count_edits() {
        for (a, b, distance) in [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("width", "widht", 2)] {
            assert_eq!((edit_distance(a, b), edit_distance(b, a)), (distance, distance));
        }
    }
}
