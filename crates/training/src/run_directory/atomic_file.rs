//! Files that appear whole or not at all.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

/// The name under which [`atomic_write`] prepares `path`: `<path>.tmp`, in the same folder because a rename is only
/// atomic within one file system. One that is found later was left behind by a killed writer and may be removed.
pub fn temporary_name(path: &Path) -> PathBuf {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(".tmp");
    path.with_file_name(name)
}

/// Writes a file so that a reader, or a crash at any moment, sees either the old content or the whole new one.
///
/// The content goes to [`temporary_name`], is flushed to the disk, and takes the place of `path` by a rename, which is
/// then made durable too. On an error (a full disk, say) the temporary is removed and `path` is untouched.
/// Two writers of the same path at the same time are not supported; [`RunDirectory`](super::RunDirectory) keeps them out.
///
/// ```
/// use std::io::Write;
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("notes.txt");
/// training::run_directory::atomic_write(&path, |writer| writer.write_all(b"all or nothing"))?;
/// assert_eq!(std::fs::read_to_string(&path)?, "all or nothing");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn atomic_write(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let temporary = temporary_name(path);
    let result = File::create(&temporary).and_then(|file| {
        let mut writer = BufWriter::with_capacity(1 << 20, file);
        write(&mut writer)?;
        writer.flush()?;
        writer.get_ref().sync_all()?;
        fs::rename(&temporary, path)
    });
    if result.is_err() {
        // Frees the space on a full disk. That it may fail as well is no news: the first error is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    result?;
    sync_folder_of(path)
}

/// Makes a rename, a creation or a removal within the folder of `path` durable.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Only Unix can open a folder; elsewhere the file system has to see to it.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_content_and_no_temporary() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        atomic_write(&path, |writer| writer.write_all(b"old")).unwrap();
        let error = atomic_write(&path, |writer| {
            writer.write_all(b"half of the new")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        })
        .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_leftover_temporary_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        fs::write(temporary_name(&path), "left by a killed process, and longer than the new content").unwrap();
        atomic_write(&path, |writer| writer.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(!temporary_name(&path).exists());
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(atomic_write(&folder.path().join("no/such/file"), |_| Ok(())).is_err());
    }
}
