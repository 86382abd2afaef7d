//! One line of a log, as a value and as text.

use std::fmt;

use serde::{
    Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::Value;

use super::MetricsError;

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// An optimizer step.
    Train,
    /// Held-out data.
    Evaluation,
    /// The clock.
    Timing,
}

impl RecordKind {
    const ALL: [Self; 3] = [Self::Train, Self::Evaluation, Self::Timing];

    fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Evaluation => "evaluation",
            Self::Timing => "timing",
        }
    }
}

/// One line of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// How many updates had been made.
    pub step: usize,
    /// What it is about.
    pub kind: RecordKind,
    /// The values, in the order in which they are written.
    pub values: Vec<(String, f64)>,
}

impl Record {
    /// A record of these values.
    pub fn new(step: usize, kind: RecordKind, values: Vec<(String, f64)>) -> Self {
        Self { step, kind, values }
    }

    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|(other, _)| other == name).map(|&(_, value)| value)
    }

    /// The line, with its line feed.
    pub(super) fn to_line(&self) -> Result<String, MetricsError> {
        let mut line = format!("{{\"step\":{},\"kind\":\"{}\"", self.step, self.kind.name());
        for (index, (name, value)) in self.values.iter().enumerate() {
            let taken = |other: &str| other == name;
            if taken("step") || taken("kind") || self.values[..index].iter().any(|(other, _)| taken(other)) {
                return Err(MetricsError::Name { name: name.clone(), step: self.step });
            }
            let name = Value::from(name.as_str());
            // `{value:?}` of a float is the shortest text that reads back as the same float.
            let quote = if value.is_finite() { "" } else { "\"" };
            line += &format!(",{name}:{quote}{value:?}{quote}");
        }
        line += "}\n";
        Ok(line)
    }

    pub(super) fn from_line(line: &str) -> Result<Self, String> {
        let entries = serde_json::from_str::<Entries>(line).map_err(|error| error.to_string())?.0;
        // serde_json reads some floats one unit in the last place off, the standard library does not.
        let mut numbers = number_texts(line).into_iter();
        let (mut step, mut kind, mut values) = (None, None, Vec::with_capacity(entries.len()));
        for (name, value) in entries {
            let number = match &value {
                Value::Number(_) => numbers.next().and_then(|text| text.parse::<f64>().ok()),
                Value::String(text) if ["NaN", "inf", "-inf"].contains(&text.as_str()) => text.parse().ok(),
                _ => None,
            };
            match name.as_str() {
                "step" => step = value.as_u64(),
                "kind" => kind = RecordKind::ALL.into_iter().find(|kind| value == kind.name()),
                _ => values.push((name.clone(), number.ok_or_else(|| format!("`{name}` is no number"))?)),
            }
        }
        match (step.and_then(|step| usize::try_from(step).ok()), kind) {
            (Some(step), Some(kind)) => Ok(Self { step, kind, values }),
            (None, _) => Err("`step` is missing".into()),
            (_, None) => Err("`kind` is missing, or none of train, evaluation, timing".into()),
        }
    }
}

/// A flat JSON object whose entries keep their order.
struct Entries(Vec<(String, Value)>);

impl<'de> serde::Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    if matches!(entry, (_, Value::Array(_) | Value::Object(_))) {
                        return Err(serde::de::Error::custom("a value is no number"));
                    }
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// The texts of the numbers in a valid, flat JSON object, in order.
fn number_texts(line: &str) -> Vec<&str> {
    let mut numbers = Vec::new();
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += 1 + usize::from(bytes[at] == b'\\');
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                while at < bytes.len() && matches!(bytes[at], b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E') {
                    at += 1;
                }
                numbers.push(&line[start..at]);
            }
            _ => at += 1,
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(step: usize, values: &[(&str, f64)]) -> Record {
        let values = values.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        Record::new(step, RecordKind::Train, values)
    }

    #[test]
    fn a_line_is_what_the_documentation_shows() {
        let line =
            record(100, &[("loss", 3.5), ("lr", 1e-7), ("n", 2.0), ("bad", f64::NAN), ("worse", f64::NEG_INFINITY)])
                .to_line()
                .unwrap();
        assert_eq!(
            line,
            "{\"step\":100,\"kind\":\"train\",\"loss\":3.5,\"lr\":1e-7,\"n\":2.0,\"bad\":\"NaN\",\"worse\":\"-inf\"}\n"
        );
    }

    proptest! {
        #[test]
        fn records_come_back_to_the_bit(
            step in 0usize..1 << 50,
            bits in prop::collection::vec(any::<u64>(), 0..12),
            names in prop::collection::hash_set("[ -~é\\n\"\\\\]{1,9}", 12),
        ) {
            let names = names.into_iter().filter(|name| name != "step" && name != "kind");
            let values: Vec<_> = names.zip(bits.into_iter().map(f64::from_bits)).collect();
            let written = Record::new(step, RecordKind::Evaluation, values);
            let read = Record::from_line(&written.to_line().unwrap()).unwrap();
            prop_assert_eq!((read.step, read.kind), (written.step, written.kind));
            prop_assert_eq!(read.values.len(), written.values.len());
            for ((name, value), (expected_name, expected)) in read.values.iter().zip(&written.values) {
                prop_assert_eq!(name, expected_name);
                prop_assert!(value.to_bits() == expected.to_bits() || (value.is_nan() && expected.is_nan()));
            }
        }

        #[test]
        fn no_line_makes_the_reader_panic(line in "[{}:,\"\\\\0-9eE+.a-z\\- ]{0,40}") {
            let _ = Record::from_line(&line);
        }
    }

    #[test]
    fn every_float_is_read_to_the_bit() {
        // Regression: serde_json's default parser reads these one unit in the last place off.
        for value in [2.6276638595537246e-7, 8.530312078138324e-8, 2.0419318401772555e-7] {
            let read = Record::from_line(&record(1, &[("x", value)]).to_line().unwrap()).unwrap();
            assert_eq!(read.get("x").unwrap().to_bits(), value.to_bits());
        }
    }

    #[test]
    fn two_values_of_one_name_are_refused() {
        for values in [[("loss", 1.0), ("loss", 2.0)], [("loss", 1.0), ("step", 2.0)], [("kind", 1.0), ("x", 2.0)]] {
            assert!(matches!(record(1, &values).to_line(), Err(MetricsError::Name { .. })));
        }
    }
}
