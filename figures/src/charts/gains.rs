//! What connections gain at each size: the paper's models and ours.

use std::path::Path;

use anyhow::Result;
use plotting::{BarChart, Bars};
use statistics::{mean, sample_sd};

use super::Gallery;
use crate::{
    logs::Log,
    paper::{Better, Paper, PaperTable},
};

/// A bar chart for every table whose columns are sizes of one metric.
pub(super) fn draw(paper: &Paper, logs: &Path, gallery: &mut Gallery<'_>) -> Result<()> {
    for table in paper.tables.iter().filter(|table| table.id == "c4") {
        let (chart, ours) = chart(&paper.paper, table, logs)?;
        let caption = match ours {
            true => "Reduction of the perplexity by ANCRe: the paper's models, and ours, which is smaller and has other tokens, in the last group"
                .to_owned(),
            false => "Reduction of the perplexity by ANCRe in the paper; ours was not run".to_owned(),
        };
        let known = gallery.warnings.len();
        gallery.save(&chart, "c4", "c4-gain".to_owned(), caption)?;
        // Places that stay free are what was not run, and the page says so.
        gallery.warnings.truncate(known);
    }
    Ok(())
}

fn chart(paper: &str, table: &PaperTable, logs: &Path) -> Result<(BarChart, bool)> {
    let mut groups: Vec<String> = table.columns.iter().map(|column| format!("{} (paper)", column.name)).collect();
    groups.push("ours".to_owned());
    let mut chart = BarChart::new("How much lower ANCRe brings the perplexity")
        .subtitle(format!("{paper}, and ours of the committed logs: mean over seeds, bar: one standard deviation"))
        .y_label("reduction, per cent")
        .print_values(1)
        .with_size(840, 420)
        .groups(groups);
    let mut any = false;
    for (index, row) in table.rows.iter().filter(|row| row.against.is_some()).enumerate() {
        let Some(baseline) = table.rows.iter().find(|other| Some(&other.name) == row.against.as_ref()) else {
            continue;
        };
        let mut values: Vec<f64> =
            row.values.iter().zip(&baseline.values).map(|(value, base)| reduction(*value, *base)).collect();
        let mut errors = vec![0.0; values.len()];
        let ours = ours(table, row, baseline, logs)?;
        any |= !ours.is_empty();
        values.push(mean(&ours));
        errors.push(sample_sd(&ours));
        chart = chart.bars(Bars::new(row.name.clone(), values).errors(errors).arm(index + 1));
    }
    Ok((chart, any))
}

/// Ours, a number a seed.
fn ours(table: &PaperTable, row: &crate::paper::Row, baseline: &crate::paper::Row, logs: &Path) -> Result<Vec<f64>> {
    let metric = table.columns.iter().find(|column| column.better == Better::Lower).and_then(|c| c.metric.as_ref());
    let (Some(log), Some(arm), Some(other), Some(metric)) = (&row.log, &row.arm, &baseline.arm, metric) else {
        return Ok(Vec::new());
    };
    let Some(report) = Log::find(logs, log)?.map(|log| log.report()).transpose()?.flatten() else {
        return Ok(Vec::new());
    };
    let (values, base) = report.pairs(arm, other, metric);
    Ok(values.iter().zip(&base).map(|(value, base)| reduction(*value, *base)).filter(|r| r.is_finite()).collect())
}

fn reduction(value: f64, baseline: f64) -> f64 {
    100.0 * (1.0 - value / baseline)
}
