//! Comparisons of many arms that are resumed from the checkpoint before the last.

use std::{fs, path::Path};

use crate::{Program, kills::result, succeed};

/// Makes a comparison of these arms whole, takes from a copy of it what the runs did after their last checkpoint but one, resumes
/// that, and checks that every run ends with the same bytes. `settings` should leave two checkpoints in each run. Returns the
/// number of runs.
///
/// # Panics
/// If bytes differ, if a run has but one checkpoint, or if there are not as many runs as arms.
pub fn resumed_arms(program: Program, settings: &[&str], arms: &[&str]) -> usize {
    let folder = tempfile::tempdir().expect("a folder");
    let list = arms.join(",");
    let arguments = [settings, &["--arms", &list, "--out", "whole"]].concat();
    succeed(program.start(folder.path(), &arguments));
    let (whole, stopped) = (folder.path().join("whole"), folder.path().join("stopped"));
    copy(&whole, &stopped);
    fs::remove_file(stopped.join("report.json")).expect("a report");
    let mut runs = Vec::new();
    for run in fs::read_dir(stopped.join("arms")).expect("runs").flatten() {
        fs::remove_file(run.path().join("summary.json")).expect("a summary");
        let checkpoints = run.path().join("checkpoints");
        let mut files: Vec<_> = fs::read_dir(&checkpoints).expect("checkpoints").flatten().map(|f| f.path()).collect();
        files.sort();
        let last = files.pop().filter(|_| !files.is_empty());
        fs::remove_file(last.unwrap_or_else(|| panic!("{}: one checkpoint at most", checkpoints.display())))
            .expect("a checkpoint");
        runs.push(run.file_name());
    }
    assert_eq!(runs.len(), arms.len(), "{runs:?}");
    // A command, where the settings begin with one.
    let command = &settings[..usize::from(!settings[0].starts_with('-'))];
    succeed(program.start(folder.path(), &[command, &["--resume", "stopped"]].concat()));
    for run in &runs {
        let ended = |comparison: &Path| result(&comparison.join("arms").join(run));
        assert!(ended(&whole) == ended(&stopped), "{}: resumed, it ends otherwise", run.display());
        assert!(stopped.join("arms").join(run).join("summary.json").is_file(), "{}", run.display());
    }
    runs.len()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a new folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => _ = fs::copy(entry.path(), target).expect("a copy"),
        }
    }
}
