//! What was measured, as tables, `report.json` and figures.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use experiment_kit::report::{self as kit_report, Drawn, Written, table::numbers};
use plotting::{LineChart, Scale, Series, Spread, Table, fixed, mean, mean_sd, percent, sample_sd, signed};
use serde::Serialize;

use super::{measure::Change, targets::Measured};

/// The models of one line, measured.
#[derive(Clone, Debug, Serialize)]
pub struct MeasuredGroup {
    /// What they are called.
    pub name: String,
    /// One model, or the seeds of an arm.
    pub models: Vec<Measured>,
}

impl MeasuredGroup {
    fn depth(&self) -> usize {
        self.models.first().map_or(0, |model| model.utilisation.blocks.len())
    }

    /// A number of a block (from 0) for each model.
    fn values(&self, block: usize, value: impl Fn(&Change) -> f64) -> Vec<f64> {
        self.models.iter().filter_map(|model| model.utilisation.blocks.get(block)).map(value).collect()
    }

    fn losses(&self) -> Vec<f64> {
        self.models.iter().map(|model| model.utilisation.loss).collect()
    }

    /// Median change of the hidden state in the first and the second half of the blocks, for each model; the middle one of
    /// an odd number belongs to neither.
    fn halves(&self) -> [Vec<f64>; 2] {
        let half = self.depth() / 2;
        let of = |blocks: &[Change]| statistics::median(&blocks.iter().map(|change| change.hidden).collect::<Vec<_>>());
        let blocks = self.models.iter().map(|model| model.utilisation.blocks.as_slice());
        let halves = blocks.map(|blocks| (of(&blocks[..half]), of(&blocks[blocks.len() - half..])));
        let (early, late) = halves.unzip();
        [early, late]
    }
}

/// Makes the directory, which must not exist, with `report.md`, `report.json` and the figures.
///
/// # Errors
/// If it exists or a file cannot be written.
pub fn write(directory: &Path, groups: &[MeasuredGroup]) -> Result<Written> {
    let cannot = || format!("cannot make {}", directory.display());
    if let Some(parent) = directory.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).with_context(cannot)?;
    }
    fs::create_dir(directory).with_context(cannot)?;
    // Tables are written even where a figure cannot be.
    let drawn = draw(groups, &directory.join("figures"));
    let drawn = drawn.unwrap_or_else(|error| Drawn {
        paths: Vec::new(),
        warnings: vec![format!("a figure could not be drawn: {error:#}")],
    });
    kit_report::write(directory, &markdown(groups, &drawn), &Report { format: 1, groups })?;
    Ok(Written { text: text(groups), warnings: drawn.warnings, figures: drawn.paths })
}

/// `report.json`.
#[derive(Serialize)]
struct Report<'a> {
    /// Grows when a field changes its meaning.
    format: u32,
    groups: &'a [MeasuredGroup],
}

const NOTES: [&str; 2] = [
    "A block that is left out passes its input on; connections after it stay. Means over places; hidden state: |h' - h| / |h| of the \
     last one, after the final normalisation, and the cosine between both; divergence: Kullback-Leibler, of the next token's \
     distribution from the whole model's; top token: share of places where another one is the likeliest.",
    "Halves: median over the blocks of the first half, and of the second, of the change of the hidden state.",
];

fn tables(groups: &[MeasuredGroup]) -> Vec<(String, Table)> {
    let mut tables: Vec<(String, Table)> = groups.iter().map(|group| (title(group), blocks(group))).collect();
    tables.push(("Early and late blocks".to_owned(), halves(groups)));
    tables
}

fn title(group: &MeasuredGroup) -> String {
    match group.models.as_slice() {
        [one] => format!(
            "{}: {}, {} tokens of {} a row, loss {} nats/token",
            group.name,
            one.what,
            one.utilisation.places,
            one.context,
            fixed(one.utilisation.loss, 3)
        ),
        several => format!(
            "{}: {} seeds, mean ± standard deviation, loss {} nats/token",
            group.name,
            several.len(),
            mean_sd(&group.losses(), 3)
        ),
    }
}

fn blocks(group: &MeasuredGroup) -> Table {
    let mut table = numbers(
        ["block left out", "hidden state", "cosine", "divergence", "top token", "loss"],
        ["", "relative change", "", "nats", "changed", "change, nats/token"],
    );
    for block in 0..group.depth() {
        let cell = |decimals, value: fn(&Change) -> f64| summary(&group.values(block, value), decimals);
        let top1 = group.values(block, |change| change.top1_changed);
        let loss = group.values(block, |change| change.loss);
        table.push([
            (block + 1).to_string(),
            cell(3, |change| change.hidden),
            cell(3, |change| change.cosine),
            cell(3, |change| change.divergence),
            match top1.as_slice() {
                [one] => percent(*one, 1),
                several => format!("{} ± {}", percent(mean(several), 1), percent(sample_sd(several), 1)),
            },
            match loss.as_slice() {
                [one] => signed(*one, 3),
                several => format!("{} ± {}", signed(mean(several), 3), fixed(sample_sd(several), 3)),
            },
        ]);
    }
    table
}

/// A value, or the mean of several with their standard deviation.
fn summary(values: &[f64], decimals: usize) -> String {
    kit_report::table::summary(values, decimals)
}

fn halves(groups: &[MeasuredGroup]) -> Table {
    let mut table = numbers(
        ["model", "blocks", "loss", "first half", "second half", "second / first"],
        ["", "", "nats/token", "relative change", "relative change", "ratio"],
    );
    for group in groups {
        let [early, late] = group.halves();
        let ratio: Vec<f64> = early.iter().zip(&late).map(|(early, late)| late / early).collect();
        table.push([
            group.name.clone(),
            group.depth().to_string(),
            summary(&group.losses(), 3),
            summary(&early, 3),
            summary(&late, 3),
            summary(&ratio, 2),
        ]);
    }
    table
}

fn text(groups: &[MeasuredGroup]) -> String {
    let mut text = String::new();
    for (title, table) in tables(groups) {
        text += &format!("{title}\n{}\n", table.to_text());
    }
    text + &NOTES.join("\n") + "\n"
}

fn markdown(groups: &[MeasuredGroup], drawn: &Drawn) -> String {
    let mut text = "# Depth utilisation\n".to_owned();
    for (title, table) in tables(groups) {
        text += &format!("\n## {title}\n\n{}", table.to_markdown());
    }
    for note in NOTES {
        text += &format!("\n{note}\n");
    }
    text + &drawn.markdown()
}

fn draw(groups: &[MeasuredGroup], folder: &Path) -> Result<Drawn> {
    let mut drawn = Drawn::default();
    let hidden = "Change of the last hidden state when a block is left out";
    drawn.save(&chart(groups, hidden, "relative change, log scale", |change| change.hidden), folder, "hidden-state")?;
    let divergence = "Change of the next token's distribution when a block is left out";
    drawn.save(&chart(groups, divergence, "nats, log scale", |change| change.divergence), folder, "divergence")?;
    Ok(drawn)
}

fn chart(groups: &[MeasuredGroup], title: &str, label: &str, value: fn(&Change) -> f64) -> LineChart {
    // Models of several depths are shown side by side by the share of their depth.
    let depths: Vec<usize> = groups.iter().map(MeasuredGroup::depth).collect();
    let same_depth = depths.windows(2).all(|pair| pair[0] == pair[1]);
    let mut chart = LineChart::new(title).subtitle(subtitle(groups)).y_label(label).y_scale(Scale::Log);
    chart = match same_depth {
        true => chart.x_label("block left out").x_whole(),
        false => chart.x_label("block left out, as a share of the depth"),
    };
    for (i, group) in groups.iter().enumerate() {
        let depth = group.depth();
        let unit = if same_depth { 1.0 } else { depth as f64 };
        let x: Vec<f64> = (1..=depth).map(|block| block as f64 / unit).collect();
        let of_model = |model: &Measured| model.utilisation.blocks.iter().map(value).collect::<Vec<f64>>();
        let models: Vec<Vec<f64>> = group.models.iter().map(of_model).collect();
        chart = chart.series(Series::mean_of_runs(&group.name, &x, &models, Spread::MinMax).arm(i));
    }
    chart
}

fn subtitle(groups: &[MeasuredGroup]) -> String {
    let places: Vec<u64> =
        groups.iter().flat_map(|group| &group.models).map(|model| model.utilisation.places).collect();
    let seeds = groups.iter().map(|group| group.models.len()).max().unwrap_or(1);
    let (least, most) = (places.iter().min().copied().unwrap_or(0), places.iter().max().copied().unwrap_or(0));
    let tokens = if least == most { format!("{least} tokens") } else { format!("{least} to {most} tokens") };
    match seeds {
        1 => tokens,
        n => format!("{tokens}; mean of {n} seeds, band: from the lowest to the highest"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::depth::measure::Utilisation;

    fn model(hidden: &[f64]) -> Measured {
        let block =
            |&hidden: &f64| Change { hidden, cosine: 0.9, divergence: hidden / 2.0, top1_changed: 0.25, loss: 0.5 };
        let utilisation = Utilisation { places: 100, loss: 2.0, blocks: hidden.iter().map(block).collect() };
        let (path, what, text) = (PathBuf::from("m"), "a run".to_owned(), "text".to_owned());
        Measured { path, what, parameters: 7, text, context: 64, utilisation }
    }

    #[test]
    fn halves_are_medians_of_their_blocks() {
        let group = |models: &[&[f64]]| MeasuredGroup {
            name: "a".into(),
            models: models.iter().map(|hidden| model(hidden)).collect(),
        };
        assert_eq!(group(&[&[9.0, 2.0, 3.0, 0.5, 0.25, 0.75]]).halves(), [vec![3.0], vec![0.5]]);
        assert_eq!(group(&[&[4.0, 2.0, 100.0, 1.0, 0.5]]).halves(), [vec![3.0], vec![0.75]]);
        let table = halves(&[group(&[&[4.0, 2.0], &[2.0, 2.0]])]).to_text();
        assert!(table.contains("3.000 ± 1.414") && table.contains("0.75 ± 0.35"), "{table}");
        // One block has no halves.
        assert!(halves(&[group(&[&[1.0]])]).to_text().contains('a'));
    }

    #[test]
    fn a_report_is_written_whole_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/depth");
        let groups = [
            MeasuredGroup { name: "cascade".into(), models: vec![model(&[2.0, 1.0, 0.5]), model(&[2.5, 1.0, 0.4])] },
            MeasuredGroup { name: "ancre".into(), models: vec![model(&[1.0, 1.5])] },
        ];
        let written = write(&path, &groups).unwrap();
        assert_eq!(written.figures.len(), 4);
        assert!(written.text.contains("cascade: 2 seeds") && written.text.contains("25.0%"), "{}", written.text);
        let json: serde_json::Value = serde_json::from_slice(&fs::read(path.join("report.json")).unwrap()).unwrap();
        assert_eq!(json["groups"][0]["models"][1]["blocks"][2]["hidden"], 0.4);
        assert!(fs::read_to_string(path.join("report.md")).unwrap().contains("figures/hidden-state.png"));
        assert!(write(&path, &groups).unwrap_err().to_string().contains("cannot make"));
    }
}
