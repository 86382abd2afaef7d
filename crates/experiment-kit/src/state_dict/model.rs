//! Models from state dicts, and back.

use std::{collections::BTreeMap, path::Path};

use ancre::{Arm, Connections};
use anyhow::{Context, Result};
use burn::tensor::{TensorData, backend::Backend};
use training::parameters::{self, NamedTensor, ParameterError};

use super::{Naming, StateDict, StateDictError, StoredTensor, read};
use crate::{CONNECTIONS, Connected};

const TAU: &str = "softmax_temp";
/// What the names of parameters begin with that the authors' connections do not have: another paper's, and a gate's.
const NOT_THEIRS: [&str; 2] = ["rival.", "gate."];
const VECTORS: &str = "shortcut_params";
/// Free scalars are no logits, so they have a name of their own, which the authors' code does not know.
const SCALARS: &str = "scalars";

/// What loading found besides the weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadReport {
    /// Buffers in the file that this model computes itself (rotary frequencies, tables of positions).
    pub recomputed: Vec<String>,
    /// The file's connections, where the arm of the model has none and they are left out.
    pub unused_connections: Vec<String>,
    /// Whether the file lacks the connections' parameters; they keep their initial values.
    pub fresh_connections: bool,
    /// A stored temperature that replaced the configured one: (configured, stored).
    pub tau: Option<(f64, f64)>,
}

impl LoadReport {
    /// What loading found, as sentences; `buffers` is what the recomputed ones are called.
    pub fn notes(&self, file: &Path, buffers: &str) -> Vec<String> {
        let file = file.display();
        let mut notes = Vec::new();
        if let Some((configured, stored)) = self.tau {
            notes.push(format!("{file} stores tau = {stored}, which replaces the configured {configured}"));
        }
        if self.fresh_connections {
            notes.push(format!("{file} has no connections: those of this run start afresh"));
        }
        if !self.unused_connections.is_empty() {
            notes.push(format!(
                "{file} has connections that this arm does not use: {}",
                self.unused_connections.join(", ")
            ));
        }
        if !self.recomputed.is_empty() {
            notes.push(format!("{file}: {} {buffers} are computed anew", self.recomputed.len()));
        }
        notes
    }
}

/// The model with the weights of a file, and what the user should know of them; see [`into_model`].
///
/// # Errors
/// As [`read`] and [`into_model`]; the message names the file.
pub fn load<B: Backend, M: Connected<B>>(model: M, file: &Path, naming: &impl Naming) -> Result<(M, Vec<String>)> {
    let stored = read(file)?;
    let (model, report) =
        into_model(model, &stored, naming).with_context(|| format!("{} does not fit", file.display()))?;
    let mut notes = vec![format!("initial weights: {} ({} tensors)", file.display(), stored.len())];
    notes.extend(report.notes(file, naming.buffers()));
    Ok((model, notes))
}

/// The model's weights and connections under the authors' names. Buffers that [`Naming::module_name`] leaves out are not
/// among them.
pub fn from_model<B: Backend, M: Connected<B>>(model: &M, naming: &impl Naming) -> StateDict {
    let weights = parameters::export::<B, _>(model).into_iter().filter(|t| !t.name.starts_with(CONNECTIONS));
    let mut tensors = to_stored(weights, naming);
    let prefix = naming.connections_prefix();
    tensors.extend(connection_tensors(model.connections(), prefix));
    // Parameters that the authors do not have keep the names and shapes that they have here.
    for NamedTensor { name, data } in parameters::export::<B, _>(model) {
        if let Some(own) = name.strip_prefix(CONNECTIONS).filter(|own| is_not_theirs(own)) {
            let tensor = StoredTensor { shape: data.shape.to_vec(), values: data.iter::<f32>().collect() };
            tensors.insert(format!("{prefix}{own}"), tensor);
        }
    }
    tensors
}

/// The connections as the authors store them; nothing for those that have no parameters to the authors, but for the temperature of
/// those that have one.
fn connection_tensors<B: Backend>(connections: &Connections<B>, prefix: &str) -> StateDict {
    let mut tensors = StateDict::new();
    // Fixed layouts have coefficients of 1 that are no parameters to the authors.
    if is_stored(connections.arm()) {
        let single = *connections.arm() == Arm::NaiveScalars;
        let base = vectors_name(connections.arm());
        for (i, values) in connections.to_vectors().into_iter().enumerate() {
            let name = if single { format!("{prefix}{base}") } else { format!("{prefix}{base}.{i}") };
            tensors.insert(name, StoredTensor { shape: vec![values.len()], values });
        }
    }
    if stores_tau(connections.arm()) {
        let tau = StoredTensor { shape: vec![], values: vec![connections.tau() as f32] };
        tensors.insert(format!("{prefix}{TAU}"), tau);
    }
    tensors
}

/// Tensors of a module (weights, gradients, moments or averages of its parameters, but for the connections') under the
/// stored names and in their arrangement.
pub fn to_stored(tensors: impl IntoIterator<Item = NamedTensor>, naming: &impl Naming) -> StateDict {
    tensors
        .into_iter()
        .map(|NamedTensor { name, data }| {
            let tensor = StoredTensor { shape: data.shape.to_vec(), values: data.iter::<f32>().collect() };
            (naming.stored_name(&name), naming.to_file(&name, &tensor))
        })
        .collect()
}

/// The model with the weights of a state dict. A stored temperature wins over the configured one, and connections that
/// the file lacks keep their initial values; the [`LoadReport`] says so.
///
/// # Errors
/// If weights are missing, unexpected or of another shape (all are listed), or the connections do not fit the arm.
pub fn into_model<B: Backend, M: Connected<B>>(
    model: M,
    stored: &StateDict,
    naming: &impl Naming,
) -> Result<(M, LoadReport), StateDictError> {
    let mut report = LoadReport::default();
    let arm = model.connections().arm().clone();
    let (prefix, base) = (naming.connections_prefix(), vectors_name(&arm));
    let (mut weights, mut vectors, mut tau, mut others) = (Vec::new(), BTreeMap::new(), None, Vec::new());
    for (stored_name, tensor) in stored {
        let own = stored_name.strip_prefix(prefix);
        if let Some(own) = own.filter(|own| is_not_theirs(own)) {
            let data = TensorData::new(tensor.values.clone(), tensor.shape.clone());
            others.push((stored_name.clone(), NamedTensor { name: format!("{CONNECTIONS}{own}"), data }));
        } else if own == Some(TAU) {
            tau = tensor.values.first().copied();
        } else if own.is_some_and(|own| own.starts_with(VECTORS) || own.starts_with(SCALARS))
            && !own.is_some_and(|own| own.starts_with(base))
        {
            // Logits are no weights, and weights no logits: the connections of another kind of arm are left out.
            report.unused_connections.push(stored_name.clone());
        } else if let Some(rest) = own.and_then(|own| own.strip_prefix(base)) {
            let index = rest.strip_prefix('.').and_then(|i| i.parse::<usize>().ok()).unwrap_or(0);
            vectors.insert(index, (stored_name.clone(), tensor.values.clone()));
        } else if let Some(name) = naming.module_name(stored_name) {
            let StoredTensor { shape, values } = naming.to_module(&name, tensor);
            weights.push(NamedTensor { name, data: TensorData::new(values, shape) });
        } else {
            report.recomputed.push(stored_name.clone());
        }
    }
    // The connections are handled apart: here their present values stand in.
    let present = parameters::export::<B, _>(&model).into_iter().filter(|t| t.name.starts_with(CONNECTIONS));
    if arm.acts_on_features() && !others.is_empty() {
        weights.extend(others.into_iter().map(|(_, tensor)| tensor));
    } else {
        report.fresh_connections = arm.acts_on_features() && arm.is_learned();
        report.unused_connections.extend(others.into_iter().map(|(name, _)| name));
        weights.extend(present);
    }
    let model: M = parameters::import::<B, M>(model, weights).map_err(|error| with_stored_names(error, naming))?;

    let mut connections = model.connections().clone();
    if let Some(tau) = tau.filter(|_| stores_tau(&arm)) {
        // Stored as f32: 0.01 comes back as 0.01, not as 0.009999999776.
        let stored: f64 = tau.to_string().parse().unwrap_or(f64::from(tau));
        if stored != connections.tau() {
            report.tau = Some((connections.tau(), stored));
            connections.set_tau(stored)?;
        }
    }
    if !is_stored(&arm) {
        report.unused_connections.extend(vectors.into_values().map(|(name, _)| name));
    } else if vectors.is_empty() {
        report.fresh_connections = true;
    } else {
        let vectors: Vec<Vec<f32>> = vectors.into_values().map(|(_, values)| values).collect();
        connections = connections.with_vectors(&vectors)?;
    }
    Ok((model.with_connections(connections), report))
}

fn is_not_theirs(own: &str) -> bool {
    NOT_THEIRS.iter().any(|prefix| own.starts_with(prefix))
}

/// Whether the connections of an arm are parameters to the authors.
fn is_stored(arm: &Arm) -> bool {
    !matches!(arm, Arm::Cascade | Arm::Fixed(_)) && !arm.acts_on_features()
}

/// Whether a temperature is stored beside the connections: the authors do for all of theirs.
fn stores_tau(arm: &Arm) -> bool {
    is_stored(arm) || arm.uses_tau()
}

/// What the vectors of an arm are stored as.
fn vectors_name(arm: &Arm) -> &'static str {
    if matches!(arm, Arm::Scalars | Arm::ZeroScalars) { SCALARS } else { VECTORS }
}

/// The error in the file's own names.
fn with_stored_names(mut error: ParameterError, naming: &impl Naming) -> ParameterError {
    for entries in [&mut error.missing, &mut error.unexpected, &mut error.mismatched] {
        for entry in entries {
            // After a name may stand what is wrong with it.
            let end = entry.find(' ').unwrap_or(entry.len());
            let (name, rest) = entry.split_at(end);
            *entry = naming.stored_name(name) + rest;
        }
    }
    error
}
