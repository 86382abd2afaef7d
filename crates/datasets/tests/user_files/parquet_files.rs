//! Parquet.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    thread,
};

use datasets::text::{Corpus, CorpusOptions, TextError};
use parquet::{
    basic::Compression,
    data_type::{ByteArray, ByteArrayType, Int32Type},
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    schema::parser::parse_message_type,
};

use crate::{Folder, error, everything, message, texts};

const SCHEMA: &str = "message m { REQUIRED INT32 id; OPTIONAL BYTE_ARRAY text (UTF8); }";

/// Writes a file with an `id` and a `text` column, one row group for each list of texts.
pub fn write_parquet(path: &Path, groups: &[&[Option<&[u8]>]], compression: Compression) -> PathBuf {
    let properties = WriterProperties::builder().set_compression(compression).build();
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::new(properties)).unwrap();
    for group in groups {
        let mut rows = writer.next_row_group().unwrap();
        let mut column = rows.next_column().unwrap().unwrap();
        let ids: Vec<i32> = (0..group.len() as i32).collect();
        column.typed::<Int32Type>().write_batch(&ids, None, None).unwrap();
        column.close().unwrap();
        let mut column = rows.next_column().unwrap().unwrap();
        let levels: Vec<i16> = group.iter().map(|text| i16::from(text.is_some())).collect();
        let values: Vec<ByteArray> = group.iter().flatten().map(|text| text.to_vec().into()).collect();
        column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None).unwrap();
        column.close().unwrap();
        rows.close().unwrap();
    }
    writer.close().unwrap();
    path.to_owned()
}

/// Writes a file with one column of byte arrays in a schema of its own.
fn write_byte_arrays(path: &Path, schema: &str, values: &[&str], levels: Option<(&[i16], &[i16])>) -> PathBuf {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer =
        SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::new(WriterProperties::builder().build()))
            .unwrap();
    let mut rows = writer.next_row_group().unwrap();
    let mut column = rows.next_column().unwrap().unwrap();
    let values: Vec<ByteArray> = values.iter().map(|&text| text.into()).collect();
    let (definition, repetition) = levels.unzip();
    column.typed::<ByteArrayType>().write_batch(&values, definition, repetition).unwrap();
    column.close().unwrap();
    rows.close().unwrap();
    writer.close().unwrap();
    path.to_owned()
}

#[test]
fn every_parquet_row_is_a_document() {
    let folder = Folder::new();
    let many: Vec<String> = (0..3000).map(|i| format!("document {i}")).collect();
    let many: Vec<Option<&[u8]>> = many.iter().map(|text| Some(text.as_bytes())).collect();
    for (name, compression) in [
        ("plain", Compression::UNCOMPRESSED),
        ("snappy", Compression::SNAPPY),
        ("gzip", Compression::GZIP(Default::default())),
        ("zstd", Compression::ZSTD(Default::default())),
        ("lz4", Compression::LZ4_RAW),
        ("brotli", Compression::BROTLI(Default::default())),
    ] {
        let path = write_parquet(
            &folder.path(&format!("{name}.parquet")),
            &[&[Some(b"one\r\ntwo"), None, Some(b""), Some("\u{e9}".as_bytes())], &many],
            compression,
        );
        let corpus = Corpus::open(&[&path], &everything()).unwrap();
        assert_eq!(corpus.train.len(), 3002, "{name}");
        assert_eq!(corpus.train[0].text, "one\ntwo");
        assert_eq!(
            (corpus.train[1].text.as_str(), corpus.train[1].name.as_str()),
            ("\u{e9}", &*format!("{}:3", path.display()))
        );
        assert_eq!(corpus.train[3001].text, "document 2999");
        assert_eq!(corpus.empty_documents, 2);
    }
}

#[test]
fn required_nested_and_unannotated_columns_are_read() {
    let folder = Folder::new();
    let path = write_byte_arrays(
        &folder.path("required.parquet"),
        "message m { REQUIRED BYTE_ARRAY text (STRING); }",
        &["one", "two"],
        None,
    );
    assert_eq!(texts(&path), ["one", "two"]);
    let path =
        write_byte_arrays(&folder.path("plain.parquet"), "message m { REQUIRED BYTE_ARRAY text; }", &["one"], None);
    assert_eq!(texts(&path), ["one"]);
    // The parent of row 1 is null, the text of row 2.
    let path = write_byte_arrays(
        &folder.path("nested.parquet"),
        "message m { OPTIONAL group data { OPTIONAL BYTE_ARRAY text (UTF8); } }",
        &["one", "four"],
        Some((&[2, 0, 1, 2], &[0, 0, 0, 0])),
    );
    let options = CorpusOptions { text_field: "data.text".to_owned(), ..everything() };
    let corpus = Corpus::open(&[path], &options).unwrap();
    assert_eq!(corpus.train.iter().map(|d| d.text.as_str()).collect::<Vec<_>>(), ["one", "four"]);
    assert_eq!(corpus.empty_documents, 2);
}

#[test]
fn a_missing_or_wrong_column_is_named() {
    let folder = Folder::new();
    let path = write_parquet(&folder.path("a.parquet"), &[&[Some(b"one")]], Compression::UNCOMPRESSED);
    let with_field = |path: &Path, field: &str| {
        let options = CorpusOptions { text_field: field.to_owned(), ..everything() };
        Corpus::open(&[path], &options).unwrap_err().to_string()
    };
    let missing = with_field(&path, "content");
    assert!(missing.contains("a.parquet has no column `content` (found: id, text)"), "{missing}");
    let wrong = with_field(&path, "id");
    assert!(wrong.contains("column `id` holds INT32, not strings"), "{wrong}");

    let list = write_byte_arrays(
        &folder.path("list.parquet"),
        "message m { REPEATED BYTE_ARRAY text (UTF8); }",
        &["one", "two"],
        Some((&[1, 1], &[0, 1])),
    );
    assert!(message(&list).contains("column `text` holds lists"), "{}", message(&list));
    let decimal = write_byte_arrays(
        &folder.path("decimal.parquet"),
        "message m { REQUIRED BYTE_ARRAY text (DECIMAL(9, 2)); }",
        &["one"],
        None,
    );
    assert!(matches!(error(&decimal), TextError::ColumnNotText { .. }), "{}", error(&decimal));
}

#[test]
fn an_invalid_string_in_a_parquet_file_is_named() {
    let folder = Folder::new();
    let path = write_parquet(
        &folder.path("a.parquet"),
        &[&[Some(b"one"), None], &[Some(b"two"), Some(b"thr\xE9e")]],
        Compression::SNAPPY,
    );
    let TextError::ParquetUtf8 { row, offset, .. } = error(&path) else { panic!("{}", error(&path)) };
    assert_eq!((row, offset), (3, 3));
    message(&path);
}

/// The bytes of a file of 300 rows.
fn whole_file(folder: &Folder) -> Vec<u8> {
    let many: Vec<String> = (0..300).map(|i| format!("document {i}")).collect();
    let many: Vec<Option<&[u8]>> = many.iter().map(|text| Some(text.as_bytes())).collect();
    fs::read(write_parquet(&folder.path("whole.parquet"), &[&many], Compression::SNAPPY)).unwrap()
}

/// What reading says after each of some hundred changes of one byte.
fn damaged_files(folder: &Folder) -> impl Iterator<Item = (usize, Result<Corpus, TextError>)> {
    let whole = whole_file(folder);
    (0..whole.len()).step_by(11).map(move |place| {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x55;
        let path = folder.write("damaged.parquet", damaged);
        (place, Corpus::open(&[&path], &everything()))
    })
}

/// Wherever the file is cut or changed, the answer is an error or the whole text: no panic, no missing row.
#[test]
fn a_cut_or_damaged_parquet_file_is_refused() {
    let folder = Folder::new();
    let whole = whole_file(&folder);
    for cut in (1..whole.len()).step_by(37).chain([whole.len() - 1]) {
        let path = folder.write("cut.parquet", &whole[..cut]);
        assert!(matches!(error(&path), TextError::Parquet { .. }), "{cut}: {}", error(&path));
        message(&path);
    }
    for (place, result) in damaged_files(&folder) {
        if let Ok(corpus) = result {
            assert_eq!(corpus.train.len() + corpus.empty_documents, 300, "{place}");
        }
    }
    let text = folder.write("text.parquet", "this is not parquet, but long enough to be");
    assert!(matches!(error(&text), TextError::Parquet { .. }));
}

/// Damage that makes the parquet library panic is an ordinary error: its panic message would frighten, and stand before
/// the error that names the file. Panics of the program itself must still be told.
#[test]
fn damage_is_reported_without_a_panic_message() {
    const CHILD: &str = "DATASETS_TEST_DAMAGED_PARQUET";
    if env::var_os(CHILD).is_some() {
        // In the child process: only its stderr can be looked at.
        let panics = damaged_files(&Folder::new())
            .filter(|(_, result)| {
                result.as_ref().is_err_and(|error| error.to_string().contains("a page does not decode"))
            })
            .count();
        assert!(panics > 0, "no damage made the library panic");
        assert!(thread::spawn(|| panic!("a fault of the program")).join().is_err());
        return;
    }
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "parquet_files::damage_is_reported_without_a_panic_message", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success() && stdout.contains("1 passed"), "{stdout}{stderr}");
    assert_eq!(stderr.matches("panicked").count(), 1, "{stderr}");
    assert!(stderr.contains("a fault of the program"), "{stderr}");
}
