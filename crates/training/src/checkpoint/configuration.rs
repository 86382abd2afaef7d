//! The settings that a run depends on, in a form in which two of them can be compared.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Settings as a flat list of dotted keys and printed values.
///
/// Values are kept as text because text is compared exactly, and because a difference is to be shown to a person.
///
/// ```
/// use training::checkpoint::Configuration;
/// let old = Configuration::of(&serde_json::json!({ "lr": 0.1, "model": { "layers": 8 } }))?;
/// let new = Configuration::of(&serde_json::json!({ "lr": 0.1, "model": { "layers": 12 } }))?;
/// assert_eq!(old.differences(&new), ["model.layers: 8 there, 12 here"]);
/// assert_ne!(old.fingerprint(), new.fingerprint());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Configuration(BTreeMap<String, String>);

impl Configuration {
    /// The configuration of these settings.
    ///
    /// # Errors
    /// If they cannot be written as JSON.
    pub fn of(settings: &impl Serialize) -> Result<Self, serde_json::Error> {
        let mut flat = BTreeMap::new();
        flatten(&mut Vec::new(), &serde_json::to_value(settings)?, &mut flat);
        Ok(Self(flat))
    }

    /// Eight hexadecimal digits that are the same for the same settings.
    pub fn fingerprint(&self) -> String {
        let mut hasher = crc32fast::Hasher::new();
        for (key, value) in &self.0 {
            for text in [key, value] {
                hasher.update(&(text.len() as u64).to_le_bytes());
                hasher.update(text.as_bytes());
            }
        }
        format!("{:08x}", hasher.finalize())
    }

    /// What differs, key by key: `self` is "there", `other` is "here".
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let keys: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        let text = |side: &Self, key: &str| side.0.get(key).map_or("not set", String::as_str).to_owned();
        keys.into_iter()
            .filter(|key| self.0.get(*key) != other.0.get(*key))
            .map(|key| format!("{key}: {} there, {} here", text(self, key), text(other, key)))
            .collect()
    }
}

fn flatten(path: &mut Vec<String>, value: &Value, flat: &mut BTreeMap<String, String>) {
    match value {
        // An option that is not set is the same as one that an older version did not have.
        Value::Null => {}
        Value::Object(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                path.push(key.clone());
                flatten(path, value, flat);
                path.pop();
            }
        }
        leaf => _ = flat.insert(path.join("."), leaf.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_name_both_values_and_missing_keys() {
        let of = |value: Value| Configuration::of(&value).unwrap();
        let old = of(json!({ "a": 1, "b": { "c": [1, 2], "d": null }, "e": "x" }));
        assert_eq!(old.differences(&old), [""; 0]);
        let new = of(json!({ "a": 1.0, "b": { "c": [1, 3], "d": true } }));
        assert_eq!(
            old.differences(&new),
            [
                "a: 1 there, 1.0 here",
                "b.c: [1,2] there, [1,3] here",
                "b.d: not set there, true here",
                "e: \"x\" there, not set here"
            ]
        );
    }

    #[test]
    fn the_configuration_comes_back_exactly() {
        // A number that the default JSON reader does not read to the bit.
        let configuration = Configuration::of(&json!({ "lr": 2.6276638595537246e-7, "name": "a \"b\"" })).unwrap();
        let text = serde_json::to_string(&configuration).unwrap();
        let again: Configuration = serde_json::from_str(&text).unwrap();
        assert_eq!(again, configuration);
        assert_eq!(again.fingerprint(), configuration.fingerprint());
    }
}
