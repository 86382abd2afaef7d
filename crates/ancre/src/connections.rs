//! The burn module.

use burn::{
    module::{Module, Param},
    tensor::{
        DType, Int, Tensor, TensorData,
        backend::{AutodiffBackend, Backend},
    },
};
use connection_layout::{Coefficients, CoefficientsError, Direction};
use fused_ops::FusedOps;

use crate::{
    Arm, ConnectionsError, GatedFirstState, History,
    config::check_tau,
    plan::{Normalisation, Plan},
    rivals::Rival,
};

/// The connections of a network: their parameters and how they are applied. Made by
/// [`ConnectionsConfig::init`](crate::ConnectionsConfig::init).
///
/// `theta` is one `[n]` tensor in `f32`, whatever the type of the model: the authors' vectors `shortcut_params.{i}`, one
/// after another ([`to_vectors`](Self::to_vectors) gives them apart). It needs the optimizer of the weights, without
/// weight decay. The temperature is a constant of the module, which a stored one replaces ([`set_tau`](Self::set_tau)).
#[derive(Module, Debug)]
pub struct Connections<B: Backend> {
    theta: Option<Param<Tensor<B, 1>>>,
    /// Gathers `theta` into one row per vector, padded: `[vectors * longest]`.
    gather: Option<Tensor<B, 1, Int>>,
    /// 0 at the places of that matrix that hold an entry, hugely negative at the padding: `[vectors, longest]`.
    padding: Option<Tensor<B, 2>>,
    /// Gathers the coefficients, by target, out of that matrix: `[coefficients]`.
    scatter: Option<Tensor<B, 1, Int>>,
    /// What is added to the coefficients: `[coefficients]`.
    offset: Option<Tensor<B, 1>>,
    /// The first state through a gate, in the place of a mix.
    gate: Option<GatedFirstState<B>>,
    /// Connections of another paper in the place of these.
    rival: Option<Rival<B>>,
    tau: f64,
    #[module(skip)]
    plan: Plan,
}

impl<B: Backend> Connections<B> {
    pub(crate) fn new(
        plan: Plan,
        tau: f64,
        gate: Option<GatedFirstState<B>>,
        rival: Option<Rival<B>>,
        device: &B::Device,
    ) -> Self {
        let theta = (plan.coefficients > 0 && gate.is_none())
            .then(|| theta_parameter(plan.initial.clone(), plan.arm.is_learned(), device));
        let (gather, padding, scatter, offset) = (None, None, None, None);
        let mut module = Self { theta, gather, padding, scatter, offset, gate, rival, tau, plan };
        if let Normalisation::Softmax { from } = &module.plan.normalisation {
            let longest = module.plan.vectors.iter().copied().max().unwrap_or(0);
            let (mut gather, mut padding, mut place) = (Vec::new(), Vec::new(), Vec::new());
            let mut start = 0;
            for (row, &length) in module.plan.vectors.iter().enumerate() {
                for k in 0..longest {
                    gather.push(if k < length { (start + k) as i32 } else { 0 });
                    padding.push(if k < length { 0.0f32 } else { -1e30 });
                }
                place.extend((0..length).map(|k| (row * longest + k) as i32));
                start += length;
            }
            let scatter: Vec<i32> = from.iter().map(|&f| place[f]).collect();
            module.gather = Some(Tensor::from_ints(gather.as_slice(), device));
            module.scatter = Some(Tensor::from_ints(scatter.as_slice(), device));
            let shape = [module.plan.vectors.len(), longest];
            module.padding = Some(Tensor::from_data(TensorData::new(padding, shape), (device, DType::F32)));
        }
        if !module.plan.offset.is_empty() {
            let data = TensorData::new(module.plan.offset.clone(), [module.plan.coefficients]);
            module.offset = Some(Tensor::from_data(data, (device, DType::F32)));
        }
        module
    }

    /// Number `K` of blocks.
    pub fn depth(&self) -> usize {
        self.plan.depth()
    }

    /// Which connections these are.
    pub fn arm(&self) -> &Arm {
        &self.plan.arm
    }

    /// Temperature of the softmax; of no effect on arms without one.
    pub fn tau(&self) -> f64 {
        self.tau
    }

    /// The connections of another paper, where the arm is one: a model that opens its blocks puts it around their residual
    /// branches, and these connections then pass on what they get.
    pub fn rival(&self) -> Option<&Rival<B>> {
        self.rival.as_ref()
    }

    /// The first state's gate, where the arm is [`Arm::GatedFirstState`].
    pub fn gate(&self) -> Option<&GatedFirstState<B>> {
        self.gate.as_ref()
    }

    /// Number of parameters that training changes, as [`ConnectionsConfig::trained_parameters`](crate::ConnectionsConfig::trained_parameters).
    pub fn trained_parameters(&self) -> usize {
        match (&self.rival, &self.gate) {
            (Some(rival), _) => rival.num_params(),
            (None, Some(gate)) => gate.num_params(),
            (None, None) => self.plan.trained_coefficients(),
        }
    }

    /// Replaces the temperature, as a stored one does when weights are loaded.
    ///
    /// # Errors
    /// [`ConnectionsError::Tau`] unless it is positive and its reciprocal fits `f32`.
    pub fn set_tau(&mut self, tau: f64) -> Result<(), ConnectionsError> {
        self.tau = check_tau(tau)?;
        if let Some(rival) = &mut self.rival {
            rival.set_tau(tau);
        }
        Ok(())
    }

    /// The parameters in the arrangement of the authors' `shortcut_params`: one vector a target for the incoming arms and
    /// for free scalars, one a source for the outgoing arms, one in all for the naive scalars; none without parameters.
    pub fn to_vectors(&self) -> Vec<Vec<f32>> {
        let Some(theta) = &self.theta else { return Vec::new() };
        self.split(theta.val().to_data().iter::<f32>().collect())
    }

    /// Cuts what is arranged like `theta` into the authors' vectors.
    fn split(&self, mut rest: Vec<f32>) -> Vec<Vec<f32>> {
        let cut = |&length: &usize| {
            let tail = rest.split_off(length);
            std::mem::replace(&mut rest, tail)
        };
        self.plan.vectors.iter().map(cut).collect()
    }

    /// The module with the parameters of [`to_vectors`](Self::to_vectors).
    ///
    /// # Errors
    /// [`ConnectionsError::Stored`] where the number of vectors or a length is not that of this arm and depth.
    pub fn with_vectors(mut self, vectors: &[Vec<f32>]) -> Result<Self, ConnectionsError> {
        let found: Vec<usize> = vectors.iter().map(Vec::len).collect();
        let expected = if self.theta.is_some() { self.plan.vectors.as_slice() } else { &[] };
        if found != expected {
            return Err(ConnectionsError::Stored(format!(
                "the arm `{}` at depth {} has vectors of lengths {expected:?}, the stored ones have {found:?}",
                self.plan.arm,
                self.plan.depth()
            )));
        }
        if let Some(theta) = self.theta.take() {
            let device = theta.val().device();
            self.theta = Some(theta_parameter(vectors.concat(), self.plan.arm.is_learned(), &device));
        }
        Ok(self)
    }
}

impl<B: FusedOps> Connections<B> {
    /// All coefficients, `[n]` in `f32`, row after row by target.
    fn coefficient_tensor(&self) -> Option<Tensor<B, 1>> {
        let theta = self.theta.as_ref()?.val();
        let shares = self.shares(theta);
        Some(match &self.offset {
            Some(offset) => shares + offset.clone(),
            None => shares,
        })
    }

    /// `theta` after its normalisation, `[n]`, row after row by target.
    fn shares(&self, theta: Tensor<B, 1>) -> Tensor<B, 1> {
        let (Some(gather), Some(padding), Some(scatter)) = (&self.gather, &self.padding, &self.scatter) else {
            return theta;
        };
        // As in the authors' code: the temperature is an f32, and its reciprocal is rounded before it multiplies.
        let logits = theta.select(0, gather.clone()).reshape(padding.dims()).mul_scalar(1.0 / self.tau as f32);
        let shares = fused_ops::row_softmax(logits + padding.clone());
        let entries = shares.dims().iter().product::<usize>();
        shares.reshape([entries]).select(0, scatter.clone())
    }

    /// The coefficient of every shortcut as numbers; 0 for those that the arm does not have. Those of a
    /// [replacing](Arm::Replacing) arm are the shares of its softmax less one at each newest state, so that they sum to 0; those of a
    /// [gated first state](Arm::GatedFirstState) are the means of its weights, with the gate as it begins.
    ///
    /// # Errors
    /// If one is not finite, as after a run that diverged; the error names the shortcut.
    pub fn coefficients(&self) -> Result<Coefficients, CoefficientsError> {
        let means = self.gate.as_ref().map(GatedFirstState::mean_weights);
        self.by_target(means.or_else(|| self.coefficient_tensor()))
    }

    /// Values that are arranged as coefficients, with zeros for the shortcuts that the arm does not have.
    fn by_target(&self, values: Option<Tensor<B, 1>>) -> Result<Coefficients, CoefficientsError> {
        let values: Vec<f64> = values.map(|t| t.to_data().iter::<f64>().collect()).unwrap_or_default();
        let rows = self.plan.rows.iter().enumerate().map(|(l, row)| {
            let mut dense = vec![0.0; l + 1];
            for (k, &source) in row.sources.iter().enumerate() {
                dense[source] = values[row.first + k];
            }
            dense
        });
        Coefficients::from_rows(rows)
    }

    /// The entropy in nats of each softmax that has a choice: of the rows of layers 2 to K for arms that normalise what
    /// enters a state, of states 0 to K-2 for those that normalise what leaves one. `None` for arms without a softmax,
    /// and for coefficients that are not finite.
    pub fn entropies(&self) -> Option<Vec<f64>> {
        let direction = match self.plan.arm {
            Arm::Incoming(_) | Arm::Replacing(_) => Direction::Incoming,
            Arm::Outgoing(_) => Direction::Outgoing,
            _ => return None,
        };
        let shares = self.theta.as_ref().map(|theta| self.shares(theta.val()));
        let mut entropies = self.by_target(shares).ok()?.entropies(direction).ok()?;
        match direction {
            Direction::Incoming => _ = entropies.remove(0),
            Direction::Outgoing => _ = entropies.pop(),
        }
        Some(entropies)
    }

    /// Begins a forward pass: `h_0` is the input of the first block.
    pub fn start<const D: usize>(&self, input: Tensor<B, D>) -> History<B, D> {
        let mut history = History::new(self.coefficient_tensor());
        let kept = self.plan.last_use[0] > 0;
        let state = match history.coefficients.clone() {
            Some(coefficients) if kept => history.chain.connect(coefficients, 0, input, Vec::new(), true),
            _ => input,
        };
        history.push(&state, kept);
        history
    }

    /// Follows the next block by its connection: `h_l = output + sum_i c_{l,i} h_i`, which is also the next block's input.
    ///
    /// A [rival](Self::rival) stands inside blocks and cannot follow them: a model that may have one goes through its
    /// blocks by [`pass`](Self::pass) instead, or asks the rival itself.
    ///
    /// # Panics
    /// With a rival, after the last block, where the shape of `output` is not that of the input, or with the history of other connections.
    pub fn connect<const D: usize>(&self, history: &mut History<B, D>, output: Tensor<B, D>) -> Tensor<B, D> {
        assert!(self.rival.is_none(), "{} stands inside blocks: go through them by `Connections::pass`", self.arm());
        self.follow(history, output)
    }

    /// Tells the history the next state that a [rival](Self::rival) has made, so that growth is measured, and gives the state back.
    ///
    /// # Panics
    /// Without a rival, after the last block, or with the history of other connections.
    pub fn record<const D: usize>(&self, history: &mut History<B, D>, state: Tensor<B, D>) -> Tensor<B, D> {
        assert!(self.rival.is_some(), "{} follows whole blocks: use `Connections::connect`", self.arm());
        self.follow(history, state)
    }

    fn follow<const D: usize>(&self, history: &mut History<B, D>, output: Tensor<B, D>) -> Tensor<B, D> {
        let block = history.blocks();
        assert!(block < self.depth(), "these connections have {} blocks, and all are connected", self.depth());
        let row = &self.plan.rows[block];
        let target = block + 1;
        let kept = self.plan.last_use[target] > target;
        let state = match &history.coefficients {
            _ if let Some(gate) = &self.gate => {
                let first = history.states[0].clone().expect("the history was started by these connections");
                gate.connect(block, output, first)
            }
            Some(coefficients) if kept || !row.sources.is_empty() => {
                let state =
                    |&i: &usize| history.states[i].clone().expect("the history was started by these connections");
                let states = row.sources.iter().map(state).collect();
                history.chain.connect(coefficients.clone(), row.first, output, states, kept)
            }
            _ => output,
        };
        for (kept, &last) in history.states.iter_mut().zip(&self.plan.last_use) {
            if last <= target {
                *kept = None;
            }
        }
        history.push(&state, kept);
        state
    }
}

impl<B: AutodiffBackend> Connections<B> {
    /// Euclidean norm of the gradient of `theta`; `None` where it is frozen, absent or has no gradient yet.
    pub fn theta_gradient_norm(&self, gradients: &burn::optim::GradientsParams) -> Option<f64> {
        let theta = self.theta.as_ref()?;
        let gradient = gradients.get::<B::InnerBackend, 1>(theta.id)?;
        Some(gradient.into_data().iter::<f64>().map(|g| g * g).sum::<f64>().sqrt())
    }

    /// The gradient of each of the vectors of [`to_vectors`](Self::to_vectors), for tests and reports.
    pub fn vector_gradients(&self, gradients: &B::Gradients) -> Option<Vec<Vec<f32>>> {
        let theta = self.theta.as_ref()?.val();
        Some(self.split(theta.grad(gradients)?.into_data().iter::<f32>().collect()))
    }
}

fn theta_parameter<B: Backend>(values: Vec<f32>, learned: bool, device: &B::Device) -> Param<Tensor<B, 1>> {
    let length = values.len();
    let tensor = Tensor::from_data(TensorData::new(values, [length]), (device, DType::F32));
    Param::from_tensor(tensor).set_require_grad(learned)
}
