//! Exporting and listing: what these subcommands do.

use burn::backend::Flex;
use command_line::{Failure, say};
use plotting::{Align, Table};

use super::args::ExportArgs;
use crate::{presets::Preset, run, settings::Settings};

pub(super) type Outcome = Result<(), Failure>;

/// `export`.
pub fn export(args: &ExportArgs) -> Outcome {
    experiment_cli::export(&args.options, |path| {
        let (_, model, step) = run::load::<Flex>(path, args.weights, &Default::default())?;
        Ok((run::to_state_dict(&model), step))
    })
}

/// `presets`.
pub fn presets() -> Outcome {
    let columns =
        ["preset", "parameters", "blocks", "width", "heads", "patch", "batch", "steps", "lr", "memory", "for"];
    let mut table = Table::new(columns)
        .units(["", "", "", "", "", "", "", "", "", "one run", ""])
        .align(0, Align::Left)
        .align(10, Align::Left);
    for &preset in &Preset::ALL {
        let mut settings = preset.settings();
        if settings.model.size == 0 {
            // Those of the embedded digits.
            (settings.model.size, settings.model.channels, settings.model.classes) = (8, 1, 10);
        }
        let Settings { model, data, training, .. } = &settings;
        table.push([
            preset.to_string(),
            plotting::si(model.parameters() as f64),
            model.layers.to_string(),
            model.width.to_string(),
            model.heads.to_string(),
            model.patch.to_string(),
            data.batch.to_string(),
            plotting::si(training.steps as f64),
            format!("{:e}", training.lr),
            plotting::bytes(run::memory_estimate(&settings, 1).total()),
            preset.purpose().to_owned(),
        ]);
    }
    say(table.to_text());
    say("The presets dit-* need latents, and train in f32 (the paper: bf16).");
    say("All settings of a preset are in the config.toml of a run made with it; --set changes any of them.");
    Ok(())
}
