//! Weights go into files and come back, arranged as the program says, with their connections.

use experiment_kit::{
    Connected,
    state_dict::{self, StateDict, StoredTensor, from_model, into_model, load},
};
use training::parameters;

use crate::toy::{B, Patches, Settings, Toy};

fn model(arm: &str, seed: u64, tau: f64) -> Toy<B> {
    Toy::new(&Settings { arm: arm.parse().unwrap(), seed, tau, ..Settings::new() }, &Default::default())
}

/// The stored weights of a model whose connections are no longer those of the start.
fn learned(arm: &str) -> (Toy<B>, StateDict) {
    let model = model(arm, 1, 0.25);
    let vectors: Vec<Vec<f32>> = model
        .connections()
        .to_vectors()
        .iter()
        .enumerate()
        .map(|(i, vector)| (0..vector.len()).map(|k| (i * 10 + k) as f32 / 8.0).collect())
        .collect();
    let connections = model.connections().clone().with_vectors(&vectors).unwrap();
    let model = model.with_connections(connections);
    let stored = from_model(&model, &Patches);
    (model, stored)
}

#[test]
fn a_file_holds_the_whole_model() {
    for (arm, vectors) in [
        ("ancre", &["ancre.shortcut_params.0", "ancre.shortcut_params.1"][..]),
        ("scalars", &["ancre.scalars.0", "ancre.scalars.1"]),
        ("naive", &["ancre.shortcut_params"]),
    ] {
        let (original, stored) = learned(arm);
        let mut names: Vec<&str> = stored.keys().map(String::as_str).collect();
        let mut expected = [vectors, &["ancre.softmax_temp", "blocks.0.proj.weight", "blocks.1.proj.weight"]].concat();
        names.sort_unstable();
        expected.sort_unstable();
        assert_eq!(names, expected, "{arm}");
        assert_eq!(stored["blocks.0.proj.weight"].shape, [4, 1, 2, 2]);

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("w.safetensors");
        let mut with_buffer = stored.clone();
        with_buffer.insert("pos_embed".to_owned(), StoredTensor { shape: vec![1], values: vec![0.5] });
        std::fs::write(&file, state_dict::to_bytes(&with_buffer).unwrap()).unwrap();
        assert_eq!(state_dict::read(&file).unwrap(), with_buffer);
        let (loaded, notes) = load(model(arm, 7, 0.5), &file, &Patches).unwrap();
        assert_eq!(parameters::export::<B, _>(&loaded), parameters::export::<B, _>(&original), "{arm}");
        assert_eq!(loaded.connections().tau(), 0.25);
        let notes = notes.join("\n");
        for words in ["stores tau = 0.25, which replaces the configured 0.5", ": 1 buffers are computed anew"] {
            assert!(notes.contains(words), "{arm}: {notes}");
        }
    }
}

#[test]
fn connections_that_do_not_go_together_are_named() {
    let (_, stored) = learned("ancre");
    let (cascade, report) = into_model(model("cascade", 7, 0.5), &stored, &Patches).unwrap();
    assert_eq!(report.unused_connections, ["ancre.shortcut_params.0", "ancre.shortcut_params.1"]);
    let plain = from_model(&cascade, &Patches);
    assert_eq!(plain.len(), 2, "a cascade has no connections to store");
    let (_, report) = into_model(model("ancre", 7, 0.5), &plain, &Patches).unwrap();
    assert!(report.fresh_connections && report.tau.is_none());
}

#[test]
fn misfits_are_listed_under_the_names_of_the_file() {
    let (_, mut stored) = learned("ancre");
    stored.remove("blocks.1.proj.weight");
    let bias = StoredTensor { shape: vec![4], values: vec![0.0; 4] };
    stored.insert("blocks.0.proj.weight".to_owned(), bias.clone());
    stored.insert("blocks.0.proj.bias".to_owned(), bias);
    let message = into_model(model("ancre", 7, 0.5), &stored, &Patches).unwrap_err().to_string();
    for words in [
        "missing (1): blocks.1.proj.weight",
        "unexpected (1): blocks.0.proj.bias",
        "blocks.0.proj.weight (model [4, 4], tensor [4])",
    ] {
        assert!(message.contains(words), "`{words}` is not in: {message}");
    }
}
