//! Environments as bytes, so that a run that was killed goes on bit for bit.

use std::collections::HashMap;

use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use crate::{AutoReset, Environments, TaskError};

/// Changes with the meaning of the tensors.
const VERSION: &str = "1";

/// The entry of the metadata that says of what it is a snapshot.
const DESCRIPTION: &str = "environments";

/// The tensors of a snapshot.
const STATES: &str = "world";
const FIRSTS: &str = "first_starts";
const CLOCKS: &str = "clocks";
const TRAJECTORIES: &str = "trajectories";
const RANDOM: &str = "random_positions";

impl Environments {
    /// Everything that the future depends on, in the safetensors format; [`restore`](Self::restore) goes on from it.
    ///
    /// # Errors
    /// [`TaskError::Snapshot`] if the format cannot hold it.
    pub fn snapshot(&self) -> Result<Vec<u8>, TaskError> {
        let (count, states) = (self.count(), self.world.snapshot());
        // A position has 128 bits; they are written as two numbers of 64.
        let positions: Vec<u64> = self.random.iter().map(crate::Random::position).flat_map(halves).collect();
        let tensors = [
            (STATES, Dtype::F64, vec![states.len()], bytes(&states, f64::to_le_bytes)),
            (FIRSTS, Dtype::F64, vec![count, self.world.start_len()], bytes(&self.firsts, f64::to_le_bytes)),
            (CLOCKS, Dtype::U32, vec![count], bytes(&self.clocks, u32::to_le_bytes)),
            (TRAJECTORIES, Dtype::U32, vec![count], bytes(&self.trajectories, u32::to_le_bytes)),
            (RANDOM, Dtype::U64, vec![count, 2], bytes(&positions, u64::to_le_bytes)),
        ];
        let description: Vec<String> =
            self.description().into_iter().map(|(key, value)| format!("{key}: {value}")).collect();
        // One entry, because the format writes several in an order that changes from call to call.
        let metadata = HashMap::from([(DESCRIPTION.to_owned(), description.join("\n"))]);
        let views: Result<Vec<_>, _> = tensors
            .iter()
            .map(|(name, dtype, shape, data)| Ok((*name, TensorView::new(*dtype, shape.clone(), data)?)))
            .collect();
        views
            .and_then(|views| safetensors::serialize(views, Some(metadata)))
            .map_err(|error| TaskError::Snapshot { message: error.to_string() })
    }

    /// Brings these environments, which must be of the same task and options, to the state of a snapshot.
    ///
    /// # Errors
    /// [`TaskError::Snapshot`] where the bytes are no snapshot, or one of other environments; nothing has changed then.
    pub fn restore(&mut self, snapshot: &[u8]) -> Result<(), TaskError> {
        let wrong = |message: String| TaskError::Snapshot { message };
        let damaged = |error| wrong(format!("it is damaged: {error}"));
        let (_, header) = SafeTensors::read_metadata(snapshot).map_err(damaged)?;
        let file = SafeTensors::deserialize(snapshot).map_err(damaged)?;
        let metadata = header.metadata().as_ref().and_then(|metadata| metadata.get(DESCRIPTION));
        let found: Vec<_> =
            metadata.iter().flat_map(|text| text.lines()).filter_map(|line| line.split_once(": ")).collect();
        for (key, expected) in self.description() {
            match found.iter().find(|(found, _)| *found == key).map(|(_, value)| value) {
                Some(value) if *value == expected => {}
                Some(value) => {
                    return Err(wrong(format!(
                        "its {key} is {value}, and here it is {expected}: give the same settings"
                    )));
                }
                None => return Err(wrong(format!("it does not state its {key}"))),
            }
        }
        let count = self.count();
        let states = numbers(&file, STATES, Dtype::F64, self.world.snapshot().len(), f64::from_le_bytes)?;
        let firsts = numbers(&file, FIRSTS, Dtype::F64, count * self.world.start_len(), f64::from_le_bytes)?;
        let clocks = numbers(&file, CLOCKS, Dtype::U32, count, u32::from_le_bytes)?;
        let trajectories = numbers(&file, TRAJECTORIES, Dtype::U32, count, u32::from_le_bytes)?;
        let positions = numbers(&file, RANDOM, Dtype::U64, count * 2, u64::from_le_bytes)?;
        if let Some(environment) = clocks.iter().position(|clock| *clock >= self.options.episode_steps) {
            return Err(wrong(format!("`{CLOCKS}`: environment {environment} is beyond the end of its episode")));
        }
        if let Some(place) = firsts.iter().position(|value| !value.is_finite()) {
            return Err(wrong(format!("its tensor `{FIRSTS}` is not finite at {place}")));
        }
        self.world.restore(&states)?;
        (self.firsts, self.clocks, self.trajectories) = (firsts, clocks, trajectories);
        for (random, [low, high]) in self.random.iter_mut().zip(positions.as_chunks::<2>().0) {
            random.seek(u128::from(*low) | u128::from(*high) << 64);
        }
        self.world.observe(&mut self.observations);
        Ok(())
    }

    /// What must be the same for a snapshot to fit.
    fn description(&self) -> Vec<(&'static str, String)> {
        let (spec, options) = (self.task.spec(), &self.options);
        let auto_reset = match options.auto_reset {
            AutoReset::First => "first",
            AutoReset::Fresh => "fresh",
        };
        vec![
            ("format version", VERSION.to_owned()),
            ("task", spec.name.clone()),
            ("variant", format!("{:?}", spec.variant)),
            ("number of environments", options.environments.to_string()),
            ("seed", options.seed.to_string()),
            ("episode length", options.episode_steps.to_string()),
            ("start after an episode", auto_reset.to_owned()),
            ("number of steps for a goal", options.goal_every.map_or("all".to_owned(), |steps| steps.to_string())),
        ]
    }
}

fn halves(position: u128) -> [u64; 2] {
    [position as u64, (position >> 64) as u64]
}

fn bytes<T: Copy, const N: usize>(values: &[T], write: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|&value| write(value)).collect()
}

fn numbers<T, const N: usize>(
    file: &SafeTensors<'_>,
    name: &str,
    dtype: Dtype,
    count: usize,
    read: impl Fn([u8; N]) -> T,
) -> Result<Vec<T>, TaskError> {
    let wrong = |message: String| TaskError::Snapshot { message: format!("its tensor `{name}` {message}") };
    let view = file.tensor(name).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let found: usize = view.shape().iter().product();
    if view.dtype() != dtype || found != count {
        return Err(wrong(format!("has {found} numbers of type {:?}, not {count} of type {dtype:?}", view.dtype())));
    }
    Ok(view.data().as_chunks::<N>().0.iter().map(|&chunk| read(chunk)).collect())
}
