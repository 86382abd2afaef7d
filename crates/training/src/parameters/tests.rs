use burn::{
    backend::{Autodiff, Flex},
    module::AutodiffModule,
    nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig},
    tensor::Distribution,
};

use super::*;

#[derive(Module, Debug)]
enum Choice<B: Backend> {
    Wide(Linear<B>),
    Narrow(Linear<B>),
}

#[derive(Module, Debug)]
struct Everything<B: Backend> {
    layers: Vec<Choice<B>>,
    pair: (Linear<B>, Linear<B>),
    list: [Param<Tensor<B, 1>>; 2],
    maybe: Option<Linear<B>>,
    counter: Param<Tensor<B, 1, Int>>,
    mask: Param<Tensor<B, 1, Bool>>,
    norm: BatchNorm<B>,
    width: usize,
}

fn everything<B: Backend>() -> Everything<B> {
    let device = Default::default();
    let linear = |bias| LinearConfig::new(2, 3).with_bias(bias).init(&device);
    let vector = || Param::from_tensor(Tensor::<B, 1>::random([2], Distribution::Default, &device));
    Everything {
        layers: vec![Choice::Wide(linear(true)), Choice::Narrow(linear(false))],
        pair: (linear(false), linear(false)),
        list: [vector(), vector().set_require_grad(false)],
        maybe: Some(linear(false)),
        counter: Param::initialized(ParamId::new(), Tensor::from_ints([1, 2, 3], &device)),
        mask: Param::initialized(ParamId::new(), Tensor::from_bool(TensorData::from([true, false]), &device)),
        norm: BatchNormConfig::new(2).init(&device),
        width: 3,
    }
}

type A = Autodiff<Flex>;

#[test]
fn names_are_paths() {
    let parameters = named_parameters(&everything::<A>());
    let names: Vec<_> = parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "layers.0.weight",
            "layers.0.bias",
            "layers.1.weight",
            "pair.0.weight",
            "pair.1.weight",
            "list.0",
            "list.1",
            "maybe.weight",
            "counter",
            "mask",
            "norm.gamma",
            "norm.beta",
            "norm.running_mean",
            "norm.running_var",
        ]
    );
    let frozen: Vec<_> = parameters.iter().filter(|parameter| !parameter.trainable).map(|p| p.name.as_str()).collect();
    assert_eq!(frozen, ["list.1", "counter", "mask", "norm.running_mean", "norm.running_var"]);
    assert_eq!((parameters[0].shape.as_slice(), parameters[0].kind), (&[2, 3][..], ParameterKind::Float));
    assert_eq!((parameters[8].kind, parameters[9].kind), (ParameterKind::Int, ParameterKind::Bool));
    assert!(named_parameters(&everything::<A>().valid()).iter().all(|parameter| !parameter.trainable));
}

#[test]
fn what_is_exported_can_be_imported_and_identity_stays() {
    let (source, target) = (everything::<A>(), everything::<A>());
    let exported = export(&source);
    assert_ne!(export(&target), exported);
    let before = named_parameters(&target);
    let target = import(target, exported.clone()).unwrap();
    assert_eq!(export(&target), exported);
    assert_eq!(named_parameters(&target), before, "ids and gradient requirements are the target's own");
    // And across backends.
    assert_eq!(export(&import(everything::<Flex>(), exported.clone()).unwrap()), exported);
}

#[test]
fn every_misfit_is_listed_at_once() {
    let module = everything::<A>();
    let mut tensors = export(&module);
    tensors.retain(|tensor| tensor.name != "list.0" && tensor.name != "norm.gamma");
    let data = TensorData::new(vec![0.0f32; 3], [3]);
    tensors.push(NamedTensor { name: "left.over".into(), data: data.clone() });
    tensors.push(NamedTensor { name: "mask".into(), data: data.clone() });
    for tensor in &mut tensors {
        match tensor.name.as_str() {
            "maybe.weight" | "counter" => tensor.data = data.clone(),
            _ => {}
        }
    }
    let error = import(module, tensors).unwrap_err();
    assert_eq!(error.missing, ["list.0", "norm.gamma"]);
    assert_eq!(error.unexpected, ["mask", "left.over"]);
    assert_eq!(error.mismatched, ["maybe.weight (model [2, 3], tensor [3])", "counter (model integer, tensor F32)"]);
    let message = error.to_string();
    assert!(message.contains("missing (2): list.0, norm.gamma"), "{message}");
}

#[test]
fn other_floats_are_converted_to_the_models() {
    let linear = LinearConfig::new(1, 2).with_bias(false).init::<Flex>(&Default::default());
    let data = TensorData::new(vec![0.5f64, 0.1], [1, 2]);
    let linear = import(linear, [NamedTensor { name: "weight".into(), data }]).unwrap();
    assert_eq!(export(&linear)[0].data, TensorData::new(vec![0.5f32, 0.1], [1, 2]));
}

#[test]
fn what_batch_normalisation_has_pending_is_exported_and_replaced() {
    // Regression: a visitor sees a running state without its last update, and an import was overwritten by it.
    let device = Default::default();
    let norm = BatchNormConfig::new(2).init::<A>(&device);
    let initial = export(&norm);
    norm.forward(Tensor::<A, 2>::from_floats([[1.0, 2.0], [3.0, 6.0]], &device));
    let mean = |tensors: &[NamedTensor]| {
        let found = tensors.iter().find(|tensor| tensor.name == "running_mean").unwrap();
        found.data.to_vec::<f32>().unwrap()
    };
    assert_eq!(mean(&export(&norm)), [0.2, 0.4]);
    norm.forward(Tensor::<A, 2>::from_floats([[1.0, 2.0], [3.0, 6.0]], &device));
    let norm = import(norm, initial.clone()).unwrap();
    assert_eq!(mean(&export(&norm)), mean(&initial));
}

#[test]
fn clones_of_a_parameter_are_found() {
    let mut module = everything::<A>();
    assert_eq!(shared_parameters(&named_parameters(&module)), []);
    module.pair.1 = module.pair.0.clone();
    let expected = [("pair.0.weight".to_owned(), "pair.1.weight".to_owned())];
    assert_eq!(shared_parameters(&named_parameters(&module)), expected);
}
