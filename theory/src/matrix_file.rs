//! Matrices in text files: a row a line, numbers separated by blanks or commas, `#` before a comment.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use nalgebra::DMatrix;
use thiserror::Error;

/// Files beyond this are not read: a width of 512 in 24 characters a number is 6 MB.
const MOST_BYTES: u64 = 64 << 20;

/// Why a file is not a matrix.
#[derive(Debug, Error)]
pub enum MatrixFileError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The text is wrong at one place.
    #[error("{}:{line}:{column}: {problem}", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong there.
        problem: MatrixProblem,
    },
}

/// What is wrong at one place of a matrix file.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum MatrixProblem {
    /// Something that is no number.
    #[error("`{0}` is not a number")]
    NotANumber(String),
    /// A number that is infinite or not a number.
    #[error("`{0}` is not finite: entries must be finite")]
    NotFinite(String),
    /// A row of another length than the first.
    #[error("this row has {found} {}, and the first row (line {first}) has {expected}", if *found == 1 { "number" } else { "numbers" })]
    RowLength {
        /// Numbers in this row.
        found: usize,
        /// Numbers in the first row.
        expected: usize,
        /// The line of the first row.
        first: usize,
    },
    /// Two commas with nothing between them, or a comma at an end of the line.
    #[error("a number is missing at this comma")]
    Missing,
    /// No row at all.
    #[error("the file holds no numbers: expected a row a line, numbers separated by blanks or commas")]
    Empty,
    /// Bytes that are not text.
    #[error("this byte is not UTF-8: expected a text file of numbers")]
    NotText,
    /// Too large to be meant.
    #[error("the file is too large: matrices of up to {max} MB are read", max = MOST_BYTES >> 20)]
    TooLarge,
}

/// Reads a matrix of any shape.
///
/// # Errors
///
/// [`MatrixFileError`] with line and column for text that is no matrix.
pub fn read(path: &Path) -> Result<DMatrix<f64>, MatrixFileError> {
    let fail = |source| MatrixFileError::Io { path: path.to_owned(), source };
    let text_error = |(line, column, problem)| MatrixFileError::Text { path: path.to_owned(), line, column, problem };
    let file = File::open(path).map_err(fail)?;
    let mut bytes = Vec::new();
    // A limit on what is read, and not on what the file system says: a device or a pipe has no size.
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(text_error((1, 1, MatrixProblem::TooLarge)));
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) => parse(text.strip_prefix('\u{feff}').unwrap_or(text)).map_err(text_error),
        Err(error) => {
            let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let line = good.matches('\n').count() + 1;
            let column = good.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
            Err(text_error((line, column, MatrixProblem::NotText)))
        }
    }
}

type Place = (usize, usize, MatrixProblem);

fn parse(text: &str) -> Result<DMatrix<f64>, Place> {
    let mut rows: Vec<Vec<f64>> = Vec::new();
    let mut first = 0;
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.split('#').next().unwrap_or_default();
        if content.trim().is_empty() {
            continue;
        }
        let row = parse_row(content).map_err(|(column, problem)| (line, column, problem))?;
        match rows.first() {
            None => first = line,
            Some(expected) if expected.len() != row.len() => {
                let problem = MatrixProblem::RowLength { found: row.len(), expected: expected.len(), first };
                return Err((line, 1, problem));
            }
            Some(_) => {}
        }
        rows.push(row);
    }
    let Some(columns) = rows.first().map(Vec::len) else { return Err((1, 1, MatrixProblem::Empty)) };
    Ok(DMatrix::from_row_iterator(rows.len(), columns, rows.into_iter().flatten()))
}

fn parse_row(content: &str) -> Result<Vec<f64>, (usize, MatrixProblem)> {
    // Counted only for a message: a row may hold millions of numbers.
    let place = |byte: usize, problem| (content[..byte].chars().count() + 1, problem);
    let mut row = Vec::new();
    // With a comma anywhere in the line, every field between commas has to hold numbers.
    let mut start = 0;
    for field in content.split(',') {
        let before = row.len();
        let mut offset = start;
        for word in field.split_inclusive(char::is_whitespace) {
            let number = word.trim();
            if !number.is_empty() {
                let at = offset + word.find(number).unwrap_or(0);
                match number.parse::<f64>() {
                    Ok(value) if value.is_finite() => row.push(value),
                    Ok(_) => return Err(place(at, MatrixProblem::NotFinite(shown(number)))),
                    Err(_) => return Err(place(at, MatrixProblem::NotANumber(shown(number)))),
                }
            }
            offset += word.len();
        }
        let end = start + field.len();
        if row.len() == before {
            // The comma after the empty field, or the one before it at the end of the line.
            return Err(place(if end < content.len() { end } else { start - 1 }, MatrixProblem::Missing));
        }
        start = end + 1;
    }
    Ok(row)
}

/// The word, cut where it is so long that it would flood a message.
fn shown(word: &str) -> String {
    let mut shown: String = word.chars().take(24).flat_map(char::escape_debug).collect();
    if word.chars().nth(24).is_some() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use std::fs;

    use super::*;

    fn problem(text: &str) -> String {
        let (line, column, problem) = parse(text).unwrap_err();
        format!("{line}:{column}: {problem}")
    }

    #[test]
    fn numbers_are_separated_by_blanks_or_commas() {
        let expected = DMatrix::from_row_slice(2, 3, &[1.0, -2.5, 3e-2, 4.0, 5.0, 6.0]);
        for text in ["1 -2.5 3e-2\n4 5 6", "1,-2.5,3e-2\r\n4,5,6\r\n", "# Y\n\n 1, -2.5\t, .03 # row\n4 5 6\n\n"] {
            assert_eq!(parse(text).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn messages_point_at_the_place() {
        expect!["2:3: `x` is not a number"].assert_eq(&problem("1 2\n3 x"));
        expect!["1:4: `inf` is not finite: entries must be finite"].assert_eq(&problem("1, inf"));
        expect!["3:1: this row has 1 number, and the first row (line 2) has 2"].assert_eq(&problem("# head\n1 2\n3"));
        expect!["1:3: a number is missing at this comma"].assert_eq(&problem("1,,2"));
        expect!["1:4: a number is missing at this comma"].assert_eq(&problem("1,2,"));
        expect!["1:1: the file holds no numbers: expected a row a line, numbers separated by blanks or commas"]
            .assert_eq(&problem("\n# nothing\n"));
        expect!["1:2: a number is missing at this comma"].assert_eq(&problem("1,\u{3000}"));
        expect!["1:4: a number is missing at this comma"].assert_eq(&problem("1,2,\u{a0}"));
        expect!["1:1: a number is missing at this comma"].assert_eq(&problem(","));
        expect!["1:5: `1·2` is not a number"].assert_eq(&problem("1 1 1·2"));
    }

    #[test]
    fn files_that_are_no_text_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("matrix.txt");
        fs::write(&path, b"1 2\n3 \xff\n").unwrap();
        assert!(
            read(&path)
                .unwrap_err()
                .to_string()
                .ends_with("matrix.txt:2:3: this byte is not UTF-8: expected a text file of numbers")
        );
        assert!(read(folder.path()).unwrap_err().to_string().contains("cannot read"));
        fs::write(&path, "\u{feff}1 2\n3 4\n").unwrap();
        assert_eq!(read(&path).unwrap(), DMatrix::from_row_slice(2, 2, &[1.0, 2.0, 3.0, 4.0]));
    }
}
