//! `figures add`: what is needed of a run directory, as a log to commit.
//!
//! Evaluations stay as they are; training records and times of long runs are thinned to some hundred lines. Checkpoints and
//! pictures are left out.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use walkdir::WalkDir;

use crate::logs::{
    PROVENANCE, Provenance, merged_times, read_lines, read_records, thinned, write_lines, write_records,
};

/// Training records, times and points of a line that are kept, about.
const MOST: usize = 200;

/// What a person may say about a run directory. What is not said is read from it.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// What was run.
    pub what: Option<String>,
    /// The command.
    pub command: Option<String>,
    /// The commit of the code.
    pub commit: Option<String>,
}

/// Copies a run directory to `logs/NAME`, which must not exist: whole or not at all. Returns the folder, and what a reader
/// should know.
///
/// # Errors
/// If the directory is no finished run, something about it is not known, or a file is damaged or cannot be written.
pub fn add(run: &Path, logs: &Path, name: &str, said: &Said) -> Result<(PathBuf, Vec<String>)> {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    ensure!(plain, "{name:?} cannot name a log: give letters, digits and hyphens, e.g. llm-cpu");
    let target = logs.join(name);
    ensure!(!target.exists(), "{} exists already: give another name, or remove it", target.display());
    ensure!(run.is_dir(), "{} is no directory: give that of a finished run", run.display());
    let results = ["report.json", "overhead.json", "findings.csv"];
    ensure!(
        results.iter().any(|file| run.join(file).is_file()),
        "{} has none of {}: give the directory of a finished comparison, overhead or theory run",
        run.display(),
        results.join(", ")
    );
    let provenance = provenance(run, said)?;
    let mut notes = Vec::new();
    if provenance.commit.ends_with("-dirty") {
        notes.push(format!(
            "the sources of {} were changed since the commit: nobody else can run it again",
            run.display()
        ));
    }
    fs::create_dir_all(logs).with_context(|| format!("cannot make {}", logs.display()))?;
    let staging = tempfile::Builder::new().prefix(".figures-").tempdir_in(logs);
    let staging = staging.with_context(|| format!("cannot write in {}", logs.display()))?;
    copy(run, staging.path())?;
    write(&staging.path().join(PROVENANCE), toml::to_string(&provenance)?.as_bytes())?;
    // Temporary directories are for their owner only.
    #[cfg(unix)]
    fs::set_permissions(staging.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    fs::rename(staging.path(), &target).with_context(|| format!("cannot make {}", target.display()))?;
    Ok((target, notes))
}

/// Copies what a log holds, thinned.
fn copy(run: &Path, to: &Path) -> Result<()> {
    for entry in WalkDir::new(run).sort_by_file_name() {
        let entry = entry?;
        let (path, relative) = (entry.path(), entry.path().strip_prefix(run)?);
        let name = entry.file_name().to_string_lossy();
        let in_figures = relative.starts_with("figures");
        let bytes = match name.as_ref() {
            "metrics.jsonl" => write_records(&thinned(&read_records(path)?, MOST)).into_bytes(),
            "timing.jsonl" => write_records(&merged_times(&read_records(path)?, MOST)).into_bytes(),
            "report.md" | "overhead.md" => without_pictures(&read(path)?).into_bytes(),
            _ if in_figures && name.ends_with(".csv") => write_lines(&read_lines(path)?, MOST)?,
            // The settings of runs are those of the comparison.
            "config.toml" if relative.starts_with("arms") => continue,
            "config.toml" | "summary.json" | "report.json" | "overhead.json" | "findings.csv" => {
                read(path)?.into_bytes()
            }
            _ => continue,
        };
        write(&to.join(relative), &bytes)?;
    }
    Ok(())
}

/// Where a run comes from: what is said, else what the directory knows.
fn provenance(run: &Path, said: &Said) -> Result<Provenance> {
    let path = run.join("environment.json");
    let overhead = run.join("overhead.json");
    let environment: Value = match (path.is_file(), overhead.is_file()) {
        (true, _) => serde_json::from_str(&read(&path)?).with_context(|| format!("{} is damaged", path.display()))?,
        (false, true) => serde_json::from_str::<Value>(&read(&overhead)?)
            .with_context(|| format!("{} is damaged", overhead.display()))?["environment"]
            .clone(),
        (false, false) => Value::Null,
    };
    let known = |given: &Option<String>, found: Option<String>, flag: &str| match given.clone().or(found) {
        Some(text) => Ok(text),
        None => bail!("{} does not say it: give {flag}", run.display()),
    };
    Ok(Provenance {
        what: known(&said.what, heading(run), "--what \"SIZES IN A FEW WORDS\"")?,
        command: known(&said.command, command(&environment), "--command \"THE COMMAND THAT MADE IT\"")?,
        commit: known(&said.commit, environment["commit"].as_str().map(str::to_owned), "--commit COMMIT")?,
        machine: machine(&environment),
    })
}

/// The line of a report that says what was compared.
fn heading(run: &Path) -> Option<String> {
    let text = fs::read_to_string(run.join("report.md")).ok()?;
    let mut lines = text.lines().filter(|line| !line.is_empty());
    lines.next()?.starts_with("# ").then_some(())?;
    let line = lines.next().filter(|line| !line.starts_with(['#', '|']))?;
    // How its own tables are to be read.
    Some(line.strip_suffix(", mean ± standard deviation").unwrap_or(line).to_owned())
}

/// The command as a person types it; where the output went is left out.
fn command(environment: &Value) -> Option<String> {
    let program = environment["program"].as_str()?;
    let mut words = environment["command_line"].as_array()?.iter().skip(1).filter_map(Value::as_str);
    let mut arguments = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "--out" => drop(words.next()),
            _ if word.starts_with("--out=") => {}
            _ if word.contains(|c: char| c.is_whitespace() || "*$'\"\\;&|<>()".contains(c)) => {
                arguments.push(format!("'{}'", word.replace('\'', "'\\''")));
            }
            _ => arguments.push(word.to_owned()),
        }
    }
    let rest = if arguments.is_empty() { String::new() } else { format!(" -- {}", arguments.join(" ")) };
    Some(format!("cargo run -p {program}{rest}"))
}

fn machine(environment: &Value) -> String {
    let Some(cpu) = environment["cpu"].as_str() else { return String::new() };
    match environment["threads"].as_u64() {
        Some(1) => format!("{cpu}, 1 thread"),
        Some(threads) => format!("{cpu}, {threads} threads"),
        None => cpu.to_owned(),
    }
}

fn without_pictures(page: &str) -> String {
    let kept: Vec<&str> = page.lines().filter(|line| !line.starts_with("![")).collect();
    format!("{}\n", kept.join("\n").trim_end())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let put = || -> std::io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, bytes)
    };
    put().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::Log;

    fn comparison(folder: &Path) {
        let run = folder.join("arms/ancre-seed0");
        fs::create_dir_all(run.join("checkpoints")).unwrap();
        let put = |path: PathBuf, text: &str| fs::write(path, text).unwrap();
        put(
            folder.join("environment.json"),
            concat!(
                r#"{"program":"experiments-llm","commit":"abc","cpu":"A CPU","threads":2,"#,
                r#""command_line":["target/x","--arms","ancre,2*0:l","--out","runs/here"]}"#
            ),
        );
        put(folder.join("config.toml"), "seeds = 1\n");
        put(folder.join("report.json"), r#"{"baseline":"ancre","arms":[{"name":"ancre","seed":0}]}"#);
        put(
            folder.join("report.md"),
            "# Comparison\n\n600 steps; 1 seed, mean ± standard deviation\n\n## Loss\n\n![loss.png](figures/loss.png)\n",
        );
        put(run.join("config.toml"), "seed = 0\n");
        put(run.join("summary.json"), r#"{"arm":"ancre","seed":0}"#);
        put(run.join("checkpoints/step-1.safetensors"), "weights");
        let lines: String =
            (1..=1000).map(|step| format!("{{\"step\":{step},\"kind\":\"train\",\"loss\":1.5}}\n")).collect();
        put(run.join("metrics.jsonl"), &lines);
    }

    #[test]
    fn a_comparison_becomes_a_log_that_says_where_it_comes_from() {
        let (run, logs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        comparison(run.path());
        let (folder, notes) = add(run.path(), logs.path(), "llm", &Said::default()).unwrap();
        assert!(notes.is_empty(), "{notes:?}");
        let log = Log::find(logs.path(), "llm").unwrap().unwrap();
        let expected = Provenance {
            what: "600 steps; 1 seed".into(),
            command: "cargo run -p experiments-llm -- --arms 'ancre,2*0:l'".into(),
            commit: "abc".into(),
            machine: "A CPU, 2 threads".into(),
        };
        assert_eq!(log.provenance, expected);
        let report = log.report().unwrap().unwrap();
        assert!((200..210).contains(&log.curve(&report.arms[0], "loss").unwrap().len()));
        let mut files: Vec<String> = WalkDir::new(&folder)
            .into_iter()
            .flatten()
            .filter(|entry| entry.file_type().is_file())
            .map(|entry| entry.path().strip_prefix(&folder).unwrap().to_string_lossy().into_owned())
            .collect();
        files.sort();
        let expected = [
            "arms/ancre-seed0/metrics.jsonl",
            "arms/ancre-seed0/summary.json",
            "config.toml",
            "log.toml",
            "report.json",
            "report.md",
        ];
        assert_eq!(files, expected);
        assert!(!fs::read_to_string(folder.join("report.md")).unwrap().contains("!["));
        let again = add(run.path(), logs.path(), "llm", &Said::default());
        assert!(format!("{:#}", again.unwrap_err()).contains("exists already"));
    }

    #[test]
    fn what_is_no_run_leaves_nothing_behind() {
        let (run, logs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let error = |name: &str| format!("{:#}", add(run.path(), logs.path(), name, &Said::default()).unwrap_err());
        assert!(error("x").contains("none of report.json"), "{}", error("x"));
        assert!(error("../x").contains("cannot name a log"));
        fs::write(run.path().join("findings.csv"), "section\n").unwrap();
        assert!(error("x").contains("give --what"), "{}", error("x"));
        comparison(run.path());
        fs::write(run.path().join("arms/ancre-seed0/timing.jsonl"), "damaged\n").unwrap();
        assert!(error("x").contains("timing.jsonl, line 1"), "{}", error("x"));
        assert_eq!(fs::read_dir(logs.path()).unwrap().count(), 0, "half a log is left");
    }
}
