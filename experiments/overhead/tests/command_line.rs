//! The program as a user meets it: what it prints and writes, and that bad input gets one clear message.

use std::fs;

use program_tests::Program;

const PROGRAM: Program = Program(env!("CARGO_BIN_EXE_experiments-overhead"));

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn a_run_leaves_tables_a_record_and_a_figure() {
    let folder = folder();
    let arguments = ["--preset", "smoke", "--arms", "ancre,rezero,cascade,ancre", "--rounds", "6", "--out", "here"];
    let printed = PROGRAM.succeeds(folder.path(), &arguments);
    for words in ["llm-smoke", "forward + backward", "peak memory", "here"] {
        assert!(printed.contains(words), "`{words}` is not in {printed}");
    }
    let here = folder.path().join("here");
    let record: serde_json::Value = serde_json::from_slice(&fs::read(here.join("overhead.json")).unwrap()).unwrap();
    assert!(record["environment"]["threads"].as_u64().is_some_and(|threads| threads > 0));
    let language = &record["shapes"][0];
    let arms: Vec<&str> = language["arms"].as_array().unwrap().iter().filter_map(|arm| arm["arm"].as_str()).collect();
    assert_eq!(arms, ["cascade", "ancre", "rezero"]);
    let [cascade, ancre] = [&language["arms"][0], &language["arms"][1]];
    assert_eq!(cascade["gradient_ratio"]["value"], 1.0);
    assert_eq!(ancre["gradient_ratio"]["count"], 6);
    assert!(ancre["gradient_ratio"]["interval"].is_array());
    // Four blocks: ten scalars, one of which is always 1.
    assert_eq!(ancre["connection_parameters"], 9);
    assert!(ancre["flops"].as_u64() > Some(0) && ancre["bytes"].as_u64() > ancre["flops"].as_u64());
    assert!(ancre["peak_bytes"].as_u64() > Some(1 << 20), "{ancre}");
    for file in ["overhead.md", "config.toml", "environment.json", "figures/time_ratios.png", "figures/time_ratios.svg"]
    {
        assert!(here.join(file).is_file(), "{file}");
    }
    PROGRAM.refuses(folder.path(), &arguments, 2, &["here", "exist"]);
}

/// What is allocated once in a process was counted for the arm that is measured first: the ratio of `residual`, which adds nothing, was .86.
#[test]
fn what_is_allocated_once_is_not_counted_for_the_first_arm() {
    let folder = folder();
    let arguments = ["--shapes", "llm-cpu", "--arms", "residual", "--rounds", "1", "--out", "here"];
    PROGRAM.succeeds(folder.path(), &arguments);
    let record = fs::read(folder.path().join("here").join("overhead.json")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let ratio = record["shapes"][0]["arms"][1]["peak_ratio"].as_f64().unwrap();
    assert!((0.98..1.02).contains(&ratio), "{ratio}");
}

#[test]
fn the_list_names_shapes() {
    let printed = PROGRAM.succeeds(folder().path(), &["--list"]);
    for words in ["llama-60m", "8 layers of width 512", "dit-b-2", "resnet-64", "256 words"] {
        assert!(printed.contains(words), "`{words}` is not in {printed}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = folder();
    let path = folder.path();
    PROGRAM.refuses(path, &["--shapes", "llama-7b"], 2, &["llama-7b", "llama-60m"]);
    PROGRAM.refuses(path, &["--arms", "ancer"], 2, &["ancer", "cascade"]);
    PROGRAM.refuses(path, &["--rounds", "0"], 2, &["--rounds 0"]);
    PROGRAM.refuses(path, &["--rounds", "3", "--seconds", "3"], 2, &["--seconds"]);
    PROGRAM.refuses(path, &["--seconds=-1"], 2, &["--seconds -1"]);
    PROGRAM.refuses(path, &["--seconds", "nan"], 2, &["--seconds NaN"]);
    PROGRAM.refuses(path, &["--rows", "0", "--shapes", "llm-smoke"], 2, &["llm-smoke", "batch is 0"]);
    PROGRAM.refuses(path, &["--preset", "huge"], 2, &["huge", "smoke"]);
    assert!(!path.join("runs").exists(), "nothing was made");
}
