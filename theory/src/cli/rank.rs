//! `theory rank`: all layouts of a depth by how fast they train.

use std::io::{self, Write};

use anyhow::{Context, Result};
use plotting::{Align, Table};

use super::Failure;
use super::args::{PoolArg, RankArgs};
use super::output::NewFile;
use super::verify::progress;
use crate::ranking::{Class, Pool, RATES, Ranking, RankingSettings};

pub(super) fn rank(args: &RankArgs) -> Result<(), Failure> {
    let settings = settings(args);
    settings.check().map_err(|error| Failure::Usage(error.into()))?;
    let runs = settings.runs().map_err(|error| Failure::Usage(error.into()))?;
    let csv = args.csv.as_deref().map(NewFile::begin).transpose().map_err(Failure::Usage)?;
    let bar = progress(runs, "training layouts");
    let ranking = Ranking::measure(&settings, |done| bar.set_position(done));
    bar.finish_and_clear();
    let ranking = ranking.context("ranking")?;
    // The file first: a reader of the output may be gone by now.
    let written = match csv {
        None => None,
        Some(mut file) => {
            ranking.write_csv(file.writer()).context("csv")?;
            Some(file.finish()?)
        }
    };
    let mut out = io::stdout().lock();
    print(&mut out, &ranking, args.top).context("output")?;
    if let Some(path) = written {
        writeln!(out, "wrote {}", path.display()).context("output")?;
    }
    Ok(())
}

fn settings(args: &RankArgs) -> RankingSettings {
    let base = RankingSettings::new(args.depth, args.dim, args.seed);
    RankingSettings {
        pool: match args.pool {
            PoolArg::All => Pool::All,
            PoolArg::HiddenOnly => Pool::HiddenOnly,
        },
        instances: args.seeds,
        law: args.target.into(),
        deviation: args.init,
        relative_loss: args.until,
        flow_time: args.time,
        rates: args.rates.clone().unwrap_or_else(|| RATES.to_vec()),
        most_steps: args.steps.unwrap_or(base.most_steps),
        ..base
    }
}

fn print(out: &mut impl Write, ranking: &Ranking, top: usize) -> Result<()> {
    let settings = ranking.settings();
    let empty = ranking.classes().iter().filter(|class| class.net.is_empty()).count();
    writeln!(
        out,
        "{} layouts of depth {}: {} reduced nets, and {} layouts without an alive layer, which count singly",
        ranking.entries().len(),
        settings.depth,
        ranking.classes().len() - empty,
        empty,
    )?;
    writeln!(
        out,
        "width {}, {} instances of seed {}, weights of deviation {}",
        settings.width, settings.instances, settings.seed, settings.deviation
    )?;
    writeln!(
        out,
        "to a relative loss of {:e}: time of gradient flow (median, range) and steps of gradient descent at its best rate\n",
        settings.relative_loss
    )?;
    let mut table = Table::new(["rank", "layout", "tied", "kappa0", "flow", "range", "steps", "rate", "rank by steps"]);
    for column in 2..9 {
        table = table.align(column, Align::Right);
    }
    for class in ranking.classes().iter().take(top) {
        table.push(row(ranking, class));
    }
    write!(out, "{}", table.to_text())?;
    let rest = ranking.classes().len().saturating_sub(top);
    if rest > 0 {
        writeln!(out, "... and {rest} classes more (--top N, or --csv FILE for all)")?;
    }
    Ok(())
}

fn row(ranking: &Ranking, class: &Class) -> Vec<String> {
    // The shortest notation stands for the class.
    let layouts = class.members.iter().map(|&member| &ranking.entries()[member].layout);
    let Some(layout) = layouts.min_by_key(|layout| layout.len()) else { return Vec::new() };
    let (flow, summary) = (class.summary.flow, &class.summary);
    let time = |value: f64| if value.is_finite() { format!("{value:.3}") } else { "never".to_owned() };
    let tied = class.members.len() - 1;
    vec![
        class.flow_rank.to_string(),
        layout.to_string(),
        if tied > 0 { format!("+{tied}") } else { String::new() },
        layout.pure_paths().kappa0().to_string(),
        time(flow.median),
        format!("{} to {}", time(flow.min), time(flow.max)),
        if summary.fewest_steps().is_finite() { summary.fewest_steps().to_string() } else { "never".to_owned() },
        summary.best_rate.map_or_else(|| "-".to_owned(), |best| ranking.settings().rates[best].to_string()),
        class.descent_rank.to_string(),
    ]
}
