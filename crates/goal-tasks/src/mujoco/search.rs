//! Where the library is looked for.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use super::bindings::{Library, OpenError};
use crate::registry::MUJOCO_INSTALL;

/// The environment variable with the file, or with a folder that holds it.
const VARIABLE: &str = "MUJOCO_LIBRARY";

/// Names of the file, the preferred one first. Those with a number are in the wheels of PyPI, the other one is in the
/// archives of the MuJoCo project.
const NAMES: &[&str] = if cfg!(windows) {
    &["mujoco.dll"]
} else if cfg!(target_os = "macos") {
    &["libmujoco.3.17.0.dylib", "libmujoco.3.2.6.dylib", "libmujoco.dylib"]
} else {
    &["libmujoco.so.3.17.0", "libmujoco.so.3.2.6", "libmujoco.so"]
};

/// Folders within a folder that someone names: of an installation by `pip --target`, and of an archive.
const WITHIN: &[&str] = &["", "mujoco", "lib", "bin"];

/// The library, opened at the first call that finds it.
///
/// # Errors
/// What is missing or wrong, where it was looked for, and what to do.
pub(crate) fn library() -> Result<Arc<Library>, String> {
    static FOUND: Mutex<Option<Arc<Library>>> = Mutex::new(None);
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = &*found {
        return Ok(library.clone());
    }
    let library = Arc::new(match env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        Some(value) => named(&value)?,
        None => standard(&folders(), Some(Path::new(NAMES[0])))?,
    });
    *found = Some(library.clone());
    Ok(library)
}

/// The library that someone names: any of the versions.
fn named(value: &OsString) -> Result<Library, String> {
    let place = Path::new(value);
    let given = format!("{VARIABLE} is {}", place.display());
    let file = if place.is_dir() { within(place).into_iter().next() } else { Some(place.to_owned()) };
    let Some(file) = file else {
        return Err(format!("{given}, a folder without {}: {}", NAMES.join(" or "), advice()));
    };
    if !file.exists() {
        return Err(format!("{given}, which does not exist: {}", advice()));
    }
    Library::open(&file).map_err(|error| describe(&file, error, &given))
}

/// The library in one of the folders, or under a name that the system looks for: the preferred version.
fn standard(folders: &[PathBuf], system: Option<&Path>) -> Result<Library, String> {
    let mut wrong = Vec::new();
    for file in folders.iter().flat_map(|folder| within(folder)) {
        match Library::open(&file) {
            Ok(library) if library.version() == super::Version::New => return Ok(library),
            // Another version is taken only where someone names it.
            Ok(library) => wrong.push(describe(&file, OpenError::Version(library.version().name().to_owned()), "")),
            Err(error) => wrong.push(describe(&file, error, "")),
        }
    }
    match system.map(Library::open) {
        Some(Ok(library)) if library.version() == super::Version::New => return Ok(library),
        Some(Err(error @ (OpenError::Foreign(_) | OpenError::Version(_)))) => {
            wrong.push(describe(Path::new(NAMES[0]), error, ""));
        }
        // Not there, or the other version, which is taken only where someone names it.
        _ => {}
    }
    if let Some(first) = wrong.into_iter().next() {
        return Err(first);
    }
    let places: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    Err(format!("{} was not found in {}, or where the system looks: {}", NAMES[0], places.join(", "), advice()))
}

/// Folders of installations that need no variable.
fn folders() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if let Some(home) = env::home_dir() {
        folders.push(home.join(".mujoco"));
        folders.push(home.join(".mujoco").join("mujoco-3.17.0"));
    }
    for prefix in ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(env::var_os) {
        let prefix = PathBuf::from(prefix);
        folders.push(prefix.join("Lib").join("site-packages"));
        let pythons = fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
        let mut pythons: Vec<PathBuf> = pythons.map(|entry| entry.path().join("site-packages")).collect();
        pythons.retain(|path| path.is_dir());
        pythons.sort();
        folders.extend(pythons);
    }
    folders
}

/// Files with one of the names in and below a folder, and after them those that have the name with another number.
fn within(folder: &Path) -> Vec<PathBuf> {
    let folders: Vec<PathBuf> = WITHIN.iter().map(|part| folder.join(part)).collect();
    let mut known = folders.iter().flat_map(|folder| NAMES.iter().map(|name| folder.join(name))).collect::<Vec<_>>();
    let listed = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let mut others: Vec<PathBuf> = listed
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("libmujoco."))
        .map(|entry| entry.path())
        .filter(|path| !known.contains(path))
        .collect();
    others.sort();
    known.append(&mut others);
    known.retain(|file| file.is_file());
    known
}

fn describe(file: &Path, error: OpenError, given: &str) -> String {
    let from = if given.is_empty() { String::new() } else { format!(" ({given})") };
    let file = file.display();
    match error {
        OpenError::Load(reason) => format!("{file}{from} cannot be loaded: {reason}; {}", advice()),
        OpenError::Foreign(reason) => format!("{file}{from} is no MuJoCo library: {reason}; {}", advice()),
        OpenError::Version(found) => {
            format!("{file}{from} is MuJoCo {found}, and 3.17.0 is needed (3.2.6 if {VARIABLE} names it); {}", advice())
        }
    }
}

fn advice() -> String {
    format!("install it with `{MUJOCO_INSTALL}`, or set {VARIABLE} to the file or its folder")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(result: Result<Library, String>) -> String {
        result.err().expect("an error")
    }

    #[test]
    fn a_missing_library_is_named_with_its_places_and_the_command() {
        let folder = tempfile::tempdir().unwrap();
        let text = message(standard(&[folder.path().join("a"), folder.path().join("b")], None));
        for part in ["was not found", "/a, ", "/b, ", NAMES[0], MUJOCO_INSTALL, VARIABLE] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let text = message(named(&folder.path().into()));
        assert!(text.contains("a folder without") && text.contains(MUJOCO_INSTALL), "{text}");
        let text = message(named(&folder.path().join("none").into()));
        assert!(text.contains("does not exist") && text.contains(MUJOCO_INSTALL), "{text}");
    }

    #[test]
    fn files_that_are_no_library_or_another_one_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(NAMES[0]);
        fs::write(&file, "no library").unwrap();
        for text in [message(named(&folder.path().into())), message(standard(&[folder.path().to_owned()], None))] {
            assert!(text.contains("cannot be loaded") && text.contains(NAMES[0]), "{text}");
        }
        if cfg!(target_os = "linux") {
            let text = message(Library::open(Path::new("libc.so.6")).map_err(|error| describe(&file, error, "")));
            assert!(text.contains("is no MuJoCo library") && text.contains("mj_version"), "{text}");
        }
    }

    #[test]
    fn files_are_found_by_name_and_those_with_another_number_come_last() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("mujoco");
        fs::create_dir(&below).unwrap();
        let files = [below.join("libmujoco.so.3.4.0"), below.join(NAMES[0]), folder.path().join("libmujoco.so.2")];
        files.iter().chain([&below.join("other.so")]).for_each(|file| fs::write(file, "").unwrap());
        let found = within(folder.path());
        assert_eq!(found, [&files[1], &files[2], &files[0]].map(Clone::clone));
    }

    #[test]
    fn another_version_is_refused_with_its_number() {
        let text = describe(Path::new("x"), OpenError::Version("3.3.0".to_owned()), "MUJOCO_LIBRARY is x");
        assert!(text.contains("is MuJoCo 3.3.0, and 3.17.0 is needed") && text.contains(MUJOCO_INSTALL), "{text}");
        assert_eq!(super::super::Version::of(330), None);
        assert_eq!(super::super::Version::of(0), None);
    }
}
