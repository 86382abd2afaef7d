//! Which goals does a policy reach? One line a goal: episodes, share reached, mean distance at the end.
//!
//!     cargo run -p experiments-resnet --example goals -- runs/compare-cpu-1/arms/ancre-seed0

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Result;
use burn::{
    backend::{Flex, flex::FlexDevice},
    tensor::{Tensor, TensorData},
};
use command_line::{Failure, say};
use experiment_kit::report::table::numbers;
use experiments_resnet::run;
use plotting::{fixed, mean};

/// Episodes that are looked at.
const EPISODES: u64 = 200;

fn look(path: &Path) -> Result<()> {
    let device = FlexDevice;
    let (settings, agent, step) = run::load::<Flex>(path, &device)?;
    let task = settings.evaluation_task()?;
    let width = task.spec().observation_len();
    let mut goals = BTreeMap::<String, Vec<(bool, f64)>>::new();
    for seed in 0..EPISODES {
        let record = goal_tasks::record(&task, seed, None, |observations, actions| {
            let data = TensorData::new(observations.to_vec(), [observations.len() / width, width]);
            let [mean, _] = agent.actor.forward(Tensor::<Flex, 2>::from_data(data, &device));
            let values: Vec<f32> = mean.tanh().into_data().iter::<f32>().collect();
            actions.copy_from_slice(&values);
        })?;
        let distances: Vec<f64> = record.distances.iter().map(|&d| f64::from(d)).collect();
        let reached = distances.iter().any(|&d| d < record.success_within);
        let goal = record.scenes[0].goal;
        let last = distances.last().copied().unwrap_or(f64::NAN);
        goals.entry(format!("{:.1}, {:.1}", goal[0], goal[1])).or_default().push((reached, last));
    }
    let mut table = numbers(["goal", "episodes", "reached", "distance at the end"], ["m", "", "share", "m"]);
    for (goal, episodes) in goals {
        let reached: Vec<f64> = episodes.iter().map(|(reached, _)| f64::from(u8::from(*reached))).collect();
        let distances: Vec<f64> = episodes.iter().map(|(_, distance)| *distance).collect();
        table.push([goal, episodes.len().to_string(), fixed(mean(&reached), 2), fixed(mean(&distances), 2)]);
    }
    say(format!("{} after {step} steps", path.display()));
    say(table.to_text());
    Ok(())
}

fn main() -> ExitCode {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let outcome = match paths.is_empty() {
        true => Err(Failure::Usage(anyhow::anyhow!("give the directories of runs"))),
        false => paths.iter().try_for_each(|path| look(path)).map_err(Failure::from),
    };
    command_line::end(outcome)
}
