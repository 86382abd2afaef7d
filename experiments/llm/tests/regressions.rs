//! One test for every fault found, named after it.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_experiments-llm");
const TRAIN: [&str; 5] = ["train", "--preset", "smoke", "--steps", "12"];

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).current_dir(folder).output().expect("the program starts")
}

#[track_caller]
fn succeeds(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned() + &stderr
}

#[track_caller]
fn fails(folder: &Path, arguments: &[&str], words: &[&str]) {
    let output = run(folder, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(1 | 2)) && !stderr.contains("panicked"), "{arguments:?}: {stderr}");
    for word in words {
        assert!(stderr.contains(word), "{arguments:?} does not say `{word}`: {stderr}");
    }
}

fn metrics(run: &Path) -> String {
    fs::read_to_string(run.join("metrics.jsonl")).unwrap()
}

/// A run and its weights as `w.safetensors`.
fn with_weights() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    succeeds(folder.path(), &[&TRAIN[..], &["--out", "run"]].concat());
    succeeds(folder.path(), &["export", "run", "--to", "w.safetensors"]);
    folder
}

#[test]
fn a_kill_during_the_first_checkpoint_lost_the_initial_weights() {
    let folder = with_weights();
    let path = folder.path();
    let warm = [&TRAIN[..], &["--init-from", "w.safetensors", "--tau", "0.5", "--out"]].concat();
    succeeds(path, &[&warm[..], &["whole"]].concat());
    succeeds(path, &[&warm[..], &["killed"]].concat());
    // As a kill while the first checkpoint is being written leaves it.
    let checkpoints = path.join("killed/checkpoints");
    for file in fs::read_dir(&checkpoints).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    fs::write(checkpoints.join("step-00000002.safetensors.tmp"), "half").unwrap();
    fs::remove_file(path.join("killed/summary.json")).unwrap();
    succeeds(path, &["train", "--resume", "killed"]);
    assert_eq!(metrics(&path.join("killed")), metrics(&path.join("whole")));
}

#[test]
fn a_stored_temperature_was_forgotten_by_those_who_read_the_run() {
    let folder = with_weights();
    let path = folder.path();
    let text = succeeds(path, &[&TRAIN[..], &["--init-from", "w.safetensors", "--tau", "0.5", "--out", "t"]].concat());
    assert!(text.contains("stores tau = 0.01"), "{text}");
    assert!(fs::read_to_string(path.join("t/config.toml")).unwrap().contains("tau = 0.01"));
}

#[test]
fn reading_a_run_removed_the_checkpoint_being_written() {
    let folder = with_weights();
    let path = folder.path();
    let writing = path.join("run/checkpoints/step-00000099.safetensors.tmp");
    fs::write(&writing, "being written").unwrap();
    succeeds(path, &["evaluate", "run"]);
    succeeds(path, &["generate", "run", "--tokens", "3"]);
    succeeds(path, &["export", "run", "--to", "again.safetensors"]);
    assert!(writing.exists());
}

#[test]
fn an_export_replaced_a_file_of_the_user() {
    let folder = with_weights();
    let path = folder.path();
    fs::write(path.join("x.safetensors.tmp"), "important").unwrap();
    succeeds(path, &["export", "run", "--to", "x.safetensors"]);
    assert_eq!(fs::read_to_string(path.join("x.safetensors.tmp")).unwrap(), "important");
}

/// Texts of the same length, so that only their content tells them apart.
fn texts(folder: &Path) {
    let text = |offset: u8| -> String {
        (0..4000u32).map(|i| char::from(b'a' + ((i * i / 7 + u32::from(offset)) % 26) as u8)).collect()
    };
    fs::write(folder.join("train.txt"), text(0)).unwrap();
    fs::write(folder.join("held.txt"), text(5)).unwrap();
    fs::write(folder.join("other.txt"), text(11)).unwrap();
}

#[test]
fn another_held_out_text_of_the_same_length_was_not_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    texts(path);
    succeeds(path, &[&TRAIN[..], &["--data", "train.txt", "--validation", "held.txt", "--out", "run"]].concat());
    fs::copy(path.join("other.txt"), path.join("held.txt")).unwrap();
    fails(path, &["train", "--resume", "run"], &["other settings", "data"]);
}

#[test]
fn a_comparison_mixed_arms_of_two_texts_or_settings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    texts(path);
    let compare = ["--preset", "smoke", "--steps", "8", "--arms", "cascade,ancre", "--data", "train.txt", "--out", "c"];
    succeeds(path, &compare);
    let config = fs::read_to_string(path.join("c/config.toml")).unwrap();
    fs::write(path.join("c/config.toml"), config.replace("lr = 0.004", "lr = 0.002")).unwrap();
    fails(path, &["--resume", "c"], &["other settings"]);
    fs::write(path.join("c/config.toml"), config).unwrap();
    fs::copy(path.join("other.txt"), path.join("train.txt")).unwrap();
    fails(path, &["--resume", "c"], &["another text"]);
}

#[test]
fn a_shortened_log_was_reported_as_if_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    succeeds(path, &["--preset", "smoke", "--steps", "8", "--arms", "cascade,ancre", "--out", "c"]);
    let log = path.join("c/arms/ancre-seed0/metrics.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, &text[..text.len() - 20]).unwrap();
    fails(path, &["--resume", "c"], &["ancre-seed0", "of 8"]);
}

#[test]
fn bad_input_left_the_directory_of_a_comparison_behind() {
    let folder = tempfile::tempdir().unwrap();
    fails(folder.path(), &["--preset", "smoke", "--data", "missing.txt", "--out", "c"], &["missing.txt"]);
    assert!(!folder.path().join("c").exists());
}

#[test]
fn huge_numbers_overflowed() {
    let folder = tempfile::tempdir().unwrap();
    let huge = "9223372036854775807";
    for arguments in [
        &["--batch", huge][..],
        &["--context", huge],
        &["--set", "model.width=4611686018427387904"],
        &["--set", "model.positions=9223372036854775807"],
        &["--set", "model.vocabulary=9223372036854775807"],
        &["--seed", "18446744073709551615"],
        &["--seeds", "18446744073709551615", "--seed", "1"],
        &["--tokenizer", "bpe:100000000"],
        &["--tau", "1e-320"],
        &["--set", "model.init_std=nan"],
        &["--set", "model.rotary_base=0"],
        &["--set", "training.schedule.min_ratio=nan"],
    ] {
        fails(folder.path(), arguments, &[]);
    }
    assert!(!folder.path().join("runs").exists());
}

#[test]
fn one_arm_that_diverged_stopped_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // A free scalar mix of this depth at this rate leaves the floats; the frozen ones do not matter here.
    let arguments = ["--preset", "smoke", "--steps", "8", "--lr", "1e30", "--arms", "cascade,ancre", "--out", "c"];
    let text = succeeds(path, &arguments);
    assert!(text.contains("not finite") || text.contains("NaN") || text.contains("inf"), "{text}");
    assert!(path.join("c/report.json").is_file());
}

#[test]
fn a_reader_that_goes_away_ended_a_run_with_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(PROGRAM)
        .args([&TRAIN[..], &["--out", "run"]].concat())
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    drop(child.stderr.take());
    assert!(child.wait().unwrap().success());
    assert!(folder.path().join("run/summary.json").is_file());
}

#[test]
fn the_config_of_a_comparison_could_not_be_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    succeeds(path, &["--preset", "smoke", "--steps", "8", "--arms", "cascade,0:l", "--out", "a"]);
    succeeds(path, &["--config", "a/config.toml", "--out", "b"]);
    let config = |run: &str| fs::read_to_string(path.join(run).join("config.toml")).unwrap();
    assert_eq!(config("a"), config("b"));
    for arm in ["cascade-seed0", "0-l-seed0"] {
        assert_eq!(metrics(&path.join("a/arms").join(arm)), metrics(&path.join("b/arms").join(arm)));
    }
}

#[test]
fn a_report_has_its_fields_and_the_path_is_the_last_line() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["--preset", "smoke", "--arms", "cascade,ancre", "--out", "c"]);
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(stdout.lines().last(), Some("c"), "{stdout}");
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("c/report.json")).unwrap()).unwrap();
    for arm in report["arms"].as_array().unwrap() {
        for field in [
            "name",
            "seed",
            "final_nats_per_byte",
            "final_perplexity",
            "final_bits_per_byte",
            "steps_to_baseline",
            "tokens_per_second",
            "step_time_ratio",
            "peak_memory_bytes",
        ] {
            assert!(arm.get(field).is_some(), "{field} is missing");
        }
        let number = |field: &str| arm[field].as_f64().unwrap();
        let bits = number("final_nats_per_byte") / std::f64::consts::LN_2;
        assert!((number("final_bits_per_byte") - bits).abs() < 1e-12);
        assert!((number("final_perplexity").ln() - number("final_loss")).abs() < 1e-9);
    }
    for figure in ["loss.png", "loss.svg", "connections.png", "connections.svg"] {
        assert!(folder.path().join("c/figures").join(figure).is_file(), "{figure}");
    }
}
