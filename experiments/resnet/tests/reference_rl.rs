//! Networks, losses, gradients and training steps against vectors computed with the authors' JAX program.

use ancre::Arm;
use burn::{
    backend::{Autodiff, Flex},
    optim::GradientsParams,
    tensor::{Tensor, TensorData},
};
use experiments_resnet::{
    contrastive::{ActorLoss, Agent, AgentConfig, Batch, actor_loss, critic_loss, squashed_log_prob},
    model::{Activation, LAYERS_A_BLOCK, MlpConfig},
};
use reference_vectors::{Reference, Tensors, assert_close};
use serde_json::Value;
use std::path::PathBuf;
use training::{
    optimizer::{Optimizer, OptimizerSettings},
    parameters::{NamedTensor, export, import, named_parameters},
};

type B = Autodiff<Flex>;

struct Vectors {
    folder: PathBuf,
    manifest: Value,
    hyper: Value,
}

impl Vectors {
    fn read() -> Self {
        let folder = reference_vectors::family(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference"), "rl");
        let manifest = reference_vectors::manifest(&folder);
        Self { folder, hyper: manifest["hyper"].clone(), manifest }
    }

    fn tensors(&self, name: &str) -> Tensors {
        Tensors::read(&self.folder.join(name).with_extension("safetensors"))
    }

    fn size(&self, name: &str) -> usize {
        self.hyper[name].as_u64().unwrap_or_else(|| panic!("hyper.{name}")) as usize
    }

    fn number(&self, value: &Value) -> f64 {
        value.as_f64().expect("a number")
    }

    fn config(&self, arm: Arm, activation: Activation) -> AgentConfig {
        let network = MlpConfig {
            activation,
            arm,
            tau: self.number(&self.hyper["ancre"]["softmax_temp"]),
            ..MlpConfig::new(self.size("actor_depth"), self.size("width"))
        };
        let goal = self.size("goal_end_idx") - self.size("goal_start_idx");
        AgentConfig { network, state: self.size("obs_dim"), action: self.size("action_size"), goal }
    }

    /// The agent with the stored weights.
    fn agent(&self, arm: Arm, activation: Activation, file: &Tensors) -> Agent<B> {
        let agent =
            Agent::<B>::new(&self.config(arm, activation), 0, &Default::default()).expect("a valid configuration");
        let fill = |mut tensor: NamedTensor| {
            let names = flax_names(&tensor.name, self.size("actor_depth"));
            if !names.is_empty() {
                let values: Vec<f32> = stored(file, names).into_iter().map(|x| x as f32).collect();
                tensor.data = TensorData::new(values, tensor.data.shape.clone());
            }
            tensor
        };
        let tensors: Vec<_> = export::<B, _>(&agent).into_iter().map(fill).collect();
        import::<B, _>(agent, tensors).expect("tensors that fit")
    }

    fn batch(&self, file: &Tensors, number: usize) -> (Batch<B>, Tensor<B, 2>) {
        let get = |name: &str| rows(file.get(&format!("batch{number}/{name}")));
        let (state, goals) = (self.size("obs_dim"), self.size("goal_start_idx")..self.size("goal_end_idx"));
        let (observation, future) = (get("observation"), get("future_state"));
        let goal = future.narrow(1, goals.start, goals.len());
        // The goal in the observation is the relabelled one.
        let inside: Vec<f64> = read(observation.clone().narrow(1, state, goals.len()));
        assert_eq!(inside, read(goal.clone()), "batch {number}");
        (Batch { states: observation.narrow(1, 0, state), actions: get("action"), goals: goal }, get("noise"))
    }
}

fn rows(reference: &Reference) -> Tensor<B, 2> {
    let shape = [reference.shape[0], reference.shape[1]];
    Tensor::from_data(TensorData::new(reference.f32s(), shape), &Default::default())
}

fn read<const D: usize>(tensor: Tensor<B, D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// The used entries of `[K, K]`, row after row: `i + 1` of row `i`.
fn lower_rows(reference: &Reference) -> Vec<f64> {
    let k = reference.shape[0];
    (0..k).flat_map(|i| reference.values[i * k..=i * k + i].to_vec()).collect()
}

/// The names in the authors' program of what one of our parameters holds, in order; none for the entropy's weight. A block of
/// four layers is one parameter here.
fn flax_names(ours: &str, depth: usize) -> Vec<String> {
    let networks = [("actor.", "actor"), ("critic.state_action.", "sa_encoder"), ("critic.goal.", "g_encoder")];
    let Some((network, rest)) = networks.iter().find_map(|(prefix, name)| Some((*name, ours.strip_prefix(prefix)?)))
    else {
        return Vec::new();
    };
    let of_layer = |i: usize, part: &str| match part {
        "weight" => format!("Dense_{i}/kernel"),
        "bias" => format!("Dense_{i}/bias"),
        "gain" => format!("LayerNorm_{i}/scale"),
        "offset" => format!("LayerNorm_{i}/bias"),
        _ => panic!("{ours}"),
    };
    let parts: Vec<&str> = rest.split('.').collect();
    let names = match parts.as_slice() {
        ["body", "first", part] => vec![of_layer(0, part)],
        ["body", "blocks", block, "parameters"] => {
            let first = block.parse::<usize>().expect("a number") * LAYERS_A_BLOCK + 1;
            let layers = first..first + LAYERS_A_BLOCK;
            layers.flat_map(|i| ["weight", "bias", "gain", "offset"].map(|part| of_layer(i, part))).collect()
        }
        ["mean" | "head", part] => vec![of_layer(depth + 1, part)],
        ["log_std", part] => vec![of_layer(depth + 2, part)],
        ["body", "connections", "theta"] => vec!["ancre/skip_params".to_owned()],
        _ => panic!("{ours}"),
    };
    names.into_iter().map(|name| format!("{network}/params/{name}")).collect()
}

/// What the file stores under these names, one after the other.
fn stored(file: &Tensors, names: impl IntoIterator<Item = String>) -> Vec<f64> {
    let values = |name: String| match name.ends_with("skip_params") {
        true => lower_rows(file.get(&name)),
        false => file.get(&name).values.clone(),
    };
    names.into_iter().flat_map(values).collect()
}

#[test]
fn reference_rl_networks() {
    let vectors = Vectors::read();
    let (params, out) = (vectors.tensors("params"), vectors.tensors("outputs"));
    let (batch, _) = vectors.batch(&vectors.tensors("batches"), 0);
    let arms = [
        ("", Arm::default(), Activation::Swish),
        ("plain/", Arm::Cascade, Activation::Swish),
        ("relu/", Arm::default(), Activation::Relu),
    ];
    for (prefix, arm, activation) in arms {
        let agent = vectors.agent(arm, activation, &params);
        let Batch { states, actions, goals } = batch.clone();
        let [mean, log_std] = agent.actor.forward(Tensor::cat(vec![states.clone(), goals.clone()], 1));
        let left = agent.critic.state_action.forward(Tensor::cat(vec![states, actions], 1));
        let found = [
            ("actor_mean", mean),
            ("actor_log_std", log_std),
            ("sa_repr", left),
            ("g_repr", agent.critic.goal.forward(goals)),
        ];
        for (name, tensor) in found {
            let key = format!("{prefix}{name}");
            assert_close(&key, &read(tensor), &out.get(&key).values, 2e-5, 0.0, 0.0);
        }
    }
}

/// The gradients of all parameters of a loss against those stored.
fn check_gradients(agent: &Agent<B>, gradients: &GradientsParams, file: &Tensors, loss: &str, depth: usize) -> usize {
    let mut checked = 0;
    for parameter in named_parameters::<B, _>(agent) {
        // "actor/params/.." is stored as "actor/grad/params/..", "sa_encoder/params/.." as "critic/grad/sa_encoder/params/..".
        let key = |name: String| match loss {
            "actor" => name.strip_prefix("actor/").map(|rest| format!("actor/grad/{rest}")),
            _ => (!name.starts_with("actor/")).then(|| format!("critic/grad/{name}")),
        };
        let names: Vec<String> = flax_names(&parameter.name, depth).into_iter().filter_map(key).collect();
        let Some(first) = names.first().cloned() else { continue };
        let found = match parameter.shape.len() {
            1 => gradients.get::<Flex, 1>(parameter.id).map(Tensor::into_data),
            2 => gradients.get::<Flex, 2>(parameter.id).map(Tensor::into_data),
            _ => gradients.get::<Flex, 3>(parameter.id).map(Tensor::into_data),
        };
        let found: Vec<f64> = found.unwrap_or_else(|| panic!("{first}")).iter::<f64>().collect();
        let mut start = 0;
        for name in names {
            let expected = stored(file, [name.clone()]);
            assert_close(&name, &found[start..start + expected.len()], &expected, 2e-4, 0.0, 1e-9);
            start += expected.len();
            checked += 1;
        }
        assert_eq!(start, found.len(), "{}", parameter.name);
    }
    checked
}

#[test]
fn reference_rl_losses_and_gradients() {
    let vectors = Vectors::read();
    let (params, out, exact) = (vectors.tensors("params"), vectors.tensors("outputs"), vectors.tensors("outputs_f64"));
    let depth = vectors.size("actor_depth");
    let mut agent = vectors.agent(Arm::default(), Activation::Swish, &params);
    let log_alpha = exact.get("alpha/log_alpha").values[0];
    agent.log_alpha = burn::module::Param::from_tensor(Tensor::from_floats([log_alpha as f32], &Default::default()));
    let (batch, noise) = vectors.batch(&vectors.tensors("batches"), 0);
    let target = vectors.number(&vectors.hyper["target_entropy"]);

    let ActorLoss { actor, alpha, log_prob, q, unsquashed } = actor_loss(&agent, batch.clone(), noise, target);
    let close = |key: &str, found: Vec<f64>| assert_close(key, &found, &out.get(key).values, 2e-5, 0.0, 0.0);
    close("actor/loss", read(actor.clone()));
    close("actor/log_prob", read(log_prob));
    close("actor/q", read(q));
    close("actor/x_t", read(unsquashed.clone()));
    close("actor/action", read(unsquashed.tanh()));
    close("alpha/loss", read(alpha.clone()));
    let gradients = actor.backward();
    assert!(agent.log_alpha.val().grad(&gradients).is_none(), "the actor's loss does not move the entropy's weight");
    let gradients = GradientsParams::from_grads(gradients, &agent);
    let of_actor = check_gradients(&agent, &gradients, &out, "actor", depth);
    let head = named_parameters::<B, _>(&agent).into_iter().find(|p| p.name == "critic.state_action.head.weight");
    assert!(gradients.get::<Flex, 2>(head.expect("the head").id).is_none(), "nor the critic");
    let gradients = alpha.backward();
    let found: Vec<f64> =
        agent.log_alpha.val().grad(&gradients).expect("a gradient").into_data().iter::<f64>().collect();
    assert_close("alpha/grad", &found, &out.get("alpha/grad").values, 2e-5, 0.0, 0.0);

    let critic = critic_loss(&agent, batch);
    close("critic/loss", read(critic.loss.clone()));
    close("critic/logits", read(critic.logits));
    close("critic/logsumexp", read(critic.logsumexp));
    let gradients = GradientsParams::from_grads(critic.loss.backward(), &agent);
    let of_critic = check_gradients(&agent, &gradients, &out, "critic", depth);
    println!("reference rl: gradients of {of_actor} parameters of the actor, {of_critic} of the critic hold");
    assert!(of_actor > 0 && of_critic > 0);
}

#[test]
fn reference_rl_squashed_log_probability() {
    let vectors = Vectors::read();
    let exact = vectors.tensors("outputs_f64");
    let file = vectors.tensors("outputs");
    let names: Vec<&str> = file.iter().map(|(name, _)| name).filter(|name| name.starts_with("squash/")).collect();
    let get = |name: &str| rows(file.get(&format!("squash/{name}")));
    assert!(names.len() >= 4, "{names:?}");
    let (mean, log_std, noise) = (get("mean"), get("log_std"), get("noise"));
    let x = mean + log_std.clone().exp() * noise.clone();
    let found = read(squashed_log_prob(x.clone(), log_std, noise));
    // 1 - tanh^2 cancels in f32, in the authors' program as here; the manifest states by how much.
    for ((x, found), expected) in read(x).into_iter().zip(found).zip(&exact.get("squash/log_prob").values) {
        let tolerance = match x.abs() {
            x if x <= 3.0 => 5e-5,
            x if x <= 7.0 => 2e-2,
            x if x <= 10.0 => 0.15,
            _ => 1e-3,
        };
        assert!((found - expected).abs() <= tolerance, "x = {x}: {found} against {expected}");
    }
}

#[test]
fn reference_rl_five_training_steps() {
    let vectors = Vectors::read();
    let (params, batches, expected) =
        (vectors.tensors("params"), vectors.tensors("batches"), vectors.tensors("train5"));
    let mut agent = vectors.agent(Arm::default(), Activation::Swish, &params);
    let target = vectors.number(&vectors.hyper["target_entropy"]);
    let lr = vectors.number(&vectors.hyper["lr"]);
    let mut optimizer = Optimizer::<B>::new(OptimizerSettings::default()).expect("valid settings");
    let steps = expected.get("train/actor_loss").values.len();
    for step in 0..steps {
        let (batch, noise) = vectors.batch(&batches, step + 1);
        let actor = actor_loss(&agent, batch.clone(), noise, target);
        let critic = critic_loss(&agent, batch);
        let check = |name: &str, found: f64, tolerance: f64| {
            let expected = expected.get(&format!("train/{name}")).values[step];
            assert!((found - expected).abs() <= tolerance, "step {step}: {name} {found} against {expected}");
        };
        let one = |loss: &Tensor<B, 1>| read(loss.clone())[0];
        check("actor_loss", one(&actor.actor), 1e-4);
        check("alpha_loss", one(&actor.alpha), 1e-4);
        check("critic_loss", one(&critic.loss), 1e-4);
        check("entropy", -read(actor.log_prob).iter().sum::<f64>() / vectors.size("batch") as f64, 1e-4);
        // One step of one optimizer is that of three: every update is of the old parameters, and Adam knows no other ones.
        let gradients = (actor.actor + actor.alpha + critic.loss).backward();
        let gradients = GradientsParams::from_grads(gradients, &agent);
        agent = optimizer.step(agent, gradients, lr);
        check("log_alpha", read(agent.log_alpha.val())[0], 1e-6);
    }
    let (mut checked, mut total, mut entries) = (0, 0.0, 0);
    for tensor in export::<B, _>(&agent) {
        let names = flax_names(&tensor.name, vectors.size("actor_depth"));
        checked += names.len();
        let wanted = stored(&expected, names.into_iter().map(|name| format!("final/{name}")));
        for (found, expected) in tensor.data.iter::<f64>().zip(wanted) {
            let difference = (found - expected).abs();
            // Entries whose gradient is noise may go either way under Adam.
            assert!(difference <= 3e-4, "{}: {found} against {expected}", tensor.name);
            total += difference;
            entries += 1;
        }
    }
    let mean = total / f64::from(entries);
    assert!(mean <= 2e-6, "mean difference {mean:e}");
    println!("reference rl: {steps} steps hold; {checked} parameters, mean difference {mean:.1e}");
    assert_eq!(vectors.manifest["family"], "rl");
}
