//! Comparisons and single runs of a toy: made, stopped, continued, refused, reported.

use std::{fs, path::Path};

use experiment_kit::{
    compare::{self, Comparison, run_path},
    layers::{lay_file, lay_pairs, lay_steps},
    report::{self, RunLogs, Runs},
    request::{self, CompareFlags},
    run::{self, ArmSummary, Start},
    state_dict::{from_model, to_bytes},
};
use serde_json::{Value, json};
use training::{interrupt::Interrupt, progress::Progress, settings::Layers, trainer::RunEnd};

use crate::toy::{B, LOSS, Numbers, Patches, Settings, Toy};

fn comparison(arms: &[&str], seeds: u64) -> Comparison<Settings> {
    let arms = arms.iter().map(|arm| arm.parse().unwrap()).collect();
    Comparison { arms, depths: Vec::new(), seeds, sequential: false, run: Settings::new() }
}

fn numbers() -> Numbers {
    Numbers { data: "text 1".to_owned(), ..Numbers::default() }
}

fn make(experiment: &Numbers, path: &Path, comparison: &Comparison<Settings>) -> anyhow::Result<RunEnd> {
    compare::run(experiment, path, comparison, &Progress::hidden(), &Interrupt::manual())
}

fn metrics(run: &Path) -> String {
    fs::read_to_string(run.join("metrics.jsonl")).unwrap()
}

#[test]
fn every_run_ends_once_and_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (path, experiment, comparison) = (folder.path(), numbers(), comparison(&["cascade", "ancre"], 2));
    assert_eq!(make(&experiment, path, &comparison).unwrap(), RunEnd::Finished);
    assert_eq!(experiment.ends.get(), 4);
    assert_eq!(make(&experiment, path, &comparison).unwrap(), RunEnd::Finished);
    assert_eq!(experiment.ends.get(), 4, "what is finished is left alone");

    let run = run_path(path, &comparison.variants()[1], 4);
    assert_eq!(fs::read_to_string(run.join("numbers.txt")).unwrap(), "0.1 0.2");
    let summary = ArmSummary::read(&run).unwrap();
    assert_eq!((summary.arm.as_str(), summary.seed, summary.extra), ("ancre", 4, json!({ "seed": 4 })));
    assert_eq!((summary.parameters, summary.connection_parameters), (32, 2));

    let runs = Runs::read(path, &comparison, LOSS).unwrap();
    assert_eq!((runs.baseline_name("ancre"), runs.runs.len(), runs.of_arm("ancre").len()), ("cascade", 4, 2));
    let steps: Vec<f64> = runs.runs[0].curve(LOSS).iter().map(|&(step, _)| step).collect();
    assert_eq!(steps, [2.0, 4.0, 6.0]);
    assert_eq!(runs.runs[0].at(LOSS, 1.0), runs.runs[0].last(LOSS));
    assert_eq!(runs.steps_to_baseline(&runs.runs[0], LOSS), Some(6.0));
    assert_eq!(runs.step_time_ratio(&runs.runs[0]), Some(1.0));
    let cells = |arm, value: &dyn Fn(&RunLogs) -> f64| report::table::difference(&runs, arm, 2, value);
    assert_eq!(cells("cascade", &|run| run.last(LOSS)), ["-", "-"], "the baseline itself");
    // 1 and 3 above the baseline of the same seed: t = 2 with one degree of freedom, so p = 1 - 2 atan(2) / pi.
    let apart = |run: &RunLogs| if run.arm == "ancre" { run.seed as f64 * 3.0 - 8.0 } else { run.seed as f64 - 3.0 };
    assert_eq!(cells("ancre", &apart), ["2.00 ± 1.41", "0.30"]);
    let known = |run: &RunLogs| if run.seed == 3 { run.summary.connection_parameters as f64 } else { f64::NAN };
    assert_eq!(cells("ancre", &known), ["+2.00", "-"], "one seed has no spread");
    assert!(report::table::cost(&runs, "numbers/s").to_text().contains("numbers/s"));
    assert!(report::connections_map(&runs, "", "layer").is_some_and(|(_, warning)| warning.is_none()));
    report::write(path, "# Report\n", &json!({ "format": 1 })).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&fs::read(path.join("report.json")).unwrap()).unwrap()["format"], 1);
}

#[test]
fn an_end_that_is_interrupted_comes_again() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, stopped) = (folder.path().join("whole"), folder.path().join("stopped"));
    let (experiment, comparison) = (numbers(), comparison(&["cascade", "ancre"], 1));
    make(&experiment, &whole, &comparison).unwrap();

    let experiment = numbers();
    experiment.interrupt.set(true);
    assert_eq!(make(&experiment, &stopped, &comparison).unwrap(), RunEnd::Interrupted);
    let arms: Vec<_> = comparison.variants().iter().map(|arm| run_path(&stopped, arm, 3)).collect();
    assert!(arms.iter().all(|run| !ArmSummary::path(run).exists()), "no run has got past its end");
    assert_eq!(make(&experiment, &stopped, &comparison).unwrap(), RunEnd::Finished);
    assert_eq!(experiment.ends.get(), 3);
    for arm in &comparison.variants() {
        assert_eq!(metrics(&run_path(&stopped, arm, 3)), metrics(&run_path(&whole, arm, 3)));
    }
}

#[test]
fn a_run_that_diverges_is_noted_and_has_no_end_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (experiment, mut comparison) = (numbers(), comparison(&["cascade", "ancre"], 1));
    comparison.run.training.lr = 1e30;
    assert_eq!(make(&experiment, folder.path(), &comparison).unwrap(), RunEnd::Finished);
    let runs = Runs::read(folder.path(), &comparison, LOSS).unwrap();
    assert!(runs.runs.iter().any(|run| run.has_diverged() && run.at(LOSS, 1.0).is_nan()), "{runs:?}");
    assert_eq!(experiment.ends.get(), runs.runs.iter().filter(|run| !run.has_diverged()).count());
    assert_eq!(runs.divergences().len(), 2 - experiment.ends.get());
}

#[test]
fn other_settings_or_data_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let (experiment, comparison) = (numbers(), comparison(&["cascade"], 1));
    make(&experiment, path, &comparison).unwrap();
    let other = Numbers { data: "text 2".to_owned(), ..Numbers::default() };
    let message = make(&other, path, &comparison).unwrap_err().to_string();
    assert!(message.contains("finished on other data"), "{message}");
    let mut changed = comparison.clone();
    changed.run.training.lr = 0.5;
    let message = make(&experiment, path, &changed).unwrap_err().to_string();
    assert!(message.contains("finished with other settings"), "{message}");
}

#[test]
fn a_single_run_begins_with_weights_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (file, path) = (folder.path().join("w.safetensors"), folder.path().join("run"));
    let other = Settings { seed: 9, tau: 0.25, ..Settings::new() };
    let stored = from_model(&Toy::<B>::new(&other, &Default::default()), &Patches);
    fs::write(&file, to_bytes(&stored).unwrap()).unwrap();
    let settings = Settings { init_from: Some(file), ..Settings::new() };

    let (experiment, progress, interrupt) = (numbers(), Progress::hidden(), Interrupt::manual());
    let train = |start, settings: &Settings| run::train(&experiment, &path, start, settings, &progress, &interrupt);
    assert_eq!(train(Start::New, &settings).unwrap(), RunEnd::Finished);
    assert!(train(Start::New, &settings).is_err(), "the directory is taken");
    let newest = run::newest::<Settings>(&path).unwrap();
    assert_eq!((newest.settings.tau, newest.checkpoint.header.step), (0.25, 6), "the temperature is that of the file");
    let message = train(Start::Resume { allow_changes: false }, &settings).unwrap_err().to_string();
    assert!(message.contains("tau"), "{message}");
    assert_eq!(train(Start::Resume { allow_changes: false }, &newest.settings).unwrap(), RunEnd::Finished);
    assert_eq!(ArmSummary::read(&path).unwrap().extra, json!({ "seed": 3 }));
}

#[test]
fn what_is_no_run_is_said_to_be_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let message = |path: &Path| run::newest::<Settings>(path).unwrap_err().to_string();
    assert!(message(path).contains("has no config.toml"));
    make(&numbers(), path, &comparison(&["cascade"], 1)).unwrap();
    assert!(message(path).contains("is a comparison") && message(path).contains("cascade-seed3"), "{}", message(path));
    let run = run_path(path, &comparison(&["cascade"], 1).variants()[0], 3);
    let error = compare::read::<Settings>(&run).unwrap_err().to_string();
    assert!(error.contains("is one run, not a comparison"), "{error}");
    for file in fs::read_dir(run.join("checkpoints")).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    assert!(message(&run).contains("has no checkpoint yet"));
}

#[test]
fn every_arm_is_made_at_every_depth_and_measured_against_the_baseline_there() {
    let folder = tempfile::tempdir().unwrap();
    let (path, experiment) = (folder.path(), numbers());
    let arms: Vec<_> = ["ancre", "cascade"].map(|arm| arm.parse().unwrap()).into();
    let flags = CompareFlags { arms: &arms, depths: &[3, 1, 3], ..CompareFlags::default() };
    let request = request::compare(&flags, |_| Ok(Settings::new()), || path.to_owned()).unwrap();
    let comparison = request.comparison;
    assert_eq!((&comparison.depths[..], comparison.at_once(), comparison.deepest().depth), (&[1, 3][..], 4, 3));
    assert_eq!(comparison.baseline_name(), "cascade at the same depth");
    assert_eq!(make(&experiment, path, &comparison).unwrap(), RunEnd::Finished);
    let runs = Runs::read(path, &comparison, LOSS).unwrap();
    assert_eq!(runs.arms, ["ancre, depth 1", "cascade, depth 1", "ancre, depth 3", "cascade, depth 3"]);
    let parameters: Vec<u64> = runs.runs.iter().map(|run| run.summary.parameters).collect();
    assert_eq!(parameters, [16, 16, 48, 48]);
    for run in &runs.runs {
        assert_eq!(runs.baseline_of(run).unwrap().arm, run.arm.replace("ancre", "cascade"));
    }
    assert!(path.join("arms/ancre-depth3-seed3").is_dir());
    // What config.toml then says gives the same comparison.
    let text = toml::to_string(&comparison).unwrap();
    assert_eq!(toml::from_str::<Comparison<Settings>>(&text).unwrap(), comparison);
    let message = request::compare(
        &CompareFlags { depths: &[0], ..CompareFlags::default() },
        |_| Ok(Settings::new()),
        || path.to_owned(),
    );
    let message = format!("{:#}", message.unwrap_err());
    assert!(message.contains("depth 0"), "{message}");
}

/// The settings that flags would make: those stored or new, with more steps.
fn laid(stored: Option<Settings>, config: Option<&Path>, pairs: &[&str]) -> anyhow::Result<Settings> {
    let mut layers = Layers::preset(stored.unwrap_or_else(Settings::new))?;
    if let Some(file) = config {
        lay_file(&mut layers, file)?;
    }
    lay_pairs(&mut layers, &pairs.iter().map(|&pair| pair.to_owned()).collect::<Vec<_>>())?;
    Ok(layers.into_settings())
}

#[test]
fn a_comparison_is_asked_for_again_by_its_config() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let arms = ["cascade", "0:l", "cascade"].map(|arm| arm.parse().unwrap());
    let flags = CompareFlags { arms: &arms, seeds: Some(2), ..CompareFlags::default() };
    let request = request::compare(&flags, |stored| laid(stored, None, &["tau=0.125"]), || path.clone()).unwrap();
    assert_eq!((request.comparison.arms.len(), request.resume, &request.path), (2, false, &path));
    drop(
        compare::open_directory(
            <Numbers as experiment_kit::Experiment>::PROGRAM,
            &path,
            &request.comparison,
            false,
            "cpu",
        )
        .unwrap(),
    );

    let config = path.join("config.toml");
    let flags = CompareFlags { config: Some(&config), ..CompareFlags::default() };
    let again = request::compare(&flags, |stored| laid(stored, Some(&config), &[]), || "b".into()).unwrap();
    assert_eq!(again.comparison, request.comparison);

    let flags = CompareFlags { resume: Some(&path), sequential: true, ..CompareFlags::default() };
    let resumed = request::compare(&flags, |stored| laid(stored, None, &[]), || "c".into()).unwrap();
    assert_eq!((resumed.resume, resumed.comparison.at_once(), &resumed.path), (true, 1, &path));
    let error = request::compare(&flags, |stored| laid(stored, None, &["run.tau = 1.0"]), || "c".into()).unwrap_err();
    assert!(error.to_string().contains("was started with other settings"), "{error}");
    let error = request::compare(&flags, |stored| laid(stored, None, &["tau"]), || "c".into()).unwrap_err();
    assert!(error.to_string().contains("KEY=VALUE"), "{error}");
}

#[test]
fn seeds_and_arms_have_to_be_possible() {
    let refused = |arms: &[&str], seeds| {
        let arms: Vec<ancre::Arm> = arms.iter().map(|arm| arm.parse().unwrap()).collect();
        let flags = CompareFlags { arms: &arms, seeds: Some(seeds), ..CompareFlags::default() };
        request::compare(&flags, |stored| laid(stored, None, &[]), || "x".into()).unwrap_err().to_string()
    };
    assert!(refused(&["cascade"], 0).contains("no seed"));
    assert!(refused(&["cascade"], u64::MAX).contains("too large"), "the last seed is checked");
}

#[test]
fn steps_take_the_rest_along() {
    let mut settings = Settings::new();
    settings.training.steps = 100;
    settings.training.warmup = 10;
    settings.training.evaluate_every = 5;
    settings.training.checkpoint_every = 0;
    let scaled = |steps| {
        let mut layers = Layers::preset(settings.clone()).unwrap();
        lay_steps(&mut layers, steps).unwrap();
        let training = layers.into_settings().training;
        [training.steps, training.warmup, training.evaluate_every, training.checkpoint_every]
    };
    assert_eq!(scaled(200), [200, 20, 10, 0]);
    assert_eq!(scaled(10), [10, 1, 1, 0]);
}
