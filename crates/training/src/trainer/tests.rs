//! The loop on a small network, above all: stopped and resumed at any step, it gives the same bits.

use std::{fs, path::Path, sync::LazyLock};

use burn::{
    backend::{Autodiff, Flex},
    module::Module,
    nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig},
    optim::GradientsParams,
    tensor::{Tensor, TensorData, activation::tanh, backend::Backend},
};
use proptest::prelude::*;
use rand::Rng;
use serde_json::json;

use super::*;
use crate::{
    gradients,
    metrics::{RecordKind, read_metrics},
    optimizer::{Galore, OptimizerSettings, ParameterGroup, Rule},
    parameters::{NamedTensor, export},
    run_directory::{Environment, NewRun},
    schedule::Schedule,
    seed,
};

type B = Autodiff<Flex>;

#[derive(Module, Debug)]
struct Network<B: Backend> {
    layers: Vec<Linear<B>>,
    norm: Option<BatchNorm<B>>,
}

impl<B: Backend> Network<B> {
    /// Initialised from a seed, without burn's global generator: tests run side by side.
    fn new(seed: u64, norm: bool) -> Self {
        let device = Default::default();
        let network = Self {
            layers: vec![LinearConfig::new(3, 5).init(&device), LinearConfig::new(5, 1).init(&device)],
            norm: norm.then(|| BatchNormConfig::new(5).init(&device)),
        };
        let mut tensors = export(&network);
        for (index, tensor) in tensors.iter_mut().filter(|tensor| tensor.name.starts_with("layers")).enumerate() {
            let count = tensor.data.num_elements();
            tensor.data = TensorData::new(uniform(seed, "init", index as u64, count), tensor.data.shape.clone());
        }
        parameters::import(network, tensors).unwrap()
    }

    fn forward(&self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        let mut hidden = self.layers[0].forward(x);
        if let Some(norm) = &self.norm {
            hidden = norm.forward(hidden);
        }
        self.layers[1].forward(tanh(hidden))
    }
}

/// Numbers between -1 and 1.
fn uniform(seed: u64, name: &str, index: u64, count: usize) -> Vec<f32> {
    let mut numbers = seed::stream(seed, name, index);
    (0..count).map(|_| numbers.next_u32() as f32 / u32::MAX as f32 * 2.0 - 1.0).collect()
}

/// Learns `x0 x1 - x2` from 12 examples a step, cut into micro-batches of these sizes.
#[derive(Clone)]
struct Product {
    cut: Vec<usize>,
    /// The loss of this micro-batch (step and batch, from 1) is replaced.
    spoiled: Option<(usize, usize, f32)>,
    /// Something that the task remembers from step to step.
    average: f32,
}

impl Product {
    fn new(cut: &[usize]) -> Self {
        Self { cut: cut.to_vec(), spoiled: None, average: 0.0 }
    }
}

struct Batch {
    inputs: Vec<f32>,
    count: usize,
    factor: f32,
}

fn mean_loss<B: Backend>(model: &Network<B>, inputs: &[f32]) -> Tensor<B, 1> {
    let device = Default::default();
    let count = inputs.len() / 3;
    let targets: Vec<f32> = inputs.chunks(3).map(|x| x[0] * x[1] - x[2]).collect();
    let x = Tensor::from_data(TensorData::new(inputs.to_vec(), [count, 3]), &device);
    let y = Tensor::from_data(TensorData::new(targets, [count, 1]), &device);
    (model.forward(x) - y).square().mean()
}

impl Task<B, Network<B>> for Product {
    type Batch = Batch;

    fn batches(&mut self, step: usize) -> Result<Vec<Batch>, TrainError> {
        let numbers = uniform(7, "data", step as u64, 3 * 12);
        let mut start = 0;
        let batch = |(index, &count): (usize, &usize)| {
            let inputs = numbers[3 * start..3 * (start + count)].to_vec();
            start += count;
            let spoiled = self.spoiled.filter(|(at, batch, _)| (*at, *batch) == (step + 1, index + 1));
            Batch { inputs, count, factor: spoiled.map_or(1.0, |(_, _, factor)| factor) }
        };
        Ok(self.cut.iter().enumerate().map(batch).collect())
    }

    fn weight(&self, batch: &Batch) -> f64 {
        batch.count as f64
    }

    fn loss(&self, model: &Network<B>, batch: Batch) -> Result<Tensor<B, 1>, TrainError> {
        let loss = mean_loss(model, &batch.inputs).mul_scalar(batch.factor);
        // The root of zero is zero, and its slope infinite.
        Ok(if batch.factor == 0.0 { loss.sqrt() } else { loss })
    }

    fn evaluate(&mut self, model: &Network<Flex>, _step: usize) -> Result<Vec<(String, f64)>, TrainError> {
        let loss = mean_loss(model, &uniform(7, "held out", 0, 30)).into_scalar();
        Ok(vec![("val_loss".into(), loss.into()), ("average".into(), self.average.into())])
    }

    fn observe(&mut self, model: &Network<B>, gradients: &GradientsParams, _: usize) -> Vec<(String, f64)> {
        vec![("head_norm".into(), gradients::norm_where(model, gradients, |name| name.starts_with("layers.1")))]
    }

    fn after_update(&mut self, model: &Network<B>, _step: usize) -> Result<(), TrainError> {
        let bias = model.layers[1].bias.as_ref().unwrap().val().into_scalar();
        self.average = 0.9 * self.average + 0.1 * bias;
        Ok(())
    }

    fn state(&self) -> Result<TaskState, TrainError> {
        let tensor = NamedTensor { name: "average".into(), data: TensorData::new(vec![self.average], [1]) };
        Ok(TaskState { extra: json!({ "note": "kept" }), tensors: vec![tensor] })
    }

    fn restore(&mut self, state: TaskState) -> Result<(), TrainError> {
        assert_eq!(state.extra, json!({ "note": "kept" }));
        self.average = state.tensors[0].data.as_slice::<f32>().unwrap()[0];
        Ok(())
    }
}

fn settings(steps: usize) -> TrainSettings {
    TrainSettings {
        steps,
        lr: 0.02,
        warmup: 3.min(steps),
        clip: Some(0.5),
        log_every: 1,
        evaluate_every: 4,
        evaluate_at_start: true,
        checkpoint_every: 5,
        ..Default::default()
    }
}

fn start(path: &Path, settings: &TrainSettings, model: Network<B>, task: Product) -> Trainer<B, Network<B>, Product> {
    Trainer::start(directory(path), settings, settings, model, task).unwrap()
}

fn directory(path: &Path) -> RunDirectory {
    static CONTENTS: LazyLock<NewRun> =
        LazyLock::new(|| NewRun::new(&toml::Table::new(), &Environment::collect("test", "1", "cpu")).unwrap());
    RunDirectory::create(path, &CONTENTS).unwrap()
}

fn try_resume(
    path: &Path,
    settings: &TrainSettings,
    model: Network<B>,
    task: Product,
    allow_changes: bool,
) -> Result<Trainer<B, Network<B>, Product>, TrainError> {
    Trainer::resume(RunDirectory::open(path)?, settings, settings, model, task, allow_changes)
}

fn to_the_end(trainer: &mut Trainer<B, Network<B>, Product>) {
    assert_eq!(trainer.run(&Interrupt::manual(), |_| ()).unwrap(), RunEnd::Finished);
}

/// The bits of everything that a run leaves.
fn outcome(trainer: &Trainer<B, Network<B>, Product>) -> (Vec<(String, Vec<u8>)>, String, u64) {
    let tensors = export(trainer.model()).into_iter().chain(trainer.optimizer().export().unwrap());
    let tensors = tensors.map(|tensor| (tensor.name, tensor.data.as_bytes().to_vec())).collect();
    let metrics = fs::read_to_string(trainer.directory().paths().metrics()).unwrap();
    (tensors, metrics, trainer.tokens_seen())
}

#[test]
fn a_run_learns_and_logs() {
    let folder = tempfile::tempdir().unwrap();
    let settings = TrainSettings { log_every: 50, evaluate_every: 100, ..settings(300) };
    let mut trainer = start(&folder.path().join("a"), &settings, Network::new(1, false), Product::new(&[12]));
    to_the_end(&mut trainer);
    let records = read_metrics(&trainer.directory().paths().metrics()).unwrap();
    let val = crate::metrics::series(&records, "val_loss");
    assert_eq!(val.iter().map(|(step, _)| *step).collect::<Vec<_>>(), [0, 100, 200, 300]);
    assert!(val[3].1 < 0.3 * val[0].1, "{val:?}");
    let logged: Vec<_> = crate::metrics::series(&records, "loss").into_iter().map(|(step, _)| step).collect();
    assert_eq!(logged, [1, 50, 100, 150, 200, 250, 300]);
    let first = &records[1];
    assert!(first.get("head_norm").unwrap() <= first.get("gradient_norm").unwrap());
    assert_eq!((first.get("lr"), first.get("tokens")), (Some(settings.lr_at(0)), Some(12.0)));
    let timing = read_metrics(&trainer.directory().paths().timing()).unwrap();
    assert!(timing.iter().all(|record| record.kind == RecordKind::Timing && record.get("seconds").unwrap() > 0.0));
    let steps: Vec<_> = crate::metrics::series(&timing, "steps").into_iter().map(|(_, steps)| steps).collect();
    assert_eq!(steps, [1.0, 49.0, 50.0, 50.0, 50.0, 50.0, 50.0]);
    assert!(matches!(trainer.advance(), Err(TrainError::Finished { steps: 300 })));
    let finished = trainer.finish().unwrap();
    assert!(finished.directory.path().ends_with("a"));
    assert!(finished.task.average != 0.0);
}

fn any_optimizer() -> impl Strategy<Value = OptimizerSettings> {
    let galore = Galore { refresh_every: 3, ..Galore::new(["layers.*.weight"], 2) };
    let rule = prop_oneof![
        Just((Rule::adamw(), None)),
        Just((Rule::AdamW { beta1: 0.8, beta2: 0.9, eps: 1e-6, amsgrad: true }, None)),
        Just((Rule::transformers_adamw(), None)),
        Just((Rule::transformers_adamw(), Some(galore))),
        Just((Rule::adam(), None)),
        Just((Rule::sgd(), None)),
        Just((Rule::Sgd { momentum: 0.9, dampening: 0.0, nesterov: true }, None)),
    ];
    let groups = vec![ParameterGroup::without_decay(["*.bias"])];
    rule.prop_map(move |(rule, galore)| OptimizerSettings { rule, weight_decay: 0.01, galore, groups: groups.clone() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_run_stopped_anywhere_and_resumed_gives_the_same_bits(
        optimizer in any_optimizer(),
        norm: bool,
        // Where the process dies, counted in steps from its start, and whether it saves then.
        stops in prop::collection::vec((0usize..9, any::<bool>()), 1..4),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let settings = TrainSettings { optimizer, ..settings(13) };
        let task = Product::new(&[5, 4, 3]);
        let mut whole = start(&folder.path().join("whole"), &settings, Network::new(1, norm), task.clone());
        to_the_end(&mut whole);

        let path = folder.path().join("stopped");
        let mut trainer = start(&path, &settings, Network::new(1, norm), task.clone());
        for (steps, saves) in stops {
            for _ in 0..steps {
                if !trainer.is_finished() {
                    trainer.advance().unwrap();
                }
            }
            if saves {
                trainer.save().unwrap();
            }
            let (step, saved) = (trainer.step(), trainer.saved_step);
            drop(trainer);
            // What a killed process may leave at the end of the log.
            let metrics = path.join("metrics.jsonl");
            let mut log = fs::read(&metrics).unwrap();
            log.extend(b"{\"step\":");
            fs::write(&metrics, log).unwrap();
            // Without any checkpoint the run starts anew, and then from the same weights.
            let model = Network::new(if saved.is_some() { 99 } else { 1 }, norm);
            trainer = try_resume(&path, &settings, model, task.clone(), false).unwrap();
            prop_assert_eq!(trainer.step(), saved.unwrap_or(0));
            prop_assert!(trainer.step() <= step);
        }
        to_the_end(&mut trainer);
        prop_assert_eq!(outcome(&trainer), outcome(&whole));
    }
}

/// The gradient of one step, read off a step of plain gradient descent.
fn first_update(cut: &[usize], accumulation: Accumulation) -> Vec<f32> {
    let folder = tempfile::tempdir().unwrap();
    let optimizer = OptimizerSettings { rule: Rule::sgd(), ..Default::default() };
    let schedule = Schedule::Constant;
    let settings =
        TrainSettings { steps: 1, lr: 1.0, schedule, warmup: 0, clip: None, optimizer, accumulation, ..settings(1) };
    let before = export(&Network::<B>::new(1, false));
    let mut trainer = start(&folder.path().join("a"), &settings, Network::new(1, false), Product::new(cut));
    trainer.advance().unwrap();
    let after = export(trainer.model());
    let pairs = before.iter().zip(&after);
    pairs
        .flat_map(|(b, a)| b.data.iter::<f32>().zip(a.data.iter::<f32>()).map(|(b, a)| b - a).collect::<Vec<_>>())
        .collect()
}

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn micro_batches_of_any_size_give_the_gradient_of_one_large_batch() {
    let whole = first_update(&[12], Accumulation::Tokens);
    assert!(whole.iter().any(|value| value.abs() > 0.01));
    for cut in [&[6, 6][..], &[1, 11], &[5, 4, 3], &[1; 12], &[0, 7, 0, 5]] {
        let difference = largest_difference(&first_update(cut, Accumulation::Tokens), &whole);
        assert!(difference < 1e-6, "{cut:?}: {difference}");
    }
    // The mean of means is another gradient, unless all micro-batches are of one size.
    assert!(largest_difference(&first_update(&[1, 11], Accumulation::Equal), &whole) > 1e-3);
    assert!(largest_difference(&first_update(&[4, 4, 4], Accumulation::Equal), &whole) < 1e-6);
    assert!(largest_difference(&first_update(&[6, 0, 6], Accumulation::Equal), &whole) < 1e-6);
}

#[test]
fn empty_micro_batches_are_skipped_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(2);
    let mut trainer = start(&folder.path().join("a"), &settings, Network::new(1, false), Product::new(&[0, 12, 0]));
    let report = trainer.advance().unwrap();
    assert_eq!((report.skipped, report.tokens), (2, 12));
    trainer.advance().unwrap();
    assert_eq!(trainer.skipped(), 4);

    let mut trainer = start(&folder.path().join("b"), &settings, Network::new(1, false), Product::new(&[0, 0]));
    let before = export(trainer.model());
    let report = trainer.advance().unwrap();
    assert_eq!((report.loss, report.gradient_norm, report.tokens, report.skipped), (None, None, 0, 2));
    assert_eq!((trainer.step(), export(trainer.model())), (1, before));

    let mut trainer = start(&folder.path().join("c"), &settings, Network::new(1, false), Product::new(&[]));
    assert!(matches!(trainer.advance(), Err(TrainError::NoBatch { step: 1 })));
}

#[test]
fn a_loss_that_is_not_finite_stops_the_run_and_keeps_the_last_good_state() {
    let folder = tempfile::tempdir().unwrap();
    let task = Product { spoiled: Some((7, 2, f32::NAN)), ..Product::new(&[5, 4, 3]) };
    let mut trainer = start(&folder.path().join("a"), &settings(20), Network::new(1, false), task);
    let error = trainer.run(&Interrupt::manual(), |_| ()).unwrap_err();
    let message = error.to_string();
    assert!(matches!(error, TrainError::NonFiniteLoss { step: 7, batch: 2, .. }), "{message}");
    assert!(message.contains("step-00000005.safetensors, is kept"), "{message}");
    assert_eq!(trainer.step(), 6);
    let finite = export(trainer.model()).iter().all(|tensor| tensor.data.iter::<f32>().all(f32::is_finite));
    assert!(finite);
    let kept = Checkpoint::read(&trainer.checkpoints.newest().unwrap()).unwrap();
    assert_eq!(kept.header.step, 5);
}

#[test]
fn a_gradient_that_is_not_finite_stops_the_run_and_names_its_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let task = Product { spoiled: Some((2, 1, 0.0)), ..Product::new(&[12]) };
    let mut trainer = start(&folder.path().join("a"), &settings(20), Network::new(1, false), task);
    trainer.advance().unwrap();
    let before = export(trainer.model());
    let error = trainer.advance().unwrap_err();
    let message = error.to_string();
    let TrainError::NonFiniteGradient { step: 2, parameters, kept: None } = error else { panic!("{message}") };
    assert_eq!(parameters, ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"]);
    assert!(message.contains("layers.0.weight, layers.0.bias and 2 more"), "{message}");
    assert!(message.contains("no checkpoint yet"), "{message}");
    assert_eq!(export(trainer.model()), before);
}

#[test]
fn weights_that_make_no_sense_are_refused() {
    struct Odd(f64);
    impl Task<B, Network<B>> for Odd {
        type Batch = ();
        fn batches(&mut self, _: usize) -> Result<Vec<()>, TrainError> {
            Ok(vec![()])
        }
        fn weight(&self, (): &()) -> f64 {
            self.0
        }
        fn loss(&self, _: &Network<B>, (): ()) -> Result<Tensor<B, 1>, TrainError> {
            Err(TrainError::task("the file is gone"))
        }
        fn evaluate(&mut self, _: &Network<Flex>, _: usize) -> Result<Vec<(String, f64)>, TrainError> {
            Ok(vec![])
        }
    }
    for (weight, expected) in [(-1.0, "weight"), (f64::NAN, "weight"), (1.0, "the file is gone")] {
        let folder = tempfile::tempdir().unwrap();
        let directory = directory(&folder.path().join("a"));
        let settings = TrainSettings::default();
        let mut trainer = Trainer::start(directory, &settings, &settings, Network::new(1, false), Odd(weight)).unwrap();
        let message = trainer.advance().unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn another_configuration_is_refused_unless_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let task = Product::new(&[12]);
    let mut trainer = start(&path, &settings(10), Network::new(1, false), task.clone());
    (0..6).for_each(|_| _ = trainer.advance().unwrap());
    drop(trainer);
    let changed = TrainSettings { lr: 0.5, ..settings(10) };
    let message = try_resume(&path, &changed, Network::new(1, false), task.clone(), false).unwrap_err().to_string();
    assert!(message.contains("lr: 0.02 there, 0.5 here"), "{message}");
    let trainer = try_resume(&path, &changed, Network::new(1, false), task, true).unwrap();
    assert!(trainer.warnings()[0].contains("lr: 0.02 there, 0.5 here"), "{:?}", trainer.warnings());
    assert_eq!(trainer.step(), 5);
}

#[test]
fn a_damaged_checkpoint_is_set_aside_and_the_one_before_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let task = Product::new(&[12]);
    let mut whole = start(&folder.path().join("whole"), &settings(12), Network::new(1, false), task.clone());
    to_the_end(&mut whole);
    let mut trainer = start(&path, &settings(12), Network::new(1, false), task.clone());
    (0..11).for_each(|_| _ = trainer.advance().unwrap());
    drop(trainer);
    let newest = path.join("checkpoints/step-00000010.safetensors");
    let mut bytes = fs::read(&newest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&newest, bytes).unwrap();

    let mut trainer = try_resume(&path, &settings(12), Network::new(2, false), task.clone(), false).unwrap();
    assert_eq!(trainer.step(), 5);
    assert!(trainer.warnings()[0].contains("step-00000010.safetensors is damaged"), "{:?}", trainer.warnings());
    assert!(path.join("checkpoints/step-00000010.safetensors.damaged").exists());
    to_the_end(&mut trainer);
    assert_eq!(outcome(&trainer), outcome(&whole));
    drop(trainer);

    for step in [10, 12] {
        fs::write(path.join(format!("checkpoints/step-{step:08}.safetensors")), "nonsense").unwrap();
    }
    let message = try_resume(&path, &settings(12), Network::new(1, false), task, false).unwrap_err().to_string();
    assert!(message.contains("no checkpoint") && message.contains("step-00000012"), "{message}");
}

#[test]
fn a_checkpoint_of_another_model_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let mut trainer = start(&path, &settings(5), Network::new(1, false), Product::new(&[12]));
    to_the_end(&mut trainer);
    drop(trainer);
    let error = try_resume(&path, &settings(5), Network::new(1, true), Product::new(&[12]), false).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("another model") && message.contains("norm.gamma"), "{message}");
}

#[test]
fn an_interrupted_run_saves_where_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let interrupt = Interrupt::manual();
    let mut trainer = start(&path, &settings(20), Network::new(1, false), Product::new(&[12]));
    let stop_at_seven = |report: &StepReport| {
        if report.step == 7 {
            interrupt.trigger();
        }
    };
    assert_eq!(trainer.run(&interrupt, stop_at_seven).unwrap(), RunEnd::Interrupted);
    drop(trainer);
    let trainer = try_resume(&path, &settings(20), Network::new(1, false), Product::new(&[12]), false).unwrap();
    assert_eq!(trainer.step(), 7);
}

#[test]
fn every_line_of_the_log_of_times_says_how_many_steps_of_one_process_it_spans() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let settings = TrainSettings { log_every: 4, evaluate_every: 0, ..settings(14) };
    let task = Product::new(&[12]);
    let mut trainer = start(&path, &settings, Network::new(1, false), task.clone());
    (0..11).for_each(|_| _ = trainer.advance().unwrap());
    drop(trainer);
    // Steps 9 to 11 were never logged; the second process goes on from step 10.
    let mut trainer = try_resume(&path, &settings, Network::new(1, false), task, false).unwrap();
    assert_eq!(trainer.step(), 10);
    to_the_end(&mut trainer);
    let timing = read_metrics(&trainer.directory().paths().timing()).unwrap();
    let lines: Vec<_> = timing
        .iter()
        .map(|record| (record.step, record.get("interval").unwrap(), record.get("steps").unwrap()))
        .collect();
    assert_eq!(lines, [(1, 1.0, 1.0), (4, 2.0, 3.0), (8, 3.0, 4.0), (12, 1.0, 2.0), (14, 2.0, 2.0)]);
    assert!(crate::metrics::speed(&timing).is_some());
}

#[test]
fn the_largest_sizes_are_no_trouble() {
    let folder = tempfile::tempdir().unwrap();
    let most = usize::MAX;
    for schedule in ["constant", "linear", "cosine", "cosine-cycles:0.5", "cosine-restarts:3"] {
        let settings = TrainSettings {
            steps: most,
            warmup: most,
            log_every: most,
            evaluate_every: most,
            checkpoint_every: most,
            keep_checkpoints: most,
            schedule: schedule.parse().unwrap(),
            ..settings(1)
        };
        let path = folder.path().join(schedule.replace(':', "-"));
        let mut trainer = start(&path, &settings, Network::new(1, false), Product::new(&[12]));
        trainer.advance().unwrap();
        trainer.save().unwrap();
        drop(trainer);
        let mut trainer = try_resume(&path, &settings, Network::new(1, false), Product::new(&[12]), false).unwrap();
        trainer.advance().unwrap();
        // As if all but one had been made.
        trainer.step = most - 1;
        (trainer.tokens_seen, trainer.skipped) = (u64::MAX, u64::MAX);
        trainer.advance().unwrap();
        assert!(trainer.is_finished());
        assert_eq!(trainer.checkpoints.list().unwrap()[0].0, most);
    }
}

#[test]
fn runs_can_be_interleaved() {
    let folder = tempfile::tempdir().unwrap();
    let task = Product::new(&[12]);
    let mut alone = start(&folder.path().join("alone"), &settings(8), Network::new(1, false), task.clone());
    to_the_end(&mut alone);
    let mut runs: Vec<_> = [1, 2]
        .map(|seed| {
            start(&folder.path().join(format!("{seed}")), &settings(8), Network::new(seed, false), task.clone())
        })
        .into();
    while runs.iter().any(|run| !run.is_finished()) {
        runs.iter_mut().for_each(|run| _ = run.advance().unwrap());
    }
    assert_eq!(outcome(&runs[0]), outcome(&alone));
    assert_ne!(outcome(&runs[1]), outcome(&alone));
}

#[test]
fn cloned_parameters_are_refused_and_patterns_without_effect_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut model = Network::<B>::new(1, false);
    model.layers.push(model.layers[1].clone());
    let directory = directory(&folder.path().join("a"));
    let error = Trainer::start(directory, &settings(3), &settings(3), model, Product::new(&[12])).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("layers.1.weight and layers.2.weight are clones"), "{message}");

    let groups = vec![ParameterGroup::without_decay(["*.bias", "*.theta"])];
    let optimizer = OptimizerSettings { groups, ..Default::default() };
    let settings = TrainSettings { optimizer, ..settings(3) };
    let trainer = start(&folder.path().join("b"), &settings, Network::new(1, false), Product::new(&[12]));
    assert_eq!(trainer.warnings(), ["no parameter matches the pattern `*.theta`"]);
}

#[test]
fn galore_that_finds_no_matrix_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let galore = Some(Galore::new(["*.bias", "attention"], 2));
    let optimizer = OptimizerSettings { rule: Rule::transformers_adamw(), galore, ..Default::default() };
    let settings = TrainSettings { optimizer, ..settings(3) };
    let directory = directory(&folder.path().join("a"));
    let model = Network::<B>::new(1, false);
    let error = Trainer::start(directory, &settings, &settings, model, Product::new(&[12])).unwrap_err().to_string();
    assert!(error.contains("*.bias, attention") && error.contains("galore.parameters"), "{error}");
}

#[test]
fn workers_change_no_bit() {
    let run = |workers: usize| {
        let folder = tempfile::tempdir().unwrap();
        let task = Product::new(&[5, 3, 2, 2]);
        let mut trainer = start(&folder.path().join("run"), &settings(6), Network::new(1, false), task);
        trainer.set_workers(workers).unwrap();
        to_the_end(&mut trainer);
        outcome(&trainer)
    };
    let alone = run(1);
    for workers in [2, 3, 4, 7] {
        assert!(run(workers) == alone, "{workers} workers");
    }
}
