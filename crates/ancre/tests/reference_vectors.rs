//! The connections against vectors computed with the authors' modules: every state, the loss and every gradient.

use std::path::Path;

use ancre::{Arm, Connections, ConnectionsConfig, Parameterization};
use burn::{
    backend::{Autodiff, Flex},
    tensor::{Tensor, TensorData, activation::tanh, backend::Backend},
};
use reference_vectors::{Reference, Tensors, assert_close};
use serde_json::Value;

type B = Autodiff<Flex>;

/// What float32 cannot resolve in a gradient that is nothing: those of saturated softmaxes are 1e-17.
const FLOOR: f64 = 1e-8;

fn leaf<const D: usize>(reference: &Reference) -> Tensor<B, D> {
    let dims: [usize; D] = reference.shape.clone().try_into().expect("rank");
    Tensor::from_data(TensorData::new(reference.f32s(), dims), &Default::default()).require_grad()
}

fn read<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

fn arm(manifest: &Value, variant: &Value) -> Arm {
    let parameterization = match variant["parameterization"].as_str() {
        Some("softmax") => Parameterization::Softmax,
        Some("hadamard") => Parameterization::Hadamard,
        Some("constant") => Parameterization::Constant,
        other => panic!("unknown parameterization {other:?}"),
    };
    match manifest["module"].as_str() {
        Some("incoming") => Arm::Incoming(parameterization),
        Some("outgoing") => Arm::Outgoing(parameterization),
        Some("naive") => Arm::NaiveScalars,
        other => panic!("unknown module {other:?}"),
    }
}

/// The stored vectors, `shortcut_params.0`, `.1`, ... or the one `shortcut_params` of the naive scalars.
fn stored_vectors(file: &Tensors, prefix: &str, count: usize) -> Vec<Option<Vec<f64>>> {
    match file.find(&format!("{prefix}shortcut_params")) {
        Some(one) => vec![Some(one.values.clone())],
        None => {
            (0..count).map(|i| file.find(&format!("{prefix}shortcut_params.{i}")).map(|r| r.values.clone())).collect()
        }
    }
}

fn check_variant(folder: &Path, manifest: &Value, variant: &Value) {
    let name = variant["file"].as_str().expect("a file name");
    let what = |part: &str| format!("{}/{name}: {part}", folder.display());
    let (inputs, file) = (Tensors::read(&folder.join("inputs.safetensors")), Tensors::read(&folder.join(name)));
    let depth = manifest["num_layers"].as_u64().expect("num_layers") as usize;
    let arm = arm(manifest, variant);

    let mut connections: Connections<B> =
        ConnectionsConfig::new(depth).with_arm(arm.clone()).init(&Default::default()).expect("a valid configuration");
    if let Some(tau) = file.find("param/softmax_temp") {
        connections.set_tau(tau.values[0]).expect("a positive temperature");
    }
    let vectors: Vec<Vec<f32>> = stored_vectors(&file, "param/", depth)
        .into_iter()
        .map(|v| v.expect("every vector is stored").iter().map(|&x| x as f32).collect())
        .collect();
    let connections = connections.with_vectors(&vectors).expect("vectors that fit");
    assert_eq!(connections.to_vectors(), vectors);

    let x = leaf::<3>(inputs.get("x"));
    let weights: Vec<Tensor<B, 2>> = (0..depth).map(|i| leaf(inputs.get(&format!("W_{i}")))).collect();
    let biases: Vec<Tensor<B, 1>> = (0..depth).map(|i| leaf(inputs.get(&format!("b_{i}")))).collect();
    let mut history = connections.start(x.clone());
    let mut h = x.clone();
    for (i, (w, b)) in weights.iter().zip(&biases).enumerate() {
        let output = tanh(h.matmul(w.clone().transpose().unsqueeze()) + b.clone().unsqueeze());
        h = connections.connect(&mut history, output);
        let expected = &file.get(&format!("h_{}", i + 1)).values;
        assert_close(&what(&format!("h_{}", i + 1)), &read(h.clone()), expected, 1e-5, 0.0, 0.0);
    }
    let c = leaf::<3>(inputs.get("C")).detach();
    let loss = (h.clone() * c).mean() + h.square().mean() * 0.5;
    assert_close(&what("loss"), &read(loss.clone()), &file.get("loss").values, 1e-5, 0.0, 1e-5);

    // Against the double-precision run where it is stored: the single one itself can be off by more than this.
    let tolerance = 1e-5;
    let gradients = loss.backward();
    let check = |part: &str, actual: Option<Vec<f64>>| {
        let key = format!("grad/{part}");
        let expected = &file.find(&format!("f64/{key}")).unwrap_or_else(|| file.get(&key)).values;
        assert_close(&what(part), &actual.expect("a gradient"), expected, tolerance, 0.0, FLOOR);
    };
    check("x", x.grad(&gradients).map(read));
    for i in 0..depth {
        check(&format!("W_{i}"), weights[i].grad(&gradients).map(read));
        check(&format!("b_{i}"), biases[i].grad(&gradients).map(read));
    }
    // The frozen vectors have no stored gradient; the one theta of ours then has a gradient of exactly 0 there.
    let exact = stored_vectors(&file, "f64/grad/", depth);
    let expected: Vec<_> =
        stored_vectors(&file, "grad/", depth).into_iter().zip(exact).map(|(single, exact)| exact.or(single)).collect();
    let largest = expected.iter().flatten().flatten().fold(0.0f64, |m, g| m.max(g.abs()));
    let actual = connections.vector_gradients(&gradients);
    for (i, expected) in expected.iter().enumerate() {
        let part = what(&format!("gradient of vector {i}"));
        match (expected, actual.as_ref().map(|a| a[i].iter().map(|&g| f64::from(g)).collect::<Vec<_>>())) {
            (Some(expected), Some(actual)) => assert_close(&part, &actual, expected, tolerance, largest, FLOOR),
            (None, Some(actual)) => assert!(actual.iter().all(|&g| g == 0.0), "{part} is frozen: {actual:?}"),
            (Some(expected), None) => assert!(expected.iter().all(|&g| g == 0.0), "{part} is missing"),
            (None, None) => {}
        }
    }
    for (i, row) in connections.coefficients().expect("finite coefficients").rows().enumerate() {
        // The file lists coefficients by source for the outgoing module; those are covered by the states.
        if let (Arm::Incoming(_), Some(expected)) = (&arm, file.find(&format!("coeffs_{i}"))) {
            assert_close(&what(&format!("coefficients {i}")), row, &expected.values, 2e-5, 0.0, 0.0);
        }
    }
}

#[test]
fn reference_ancre_states_and_gradients() {
    let folder = reference_vectors::family(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference"), "ancre");
    let mut checked = 0;
    for case in reference_vectors::cases(&folder) {
        let manifest = reference_vectors::manifest(&case);
        for variant in manifest["variants"].as_array().expect("variants") {
            check_variant(&case, &manifest, variant);
            checked += 1;
        }
    }
    assert!(checked > 0, "no reference case in {}", folder.display());
    println!("reference ancre: {checked} cases hold");
}
