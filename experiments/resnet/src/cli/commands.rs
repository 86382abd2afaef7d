//! Listing: what these subcommands do.

use command_line::{Failure, say};
use goal_tasks::Variant;
use plotting::{Align, Table};

use super::args::TaskArgs;
use crate::{presets::Preset, run};

type Outcome = Result<(), Failure>;

/// `tasks`.
pub fn tasks(args: &TaskArgs) -> Outcome {
    let columns = ["task", "state", "action", "goal", "episode", "step", "success", "evaluated on"];
    let mut table = Table::new(columns)
        .units(["", "numbers", "numbers", "numbers", "steps", "s", "within m", ""])
        .align(0, Align::Left)
        .align(7, Align::Left);
    let mut missing = Vec::new();
    for name in goal_tasks::task_names(Variant::default()) {
        if args.part.as_ref().is_some_and(|part| !name.contains(part.as_str())) {
            continue;
        }
        match goal_tasks::task(&name, Variant::default()) {
            Ok(task) => {
                let spec = task.spec();
                table.push([
                    name,
                    spec.state_len.to_string(),
                    spec.action_len.to_string(),
                    spec.goal_len.to_string(),
                    spec.episode_steps.to_string(),
                    spec.step_seconds.to_string(),
                    spec.thresholds.success.to_string(),
                    spec.evaluated_on.clone(),
                ]);
            }
            Err(error) => missing.push(error.to_string()),
        }
    }
    if let (Some(part), 0, true) = (&args.part, table.len(), missing.is_empty()) {
        say(format!("no task has `{part}` in its name; without it all are listed"));
        return Ok(());
    }
    say(table.to_text());
    for reason in missing {
        say(format!("not available: {reason}"));
    }
    Ok(())
}

/// `presets`.
pub fn presets() -> Outcome {
    let columns =
        ["preset", "task", "parameters", "depth", "width", "environments", "batch", "steps", "lr", "memory", "for"];
    let mut table = Table::new(columns)
        .units(["", "", "", "layers", "", "", "", "", "", "one run", ""])
        .align(0, Align::Left)
        .align(1, Align::Left)
        .align(10, Align::Left);
    for &preset in &Preset::ALL {
        let settings = preset.settings();
        table.push([
            preset.to_string(),
            settings.task.name.clone(),
            plotting::si(experiment_kit::RunSettings::parameters(&settings) as f64),
            settings.model.depth.to_string(),
            settings.model.width.to_string(),
            settings.collection.environments.to_string(),
            settings.data.batch.to_string(),
            plotting::si(settings.training.steps as f64),
            format!("{:e}", settings.training.lr),
            plotting::bytes(run::memory_estimate(&settings, 1).total()),
            preset.purpose().to_owned(),
        ]);
    }
    say(table.to_text());
    say("All settings of a preset are in the config.toml of a run made with it; --set changes any of them.");
    Ok(())
}
