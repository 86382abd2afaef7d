//! Files in their place: each whole or not at all; or what of them would change.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use tempfile::{NamedTempFile, TempDir};

/// The page, in the folder of documents.
pub const PAGE: &str = "reproduction.md";
/// The folder of figures, in the folder of documents. Nothing else may be in it.
pub const FIGURES: &str = "figures/reproduction";

/// What was made: the page, and pictures in a folder that goes when this does.
#[derive(Debug)]
pub struct Made {
    /// The text of the page.
    pub page: String,
    /// The pictures, `NAME.png`.
    pub pictures: TempDir,
}

impl Made {
    /// What is not yet as it was made: paths with the reason, in order.
    ///
    /// # Errors
    /// If something that was made cannot be read.
    pub fn changes(&self, docs: &Path) -> Result<Vec<String>> {
        let mut changes = Vec::new();
        for (path, bytes) in self.files(docs)? {
            match fs::read(&path) {
                Ok(there) if there == bytes => {}
                Ok(_) => changes.push(format!("{} differs", path.display())),
                Err(_) => changes.push(format!("{} is missing", path.display())),
            }
        }
        changes.extend(self.stale(docs)?.iter().map(|path| format!("{} is not made any more", path.display())));
        Ok(changes)
    }

    /// Puts everything in its place, takes away pictures that are not made any more, and returns what was changed.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn put(&self, docs: &Path) -> Result<Vec<PathBuf>> {
        let folder = docs.join(FIGURES);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut changed = Vec::new();
        for (path, bytes) in self.files(docs)? {
            if fs::read(&path).is_ok_and(|there| there == bytes) {
                continue;
            }
            write(&path, &bytes).with_context(|| format!("cannot write {}", path.display()))?;
            changed.push(path);
        }
        for path in self.stale(docs)? {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
            changed.push(path);
        }
        Ok(changed)
    }

    /// Where everything goes, in order.
    fn files(&self, docs: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
        let mut files = vec![(docs.join(PAGE), self.page.clone().into_bytes())];
        for name in pictures(self.pictures.path())? {
            let path = self.pictures.path().join(&name);
            let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            files.push((docs.join(FIGURES).join(name), bytes));
        }
        Ok(files)
    }

    /// Pictures that are there and were not made.
    fn stale(&self, docs: &Path) -> Result<Vec<PathBuf>> {
        let folder = docs.join(FIGURES);
        let there = if folder.is_dir() { pictures(&folder)? } else { Vec::new() };
        let made = pictures(self.pictures.path())?;
        Ok(there.into_iter().filter(|name| !made.contains(name)).map(|name| folder.join(name)).collect())
    }
}

/// The names of the pictures in a folder, in order.
fn pictures(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".png")).collect();
    names.sort();
    Ok(names)
}

/// Replaces a file by a whole one.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    // Temporary files are for their owner only, documents for everybody, less what the user's mask takes away.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file: NamedTempFile = builder.prefix(".figures-").tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(page: &str, names: &[&str]) -> Made {
        let pictures = tempfile::tempdir().unwrap();
        for name in names {
            fs::write(pictures.path().join(name), name).unwrap();
        }
        Made { page: page.to_owned(), pictures }
    }

    #[test]
    fn what_was_put_is_what_was_made() {
        let docs = tempfile::tempdir().unwrap();
        let first = made("one", &["a.png", "b.png"]);
        assert_eq!(first.changes(docs.path()).unwrap().len(), 3, "all are missing");
        assert_eq!(first.put(docs.path()).unwrap().len(), 3);
        assert!(first.changes(docs.path()).unwrap().is_empty() && first.put(docs.path()).unwrap().is_empty());
        let second = made("two", &["a.png"]);
        let changes = second.changes(docs.path()).unwrap().join("\n");
        assert!(
            changes.contains("reproduction.md differs") && changes.contains("b.png is not made any more"),
            "{changes}"
        );
        assert_eq!(second.put(docs.path()).unwrap().len(), 2);
        assert!(!docs.path().join(FIGURES).join("b.png").exists());
        assert_eq!(fs::read_to_string(docs.path().join(PAGE)).unwrap(), "two");
    }
}
