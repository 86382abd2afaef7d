//! Linear networks: the data of the theory's figures.

use anyhow::Result;
use plotting::{LineChart, Scale, Series};

use super::Gallery;
use crate::logs::{Line, Log, read_lines};

pub(super) fn draw(log: &Log, gallery: &mut Gallery<'_>) -> Result<()> {
    for depth in [3, 4] {
        if let Some(lines) = lines(log, &format!("loss-{depth}-layers"))? {
            let chart = LineChart::new(format!("Linear networks of {depth} layers, by layout"))
                .subtitle("gradient flow from small weights, the same target and weights for all layouts")
                .x_label("time")
                .y_label("excess loss relative to that of zero weights")
                .y_scale(Scale::Log)
                .y_range(1e-10, 4.0)
                .with_size(900, 520);
            let caption = format!("Linear networks of {depth} layers: loss by layout");
            gallery.save(&with(chart, lines), "theory", format!("lnn-{depth}-layers"), caption)?;
        }
        if let Some(lines) = lines(log, &format!("learned-{depth}-layers"))? {
            let chart = LineChart::new(format!("What ANCRe learns in a linear network of {depth} layers"))
                .subtitle("share of each shortcut into hidden nodes along the gradient flow, tau 0.01")
                .x_label("time")
                .y_label("share")
                .y_range(-0.02, 1.02);
            let caption = format!("Linear networks of {depth} layers: learned shortcuts");
            gallery.save(&with(chart, lines), "theory", format!("lnn-{depth}-layers-learned"), caption)?;
        }
    }
    Ok(())
}

fn lines(log: &Log, name: &str) -> Result<Option<Vec<Line>>> {
    let path = log.file(&format!("figures/{name}.csv"));
    path.is_file().then(|| read_lines(&path)).transpose()
}

fn with(mut chart: LineChart, lines: Vec<Line>) -> LineChart {
    for (name, points) in lines {
        chart = chart.series(Series::line(name, points));
    }
    chart
}
