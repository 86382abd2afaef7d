//! A ranking as a table of comma-separated values.

use std::io::Write;

use super::ranked::{Entry, Ranking};

impl Ranking {
    /// Writes one row a layout, fastest class under gradient flow first, with a header.
    ///
    /// | column | meaning |
    /// |---|---|
    /// | `layout` | the notation |
    /// | `class` | number of the class in the order of flow, from 1; equal numbers are ties |
    /// | `alpha` | pure-shortcut paths to the last hidden node |
    /// | `kappa0` | eigenvalue of the tangent kernel at zero weights |
    /// | `saddle_order` | fewest weight layers from input to output; 1 is no saddle |
    /// | `alive_layers` | layers that move from zero weights, separated by spaces |
    /// | `flow_median`, `flow_min`, `flow_max` | time of gradient flow over the instances |
    /// | `steps_at_R` | for each rate R, median steps of gradient descent |
    /// | `best_rate`, `fewest_steps` | the rate of the fewest steps, empty where none reached the loss, and the steps |
    /// | `flow_rank`, `descent_rank` | one plus the number of layouts in faster classes |
    ///
    /// What did not get to the loss is `inf`.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    pub fn write_csv(&self, to: impl Write) -> Result<(), csv::Error> {
        let mut writer = csv::Writer::from_writer(to);
        let rates = &self.settings().rates;
        let start = ["layout", "class", "alpha", "kappa0", "saddle_order", "alive_layers"];
        let flow = ["flow_median", "flow_min", "flow_max"];
        let end = ["best_rate", "fewest_steps", "flow_rank", "descent_rank"];
        let steps = rates.iter().map(|rate| format!("steps_at_{rate}"));
        let header = start.into_iter().chain(flow).map(str::to_owned).chain(steps);
        writer.write_record(header.chain(end.into_iter().map(str::to_owned)))?;
        for (number, class) in self.classes().iter().enumerate() {
            for &member in &class.members {
                let entry = &self.entries()[member];
                let mut row = shape(entry, number + 1);
                row.extend([entry.summary.flow.median, entry.summary.flow.min, entry.summary.flow.max].map(time));
                row.extend(entry.summary.steps.iter().map(|steps| steps.median.to_string()));
                row.push(entry.summary.best_rate.map_or_else(String::new, |best| rates[best].to_string()));
                row.push(entry.summary.fewest_steps().to_string());
                row.extend([class.flow_rank, class.descent_rank].map(|rank| rank.to_string()));
                writer.write_record(row)?;
            }
        }
        writer.flush()?;
        Ok(())
    }
}

fn shape(entry: &Entry, class: usize) -> Vec<String> {
    let (layout, paths) = (&entry.layout, entry.layout.pure_paths());
    let alive: Vec<String> = layout.alive_layers().iter().map(usize::to_string).collect();
    vec![
        layout.to_string(),
        class.to_string(),
        paths.to_last_hidden().to_string(),
        paths.kappa0().to_string(),
        layout.saddle_order().to_string(),
        alive.join(" "),
    ]
}

/// Times are good to five digits or better.
fn time(value: f64) -> String {
    format!("{value:.5}")
}
