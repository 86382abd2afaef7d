use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::*;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Settings {
    lr: f64,
    name: String,
}

static ENVIRONMENT_HERE: LazyLock<Environment> = LazyLock::new(|| Environment::collect("demo", "1", "cpu"));

fn contents() -> NewRun {
    NewRun::new(&toml::Table::new(), &ENVIRONMENT_HERE).unwrap()
}

#[test]
fn a_directory_is_made_once_and_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs/a");
    let settings = Settings { lr: 0.1 + 0.2, name: "a \"quoted\" name".into() };
    let run = RunDirectory::create(&path, &NewRun::new(&settings, &ENVIRONMENT_HERE).unwrap()).unwrap();
    assert_eq!(run.paths().read_config::<Settings>().unwrap(), settings);
    drop(run);
    for existing in [path.as_path(), folder.path()] {
        let message = RunDirectory::create(existing, &contents()).unwrap_err().to_string();
        assert!(message.contains("already exists") && message.contains("--resume if it is a run"), "{message}");
    }
    assert_eq!(RunDirectory::open(&path).unwrap().paths().read_config::<Settings>().unwrap(), settings);
}

#[test]
fn only_one_process_holds_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let run = RunDirectory::create(&path, &contents()).unwrap();
    assert!(matches!(RunDirectory::open(&path), Err(RunDirectoryError::Locked { .. })));
    drop(run);
    RunDirectory::open(&path).unwrap();
}

#[test]
#[cfg(unix)]
fn a_copy_of_the_lock_does_not_outlive_the_run() {
    // Regression: a process that was being started at that moment kept the run locked.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let run = RunDirectory::create(&path, &contents()).unwrap();
    let _copy = run.lock.try_clone().unwrap();
    drop(run);
    RunDirectory::open(&path).unwrap();
}

#[test]
fn opening_what_is_no_run_says_so_and_leaves_it_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().to_owned(), folder.path().join("missing")] {
        let message = RunDirectory::open(path).unwrap_err().to_string();
        assert!(message.contains("holds no run") && message.contains("does not exist yet"), "{message}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn each_process_adds_its_environment() {
    let folder = tempfile::tempdir().unwrap();
    let run = RunDirectory::create(folder.path().join("a"), &contents()).unwrap();
    let names: Vec<_> = (0..2).map(|_| run.add_environment(&ENVIRONMENT_HERE).unwrap()).collect();
    let names: Vec<_> = names.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["environment-2.json", "environment-3.json"]);
    for name in ["environment.json", names[0], names[1]] {
        let text = fs::read_to_string(run.path().join(name)).unwrap();
        assert_eq!(serde_json::from_str::<Environment>(&text).unwrap().program, "demo");
    }
}
