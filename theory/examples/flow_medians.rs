//! The median times of section 4 of `docs/theory.md`, over as many targets as asked for.
//!
//! `cargo run --release -p theory --example flow_medians -- 10001 2001`: the number of targets at depth 3 and at depth
//! 4, 401 each if none is given. Prints, for each layout, depth and width, the median time of gradient flow to a
//! relative loss of 1e-6, the interval that covers the median of the law with 99.9% confidence, and the interval in
//! which the median of 401 targets lies with that probability. "inf" stands for flows that did not get there by time
//! 600.

use anyhow::{Context, Result};
use connection_layout::Layout;
use plotting::{Align, Table};
use theory::ranking::medians::{COLUMNS, MEDIAN_TIME, MEDIANS, WIDE_TARGETS, flow_times, interval};
use theory::ranking::{RankingSettings, Spread};

fn main() -> Result<()> {
    let counts: Vec<u64> = std::env::args()
        .skip(1)
        .map(|text| text.parse().with_context(|| format!("give numbers of targets, not {text:?}")))
        .collect::<Result<_>>()?;
    let shallow = counts.first().copied().unwrap_or(WIDE_TARGETS);
    let deep = counts.get(1).copied().unwrap_or(shallow);
    let mut table =
        Table::new(["layout", "K", "d", "targets", "median", "99.9%", "median of 401"]).align(0, Align::Left);
    for row in MEDIANS {
        for (depth, width) in COLUMNS {
            let instances = if depth == 3 { shallow } else { deep };
            let settings =
                RankingSettings { instances, flow_time: MEDIAN_TIME, ..RankingSettings::new(depth, width, 0) };
            let times = flow_times(&settings, &Layout::parse(row.layout, depth)?)?;
            let median = Spread::of(times.iter().copied()).context("no targets")?.median;
            let range =
                |count| interval(&times, count).map_or(String::new(), |(low, high)| format!("{low:.2} to {high:.2}"));
            table.push([
                row.layout.to_owned(),
                depth.to_string(),
                width.to_string(),
                instances.to_string(),
                format!("{median:.3}"),
                range(instances),
                range(WIDE_TARGETS),
            ]);
        }
    }
    print!("{}", table.to_text());
    Ok(())
}
