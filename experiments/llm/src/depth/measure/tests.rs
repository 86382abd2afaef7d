use ancre::Arm;
use burn::{
    backend::Flex,
    tensor::{Int, TensorData},
};

use super::*;
use crate::model::{LlamaConfig, LlamaVariant};

fn config(arm: &str, layers: usize) -> LlamaConfig {
    LlamaConfig {
        vocabulary: 11,
        width: 8,
        feed_forward: 12,
        layers,
        heads: 2,
        positions: 6,
        rotary_base: 10_000.0,
        norm_eps: 1e-6,
        init_std: 0.3,
        freeze_last_embedding: false,
        arm: arm.parse::<Arm>().unwrap(),
        tau: 0.01,
        variant: LlamaVariant::default(),
    }
}

fn model(arm: &str) -> Llama<Flex> {
    Llama::new(&config(arm, 3), 0, &Default::default()).unwrap()
}

/// Two rows, of which one has places that do not count.
fn batch() -> Batch {
    let inputs = vec![1, 5, 3, 7, 2, 9, 10, 0, 4, 4];
    let targets = vec![5, 3, 7, 2, 6, 10, IGNORE, IGNORE, 4, IGNORE];
    let target_tokens = targets.iter().filter(|target| **target != IGNORE).count();
    Batch { inputs, targets, row_numbers: vec![0, 1], rows: 2, context: 5, target_tokens, target_bytes: 0 }
}

fn utilisation(model: &Llama<Flex>, batches: &[Batch]) -> Utilisation {
    measure(model, 0, batches, &Default::default(), || {}).unwrap()
}

fn output<'a>(hidden: &'a [f32], logits: &'a [f32]) -> Output<'a> {
    Output { hidden, logits, log_sum: log_sum(logits) }
}

#[test]
fn distributions_are_compared_by_their_definitions() {
    let logits = [[0.0, 3f32.ln(), 4f32.ln()], [2f32.ln(), 0.0, 0.0]];
    let whole = output(&[3.0, 4.0], &logits[0]);
    let other = output(&[4.0, -3.0], &logits[1]);
    let [hidden, cosine, divergence, top1, loss] = whole.change(&other, 1);
    assert!((hidden - 2f64.sqrt()).abs() < 1e-12 && cosine.abs() < 1e-12, "a right angle");
    let expected: f64 =
        [(0.125, 0.5), (0.375, 0.25), (0.5, 0.25)].iter().map(|(p, q): &(f64, f64)| p * (p / q).ln()).sum();
    assert!((divergence - expected).abs() < 1e-6, "{divergence} for {expected}");
    assert_eq!(top1, 1.0);
    assert!((loss - (0.375f64 / 0.25).ln()).abs() < 1e-6);
    assert_eq!(whole.change(&whole, 0), [0.0, 1.0, 0.0, 0.0, 0.0]);
    // Logits of any size.
    assert!((output(&[1.0], &[1000.0, 1000.0]).loss(0) - 2f64.ln()).abs() < 1e-9);
}

#[test]
fn the_loss_is_that_of_an_evaluation() {
    let (model, batch) = (model("ancre"), batch());
    let (inputs, targets) = tensors::<Flex>(&batch, &Default::default());
    let expected: f64 = model.loss(inputs, targets).into_data().iter::<f64>().sum();
    let measured = utilisation(&model, std::slice::from_ref(&batch));
    assert_eq!((measured.places, measured.blocks.len()), (7, 3));
    assert!((measured.loss - expected).abs() < 1e-5, "{} for {expected}", measured.loss);
    // Twice the same text is the same text.
    let twice = utilisation(&model, &[batch.clone(), batch]);
    assert_eq!(twice.blocks, measured.blocks);
}

/// The cascade without its layer `l` is the cascade of the other layers.
#[test]
fn a_cascade_without_a_block_is_that_of_the_others() {
    let whole = model("cascade");
    let tokens = || Tensor::<Flex, 2, Int>::from_data(TensorData::new(batch().inputs, [2, 5]), &Default::default());
    for left_out in 0..3 {
        let mut pass = whole.begin(tokens());
        for layer in 0..3 {
            pass = if layer == left_out { whole.pass_over(pass) } else { whole.advance(pass) };
        }
        let ours = values(whole.head(whole.finish(pass)));
        let stored: Vec<_> = training::parameters::export::<Flex, _>(&whole)
            .into_iter()
            .filter(|tensor| !tensor.name.starts_with(&format!("layers.{left_out}.")))
            .map(|mut tensor| {
                for layer in left_out + 1..3 {
                    tensor.name = tensor.name.replace(&format!("layers.{layer}."), &format!("layers.{}.", layer - 1));
                }
                tensor
            })
            .collect();
        let shorter = Llama::<Flex>::new(&config("cascade", 2), 1, &Default::default()).unwrap();
        let shorter = training::parameters::import(shorter, stored).unwrap();
        assert_eq!(ours, values(shorter.forward(tokens())), "without layer {left_out}");
    }
}

/// Connections stay where they are: with the frozen uniform mix, leaving out block `l` takes away its branches alone.
#[test]
fn connections_stay_where_a_block_is_left_out() {
    let model = model("constant");
    let tokens = Tensor::<Flex, 2, Int>::from_data(TensorData::new(batch().inputs, [2, 5]), &Default::default());
    let mut pass = model.begin(tokens.clone());
    for _ in 0..3 {
        pass = model.pass_over(pass);
    }
    // h_1 = 2 h_0, h_2 = 2 h_0 + (1 + 2) / 2 h_0, ...: all are multiples of the embeddings, which the last norm takes away.
    let ours = values(model.finish(pass));
    let embeddings = values(model.observe(tokens).states.swap_remove(0));
    for (ours, embedding) in ours.chunks(8).zip(embeddings.chunks(8)) {
        let ratio = ours[0] / embedding[0];
        assert!(ours.iter().zip(embedding).all(|(o, e)| (o / e / ratio - 1.0).abs() < 1e-3), "{ours:?} {embedding:?}");
    }
}

#[test]
fn every_arm_can_be_measured() {
    let arms = [
        "replacing",
        "outgoing",
        "scalars",
        "0:l",
        "rezero",
        "layer-norm-scaling",
        "dense-former",
        "hyper-connections",
        "manifold-hyper-connections",
        "attention-residuals",
        "open-attention-residuals",
    ];
    for arm in arms {
        let measured = utilisation(&model(arm), &[batch()]);
        assert!(measured.blocks.iter().all(|change| change.hidden.is_finite() && change.hidden >= 0.0), "{arm}");
        // ReZero begins with branches that give nothing.
        let any = measured.blocks.iter().any(|change| change.divergence > 0.0);
        assert_eq!(any, arm != "rezero", "{arm}: {measured:?}");
    }
}

#[test]
fn nothing_to_measure_is_said() {
    let nothing = Batch { targets: vec![IGNORE; 10], ..batch() };
    let error = measure(&model("cascade"), 0, &[nothing], &Default::default(), || {}).unwrap_err();
    assert_eq!(error, MeasureError::NoPlaces);
}
