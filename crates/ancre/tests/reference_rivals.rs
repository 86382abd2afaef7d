//! The rivals against vectors computed with their own packages and formulas, in double precision and in single: what every branch
//! reads, what the network goes on with, the loss and every gradient, from the parameters of the start and from random ones.

use std::path::Path;

use ancre::{
    InitialWeight,
    rivals::{HyperNorm, ManifoldForm, Rival, RivalConfig, RivalKind},
};
use burn::{
    backend::{Autodiff, Flex},
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    tensor::{DType, Tensor, TensorData, activation::tanh, backend::AutodiffBackend},
};
use reference_vectors::{Reference, Tensors, assert_close};
use serde_json::Value;

type B = Autodiff<Flex>;

/// A method of the files, with its size.
fn kind(method: &str, manifest: &Value, size: &str) -> RivalKind {
    let of_size = |name: &str| manifest["sizes"][size][name].as_u64().map(|n| n as usize);
    let (dense, streams) = (|dilation, period| RivalKind::DenseFormer { dilation, period }, method.ends_with("n4"));
    let streams = if streams { 4 } else { 2 };
    let hyper = |dynamic| RivalKind::HyperConnections { streams, dynamic, norm: HyperNorm::Rms };
    let attention = |blocks, final_query| RivalKind::AttentionResiduals { blocks, final_query };
    match method {
        "rezero" => RivalKind::ReZero,
        "layerscale" => {
            let initial = manifest["layerscale_init"].as_f64().and_then(InitialWeight::new);
            RivalKind::LayerScale { initial: initial.expect("a number") }
        }
        "lns" | "lns_rms" => RivalKind::LayerNormScaling,
        "dwa" => dense(1, 1),
        "dwa_dil2" => dense(2, 1),
        "dwa_per2" => dense(1, 2),
        "dwa_dil2_per2" => dense(2, 2),
        "hc_static_n2" | "hc_static_n4" => hyper(false),
        "hc_dynamic_n2" | "hc_dynamic_n4" => hyper(true),
        "mhc_n2" | "mhc_n4" => RivalKind::ManifoldHyperConnections { streams, form: ManifoldForm::Package },
        "attnres_full" => attention(None, false),
        "attnres_full_finalquery" => attention(None, true),
        "attnres_block" => attention(of_size("attnres_block_count_setting"), false),
        "attnres_block_finalquery" => attention(of_size("attnres_block_count_setting"), true),
        "oar_full" => RivalKind::OpenAttentionResiduals { blocks: None },
        "oar_block" => RivalKind::OpenAttentionResiduals { blocks: of_size("oar_num_blocks") },
        other => panic!("no rival for the method `{other}`"),
    }
}

/// The entries of `name` over all branches, one after another: `param/query_0`, `param/query_1`, ...
fn stacked(file: &Tensors, prefix: &str, name: &str, branches: usize) -> Option<Vec<f64>> {
    let parts: Vec<&Reference> =
        (0..=branches).filter_map(|branch| file.find(&format!("{prefix}/{name}_{branch}"))).collect();
    (!parts.is_empty()).then(|| parts.iter().flat_map(|part| part.values.iter().copied()).collect())
}

fn tensor<const D: usize>(reference: &Reference, dtype: DType) -> Tensor<B, D> {
    let dims: [usize; D] = reference.shape.clone().try_into().expect("rank");
    Tensor::from_data(TensorData::new(reference.values.clone(), dims), (&Default::default(), dtype)).require_grad()
}

fn read<const D: usize>(tensor: Tensor<impl burn::tensor::backend::Backend, D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// Replaces every parameter by the stored one, whose name is that of its field.
struct Load<'a> {
    file: &'a Tensors,
    prefix: String,
    branches: usize,
    dtype: DType,
    path: Vec<String>,
}

impl ModuleMapper<B> for Load<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        let name = self.path.last().expect("a name");
        let Some(values) = stacked(self.file, &format!("{}/param", self.prefix), name, self.branches) else {
            panic!("no stored parameter `{name}`");
        };
        let (id, old, _) = parameter.consume();
        let new = Tensor::from_data(TensorData::new(values, old.dims()), (&Default::default(), self.dtype));
        Param::initialized(id, new.require_grad())
    }
}

/// Compares every parameter's gradient with the stored one.
struct Gradients<'a, G> {
    file: &'a Tensors,
    prefix: String,
    branches: usize,
    tolerance: f64,
    gradients: &'a G,
    path: Vec<String>,
    what: String,
}

impl ModuleVisitor<B> for Gradients<'_, <B as AutodiffBackend>::Gradients> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<B, D>>) {
        let name = self.path.last().expect("a name");
        let expected = stacked(self.file, &format!("{}/grad", self.prefix), name, self.branches).expect("a gradient");
        let value = parameter.val();
        let actual = value.grad(self.gradients).map_or_else(|| vec![0.0; expected.len()], read);
        let what = format!("{} gradient of {name}", self.what);
        assert_close(&what, &actual, &expected, self.tolerance, 1.0, 0.0);
    }
}

/// The norm before a branch of layer-norm scaling, which the model has and not the rival.
fn normed(file: &Tensors, prefix: &str, branch: usize, h: Tensor<B, 3>, dtype: DType) -> Tensor<B, 3> {
    let weight = tensor::<1>(file.get(&format!("{prefix}/param/norm_weight_{branch}")), dtype).unsqueeze();
    match file.find(&format!("{prefix}/param/norm_bias_{branch}")) {
        Some(bias) => {
            let centred = h.clone() - h.mean_dim(2);
            let size = centred.clone().square().mean_dim(2).add_scalar(1e-5).sqrt();
            centred / size * weight + tensor::<1>(bias, dtype).unsqueeze()
        }
        None => h.clone() / h.square().mean_dim(2).add_scalar(1e-6).sqrt() * weight,
    }
}

fn check(folder: &Path, manifest: &Value, method: &str, size: &str, prefix: &str, dtype: DType) {
    let read_file = |name: String| Tensors::read(&folder.join(name));
    let base = read_file(format!("base_{size}.safetensors"));
    let file = read_file(format!("{method}_{size}.safetensors"));
    let what = format!("{method}_{size} {prefix} {dtype:?}");
    let (outputs, gradients) = match dtype {
        DType::F64 => (1e-11, 1e-11),
        _ => (2e-5, 2e-4),
    };
    let weights = base.get("W");
    let (branches, width) = (weights.shape[0], weights.shape[1]);
    let config = RivalConfig { kind: kind(method, manifest, size), branches, per_block: 1, width, tau: 0.01 };
    let mut load = Load { file: &file, prefix: prefix.to_owned(), branches, dtype, path: Vec::new() };
    let rival: Rival<B> = config.init(&Default::default()).expect("a valid rival");
    if prefix == "init" {
        check_start(&rival, &file, branches, &what);
    }
    let rival = rival.map(&mut load);

    let close = |part: &str, actual: Vec<f64>| {
        let expected = file.get(&format!("{prefix}/{part}"));
        assert_close(&format!("{what} {part}"), &actual, &expected.values, outputs, 1.0, 0.0);
    };
    let x = tensor::<3>(base.get("x"), dtype);
    let all_weights = tensor::<3>(weights, dtype);
    let biases = tensor::<2>(base.get("b"), dtype);
    let mut stream = rival.start(x.clone());
    for branch in 0..branches {
        let input = rival.enter(&mut stream);
        // What is stored is what a branch reads, or what the one before it left.
        let step = branch.checked_sub(1).map(|before| format!("step_{before}"));
        let step = step.filter(|step| file.find(&format!("{prefix}/{step}")).is_some());
        if let Some(step) = &step {
            close(step, read(input.clone()));
        }
        let input = match rival.kind() {
            RivalKind::LayerNormScaling => {
                normed(&file, prefix, branch, input, dtype).mul_scalar(rival.norm_scale(branch))
            }
            _ => input,
        };
        if file.find(&format!("{prefix}/branch_in_{branch}")).is_some() {
            close(&format!("branch_in_{branch}"), read(input.clone()));
        } else {
            assert!(step.is_some() || branch == 0, "{what}: nothing stored for branch {branch}");
        }
        let matrix = all_weights.clone().slice([branch..branch + 1, 0..width, 0..width]).swap_dims(1, 2);
        let bias = biases.clone().slice([branch..branch + 1, 0..width]).unsqueeze();
        rival.leave(&mut stream, tanh(input.matmul(matrix) + bias));
    }
    let last = rival.finish(stream);
    close("final", read(last.clone()));
    let loss = (last * tensor::<3>(base.get("C"), dtype).detach()).sum();
    close("loss", read(loss.clone()));
    let all = loss.backward();
    let expect = |part: &str, actual: Vec<f64>, expected: &[f64]| {
        assert_close(&format!("{what} gradient of {part}"), &actual, expected, gradients, 1.0, 0.0);
    };
    expect("x", read(x.grad(&all).expect("a gradient")), &file.get(&format!("{prefix}/grad/x")).values);
    let of_biases = stacked(&file, &format!("{prefix}/grad"), "block_bias", branches).expect("gradients");
    expect("biases", read(biases.grad(&all).expect("a gradient")), &of_biases);
    rival.visit(&mut Gradients {
        file: &file,
        prefix: prefix.to_owned(),
        branches,
        tolerance: gradients,
        gradients: &all,
        path: Vec::new(),
        what,
    });
}

/// The parameters that a rival begins with are the stored ones.
fn check_start(rival: &Rival<B>, file: &Tensors, branches: usize, what: &str) {
    struct Start<'a> {
        file: &'a Tensors,
        branches: usize,
        path: Vec<String>,
        what: &'a str,
    }
    impl ModuleVisitor<B> for Start<'_> {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.path.push(name.to_owned());
        }

        fn exit_module(&mut self, _: &str, _: &str) {
            self.path.pop();
        }

        fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<B, D>>) {
            let name = self.path.last().expect("a name");
            let expected = stacked(self.file, "init/param", name, self.branches).expect("a parameter");
            assert_close(&format!("{} start of {name}", self.what), &read(parameter.val()), &expected, 1e-7, 0.0, 0.0);
        }
    }
    rival.visit(&mut Start { file, branches, path: Vec::new(), what });
}

#[test]
fn reference_rivals() {
    let folder = reference_vectors::family(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference"), "rivals");
    let mut checked = 0;
    for case in reference_vectors::cases(&folder) {
        let manifest = reference_vectors::manifest(&case);
        for (name, _) in reference_vectors::files(&case) {
            let (method, size) = name.rsplit_once('_').expect("a method and a size");
            if method == "base" {
                continue;
            }
            for prefix in ["init", "rand"] {
                for dtype in [DType::F64, DType::F32] {
                    check(&case, &manifest, method, size, prefix, dtype);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked >= 80, "all methods of at least one size are in {}: {checked}", folder.display());
    println!("reference rivals: {checked} cases hold");
}
