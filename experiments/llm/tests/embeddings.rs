//! How embeddings begin and how fast they learn, where that is not as the other parameters.

use burn::backend::{Autodiff, Flex};
use experiments_llm::{
    model::{Llama, LlamaVariant},
    presets::Preset,
};
use program_tests::Program;
use training::parameters::{NamedTensor, export};

const PROGRAM: Program = Program(env!("CARGO_BIN_EXE_experiments-llm"));

#[test]
fn their_standard_deviation_is_theirs_alone() {
    let weights = |embedding_std| {
        let mut config = Preset::Smoke.settings().model;
        (config.vocabulary, config.variant) = (300, LlamaVariant { embedding_std, ..LlamaVariant::default() });
        export::<Autodiff<Flex>, _>(&Llama::new(&config, 5, &Default::default()).unwrap())
    };
    let values = |tensor: &NamedTensor| tensor.data.iter::<f32>().collect::<Vec<_>>();
    for (small, large) in weights(None).iter().zip(&weights(Some(0.5))) {
        let factor = if small.name == "embed_tokens.weight" { 25.0 } else { 1.0 };
        for (small, large) in values(small).into_iter().zip(values(large)) {
            assert!((small * factor - large).abs() <= 1e-6 * large.abs(), "{small} and {large}");
        }
    }
}

#[test]
fn their_rate_is_a_multiple_and_their_decay_as_much_less() {
    let folder = tempfile::tempdir().unwrap();
    let run = |out, more: &[&str]| {
        let train = ["train", "--preset", "smoke", "--steps", "2", "--out", out];
        PROGRAM.succeeds(folder.path(), &[&train, more].concat());
        let read = |file| std::fs::read_to_string(folder.path().join(out).join(file)).unwrap();
        (read("config.toml"), read("metrics.jsonl"))
    };
    let (config, metrics) = run("fast", &["--embedding-lr", "10"]);
    let group = config.split("[[training.optimizer.groups]]").find(|group| group.contains("embed_tokens.weight"));
    let group = group.expect("a group of the embeddings");
    assert!(group.contains("lr_factor = 10.0") && group.contains("weight_decay = 0.01"), "{group}");
    // A factor that a file brings is replaced.
    let stored = folder.path().join("fast/config.toml");
    let (config, replaced) = run("again", &["--config", stored.to_str().unwrap(), "--embedding-lr", "3"]);
    assert!(config.contains("lr_factor = 3.0") && !config.contains("lr_factor = 10.0"), "{config}");
    assert_ne!(replaced, metrics);
    let (_, usual) = run("usual", &[]);
    assert_ne!(metrics, usual);
    let (_, once) = run("once", &["--embedding-lr", "1"]);
    assert_eq!(once, usual);
}
