//! A run that is killed with SIGKILL at any moment, also in the middle of writing a checkpoint, and then resumed ends with
//! the same bytes as one that was not.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const PROGRAM: &str = env!("CARGO_BIN_EXE_experiments-llm");

/// A run of some seconds, with a checkpoint of some megabytes after every step.
const SETTINGS: &[&str] = &[
    "--preset",
    "smoke",
    "--steps",
    "25",
    "--set",
    "model.width=128",
    "--set",
    "model.feed_forward=352",
    "--set",
    "training.checkpoint_every=1",
    "--set",
    "training.evaluate_every=10",
    "--set",
    "data.evaluation_tokens=512",
];

fn start(folder: &Path, arguments: &[&str]) -> Child {
    Command::new(PROGRAM)
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

/// Waits for a program that is to succeed.
fn succeed(child: Child) {
    let output = child.wait_with_output().expect("the program ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The files that a run's values determine: its log and its newest checkpoint, weights and moments to the bit.
fn result(run: &Path) -> (Vec<u8>, PathBuf, Vec<u8>) {
    let mut checkpoints: Vec<PathBuf> =
        fs::read_dir(run.join("checkpoints")).unwrap().map(|entry| entry.unwrap().path()).collect();
    checkpoints.sort();
    let newest = checkpoints.pop().expect("a checkpoint");
    let name = newest.file_name().unwrap().into();
    (fs::read(run.join("metrics.jsonl")).unwrap(), name, fs::read(newest).unwrap())
}

/// Whether a checkpoint is being written, or was when its writer died.
fn is_writing(run: &Path) -> bool {
    let Ok(entries) = fs::read_dir(run.join("checkpoints")) else { return false };
    entries.flatten().any(|entry| entry.path().extension().is_none_or(|e| e != "safetensors"))
}

fn finished(run: &Path) -> bool {
    run.join("summary.json").exists()
}

/// Starts or resumes the run and kills it: at a random moment, or as soon as a checkpoint is being written.
fn run_and_kill(folder: &Path, run: &Path, while_writing: bool, rng: &mut ChaCha8Rng) {
    let path = run.to_str().unwrap();
    let mut arguments = vec!["train"];
    if run.join("config.toml").exists() {
        arguments.extend(["--resume", path]);
    } else {
        arguments.extend(SETTINGS);
        arguments.extend(["--out", path]);
    }
    let mut child = start(folder, &arguments);
    let limit = Instant::now() + Duration::from_secs(60);
    if while_writing {
        while !is_writing(run) && child.try_wait().unwrap().is_none() && Instant::now() < limit {
            std::hint::spin_loop();
        }
    } else {
        sleep(Duration::from_millis(rng.random_range(0..1500)));
    }
    // `kill` is SIGKILL: no handler runs.
    let _ = child.kill();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains("error:") && !stderr.contains("panicked"), "{stderr}");
}

#[test]
fn a_killed_and_resumed_run_ends_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    let mut arguments = vec!["train"];
    arguments.extend(SETTINGS);
    arguments.extend(["--out", whole.to_str().unwrap()]);
    succeed(start(folder.path(), &arguments));
    let expected = result(&whole);

    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let (mut kills_while_writing, mut kills) = (0, 0);
    for (round, while_writing) in [false, true, false].into_iter().enumerate() {
        let run = folder.path().join(format!("killed-{round}"));
        // Each kill in the middle of a checkpoint costs the run at most the step before it.
        for _ in 0..if while_writing { 12 } else { 6 } {
            run_and_kill(folder.path(), &run, while_writing, &mut rng);
            if finished(&run) {
                break;
            }
            kills += 1;
            kills_while_writing += usize::from(is_writing(&run));
        }
        if !finished(&run) {
            let path = run.to_str().unwrap().to_owned();
            let mut arguments = vec!["train"];
            if run.join("config.toml").exists() {
                arguments.extend(["--resume", &path]);
            } else {
                arguments.extend(SETTINGS);
                arguments.extend(["--out", &path]);
            }
            succeed(start(folder.path(), &arguments));
        }
        let actual = result(&run);
        assert!(actual.0 == expected.0, "round {round}: metrics.jsonl differs");
        assert_eq!(actual.1, expected.1, "round {round}: the newest checkpoint");
        assert!(actual.2 == expected.2, "round {round}: the final checkpoint differs");
    }
    assert!(kills > 0, "no run was killed before it was finished");
    assert!(kills_while_writing > 0, "no run was killed while it wrote a checkpoint");
    println!("{kills} kills, {kills_while_writing} of them while a checkpoint was being written");
}

#[test]
fn a_killed_and_resumed_comparison_ends_with_the_same_logs() {
    let folder = tempfile::tempdir().unwrap();
    let settings = ["--preset", "smoke", "--steps", "20", "--arms", "cascade,ancre", "--seeds", "2"];
    let run = |path: &str| {
        let mut arguments = settings.to_vec();
        arguments.extend(["--out", path]);
        arguments.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()
    };
    let strings = |list: &[String]| list.to_vec();
    let spawn = |list: &[String]| start(folder.path(), &list.iter().map(String::as_str).collect::<Vec<_>>());
    succeed(spawn(&strings(&run("whole"))));
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for attempt in 0..4 {
        let exists = folder.path().join("killed/config.toml").exists();
        let arguments = if exists { vec!["--resume".to_owned(), "killed".to_owned()] } else { strings(&run("killed")) };
        // A directory without settings is the start of a run that was killed before it began.
        if !exists {
            let _ = fs::remove_dir_all(folder.path().join("killed"));
        }
        let mut child = spawn(&arguments);
        sleep(Duration::from_millis(200 + 150 * attempt + rng.random_range(0..300)));
        let _ = child.kill();
        child.wait().unwrap();
    }
    let exists = folder.path().join("killed/config.toml").exists();
    succeed(spawn(&if exists { vec!["--resume".to_owned(), "killed".to_owned()] } else { run("killed") }));
    for arm in ["cascade-seed0", "ancre-seed0", "cascade-seed1", "ancre-seed1"] {
        let logs = |run: &str| result(&folder.path().join(run).join("arms").join(arm));
        assert!(logs("whole") == logs("killed"), "{arm} differs");
    }
    assert!(folder.path().join("killed/report.json").is_file());
}
