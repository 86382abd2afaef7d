//! The program on a small folder of documents: it makes, checks and adds, and refuses what it cannot use.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use expect_test::expect_file;

const PAPER: &str = r#"
paper = "a paper"

[[table]]
id = "c4"
title = "Perplexity"
source = "a table"

[[table.column]]
name = "60M"
better = "lower"
metric = "final_perplexity"
scale = { parameters = 60e6, steps = 10000 }
gap = "a GPU"

[[table.row]]
name = "full"
values = [30.39]
log = "llm"
arm = "cascade"

[[table.row]]
name = "full + ANCRe"
values = [29.62]
log = "llm"
arm = "ancre"
against = "full"

[[table.row]]
name = "GaLore"
values = [34.61]
log = "none"
arm = "cascade"

[[claim]]
id = "saved-steps"
what = "fewer iterations"
source = "a sentence"
paper = 34.3
unit = "%"
gap = "more GPUs"
evidence = { kind = "saved-steps", log = "llm", arm = "ancre", baseline = "cascade", curve = "held_out_nats_per_byte" }

[theory]
log = "theory"
gap = "run the theory"
"#;

fn figures(docs: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_figures")).arg("--docs").arg(docs).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A finished comparison of two arms on three seeds, in which `ancre` is ahead at every step and slower by a fifth.
fn comparison(folder: &Path) {
    let mut arms = Vec::new();
    for (arm, ahead, seconds) in [("cascade", 0.0, 1.0), ("ancre", 0.25, 1.2)] {
        for seed in 0..3_u8 {
            let run = folder.join(format!("arms/{arm}-seed{seed}"));
            fs::create_dir_all(&run).unwrap();
            let (mut metrics, mut times) = (String::new(), String::new());
            let loss = |step: f64| 2.0 / step - ahead + 0.01 * f64::from(seed * seed) * ahead;
            for step in 1..=4 {
                metrics += &format!(
                    "{{\"step\":{},\"kind\":\"evaluation\",\"held_out_nats_per_byte\":{:?}}}\n",
                    100 * step,
                    loss(f64::from(step))
                );
                times += &format!(
                    "{{\"step\":{},\"kind\":\"timing\",\"interval\":{step}.0,\"steps\":100.0,\"seconds\":{seconds:?},\"tokens_per_second\":5.0}}\n",
                    100 * step
                );
            }
            fs::write(run.join("metrics.jsonl"), metrics).unwrap();
            fs::write(run.join("timing.jsonl"), times).unwrap();
            fs::write(run.join("summary.json"), format!("{{\"arm\":\"{arm}\",\"seed\":{seed}}}")).unwrap();
            let perplexity = 10.0 * loss(4.0).exp();
            arms.push(format!(
                "{{\"name\":\"{arm}\",\"seed\":{seed},\"parameters\":600000,\"final_perplexity\":{perplexity:?},\
                 \"connection_parameters\":{},\"coefficients\":[[1.0],[0.25,0.75]]}}",
                if arm == "ancre" { 3 } else { 0 }
            ));
        }
    }
    let report = format!("{{\"baseline\":\"cascade\",\"steps\":400,\"arms\":[{}]}}", arms.join(","));
    fs::write(folder.join("report.json"), report).unwrap();
    fs::write(folder.join("report.md"), "# Comparison\n\n400 steps; 3 seeds\n").unwrap();
    fs::write(folder.join("config.toml"), "seeds = 3\n").unwrap();
    let environment = r#"{"program":"experiments-llm","commit":"0123456789abcdef","cpu":"A CPU","threads":2,"command_line":["x","--seeds","3"]}"#;
    fs::write(folder.join("environment.json"), environment).unwrap();
}

/// A folder of documents with the paper's numbers and the log of a comparison.
fn documents() -> tempfile::TempDir {
    let (docs, run) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(docs.path().join("paper.toml"), PAPER).unwrap();
    comparison(run.path());
    let added = figures(docs.path(), &["add", run.path().to_str().unwrap(), "llm"]);
    assert!(added.status.success(), "{}", text(&added));
    docs
}

#[test]
fn the_page_says_what_the_log_says() {
    let docs = documents();
    let made = figures(docs.path(), &[]);
    assert!(made.status.success(), "{}", text(&made));
    // UPDATE_EXPECT=1 writes it anew.
    expect_file!["expected/reproduction.md"]
        .assert_eq(&fs::read_to_string(docs.path().join("reproduction.md")).unwrap());
}

#[test]
fn a_check_ends_with_1_until_everything_is_as_it_is_made() {
    let docs = documents();
    let check = || figures(docs.path(), &["--check"]);
    let before = check();
    assert_eq!(before.status.code(), Some(1));
    assert!(text(&before).contains("reproduction.md is missing"), "{}", text(&before));
    assert!(!docs.path().join("reproduction.md").exists(), "a check writes nothing");
    assert!(figures(docs.path(), &[]).status.success());
    assert!(check().status.success(), "{}", text(&check()));
    let pictures: Vec<_> = fs::read_dir(docs.path().join("figures/reproduction")).unwrap().flatten().collect();
    assert!(pictures.len() >= 3, "gains, loss against steps and seconds, connections");
    for (path, bytes) in [(docs.path().join("reproduction.md"), "changed by hand"), (pictures[0].path(), "no picture")]
    {
        let good = fs::read(&path).unwrap();
        fs::write(&path, bytes).unwrap();
        let after = check();
        assert_eq!(after.status.code(), Some(1));
        assert!(text(&after).contains("differs"), "{}", text(&after));
        fs::write(&path, good).unwrap();
    }
    // A number of the log that changes is seen as well.
    let report = docs.path().join("logs/llm/report.json");
    let changed = fs::read_to_string(&report).unwrap().replacen("\"final_perplexity\":1", "\"final_perplexity\":2", 1);
    fs::write(&report, changed).unwrap();
    assert_eq!(check().status.code(), Some(1));
}

#[test]
fn what_cannot_be_used_is_said() {
    let docs = documents();
    let fails = |code: i32, arguments: &[&str], message: &str| {
        let output = figures(docs.path(), arguments);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output));
        assert!(text(&output).contains(message), "{}", text(&output));
    };
    fails(2, &["--check", "add", "x", "y"], "--check goes with no command");
    fails(2, &["--unknown"], "unexpected argument");
    fails(1, &["add", "nowhere", "y"], "nowhere is no directory");
    let logs = docs.path().join("logs");
    fs::remove_file(logs.join("llm/log.toml")).unwrap();
    fails(1, &[], "which every log has");
    fs::write(logs.join("llm/log.toml"), "what = \"w\"\ncommand = \"c\"\ncommit = \"d\"\n").unwrap();
    fs::write(logs.join("llm/report.json"), "{").unwrap();
    fails(1, &[], "report.json is damaged");
    fs::write(docs.path().join("paper.toml"), "paper = 1\n").unwrap();
    fails(1, &[], "paper.toml does not hold together");
    let none = figures(Path::new("nowhere"), &[]);
    assert_eq!(none.status.code(), Some(1));
    assert!(text(&none).contains("cannot read nowhere/paper.toml"), "{}", text(&none));
}
