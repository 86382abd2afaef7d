//! One picture of every kind, from synthetic data: `cargo run -p plotting --example gallery -- OUT_DIR`.
//!
//! The curves are formulas with pseudo-random noise; none of them is a measurement.

use std::error::Error;
use std::path::PathBuf;

use plotting::{
    BarChart, Bars, ColorMap, Figure, HeatMap, LineChart, Mark, Panel, Reference, Saved, Scale, ScenePanel,
    ScenePanels, Series, Spread, Table, arm_color, bytes, duration, mean_sd, si, signed,
};

const SYNTHETIC: &str = "synthetic data for looking at the style, not a measurement";

fn main() -> Result<(), Box<dyn Error>> {
    let out = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("gallery"), PathBuf::from);
    let show = |saved: Saved| {
        println!("{}", saved.png.display());
        for warning in saved.warnings {
            println!("    {warning}");
        }
    };
    show(loss().save(&out, "loss")?);
    show(noisy_loss().save(&out, "loss-noisy")?);
    show(log_axes().save(&out, "log-axes")?);
    show(layouts().save(&out, "layouts")?);
    show(scatter().save(&out, "scatter")?);
    show(connections().save(&out, "connections")?);
    show(depth().save(&out, "depth")?);
    show(signed_map().save(&out, "signed")?);
    show(bars().save(&out, "bars")?);
    show(many_bars().save(&out, "bars-many")?);
    show(ways().save(&out, "scenes")?);
    show(pendulum().save(&out, "scenes-side")?);
    println!("{}", table().to_text());
    println!("{}", table().to_markdown());
    Ok(())
}

/// A small multiplicative generator: the gallery must not depend on another crate's random numbers.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / f64::from(1_u32 << 31) - 0.5
    }
}

const ARMS: [(&str, f64); 4] = [("cascade", 1.82), ("ANCRe", 1.775), ("constant", 1.779), ("0:l", 1.768)];

fn run(floor: f64, noise: f64, seed: u64) -> Vec<f64> {
    let mut random = Noise(seed.wrapping_mul(7919));
    (0..600)
        .map(|i| {
            floor + 3.4 * (-f64::from(i) / 18.0).exp() + 0.9 * (-f64::from(i) / 140.0).exp() + noise * random.next()
        })
        .collect()
}

fn loss() -> LineChart {
    let steps: Vec<f64> = (0..600).map(|i| f64::from(i) * 20.0).collect();
    let mut chart = LineChart::new("Held-out loss against steps")
        .subtitle(format!(
            "{SYNTHETIC}; mean and standard deviation over 3 seeds; cargo run -p experiments-llm -- --seeds 3"
        ))
        .x_label("step")
        .y_label("loss, nats per byte")
        .clip_start(0.05)
        .reference(Reference::horizontal(1.833, "final cascade"));
    for (arm, floor) in ARMS {
        let runs: Vec<_> = (0..3).map(|seed| run(floor + 0.03 * seed as f64, 0.02, floor.to_bits() - seed)).collect();
        chart = chart.series(Series::mean_of_runs(arm, &steps, &runs, Spread::StdDev));
    }
    chart
}

fn noisy_loss() -> LineChart {
    let mut chart = LineChart::new("Training loss against steps, one noisy run for each arm")
        .subtitle(SYNTHETIC)
        .x_label("step")
        .y_label("loss, nats per byte")
        .clip_start(0.03);
    for (arm, floor) in ARMS {
        let points = run(floor, 0.35, floor.to_bits());
        chart = chart.series(Series::line(arm, points.into_iter().enumerate().map(|(i, y)| (i as f64, y))));
    }
    chart
}

fn log_axes() -> LineChart {
    let times: Vec<f64> = (0..=200).map(|i| 10_f64.powf(f64::from(i) / 40.0)).collect();
    let mut chart = LineChart::new("Excess loss of 0:1 against time")
        .subtitle(SYNTHETIC)
        .x_label("time")
        .y_label("L / L₀")
        .x_scale(Scale::Log)
        .y_scale(Scale::Log);
    for (depth, slope) in [(3, 2.0), (4, 1.5), (5, 4.0 / 3.0), (6, 1.25)] {
        let curve = times.iter().map(|&t| (t, (1.0 + 0.01 * t).powf(-slope) * if t > 9e4 { -1.0 } else { 1.0 }));
        chart = chart.series(Series::line(format!("K = {depth}"), curve).arm(depth - 2));
    }
    chart.series(Series::guide("slope −2", [(1e3, 2e-3), (3e4, 2e-3 / 900.0)]))
}

fn layouts() -> LineChart {
    let mut chart = LineChart::new("Loss against time, every hidden layout of four layers")
        .subtitle(SYNTHETIC)
        .x_label("time")
        .y_label("relative loss")
        .y_scale(Scale::Log);
    let mut random = Noise(5);
    for layout in 0..64 {
        let edges = ["0:1", "0:2", "0:3", "1:2", "1:3", "2:3"];
        let name: Vec<_> = (0..6).filter(|bit| layout >> bit & 1 == 1).map(|bit| edges[bit]).collect();
        let name = if name.is_empty() { "none".to_owned() } else { name.join("+") };
        let rate = 0.05 + 1.5 * (random.next() + 0.5).powi(2);
        chart = chart.series(
            Series::line(name, (0..=200).map(|i| f64::from(i) / 10.0).map(|t| (t, (-rate * t).exp()))).width(1.2),
        );
    }
    chart.y_range(1e-8, 1.5)
}

fn scatter() -> LineChart {
    let mut random = Noise(11);
    let mut chart = LineChart::new("Measured rate against the number of pure-shortcut paths squared")
        .subtitle(SYNTHETIC)
        .x_label("α²")
        .y_label("rate of the loss")
        .x_scale(Scale::Log)
        .y_scale(Scale::Log)
        .series(Series::guide("2 α²", [(0.8, 1.6), (70.0, 140.0)]));
    for (i, depth) in [3, 4, 5].into_iter().enumerate() {
        let points = (0..40).map(|_| {
            let alpha = f64::from(1 + ((random.next() + 0.5) * f64::from(1 << (depth - 2))) as i32);
            (alpha * alpha * (1.0 + 0.05 * random.next()), 2.0 * alpha * alpha * (1.05 + 0.3 * random.next()))
        });
        chart = chart.series(Series::scatter(format!("K = {depth}"), points.collect::<Vec<_>>()).arm(i + 1));
    }
    chart
}

fn matrix(size: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut random = Noise(seed);
    (1..=size)
        .map(|l| {
            let weights: Vec<f64> =
                (0..l).map(|i| (6.0 * random.next() + if i + 1 == l { 2.0 } else { 0.0 }).exp()).collect();
            let sum: f64 = weights.iter().sum();
            weights.into_iter().map(|w| w / sum).collect()
        })
        .collect()
}

fn connections() -> HeatMap {
    let mut figure = HeatMap::new("Learned connections p")
        .subtitle(SYNTHETIC)
        .x_label("source i")
        .y_label("target l")
        .value_label("p")
        .range(0.0, 1.0);
    for seed in 0..3 {
        figure = figure.panel(Panel::of_rows(format!("ANCRe, seed {seed}"), &matrix(8, seed + 3)).row_labels(1..=8));
    }
    figure
}

fn depth() -> HeatMap {
    let figure =
        HeatMap::new("Learned connections p, 64 blocks").subtitle(SYNTHETIC).x_label("source i").y_label("target l");
    figure.value_label("p").panel(Panel::of_rows("", &matrix(64, 9)))
}

fn signed_map() -> HeatMap {
    let mut random = Noise(3);
    let rows = (0..4).map(|_| (0..6).map(|_| Some(2.0 * random.next()).filter(|v| v.abs() > 0.1)).collect()).collect();
    HeatMap::new("Change of the loss when one block is skipped")
        .subtitle(SYNTHETIC)
        .color_map(ColorMap::BlueRed)
        .panel(Panel::new("", rows).row_labels(["cascade", "ANCRe", "constant", "0:l"]).column_labels(1..=6))
        .x_label("block")
}

fn bars() -> BarChart {
    BarChart::new("Loss at the end of training")
        .subtitle(format!("{SYNTHETIC}; error bars: standard deviation over 12 seeds"))
        .y_label("nats per byte")
        .groups([
            "embedding scale 0.02, 300 steps",
            "embedding scale 0.02, 600 steps",
            "embedding scale 1, 300 steps",
            "embedding scale 1, 600 steps",
        ])
        .print_values(2)
        .bars(Bars::new("cascade", [1.92, 1.82, 1.95, 1.86]).errors([0.02, 0.01, 0.03, 0.02]))
        .bars(Bars::new("ANCRe", [1.85, 1.775, 1.87, 1.80]).errors([0.02, 0.015, 0.02, 0.02]))
        .bars(Bars::new("gated h₀", [1.83, 1.76, 1.88, f64::NAN]).errors([0.03, 0.01, 0.02, 0.02]))
}

fn many_bars() -> BarChart {
    let mut random = Noise(21);
    let mut values = || (0..24).map(|_| random.next()).collect::<Vec<_>>();
    BarChart::new("Output change when one block is skipped")
        .subtitle(SYNTHETIC)
        .y_label("relative change")
        .groups(1..=24)
        .bars(Bars::new("cascade", values()))
        .bars(Bars::new("ANCRe", values()))
}

fn ways() -> ScenePanels {
    let mut random = Noise(17);
    let mut figure = ScenePanels::new("Ways through a maze, seen from above")
        .subtitle(SYNTHETIC)
        .x_label("x, m")
        .y_label("y, m")
        .panels_a_row(3);
    for (seed, (arm, _)) in ARMS.iter().cycle().take(6).enumerate() {
        let mut panel = ScenePanel::new(format!("{arm}, seed {seed}"));
        for i in 0..25 {
            let (row, column) = (i / 5, i % 5);
            if row % 4 == 0 || column % 4 == 0 || (row, column) == (2, 2) {
                let centre = (4.0 * f64::from(row), 4.0 * f64::from(column));
                panel = panel.mark(Mark::block(centre, (2.0, 2.0)).name("wall"));
            }
        }
        let mut way = vec![(4.0, 4.0)];
        for i in 0..300 {
            let (x, y) = if i < 150 { (0.054, 0.0) } else { (0.0, 0.054) };
            let (at_x, at_y): (f64, f64) = way[i];
            way.push((at_x + x + 0.2 * random.next(), at_y + y + 0.2 * random.next()));
        }
        let path = Mark::path(way);
        let path =
            if seed < 3 { path.fading().name("path") } else { path.color_map(ColorMap::Viridis).name("by time") };
        let goal = Mark::circle((12.0, 12.0), 0.5).name("goal");
        panel = panel.mark(goal).mark(path).mark(Mark::disc((4.0, 4.0), 0.3).name("start"));
        figure = figure.panel(panel);
    }
    figure
}

fn pendulum() -> ScenePanels {
    let figure = ScenePanels::new("A cart with a pendulum, seen from the side")
        .subtitle(SYNTHETIC)
        .x_label("x, m")
        .y_label("z, m")
        .panels_a_row(6);
    (0..6).map(|i| f64::from(i) * 0.4).fold(figure, |figure, time| {
        let (x, angle) = (0.3 * time, 0.8 * (2.5 * time).cos());
        let tip = (x + angle.sin(), 0.4 + angle.cos());
        let panel = ScenePanel::new(format!("{time:.1} s"))
            .mark(Mark::ground(0.0).name("ground"))
            .mark(Mark::block((x, 0.3), (0.3, 0.1)).name("cart"))
            .mark(Mark::capsule((x, 0.4), tip, 0.06).color(arm_color(1)).name("rod"))
            .mark(Mark::disc(tip, 0.12).name("weight"));
        figure.panel(panel.view((x - 1.1, x + 1.1), (-0.2, 1.7)))
    })
}

fn table() -> Table {
    Table::new(["arm", "loss", "against cascade", "tokens", "memory", "time"])
        .units(["", "nats/byte", "", "", "", ""])
        .row(["cascade", &mean_sd(&[1.82, 1.83, 1.85], 3), "", &si(19_660_800.0), &bytes(310 << 20), &duration(124.6)])
        .row([
            "ANCRe",
            &mean_sd(&[1.762, 1.775, 1.788], 3),
            &signed(-0.058, 3),
            &si(19_660_800.0),
            &bytes(311 << 20),
            &duration(126.0),
        ])
        .row(["0:l", "1.768", &signed(-0.065, 3), "–", "–", &duration(59.0)])
}
