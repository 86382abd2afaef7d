//! The table of section 5 of `docs/theory.md`: ANCRe on linear networks, one row a variant.
//!
//! `cargo run --release -p theory --example learned_table -- 24 0`: the number of targets and the seed; 24 and 0 if
//! none is given. Variants are those of the document and more, by how much slower logits move than weights.

use std::fmt::Write;

use anyhow::{Context, Result};
use connection_layout::Direction;
use plotting::{Align, Table};
use theory::network::Scope;
use theory::ranking::Spread;
use theory::theorems::learned;

/// The smallest and the largest number, and the median.
fn range(numbers: &[f64]) -> String {
    Spread::of(numbers.iter().copied())
        .map_or_else(|| "none".to_owned(), |s| format!("{:.2} to {:.2}, {:.2}", s.min, s.max, s.median))
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| match arguments.next() {
        Some(text) => text.parse().with_context(|| format!("give the number of targets and the seed, not {text:?}")),
        None => Ok(default),
    };
    let (instances, seed) = (number(24)?, number(0)?);
    let columns =
        ["shortcuts into", "softmax", "tau", "logit speed", "K", "time to 1e-10, median", "late", "rate", "found"];
    let mut table = Table::new(columns).align(5, Align::Left).align(7, Align::Left);
    for row in learned::table(seed, instances) {
        let softmax = row.variant.softmax();
        let mut found = String::new();
        for (layout, count) in row.found() {
            write!(found, "{}{layout} x{count}", if found.is_empty() { "" } else { ", " })?;
        }
        table.push([
            if softmax.scope == Scope::HiddenOnly { "hidden nodes" } else { "all nodes" }.to_owned(),
            if softmax.direction == Direction::Incoming { "per target" } else { "per source" }.to_owned(),
            softmax.tau.to_string(),
            row.variant.logit_speed().to_string(),
            row.variant.depth().to_string(),
            range(&row.times()),
            row.unfinished().to_string(),
            range(&row.rates()),
            found,
        ]);
    }
    print!("{}", table.to_text());
    Ok(())
}
