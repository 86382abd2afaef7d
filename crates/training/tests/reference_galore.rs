//! GaLore against stored runs of `galore-torch`.
//!
//! The signs of singular vectors are arbitrary. Turning a vector around turns the moment of its direction around, and leaves the
//! update as it is; so it is our moments that are turned where a stored basis turns around.

use std::collections::BTreeMap;

use burn::{
    backend::{Autodiff, Flex},
    module::{Module, Param},
    optim::GradientsParams,
    tensor::{Tensor, TensorData, backend::Backend},
};
use reference_vectors::{Reference, Tensors, assert_close, columns, signs};
use serde_json::Value;
use training::{
    optimizer::{Galore, Optimizer, OptimizerSettings, Rule},
    parameters::{self, NamedTensor},
};

type B = Autodiff<Flex>;

/// The parameters of the stored runs; the projected ones as `[input, output]`, so transposed.
#[derive(Module, Debug)]
struct Model<B: Backend> {
    tall: Param<Tensor<B, 2>>,
    wide: Param<Tensor<B, 2>>,
    square: Param<Tensor<B, 2>>,
    plain_matrix: Param<Tensor<B, 2>>,
    plain_vector: Param<Tensor<B, 1>>,
}

const PROJECTED: [&str; 3] = ["tall", "wide", "square"];

/// As ours are arranged.
fn ours(name: &str, shape: &[usize], values: &[f64]) -> TensorData {
    match (PROJECTED.contains(&name), shape) {
        (true, &[rows, cols]) => TensorData::new(columns(values, cols).concat(), [cols, rows]),
        _ => TensorData::new(values.to_vec(), shape),
    }
    .convert::<f32>()
}

fn values(data: &TensorData) -> Vec<f64> {
    data.iter::<f64>().collect()
}

fn parameter<const D: usize>(inputs: &Tensors, name: &str) -> Param<Tensor<B, D>> {
    let Reference { shape, values } = inputs.get(&format!("init/{name}"));
    Param::from_tensor(Tensor::from_data(ours(name, shape, values), &Default::default()))
}

fn gradients(model: &Model<B>, inputs: &Tensors, step: usize) -> GradientsParams {
    let mut all = GradientsParams::new();
    macro_rules! register {
        ($field:ident, $rank:literal) => {
            let name = stringify!($field);
            let stored = inputs.get(&format!("grad/{name}"));
            let (shape, values) = (&stored.shape, &stored.values);
            let size = values.len() / shape[0];
            let data = ours(name, &shape[1..], &values[step * size..(step + 1) * size]);
            all.register(model.$field.id, Tensor::<Flex, $rank>::from_data(data, &Default::default()));
        };
    }
    register!(tall, 2);
    register!(wide, 2);
    register!(square, 2);
    register!(plain_matrix, 2);
    register!(plain_vector, 1);
    all
}

/// The vectors of a basis: rows of ours where the outputs are projected (as in `wide`), columns where the inputs are.
fn vectors(name: &str, data: &TensorData) -> Vec<Vec<f64>> {
    match name {
        "wide" => values(data).chunks(data.shape[1]).map(<[f64]>::to_vec).collect(),
        _ => columns(&values(data), data.shape[1]),
    }
}

/// The moment with the directions turned around whose sign is -1.
fn turned(name: &str, moment: &TensorData, signs: &[f64]) -> TensorData {
    let width = moment.shape[1];
    let direction = |at: usize| if name == "wide" { at % width } else { at / width };
    let turned: Vec<f64> =
        values(moment).into_iter().enumerate().map(|(at, value)| value * signs[direction(at)]).collect();
    TensorData::new(turned, moment.shape.clone()).convert::<f32>()
}

fn find<'a>(state: &'a mut [NamedTensor], name: &str) -> &'a mut TensorData {
    &mut state.iter_mut().find(|tensor| tensor.name == name).unwrap_or_else(|| panic!("no {name}")).data
}

fn settings(manifest: &Value, variant: &Value) -> OptimizerSettings {
    let number = |value: &Value| value.as_f64().expect("a number");
    let [beta1, beta2] = [0, 1].map(|index| number(&manifest["betas"][index]));
    let galore = Galore {
        parameters: PROJECTED.map(Into::into).into(),
        rank: number(&variant["rank"]) as usize,
        refresh_every: number(&variant["update_proj_gap"]) as usize,
        scale: number(&manifest["scale"]),
    };
    OptimizerSettings {
        rule: Rule::TransformersAdamW { beta1, beta2, eps: number(&manifest["eps"]) },
        weight_decay: number(&variant["weight_decay"]),
        galore: Some(galore),
        groups: Vec::new(),
    }
}

#[test]
fn reference_galore_trajectories() {
    let folder = reference_vectors::family(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference"), "galore");
    let manifest = reference_vectors::manifest(&folder);
    let inputs = Tensors::read(&folder.join("inputs.safetensors"));
    let mut compared = Vec::new();
    for variant in manifest["variants"].as_array().expect("variants") {
        let file = folder.join(variant["file"].as_str().expect("a file"));
        if !file.is_file() {
            continue; // Not all are kept with the code.
        }
        let stored = Tensors::read(&file);
        let mut model = Model {
            tall: parameter(&inputs, "tall"),
            wide: parameter(&inputs, "wide"),
            square: parameter(&inputs, "square"),
            plain_matrix: parameter(&inputs, "plain_matrix"),
            plain_vector: parameter(&inputs, "plain_vector"),
        };
        let mut optimizer = Optimizer::<B>::new(settings(&manifest, variant)).unwrap();
        let lr = manifest["lr"].as_f64().expect("lr");
        let mut former: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for step in 0..manifest["steps"].as_u64().expect("steps") as usize {
            let what = |name: &str| format!("{}: {name} after update {step}", file.display());
            let ortho = |name: &str| stored.find(&format!("ortho/step{step}/{name}"));
            if ortho("tall").is_some() {
                let mut trial = optimizer.clone();
                trial.step(model.clone(), gradients(&model, &inputs, step), lr);
                let (mut next, mut state) = (trial.export().unwrap(), optimizer.export().unwrap());
                for name in PROJECTED {
                    let Reference { shape, values } = ortho(name).expect("a basis for each");
                    let expected = vectors(name, &ours(name, shape, values));
                    let found = vectors(name, find(&mut next, &format!("basis/{name}")));
                    let signs = signs(&what(name), &found, &expected, 0.9999);
                    if let Some(former) = former.get(name) {
                        let product: Vec<f64> = former.iter().zip(&signs).map(|(a, b)| a * b).collect();
                        let moment = find(&mut state, &format!("first_moment/{name}"));
                        *moment = turned(name, moment, &product);
                    }
                    former.insert(name, signs);
                }
                optimizer.import(&model, state).unwrap();
            }
            let gradients = gradients(&model, &inputs, step);
            model = optimizer.step(model, gradients, lr);
            for tensor in parameters::export(&model) {
                let Some(expected) = stored.find(&format!("param/step{step}/{}", tensor.name)) else { continue };
                let expected = ours(&tensor.name, &expected.shape, &expected.values);
                assert_close(&what(&tensor.name), &values(&tensor.data), &values(&expected), 0.0, 0.0, 2e-5);
                compared.push(tensor.name);
            }
        }
        let mut state = optimizer.export().unwrap();
        for (slot, key) in [("first_moment", "exp_avg"), ("second_moment", "exp_avg_sq")] {
            for name in ["tall", "wide", "square", "plain_matrix", "plain_vector"] {
                let Some(expected) = stored.find(&format!("{key}/final/{name}")) else { continue };
                let expected = values(&ours(name, &expected.shape, &expected.values));
                let found = find(&mut state, &format!("{slot}/{name}"));
                let found = match former.get(name).filter(|_| slot == "first_moment") {
                    Some(signs) => turned(name, found, signs),
                    None => found.clone(),
                };
                let what = format!("{}: the {slot} of {name}", file.display());
                assert_close(&what, &values(&found), &expected, 0.0, 0.0, 2e-5);
            }
        }
    }
    assert!(!compared.is_empty());
    println!("{} stored parameters of galore hold", compared.len());
}
