//! The program as a user meets it: what it prints, and that bad input gets one clear message.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_theory");

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).current_dir(folder).output().expect("the program starts")
}

/// Runs the program, which must succeed, and returns what it printed.
#[track_caller]
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the program, which must fail with this code and a message that holds every one of these words.
#[track_caller]
fn refused(folder: &Path, arguments: &[&str], code: i32, words: &[&str]) {
    let output = run(folder, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
    assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().filter(|line| line.starts_with("error:")).count(), 1, "{arguments:?}: {stderr}");
    for word in words {
        assert!(stderr.contains(word), "{arguments:?} does not say `{word}`: {stderr}");
    }
}

#[test]
fn wrong_layouts_and_files_are_pointed_at() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("word.txt"), "1 2\n3 x4\n").unwrap();
    fs::write(path.join("ragged.txt"), "1 2\n3\n").unwrap();
    fs::write(path.join("wide.txt"), "1 2 3\n4 5 6\n").unwrap();
    fs::write(path.join("square.txt"), "1 2\n3 4\n").unwrap();
    refused(path, &["flow", "--layout", "0:2+3", "--depth", "4"], 2, &["0:2+3", "column 6", "expected `:`"]);
    refused(path, &["flow", "--layout", "0:9"], 2, &["0:9", "column 3", "at depth 3"]);
    refused(path, &["flow", "--target", "word.txt"], 2, &["word.txt:2:3", "`x4` is not a number"]);
    refused(path, &["flow", "--target", "ragged.txt"], 2, &["ragged.txt:2:1", "has 1 number"]);
    refused(path, &["flow", "--target", "wide.txt"], 2, &["wide.txt", "2 x 3", "--inputs"]);
    refused(path, &["flow", "--target", "none.txt"], 2, &["none.txt", "gaussian"]);
    refused(path, &["flow", "--target", "square.txt", "--dim", "3"], 2, &["--dim 3", "2 rows"]);
    refused(path, &["flow", "--target", "wide.txt", "--inputs", "square.txt"], 2, &["2 x 2", "2 x 3"]);
    refused(path, &["flow", "--inputs", "square.txt"], 2, &["--inputs", "--target"]);
}

#[test]
fn numbers_out_of_range_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (flag, value) in [("--init", "-1"), ("--init", "nan"), ("--until", "0"), ("--time", "inf"), ("--gd", "0")] {
        refused(path, &["flow", &format!("{flag}={value}")], 2, &[flag]);
    }
    refused(path, &["flow", "--depth", "0"], 2, &["--depth 0"]);
    refused(path, &["flow", "--depth", "300"], 2, &["256"]);
    refused(path, &["flow", "--dim", "100000"], 2, &["512"]);
    refused(path, &["flow", "--learned", "hidden-only", "--tau", "0"], 2, &["--tau"]);
    refused(path, &["flow", "--tau", "0.5"], 2, &["--learned"]);
    refused(path, &["flow", "--layout", "0:1", "--learned", "with-output"], 2, &["--layout"]);
}

#[test]
fn what_the_machine_could_not_hold_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for value in ["18446744073709551615", "4294967296", "100000", "0"] {
        refused(path, &["rank", "--depth", "1", "--dim", value], 2, &["width"]);
    }
    for value in ["18446744073709551615", "1000000000", "0"] {
        refused(path, &["rank", "--depth", "2", "--seeds", value], 2, &["seeds"]);
    }
    for depth in ["0", "6", "7", "300"] {
        refused(path, &["rank", "--depth", depth], 2, &["depth"]);
    }
    refused(path, &["rank", "--depth", "2", "--until", "1e-20"], 2, &["above rounding"]);
    refused(path, &["rank", "--depth", "2", "--rates", "0.1,0.1"], 2, &["given once"]);
    refused(path, &["flow", "--gd", "0.1", "--steps", "18446744073709551615"], 2, &["--steps"]);
    let tall = "1\n".repeat(2000);
    fs::write(path.join("tall.txt"), tall).unwrap();
    refused(path, &["flow", "--target", "tall.txt", "--inputs", "tall.txt"], 2, &["2000 rows"]);
}

#[test]
fn losses_that_are_no_numbers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("y.txt"), "1 2\n3 4\n").unwrap();
    fs::write(path.join("zeros.txt"), "0 0\n0 0\n").unwrap();
    fs::write(path.join("huge.txt"), "1e200 0\n0 1\n").unwrap();
    for method in [["--time", "200"], ["--gd", "0.1"], ["--adam", "0.1"]] {
        let flow = |target, inputs| ["flow", method[0], method[1], "--target", target, "--inputs", inputs];
        refused(path, &flow("y.txt", "zeros.txt"), 2, &["all inputs are"]);
        refused(path, &flow("y.txt", "huge.txt"), 2, &["rescale"]);
        refused(path, &["flow", method[0], method[1], "--target", "huge.txt"], 2, &["rescale"]);
        refused(path, &["flow", method[0], method[1], "--init", "1e100"], 2, &["--init"]);
    }
    let speed = ["flow", "--learned", "hidden-only", "--gd", "0.1", "--logit-speed"];
    for value in ["nan", "inf", "-1"] {
        refused(path, &[&speed[..], &[value]].concat(), 2, &["--logit-speed"]);
    }
}

#[test]
fn a_place_that_cannot_be_written_is_known_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("file"), "").unwrap();
    // Slow enough that the test would be noticed.
    refused(path, &["rank", "--depth", "5", "--csv", "none/rows.csv"], 2, &["none/rows.csv", "no folder"]);
    refused(path, &["flow", "--csv", "file/rows.csv"], 2, &["file/rows.csv"]);
    refused(path, &["verify", "--out", "file/run"], 2, &["file"]);
    assert_eq!(fs::read_dir(path).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn a_reader_that_leaves_does_not_lose_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut child = Command::new(PROGRAM);
    child.args(["rank", "--depth", "2", "--csv", "rows.csv"]).current_dir(path).stdout(std::process::Stdio::piped());
    let mut child = child.spawn().unwrap();
    drop(child.stdout.take());
    child.wait().unwrap();
    let rows = fs::read_to_string(path.join("rows.csv")).unwrap();
    assert_eq!(rows.lines().count(), 1 + 8, "{rows}");
}

#[test]
fn a_pipe_without_end_is_not_read_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    if Path::new("/dev/zero").exists() {
        refused(folder.path(), &["flow", "--target", "/dev/zero"], 2, &["/dev/zero", "too large"]);
    }
}

#[test]
fn files_are_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("taken.csv"), "mine").unwrap();
    refused(path, &["flow", "--csv", "taken.csv"], 2, &["taken.csv", "exists"]);
    refused(path, &["verify", "--out", "taken.csv"], 2, &["taken.csv", "exists"]);
    assert_eq!(fs::read_to_string(path.join("taken.csv")).unwrap(), "mine");
    assert_eq!(fs::read_dir(path).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn a_flow_prints_its_decades_and_writes_its_curve() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let text = printed(path, &["flow", "--layout", "0:2", "--dim", "4", "--init", "0", "--csv", "curve.csv"]);
    // From zero weights L(t) = L(0) exp(-2 t): a decade takes ln(10) / 2.
    assert!(text.contains("1e-6    6.9078") && text.contains("2.000"), "{text}");
    let curve = fs::read_to_string(path.join("curve.csv")).unwrap();
    assert!(curve.starts_with("time,excess_loss,relative_loss\n0,"), "{curve}");
    let text = printed(path, &["flow", "--learned", "hidden-only", "--dim", "4", "--csv", "learned.csv"]);
    assert!(text.contains("into node") && text.contains("the shortcuts above 1/2: 0:1"), "{text}");
    let curve = fs::read_to_string(path.join("learned.csv")).unwrap();
    assert!(curve.starts_with("time,excess_loss,relative_loss,p_0_1,p_0_2,p_1_2\n"), "{curve}");
}

#[test]
fn data_that_is_not_whitened_has_a_floor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("x.txt"), "1 2 0 1\n0 1 1 -1\n").unwrap();
    fs::write(path.join("y.txt"), "# outputs\n1, 0, 2, 1\n0, 1, 0, 3\n").unwrap();
    let text = printed(path, &["flow", "--target", "y.txt", "--inputs", "x.txt", "--layout", "hidden-cascade"]);
    assert!(text.contains("no linear network gets below a loss of") && text.contains("1e-12"), "{text}");
}
