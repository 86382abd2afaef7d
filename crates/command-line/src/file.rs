//! Files that replace nothing.

use std::{
    io::{self, Write},
    path::Path,
};

/// Writes a file that must not exist: whole, or not at all.
///
/// # Errors
/// If something has the name ([`io::ErrorKind::AlreadyExists`]), or the folder cannot be written.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Under a name that nobody has.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_exists_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights");
        write_new(&path, b"first").unwrap();
        assert_eq!(write_new(&path, b"second").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing half-written is left");
    }

    #[test]
    fn a_folder_that_does_not_exist_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write_new(&folder.path().join("none/weights"), b"x").is_err());
    }
}
