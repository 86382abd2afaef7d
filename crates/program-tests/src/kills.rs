//! Runs and comparisons that are killed with SIGKILL at any moment, and resumed.

use std::{
    fs,
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{Program, succeed};

/// How often a run was killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Killed {
    /// In all.
    pub times: usize,
    /// Of these, while a checkpoint was being written.
    pub while_writing: usize,
}

/// The files that a run's values determine: its log and its newest checkpoint, to the bit.
pub(crate) fn result(run: &Path) -> (Vec<u8>, PathBuf, Vec<u8>) {
    let read = |path: &Path| fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let entries = fs::read_dir(run.join("checkpoints")).unwrap_or_else(|e| panic!("{}: {e}", run.display()));
    let mut checkpoints: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    checkpoints.sort();
    let newest = checkpoints.pop().expect("a checkpoint");
    let name = newest.file_name().expect("a name").into();
    (read(&run.join("metrics.jsonl")), name, read(&newest))
}

/// Whether a checkpoint is being written, or was when its writer died.
fn is_writing(run: &Path) -> bool {
    let Ok(entries) = fs::read_dir(run.join("checkpoints")) else { return false };
    entries.flatten().any(|entry| entry.path().extension().is_none_or(|e| e != "safetensors"))
}

fn finished(run: &Path) -> bool {
    run.join("summary.json").exists()
}

/// The arguments that start the run, or resume it if it has begun.
fn arguments<'a>(run: &Path, path: &'a str, settings: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["train"];
    if run.join("config.toml").exists() {
        arguments.extend(["--resume", path]);
    } else {
        arguments.extend(settings);
        arguments.extend(["--out", path]);
    }
    arguments
}

/// Starts or resumes the run and kills it: at a random moment, or as soon as a checkpoint is being written.
fn run_and_kill(
    program: Program,
    folder: &Path,
    run: &Path,
    settings: &[&str],
    while_writing: bool,
    rng: &mut ChaCha8Rng,
) {
    let path = run.to_str().expect("a path in UTF-8");
    let mut child = program.start(folder, &arguments(run, path, settings));
    let limit = Instant::now() + Duration::from_secs(60);
    if while_writing {
        while !is_writing(run) && child.try_wait().expect("a child").is_none() && Instant::now() < limit {
            std::hint::spin_loop();
        }
    } else {
        sleep(Duration::from_millis(rng.random_range(0..1500)));
    }
    // `kill` is SIGKILL: no handler runs.
    let _ = child.kill();
    let output = child.wait_with_output().expect("the program ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains("error:") && !stderr.contains("panicked"), "{stderr}");
}

/// Makes one run whole and three that are killed again and again, also in the middle of a checkpoint, and checks that all end
/// with the same bytes. `settings` should make a run of some seconds with a checkpoint of some megabytes after every step.
///
/// # Panics
/// If bytes differ, or if no run was killed in time.
pub fn killed_run(program: Program, settings: &[&str]) -> Killed {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = folder.path().join("whole");
    let path = whole.to_str().expect("a path in UTF-8");
    succeed(program.start(folder.path(), &arguments(&whole, path, settings)));
    let expected = result(&whole);

    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut killed = Killed::default();
    for (round, while_writing) in [false, true, false].into_iter().enumerate() {
        let run = folder.path().join(format!("killed-{round}"));
        // Each kill in the middle of a checkpoint costs the run at most the step before it.
        for _ in 0..if while_writing { 12 } else { 6 } {
            run_and_kill(program, folder.path(), &run, settings, while_writing, &mut rng);
            if finished(&run) {
                break;
            }
            killed.times += 1;
            killed.while_writing += usize::from(is_writing(&run));
        }
        if !finished(&run) {
            let path = run.to_str().expect("a path in UTF-8");
            succeed(program.start(folder.path(), &arguments(&run, path, settings)));
        }
        let actual = result(&run);
        assert!(actual.0 == expected.0, "round {round}: metrics.jsonl differs");
        assert_eq!(actual.1, expected.1, "round {round}: the newest checkpoint");
        assert!(actual.2 == expected.2, "round {round}: the final checkpoint differs");
    }
    assert!(killed.times > 0, "no run was killed before it was finished");
    assert!(killed.while_writing > 0, "no run was killed while it wrote a checkpoint");
    killed
}

/// Makes a comparison whole and one that is killed again and again once its runs have checkpoints, and checks that the runs of
/// both end with the same bytes. `settings` name the arms and seeds whose run directories are `runs`. Returns how often it was
/// killed before it was finished.
///
/// # Panics
/// If bytes differ, if there is no report, or if it was never killed while a run was under way.
pub fn killed_comparison(program: Program, settings: &[&str], runs: &[&str]) -> usize {
    let folder = tempfile::tempdir().expect("a folder");
    let start = |path: &str| {
        let mut arguments = settings.to_vec();
        arguments.extend(["--out", path]);
        program.start(folder.path(), &arguments)
    };
    let start_or_resume = || match folder.path().join("killed/config.toml").exists() {
        true => program.start(folder.path(), &["--resume", "killed"]),
        false => {
            // A directory without settings is the start of a run that was killed before it began.
            let _ = fs::remove_dir_all(folder.path().join("killed"));
            start("killed")
        }
    };
    succeed(start("whole"));
    let killed = folder.path().join("killed");
    let has_checkpoint = |run: &str| {
        fs::read_dir(killed.join("arms").join(run).join("checkpoints")).is_ok_and(|entries| entries.count() > 0)
    };
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let mut kills = 0;
    for run in runs {
        let mut child = start_or_resume();
        let limit = Instant::now() + Duration::from_secs(120);
        // Before the run's first checkpoint there is nothing to go on from.
        while !has_checkpoint(run) && child.try_wait().expect("a child").is_none() && Instant::now() < limit {
            sleep(Duration::from_millis(1));
        }
        sleep(Duration::from_millis(rng.random_range(0..200)));
        let _ = child.kill();
        child.wait().expect("the program ends");
        kills += usize::from(!killed.join("report.json").exists());
    }
    assert!(kills > 0, "it was never killed while a run was under way");
    succeed(start_or_resume());
    for run in runs {
        let logs = |comparison: &str| result(&folder.path().join(comparison).join("arms").join(run));
        assert!(logs("whole") == logs("killed"), "{run} differs");
    }
    assert!(killed.join("report.json").is_file());
    kills
}
