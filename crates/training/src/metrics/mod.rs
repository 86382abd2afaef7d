//! The log of a run: one JSON object a line.
//!
//! `metrics.jsonl` holds only values that are a function of the run (losses, rates, norms), never of the clock, so that
//! the file of a run that was stopped and resumed equals that of an uninterrupted one byte for byte. Wall-clock facts go
//! to `timing.jsonl`, from which [`speed`] takes what they come to.
//!
//! ```text
//! {"step":100,"kind":"train","loss":3.2188758,"lr":0.001,"gradient_norm":0.83}
//! {"step":100,"kind":"evaluation","val_loss":3.01,"val_bits_per_byte":1.42}
//! {"step":100,"kind":"timing","interval":11,"steps":10,"seconds":2.5,"tokens_per_second":16384.0}
//! ```
//!
//! Lines are appended, so a process that is killed may leave half of the last one. Readers leave it out, and a run that is
//! resumed cuts it off.
//!
//! Numbers are written with as many digits as it takes to get the same `f64` back; those that JSON has no notation for
//! are the strings `"NaN"`, `"inf"` and `"-inf"`.

mod record;
mod speed;

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

pub use record::{Record, RecordKind};
pub(crate) use speed::timing;
pub use speed::{Speed, speed};

use crate::run_directory::advice;

/// What can go wrong with a log.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// The file could not be read or written.
    #[error("cannot {action} {}: {source}{}", path.display(), advice(source))]
    Io {
        /// `read`, `write`, ...
        action: &'static str,
        /// The log.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A line other than the last is no record.
    #[error("{}, line {line}: {message}", path.display())]
    Line {
        /// The log.
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// The log is shorter than a checkpoint says it was.
    #[error(
        "{} has {length} bytes, but it had {expected} when the checkpoint was written; it was changed since, so the \
         run cannot be continued byte for byte. Restore the file, or start a new run", path.display()
    )]
    TooShort {
        /// The log.
        path: PathBuf,
        /// Its length in bytes.
        length: u64,
        /// The length that the checkpoint recorded.
        expected: u64,
    },
    /// A record would hold two values of one name.
    #[error("the value `{name}` of step {step} appears twice, or its name is reserved; give it another name")]
    Name {
        /// The name.
        name: String,
        /// The step of the record.
        step: usize,
    },
}

/// A log that is being written. Each record goes to the system at once, so that a log can be followed.
#[derive(Debug)]
pub struct MetricsLog {
    path: PathBuf,
    file: File,
    length: u64,
}

impl MetricsLog {
    /// A new, empty log.
    ///
    /// # Errors
    /// If there is a file already, or it cannot be created.
    pub fn create(path: &Path) -> Result<Self, MetricsError> {
        let file = File::options().write(true).create_new(true).open(path).map_err(io_error("create", path))?;
        Ok(Self { path: path.to_owned(), file, length: 0 })
    }

    /// Continues a log as it was when it had `length` bytes: what was written later is cut off, because the resumed run
    /// writes it again.
    ///
    /// # Errors
    /// [`MetricsError::TooShort`] if it has fewer bytes.
    pub fn resume(path: &Path, length: u64) -> Result<Self, MetricsError> {
        let mut file = File::options()
            .write(true)
            .create(length == 0)
            .truncate(false)
            .open(path)
            .map_err(io_error("open", path))?;
        let found = file.metadata().map_err(io_error("read", path))?.len();
        if found < length {
            return Err(MetricsError::TooShort { path: path.to_owned(), length: found, expected: length });
        }
        file.set_len(length).map_err(io_error("cut", path))?;
        file.seek(SeekFrom::Start(length)).map_err(io_error("write", path))?;
        Ok(Self { path: path.to_owned(), file, length })
    }

    /// Continues a log, or starts it where there is none. A last line without line feed, which a killed process left,
    /// is cut off.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn append(path: &Path) -> Result<Self, MetricsError> {
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(io_error("open", path))?;
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(io_error("read", path))?;
        let length = content.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        drop(file);
        Self::resume(path, length as u64)
    }

    /// Adds a line.
    ///
    /// # Errors
    /// If it cannot be written, or two values share a name.
    pub fn log(&mut self, record: &Record) -> Result<(), MetricsError> {
        let line = record.to_line()?;
        self.file.write_all(line.as_bytes()).map_err(io_error("write", &self.path))?;
        self.length += line.len() as u64;
        Ok(())
    }

    /// How many bytes have been written: what a checkpoint records.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Waits until the lines are on the disk. A checkpoint is written after this, so that it never knows of lines that
    /// a power cut could take back.
    ///
    /// # Errors
    /// If the system reports one.
    pub fn sync(&self) -> Result<(), MetricsError> {
        self.file.sync_data().map_err(io_error("write", &self.path))
    }
}

/// Reads a log. A last line that is only half there (of a process that was killed, or is still writing) is left out.
///
/// # Errors
/// If the file cannot be read, or another line is no record.
pub fn read_metrics(path: &Path) -> Result<Vec<Record>, MetricsError> {
    let content = fs::read(path).map_err(io_error("read", path))?;
    let mut records = Vec::new();
    for (index, line) in content.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let Some(line) = line.strip_suffix(b"\n") else { break };
        let record = std::str::from_utf8(line).map_err(|error| error.to_string()).and_then(Record::from_line);
        records.push(record.map_err(|message| MetricsError::Line {
            path: path.to_owned(),
            line: index + 1,
            message,
        })?);
    }
    Ok(records)
}

/// The values of one name over the steps at which it was logged, in file order: what a plot needs.
pub fn series(records: &[Record], name: &str) -> Vec<(usize, f64)> {
    records.iter().filter_map(|record| Some((record.step, record.get(name)?))).collect()
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> MetricsError {
    let path = path.to_owned();
    move |source| MetricsError::Io { action, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(step: usize, values: &[(&str, f64)]) -> Record {
        let values = values.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        Record::new(step, RecordKind::Train, values)
    }

    #[test]
    fn a_log_is_cut_back_and_continued_byte_for_byte() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut log = MetricsLog::create(&path).unwrap();
        log.log(&record(1, &[("loss", 1.5)])).unwrap();
        let length = log.length();
        log.log(&record(2, &[("loss", 1.25)])).unwrap();
        log.sync().unwrap();
        let whole = fs::read(&path).unwrap();
        drop(log);
        fs::write(&path, [whole.as_slice(), b"{\"step\":3,\"ki"].concat()).unwrap();

        let mut log = MetricsLog::resume(&path, length).unwrap();
        log.log(&record(2, &[("loss", 1.25)])).unwrap();
        assert_eq!(log.length(), whole.len() as u64);
        drop(log);
        assert_eq!(fs::read(&path).unwrap(), whole);
        assert!(matches!(MetricsLog::resume(&path, whole.len() as u64 + 1), Err(MetricsError::TooShort { .. })));
        assert!(MetricsLog::create(&path).is_err(), "an existing log is not overwritten");
    }

    #[test]
    fn a_half_written_last_line_is_tolerated_and_any_other_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let whole = record(7, &[("loss", 0.5)]);
        let line = whole.to_line().unwrap();
        for end in 0..line.len() {
            fs::write(&path, format!("{line}{}", &line[..end])).unwrap();
            assert_eq!(read_metrics(&path).unwrap(), std::slice::from_ref(&whole));
        }
        fs::write(&path, format!("{line}{{\"step\":8}}\n{line}")).unwrap();
        let message = read_metrics(&path).unwrap_err().to_string();
        assert!(message.contains("line 2") && message.contains("kind"), "{message}");

        fs::write(&path, format!("{line}{{\"st")).unwrap();
        MetricsLog::append(&path).unwrap().log(&whole).unwrap();
        assert_eq!(read_metrics(&path).unwrap(), [whole.clone(), whole]);
    }

    #[test]
    fn a_series_is_one_value_over_the_steps() {
        let records = [record(1, &[("loss", 1.0)]), record(2, &[("lr", 0.1)]), record(3, &[("loss", 0.5)])];
        assert_eq!(series(&records, "loss"), [(1, 1.0), (3, 0.5)]);
    }
}
