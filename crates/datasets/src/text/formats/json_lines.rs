//! JSON lines: every line is an object, one of its fields is the document. Blank lines are skipped.

use std::io::{BufRead, BufReader};

use serde_json::{Map, Value};

use super::{Contents, open, stream_error, utf8};
use crate::text::{TextError, files::TextFile};

pub(super) fn read(file: &TextFile, field: &str, contents: &mut Contents) -> Result<(), TextError> {
    let mut reader = BufReader::new(open(file)?);
    let mut bytes = Vec::new();
    let mut offset = 0;
    for line in 1.. {
        bytes.clear();
        let read = reader.read_until(b'\n', &mut bytes).map_err(|source| stream_error(file, source))?;
        if read == 0 {
            break;
        }
        let mut text = utf8(file, &bytes, offset)?;
        offset += read as u64;
        if line == 1 {
            text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        }
        if text.trim().is_empty() {
            continue;
        }
        let object = parse(file, line, text)?;
        let name = || format!("{}:{line}", file.path.display());
        match object.get(field) {
            Some(Value::String(text)) => contents.push(name, text),
            Some(Value::Null) => contents.empty += 1,
            Some(other) => {
                return Err(TextError::FieldNotText {
                    path: file.path.clone(),
                    line,
                    field: field.to_owned(),
                    found: kind(other),
                });
            }
            None => {
                let mut found: Vec<String> = object.keys().cloned().collect();
                found.sort_unstable();
                return Err(TextError::MissingField { path: file.path.clone(), line, field: field.to_owned(), found });
            }
        }
    }
    Ok(())
}

fn parse(file: &TextFile, line: u64, text: &str) -> Result<Map<String, Value>, TextError> {
    let error = |reason| TextError::InvalidJson { path: file.path.clone(), line, reason };
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(error(format!("it is {}", kind(&other)))),
        Err(source) => {
            // serde_json counts lines within this line; only its column means something.
            let message = source.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            Err(error(format!("column {}: {message}", source.column())))
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
