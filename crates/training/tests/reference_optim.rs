//! Optimizers and schedules against stored runs of PyTorch and transformers.

use std::{collections::BTreeMap, path::PathBuf};

use burn::{
    backend::{Autodiff, Flex},
    module::{Module, Param},
    optim::GradientsParams,
    tensor::{DType, Tensor, TensorData, backend::Backend},
};
use reference_vectors::{Reference, Tensors};
use serde_json::Value;
use training::{
    gradients,
    optimizer::{Optimizer, OptimizerSettings, ParameterGroup, Rule},
    schedule::{Schedule, Warmup},
};

type B = Autodiff<Flex>;

fn family(name: &str) -> PathBuf {
    reference_vectors::family(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference"), name)
}

#[track_caller]
fn assert_close(found: f64, expected: f64, tolerance: f64, what: &str) {
    reference_vectors::assert_close(what, &[found], &[expected], 0.0, 0.0, tolerance);
}

/// The three parameters of the stored runs.
#[derive(Module, Debug)]
struct Model<B: Backend> {
    a: Param<Tensor<B, 2>>,
    b: Param<Tensor<B, 1>>,
    c: Param<Tensor<B, 3>>,
}

fn tensor<B: Backend, const D: usize>(values: &[f64], shape: &[usize], dtype: DType) -> Tensor<B, D> {
    let data = TensorData::new(values.to_vec(), shape).convert_dtype(dtype);
    Tensor::from_data(data, (&Default::default(), dtype))
}

fn parameter<const D: usize>(stored: &Reference, dtype: DType) -> Param<Tensor<B, D>> {
    Param::from_tensor(tensor(&stored.values, &stored.shape, dtype))
}

fn values(model: &Model<B>) -> BTreeMap<&'static str, Vec<f64>> {
    let list = |data: TensorData| data.iter::<f64>().collect();
    [
        ("a", list(model.a.val().into_data())),
        ("b", list(model.b.val().into_data())),
        ("c", list(model.c.val().into_data())),
    ]
    .into()
}

fn number(case: &Value, key: &str) -> f64 {
    case[key].as_f64().unwrap_or(0.0)
}

fn settings(case: &Value) -> OptimizerSettings {
    let [beta1, beta2] = [0, 1].map(|index| case["betas"][index].as_f64().unwrap_or(0.0));
    let eps = number(case, "eps");
    let flag = |key: &str| case[key].as_bool().unwrap_or(false);
    let rule = match case["optimizer"].as_str().unwrap() {
        "AdamW" => Rule::AdamW { beta1, beta2, eps, amsgrad: flag("amsgrad") },
        "Adam" => Rule::Adam { beta1, beta2, eps },
        "SGD" => Rule::Sgd {
            momentum: number(case, "momentum"),
            dampening: number(case, "dampening"),
            nesterov: flag("nesterov"),
        },
        other => panic!("unknown optimizer {other}"),
    };
    let halved = ParameterGroup { parameters: vec!["b".into()], weight_decay: Some(0.0), lr_factor: 0.5 };
    let groups = if flag("extra_groups") { vec![halved] } else { vec![] };
    OptimizerSettings { rule, weight_decay: number(case, "weight_decay"), groups, ..Default::default() }
}

/// The parameters after each step, and the gradient norms.
struct Run {
    trajectory: Vec<BTreeMap<&'static str, Vec<f64>>>,
    norms: Vec<f64>,
    rates: Vec<f64>,
}

fn run(case: &Value, steps: usize, inputs: &Tensors, dtype: DType) -> Run {
    let mut model = Model {
        a: parameter(inputs.get("init/a"), dtype),
        b: parameter(inputs.get("init/b"), dtype),
        c: parameter(inputs.get("init/c"), dtype),
    };
    let mut optimizer = Optimizer::<B>::new(settings(case)).unwrap();
    let mut run = Run { trajectory: Vec::new(), norms: Vec::new(), rates: Vec::new() };
    for step in 0..steps {
        let at = |name: &str| {
            let stored = inputs.get(&format!("grad/{name}"));
            let size = stored.values.len() / steps;
            (&stored.values[step * size..(step + 1) * size], &stored.shape[1..])
        };
        let missing = |name: &str| {
            let steps = case["extra_missing"][name].as_array();
            steps.is_some_and(|steps| steps.iter().any(|missing| missing.as_u64() == Some(step as u64)))
        };
        let mut all = GradientsParams::new();
        macro_rules! register {
            ($field:ident, $rank:literal) => {
                if !missing(stringify!($field)) {
                    let (values, shape) = at(stringify!($field));
                    all.register(model.$field.id, tensor::<Flex, $rank>(values, shape, dtype));
                }
            };
        }
        register!(a, 2);
        register!(b, 1);
        register!(c, 3);
        if let Some(max) = case["extra_clip"].as_f64() {
            let norm;
            (all, norm) = gradients::clip_by_global_norm(&model, all, max);
            run.norms.push(norm);
        }
        let multiplier = match case["extra_sched"].as_array().map(Vec::as_slice) {
            Some([warmup, total]) => Schedule::CosineCycles { cycles: 0.5, min_ratio: 0.0 }.multiplier(
                step,
                Warmup::from_zero(warmup.as_u64().unwrap() as usize),
                total.as_u64().unwrap() as usize,
            ),
            _ => 1.0,
        };
        let lr = number(case, "lr") * multiplier;
        run.rates.push(lr);
        model = optimizer.step(model, all, lr);
        run.trajectory.push(values(&model));
    }
    run
}

#[test]
fn reference_optim_trajectories() {
    let folder = family("optim");
    let manifest = reference_vectors::manifest(&folder);
    let inputs = Tensors::read(&folder.join("inputs.safetensors"));
    let expected = Tensors::read(&folder.join("trajectories.safetensors"));
    let steps = manifest["steps"].as_u64().unwrap() as usize;
    let cases = manifest["cases"].as_object().unwrap();
    assert!(!cases.is_empty());
    for (name, case) in cases {
        let exact = run(case, steps, &inputs, DType::F64);
        let single = run(case, steps, &inputs, DType::F32);
        for parameter in ["a", "b", "c"] {
            let trajectory = &expected.get(&format!("{name}/{parameter}")).values;
            let found = exact.trajectory.iter().flat_map(|step| &step[parameter]);
            for (index, (found, expected)) in found.zip(trajectory).enumerate() {
                assert_close(
                    *found,
                    *expected,
                    1e-12,
                    &format!("{name}/{parameter}, element {index} of the trajectory"),
                );
            }
            let last = &expected.get(&format!("{name}/f32/{parameter}")).values;
            for (index, (found, expected)) in single.trajectory[steps - 1][parameter].iter().zip(last).enumerate() {
                assert_close(*found, *expected, 1e-6, &format!("{name}/f32/{parameter}, element {index}"));
            }
        }
        for (key, found) in [("grad_norm_before_clip", &exact.norms), ("lr_used", &exact.rates)] {
            if let Some(expected) = expected.find(&format!("{name}/{key}")) {
                assert_eq!(found.len(), expected.values.len());
                for (found, expected) in found.iter().zip(&expected.values) {
                    assert_close(*found, *expected, 1e-12, &format!("{name}/{key}"));
                }
            }
        }
    }
    println!("{} cases of optim", cases.len());
}

/// `cosine_restarts3_w3_N20` and the like.
fn parse(key: &str) -> Option<(Schedule, usize, usize)> {
    let mut parts = key.split('_').peekable();
    let kind = parts.next()?;
    let mut min_ratio = 0.0;
    let mut restarts = None;
    if let Some(ratio) = parts.next_if(|part| part.starts_with("min")) {
        min_ratio = ratio.strip_prefix("min")?.parse().ok()?;
    }
    if let Some(count) = parts.next_if(|part| part.starts_with("restarts")) {
        restarts = Some(count.strip_prefix("restarts")?.parse().ok()?);
    }
    let warmup = parts.next()?.strip_prefix('w')?.parse().ok()?;
    let total = parts.next().map_or(Some(20), |part| part.strip_prefix('N')?.parse().ok())?;
    let cycles = parts.next().map_or(Some(0.5), |part| part.strip_prefix("cycles")?.parse().ok())?;
    let schedule = match (kind, restarts) {
        ("constant", _) => Schedule::Constant,
        ("linear", _) => Schedule::Linear,
        ("cosine", Some(restarts)) => Schedule::CosineRestarts { restarts },
        ("cosine", None) => Schedule::CosineCycles { cycles, min_ratio },
        _ => return None,
    };
    Some((schedule, warmup, total))
}

#[test]
fn reference_optim_multipliers() {
    let tensors = Tensors::read(&family("optim").join("multipliers.safetensors"));
    assert!(tensors.iter().len() > 0);
    for (key, expected) in tensors.iter() {
        let (schedule, warmup, total) = parse(key).unwrap_or_else(|| panic!("unknown case {key}"));
        for (step, &expected) in expected.values.iter().enumerate() {
            let found = schedule.multiplier(step, Warmup::from_zero(warmup), total);
            assert_close(found, expected, 1e-12, &format!("{key}, step {step}"));
        }
    }
    println!("{} schedules of optim", tensors.iter().len());
}
