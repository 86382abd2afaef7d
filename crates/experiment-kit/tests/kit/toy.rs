//! A small experiment: four numbers through two matrices, which are to become twice the numbers.

use std::{
    cell::Cell,
    path::{Path, PathBuf},
};

use ancre::{Arm, Connections, ConnectionsConfig};
use anyhow::{Result, ensure};
use burn::{
    backend::{Autodiff, Flex, flex::FlexDevice},
    module::{AutodiffModule, Module, Param},
    tensor::{Tensor, TensorData, backend::Backend},
};
use experiment_kit::{
    Connected, Ended, Experiment, Program, RunSettings,
    state_dict::{self, Naming, StoredTensor},
};
use fused_ops::FusedOps;
use serde::{Deserialize, Serialize};
use serde_json::json;
use training::{
    run_directory::RunPaths,
    trainer::{Task, TrainError, TrainSettings},
};

pub type B = Autodiff<Flex>;

const WIDTH: usize = 4;
const DEPTH: usize = 2;

/// The metric of the evaluations.
pub const LOSS: &str = "held_out_loss";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub seed: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_from: Option<PathBuf>,
    pub arm: Arm,
    pub tau: f64,
    pub depth: usize,
    pub training: TrainSettings,
}

impl Settings {
    /// Six steps, evaluated and saved after each second one.
    pub fn new() -> Self {
        let training = TrainSettings {
            steps: 6,
            lr: 0.01,
            warmup: 2,
            evaluate_every: 2,
            checkpoint_every: 2,
            ..TrainSettings::default()
        };
        Self { seed: 3, init_from: None, arm: Arm::default(), tau: 0.5, depth: DEPTH, training }
    }
}

impl RunSettings for Settings {
    fn seed(&self) -> u64 {
        self.seed
    }

    fn arm(&self) -> &Arm {
        &self.arm
    }

    fn tau(&self) -> f64 {
        self.tau
    }

    fn set_tau(&mut self, tau: f64) {
        self.tau = tau;
    }

    fn with_arm_and_seed(&self, arm: &Arm, seed: u64) -> Self {
        Self { seed, arm: arm.clone(), ..self.clone() }
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn with_depth(&self, depth: usize) -> Self {
        Self { depth, ..self.clone() }
    }

    fn training(&self) -> &TrainSettings {
        &self.training
    }

    fn accumulation(&self) -> usize {
        1
    }

    fn init_from(&self) -> Option<&Path> {
        self.init_from.as_deref()
    }

    fn parameters(&self) -> u64 {
        (self.depth * WIDTH * WIDTH) as u64
    }

    fn check(&self) -> Result<()> {
        ensure!(self.seed < 1000, "seed = {} is too large", self.seed);
        ensure!(self.depth > 0, "a depth of 0");
        Ok(self.training.validate()?)
    }
}

#[derive(Module, Debug)]
struct Matrix<B: Backend> {
    weight: Param<Tensor<B, 2>>,
}

#[derive(Module, Debug)]
pub struct Toy<B: Backend> {
    blocks: Vec<Matrix<B>>,
    connections: Connections<B>,
}

impl<B: FusedOps> Toy<B> {
    pub fn new(settings: &Settings, device: &B::Device) -> Self {
        let matrix = |block: usize| {
            let value = |i: usize| ((i * 7 + block * 3 + settings.seed as usize) % 11) as f32 / 50.0;
            let data = TensorData::new((0..WIDTH * WIDTH).map(value).collect(), [WIDTH, WIDTH]);
            Matrix { weight: Param::from_tensor(Tensor::from_data(data, device)) }
        };
        let connections = ConnectionsConfig::new(settings.depth).with_arm(settings.arm.clone()).with_tau(settings.tau);
        Self { blocks: (0..settings.depth).map(matrix).collect(), connections: connections.init(device).unwrap() }
    }

    /// Mean square distance from twice the numbers.
    fn loss(&self, numbers: [f32; WIDTH], device: &B::Device) -> Tensor<B, 1> {
        let start = Tensor::<B, 2>::from_data([numbers], device);
        let mut state = start.clone();
        let mut history = self.connections.start(state.clone());
        for block in &self.blocks {
            state = self.connections.connect(&mut history, state.matmul(block.weight.val()));
        }
        (state - start.mul_scalar(2.0)).square().mean()
    }
}

impl<B: Backend> Connected<B> for Toy<B> {
    fn connections(&self) -> &Connections<B> {
        &self.connections
    }

    fn with_connections(mut self, connections: Connections<B>) -> Self {
        self.connections = connections;
        self
    }
}

pub struct Doubling;

impl Task<B, Toy<B>> for Doubling {
    type Batch = [f32; WIDTH];

    fn batches(&mut self, step: usize) -> Result<Vec<Self::Batch>, TrainError> {
        Ok(vec![std::array::from_fn(|i| ((step * 5 + i * 3) % 7) as f32 / 7.0)])
    }

    fn weight(&self, _: &Self::Batch) -> f64 {
        1.0
    }

    fn loss(&self, model: &Toy<B>, batch: Self::Batch) -> Result<Tensor<B, 1>, TrainError> {
        Ok(model.loss(batch, &Default::default()))
    }

    fn evaluate(
        &mut self,
        model: &<Toy<B> as AutodiffModule<B>>::InnerModule,
        _: usize,
    ) -> Result<Vec<(String, f64)>, TrainError> {
        let loss = model.loss([0.1, 0.2, 0.3, 0.4], &Default::default());
        Ok(vec![(LOSS.to_owned(), loss.into_data().iter::<f64>().sum())])
    }
}

/// The experiment, which counts how often a run has ended.
#[derive(Default)]
pub struct Numbers {
    pub device: FlexDevice,
    pub data: String,
    pub ends: Cell<usize>,
    /// Whether the next end is interrupted.
    pub interrupt: Cell<bool>,
}

impl Experiment for Numbers {
    type Settings = Settings;
    type Backend = B;
    type Model = Toy<B>;
    type Task = Doubling;

    const PROGRAM: Program = Program { name: "numbers", version: "1" };

    fn device(&self) -> &FlexDevice {
        &self.device
    }

    fn data_fingerprint(&self) -> String {
        self.data.clone()
    }

    fn model(&self, settings: &Settings) -> Result<Toy<B>> {
        Ok(Toy::new(settings, &self.device))
    }

    fn initial_weights(&self, model: Toy<B>, file: &Path, _: &Settings) -> Result<(Toy<B>, Vec<String>)> {
        state_dict::load(model, file, &Patches)
    }

    fn task(&self, _: &Settings, _: &Toy<B>) -> Result<Doubling> {
        Ok(Doubling)
    }

    fn files(&self, _: &Settings) -> Result<Vec<(String, Vec<u8>)>> {
        Ok(vec![("numbers.txt".to_owned(), b"0.1 0.2".to_vec())])
    }

    fn finished(&self, settings: &Settings, path: &Path, _: &Toy<B>, _: &Doubling) -> Result<Ended> {
        assert!(RunPaths::new(path).checkpoints().join("step-00000006.safetensors").is_file(), "saved before");
        self.ends.set(self.ends.get() + 1);
        Ok(if self.interrupt.take() { Ended::Interrupted } else { Ended::Done(json!({ "seed": settings.seed })) })
    }
}

/// Stores a matrix `[4, width]` as the patches that a convolution of 2 x 2 on one channel has: `[width, 1, 2, 2]`.
pub struct Patches;

impl Naming for Patches {
    fn connections_prefix(&self) -> &str {
        "ancre."
    }

    fn stored_name(&self, name: &str) -> String {
        name.replace(".weight", ".proj.weight")
    }

    fn module_name(&self, stored: &str) -> Option<String> {
        (stored != "pos_embed").then(|| stored.replace(".proj.weight", ".weight"))
    }

    fn to_file(&self, _: &str, tensor: &StoredTensor) -> StoredTensor {
        let StoredTensor { values, .. } = tensor.transposed();
        StoredTensor { shape: vec![tensor.shape[1], 1, 2, 2], values }
    }

    fn to_module(&self, _: &str, tensor: &StoredTensor) -> StoredTensor {
        match tensor.shape[..] {
            [width, 1, 2, 2] => StoredTensor { shape: vec![width, 4], values: tensor.values.clone() }.transposed(),
            _ => tensor.clone(),
        }
    }
}
