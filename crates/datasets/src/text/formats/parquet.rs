//! Parquet: every row is a document, one column holds them.

use std::fs::File;

use parquet::{
    basic::{ConvertedType, LogicalType, Type},
    column::reader::ColumnReader,
    data_type::ByteArray,
    errors::ParquetError,
    file::reader::{FileReader, SerializedFileReader},
    schema::types::{ColumnDescriptor, SchemaDescriptor},
};

use super::{Contents, quiet};
use crate::text::{
    TextError,
    files::{TextFile, read_error},
};

/// Rows read at a time.
const BATCH: usize = 1024;

pub(super) fn read(file: &TextFile, column: &str, contents: &mut Contents) -> Result<(), TextError> {
    // The decoders of the `parquet` crate trust the lengths that a file states: some damaged files make them panic. What
    // was read until then is thrown away with the error, so nothing half-changed is seen.
    quiet::catch_unwind(|| read_rows(file, column, contents)).unwrap_or_else(|| {
        Err(TextError::Parquet { path: file.path.clone(), reason: "a page does not decode".to_owned() })
    })
}

fn read_rows(file: &TextFile, column: &str, contents: &mut Contents) -> Result<(), TextError> {
    let raw = File::open(&file.path).map_err(|source| read_error(&file.path, source))?;
    let damaged = |error: ParquetError| TextError::Parquet { path: file.path.clone(), reason: error.to_string() };
    let reader = SerializedFileReader::new(raw).map_err(damaged)?;
    let metadata = reader.metadata().file_metadata();
    let index = text_column(file, metadata.schema_descr(), column)?;
    // A row holds a string if all its optional parents and itself are there, which is the highest definition level.
    let full = metadata.schema_descr().column(index).max_def_level();

    let mut row = 0;
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(damaged)?;
        let ColumnReader::ByteArrayColumnReader(mut strings) = group.get_column_reader(index).map_err(damaged)? else {
            // `text_column` let byte arrays through only.
            return Err(damaged(ParquetError::General("its column types disagree".to_owned())));
        };
        loop {
            levels.clear();
            values.clear();
            let (records, _, _) =
                strings.read_records(BATCH, (full > 0).then_some(&mut levels), None, &mut values).map_err(damaged)?;
            if records == 0 {
                break;
            }
            if full == 0 {
                levels.resize(records, 0); // No level is stored where nothing can be null.
            }
            let mut values = values.iter().peekable();
            for &level in &levels {
                match values.next_if(|_| level == full) {
                    Some(value) => push(file, column, row, value, contents)?,
                    None => contents.empty += 1,
                }
                row += 1;
            }
        }
    }
    let expected = metadata.num_rows();
    if i64::try_from(row) != Ok(expected) {
        return Err(damaged(ParquetError::General(format!("{row} of {expected} rows are there"))));
    }
    Ok(())
}

fn push(file: &TextFile, column: &str, row: u64, value: &ByteArray, contents: &mut Contents) -> Result<(), TextError> {
    let text = std::str::from_utf8(value.data()).map_err(|error| TextError::ParquetUtf8 {
        path: file.path.clone(),
        column: column.to_owned(),
        row,
        offset: error.valid_up_to(),
    })?;
    contents.push(|| format!("{}:{row}", file.path.display()), text);
    Ok(())
}

/// The index of the column with this dotted path, if it holds one string (or null) a row.
fn text_column(file: &TextFile, schema: &SchemaDescriptor, column: &str) -> Result<usize, TextError> {
    let Some(index) = schema.columns().iter().position(|c| c.path().string() == column) else {
        return Err(TextError::MissingColumn {
            path: file.path.clone(),
            column: column.to_owned(),
            found: schema.columns().iter().map(|c| c.path().string()).collect(),
        });
    };
    match not_text(&schema.column(index)) {
        None => Ok(index),
        Some(found) => Err(TextError::ColumnNotText { path: file.path.clone(), column: column.to_owned(), found }),
    }
}

/// What a column holds, if that is not one string a row. Byte arrays without any annotation pass: older writers
/// store strings so, and every value is checked to be UTF-8.
fn not_text(column: &ColumnDescriptor) -> Option<String> {
    if column.max_rep_level() > 0 {
        return Some("lists".to_owned());
    }
    if column.physical_type() != Type::BYTE_ARRAY {
        return Some(column.physical_type().to_string());
    }
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::String), _) | (None, ConvertedType::UTF8 | ConvertedType::NONE) => None,
        (Some(other), _) => Some(format!("{other:?}")),
        (None, other) => Some(other.to_string()),
    }
}
