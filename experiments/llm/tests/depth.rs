//! The subcommand `depth` on runs, on comparisons and on Hugging Face folders, and what it says to bad input.

use std::{fs, path::Path};

use program_tests::Program;
use serde_json::{Value, json};

const PROGRAM: Program = Program(env!("CARGO_BIN_EXE_experiments-llm"));
const CASCADE: [&str; 10] =
    ["train", "--preset", "smoke", "--steps", "8", "--arm", "cascade", "--tokenizer", "bytes", "--out"];

fn report(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path.join("report.json")).unwrap()).unwrap()
}

/// A trained cascade in `folder/run`, and the same model as a Hugging Face folder in `folder/hf`.
fn with_run_and_folder(folder: &Path) {
    PROGRAM.succeeds(folder, &[&CASCADE[..], &["run"]].concat());
    fs::create_dir(folder.join("hf")).unwrap();
    PROGRAM.succeeds(folder, &["export", "run", "--to", "hf/model.safetensors"]);
    let config: toml::Table = fs::read_to_string(folder.join("run/config.toml")).unwrap().parse().unwrap();
    let size = |key: &str| config["model"][key].as_integer().unwrap();
    write_config(
        folder,
        &json!({
            "model_type": "llama", "vocab_size": 257, "hidden_size": size("width"), "num_hidden_layers": size("layers"),
            "intermediate_size": size("feed_forward"), "num_attention_heads": size("heads"), "rms_norm_eps": 1e-6,
            "max_position_embeddings": size("positions"),
        }),
    );
}

fn write_config(folder: &Path, config: &Value) {
    fs::write(folder.join("hf/config.json"), config.to_string()).unwrap();
}

fn config(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("hf/config.json")).unwrap()).unwrap()
}

#[test]
fn a_run_and_its_folder_tell_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    with_run_and_folder(path);
    // Three windows of 16 bytes.
    fs::write(path.join("text.txt"), "In the beginning was the word, and so on, and on").unwrap();
    let arguments = |model, out| {
        vec![
            "depth",
            model,
            "--text",
            "text.txt",
            "--context",
            "16",
            "--tokens",
            "48",
            "--tokenizer",
            "bytes",
            "--out",
            out,
        ]
    };
    let text = PROGRAM.succeeds(path, &arguments("hf", "of-folder"));
    assert!(text.contains("Hugging Face folder") && text.contains("Early and late blocks"), "{text}");
    assert_eq!(text.lines().last(), Some("of-folder"));
    for figure in ["hidden-state.png", "hidden-state.svg", "divergence.png", "divergence.svg"] {
        assert!(path.join("of-folder/figures").join(figure).is_file(), "{figure}");
    }
    let of_folder = report(&path.join("of-folder"));
    let model = &of_folder["groups"][0]["models"][0];
    assert_eq!((model["places"].as_u64(), model["context"].as_u64()), (Some(45), Some(16)));
    let blocks = model["blocks"].as_array().unwrap();
    assert_eq!(blocks.len() as i64, config(path)["num_hidden_layers"].as_i64().unwrap());
    for block in blocks {
        for field in ["hidden", "divergence", "cosine"] {
            assert!(block[field].as_f64().unwrap() > 0.0, "{field} of {block}");
        }
        assert!(block["top1_changed"].is_f64() && block["loss"].is_f64());
    }
    // Rows of a run laid out one document a row are windows of a folder but for the end of text: a document that is cut has none.
    fs::write(path.join("cut.txt"), "In the beginning").unwrap();
    let configured = fs::read_to_string(path.join("run/config.toml")).unwrap();
    fs::write(path.join("run/config.toml"), configured.replace("rows = \"packed\"", "rows = \"document\"")).unwrap();
    for (model, out) in [("run", "a"), ("hf", "b")] {
        let arguments =
            ["depth", model, "--text", "cut.txt", "--context", "16", "--tokens", "16", "--tokenizer", "bytes"];
        PROGRAM.succeeds(path, &[&arguments[..], &["--out", out]].concat());
    }
    let of = |out: &str| report(&path.join(out))["groups"][0]["models"][0].clone();
    assert_eq!(of("a")["blocks"], of("b")["blocks"]);
    assert_eq!((&of("a")["loss"], of("a")["places"].as_u64()), (&of("b")["loss"], Some(15)));
}

#[test]
fn a_comparison_gives_its_arms_in_one_report() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let compare =
        ["--preset", "smoke", "--steps", "4", "--arms", "cascade,ancre", "--seeds", "2", "--tokenizer", "bpe:300"];
    PROGRAM.succeeds(path, &[&compare[..], &["--out", "c"]].concat());
    let text = PROGRAM.succeeds(path, &["depth", "c", "--tokens", "256"]);
    assert!(text.contains("cascade: 2 seeds") && text.contains("ancre: 2 seeds") && text.contains('±'), "{text}");
    let report = report(&path.join("runs/depth-1"));
    let names: Vec<_> =
        report["groups"].as_array().unwrap().iter().map(|group| group["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["cascade", "ancre"]);
    assert_eq!(report["groups"][1]["models"][1]["path"], "c/arms/ancre-seed1");
    // Single runs beside it, and the same numbers in every process.
    let again = ["depth", "c/arms/cascade-seed0", "c/arms/ancre-seed0", "--tokens", "256", "--out", "again"];
    PROGRAM.succeeds(path, &again);
    let single = self::report(&path.join("again"));
    for group in 0..2 {
        assert_eq!(single["groups"][group]["models"][0], report["groups"][group]["models"][0]);
    }
    assert_eq!(single["groups"][0]["name"], "cascade-seed0");
}

/// A folder with the tokenizer of a run: ids of any `tokenizer.json`.
#[test]
fn a_folder_takes_its_own_tokenizer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    with_run_and_folder(path);
    let train = ["train", "--preset", "smoke", "--steps", "2", "--tokenizer", "bpe:257", "--out", "bpe"];
    PROGRAM.succeeds(path, &train);
    fs::copy(path.join("bpe/tokenizer.json"), path.join("hf/tokenizer.json")).unwrap();
    let text = PROGRAM.succeeds(path, &["depth", "hf", "--tokens", "64", "--context", "32"]);
    assert!(text.contains("hf: Hugging Face folder"), "{text}");
}

/// What later LLaMA models have can be trained, too.
#[test]
fn a_run_with_grouped_keys_and_a_tied_head_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let variant = ["key_value_heads=1", "head_size=8", "tied_head=true"].map(|set| format!("model.variant.{set}"));
    let mut arguments = ["train", "--preset", "smoke", "--steps", "4", "--tokenizer", "bytes", "--out", "run"].to_vec();
    variant.iter().for_each(|set| arguments.extend(["--set", set.as_str()]));
    PROGRAM.succeeds(path, &arguments);
    PROGRAM.succeeds(path, &["depth", "run", "--tokens", "96", "--out", "d"]);
    let measured = &report(&path.join("d"))["groups"][0]["models"][0];
    assert_eq!(measured["places"], 96);
    // The same weights under the authors' names: no head, and narrower keys than queries.
    PROGRAM.succeeds(path, &["export", "run", "--to", "w.safetensors"]);
    let bytes = fs::read(path.join("w.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let shape =
        |part: &str| tensors.tensor(&format!("model.layers.0.self_attn.{part}.weight")).unwrap().shape().to_vec();
    assert_eq!((shape("q_proj"), shape("k_proj")), (vec![16, 32], vec![8, 32]));
    assert!(tensors.tensor("lm_head.weight").is_err());
}

#[test]
fn what_cannot_be_measured_is_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    with_run_and_folder(path);
    let good = config(path);
    let depth = ["depth", "hf", "--tokens", "64", "--context", "32", "--tokenizer", "bytes", "--out", "report"];
    let refused = |words: &[&str]| PROGRAM.refuses(path, &depth, 1, words);

    PROGRAM.refuses(path, &["depth"], 2, &["PATH"]);
    PROGRAM.refuses(path, &["depth", "hf", "--tokens", "0"], 2, &["--tokens 0"]);
    PROGRAM.refuses(path, &["depth", "nowhere"], 1, &["nowhere", "does not exist"]);
    fs::create_dir(path.join("mine")).unwrap();
    PROGRAM.refuses(path, &["depth", "mine"], 1, &["mine", "config.json"]);
    PROGRAM.refuses(path, &["depth", "run", "--out", "mine"], 1, &["mine"]);
    PROGRAM.refuses(path, &["depth", "run", "--context", "100000"], 1, &["100000", "positions"]);
    PROGRAM.refuses(path, &["depth", "run", "--context", "0"], 1, &["--context 0"]);
    PROGRAM.refuses(path, &["depth", "run", "--text", "none.txt"], 1, &["none.txt"]);
    PROGRAM.refuses(path, &["depth", "hf"], 1, &["hf", "tokenizer.json", "--tokenizer"]);
    PROGRAM.refuses(path, &["depth", "hf", "--tokenizer", "bpe:300"], 1, &["--tokenizer"]);

    let with = |key: &str, value: Value| {
        let mut config = good.clone();
        config[key] = value;
        write_config(path, &config);
    };
    with("model_type", json!("mistral"));
    refused(&["hf/config.json", "mistral", "llama"]);
    with("attention_bias", json!(true));
    refused(&["hf/config.json", "attention_bias"]);
    with("rope_scaling", json!({ "rope_type": "yarn", "factor": 4.0 }));
    refused(&["rope_type", "yarn"]);
    with("num_hidden_layers", json!(1));
    refused(&["unexpected", "model.layers.1."]);
    with("num_hidden_layers", json!(16_000_000));
    refused(&["16000000", "256 layers"]);
    with("num_hidden_layers", json!(200));
    refused(&["missing", "input_layernorm", ", ..."]);
    with("hidden_size", json!(64));
    refused(&["another shape", "lm_head.weight"]);
    with("num_attention_heads", json!(3));
    refused(&["3 heads"]);
    with("max_position_embeddings", json!(8));
    refused(&["--context 32", "8 positions"]);
    fs::write(path.join("hf/config.json"), "{").unwrap();
    refused(&["hf/config.json", "line 1"]);
    write_config(path, &good);

    let weights = path.join("hf/model.safetensors");
    let whole = fs::read(&weights).unwrap();
    for (bytes, words) in [
        (&whole[..whole.len() - 4], &["hf/model.safetensors", "by its header", "complete"][..]),
        (&whole[..100], &["hf/model.safetensors", "header"]),
        (&whole[..5], &["hf/model.safetensors", "5 bytes"]),
        (&[], &["hf/model.safetensors", "0 bytes"]),
        (b"{\"weights\": \"none\"}", &["hf/model.safetensors", "header"]),
    ] {
        fs::write(&weights, bytes).unwrap();
        refused(words);
    }
    fs::remove_file(&weights).unwrap();
    refused(&["hf", "model.safetensors.index.json"]);
    fs::write(path.join("hf/pytorch_model.bin"), "pickle").unwrap();
    refused(&["safe_serialization"]);

    let index = |map: Value| {
        fs::write(path.join("hf/model.safetensors.index.json"), json!({ "weight_map": map }).to_string()).unwrap();
    };
    index(json!({ "model.norm.weight": "model-2.safetensors", "lm_head.weight": "model-1.safetensors" }));
    fs::write(path.join("hf/model-1.safetensors"), &whole).unwrap();
    refused(&["1 of the 2 files", "model-2.safetensors"]);
    index(json!({ "model.norm.bias": "model-1.safetensors" }));
    refused(&["model-1.safetensors", "model.norm.bias"]);
    index(json!({ "lm_head.weight": "../model-1.safetensors" }));
    refused(&["../model-1.safetensors", "no file name"]);
    index(json!({ "lm_head.weight": "model-1.safetensors" }));
    refused(&["missing", "model.norm.weight"]);
    fs::write(path.join("hf/model.safetensors.index.json"), "[]").unwrap();
    refused(&["index.json"]);
    assert!(!path.join("report").exists() && !path.join("runs").exists(), "nothing was made");
}
