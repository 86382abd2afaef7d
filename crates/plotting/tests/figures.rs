//! Whole figures: both files are whole and well formed, and no data makes drawing panic.

use std::fs;

use plotting::{
    BarChart, Bars, ColorMap, Dash, Figure, HeatMap, Legend, LineChart, Mark, Marker, Panel, PlotError, Reference,
    Scale, ScenePanel, ScenePanels, Series,
};
use proptest::prelude::*;

mod formats;
use formats::{Png, check_xml};

fn curves(count: usize) -> LineChart {
    (0..count).fold(LineChart::new("loss").x_label("step").y_label("nats"), |chart, k| {
        let points = (0..600).map(|i| (f64::from(i), 1.0 + (1.0 + k as f64) / f64::from(i + 1)));
        chart.series(Series::line(format!("arm {k}"), points))
    })
}

#[test]
fn both_files_are_written_whole_and_nothing_else_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("run/figures");
    let saved = curves(4).save(&target, "loss").unwrap();
    assert_eq!(saved.warnings, [""; 0]);
    let mut names: Vec<_> =
        fs::read_dir(&target).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["loss.png", "loss.svg"]);
    let png = Png::read(&saved.png);
    assert_eq!((png.width, png.height), (1680, 960));
    for color in &plotting::ARM_COLORS[..4] {
        assert!(png.has_color([color.0, color.1, color.2]), "{color:?} is in the picture");
    }
    let svg = fs::read_to_string(&saved.svg).unwrap();
    check_xml(&svg);
    for text in ["loss", "step", "nats", "arm 3", "sans-serif", "<title>loss</title>"] {
        assert!(svg.contains(text), "{text}");
    }
}

#[test]
fn the_same_figure_gives_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let read = |name: &str| {
        let saved = curves(2).save(dir.path(), name).unwrap();
        (fs::read(saved.png).unwrap(), fs::read(saved.svg).unwrap())
    };
    assert!(read("a") == read("b"));
}

#[test]
fn a_figure_that_fails_leaves_the_older_files_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let saved = curves(1).save(dir.path(), "loss").unwrap();
    let before = fs::read(&saved.png).unwrap();
    let error = LineChart::new("loss").series(Series::line("a", [])).save(dir.path(), "loss").unwrap_err();
    assert_eq!(error.to_string(), "figure \"loss\" has nothing to draw: none of its 1 series has a point");
    assert_eq!(fs::read(&saved.png).unwrap(), before);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn a_name_that_is_a_path_is_refused_and_a_directory_that_is_a_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["", ".", "..", "a/b", "/tmp/x", "a\\b", "a\0"] {
        assert!(matches!(curves(1).save(dir.path(), name), Err(PlotError::Name { .. })), "{name:?}");
    }
    let file = dir.path().join("occupied");
    fs::write(&file, "text").unwrap();
    let message = curves(1).save(&file, "loss").unwrap_err().to_string();
    assert!(message.contains("occupied"), "{message}");
}

#[test]
fn a_file_that_cannot_be_replaced_is_named_and_no_temporary_is_left() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("loss.svg")).unwrap();
    let message = curves(1).save(dir.path(), "loss").unwrap_err().to_string();
    assert!(message.starts_with("cannot write") && message.contains("loss.svg"), "{message}");
    let hidden = fs::read_dir(dir.path())
        .unwrap()
        .filter(|e| e.as_ref().unwrap().file_name().to_str().unwrap().starts_with('.'));
    assert_eq!(hidden.count(), 0);
}

#[test]
fn text_is_drawn_without_any_installed_font() {
    let dir = tempfile::tempdir().unwrap();
    let heading_ink = |title: &str| {
        let saved = LineChart::new(title).with_size(400, 300).series(Series::line("a", [(0.0, 0.0), (1.0, 1.0)]));
        let saved = saved.save(dir.path(), "t").unwrap();
        Png::read(&saved.png).dark_pixels_above(80)
    };
    let (one, two) = (heading_ink("loss"), heading_ink("loss loss"));
    assert!(one > 100, "{one}");
    assert!((two as f64 / one as f64 - 2.0).abs() < 0.05, "{one} and {two}");
}

#[test]
fn a_dotted_name_keeps_its_dots() {
    let dir = tempfile::tempdir().unwrap();
    let saved = curves(1).save(dir.path(), "lr-0.004").unwrap();
    assert!(saved.png.ends_with("lr-0.004.png") && saved.png.exists());
    assert!(saved.svg.ends_with("lr-0.004.svg") && saved.svg.exists());
}

#[test]
fn log_axes_leave_out_what_they_cannot_show_and_say_so() {
    let chart = LineChart::new("t")
        .x_scale(Scale::Log)
        .y_scale(Scale::Log)
        .series(Series::line("a", [(0.0, 1.0), (1.0, 1.0), (10.0, 0.1), (100.0, f64::INFINITY)]));
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(
        chart.save(dir.path(), "t").unwrap().warnings,
        [
            "series \"a\": 1 of 4 points left out: not finite",
            "series \"a\": 1 of 4 points left out: not positive, which a log axis cannot show"
        ]
    );
    let chart = LineChart::new("t").y_scale(Scale::Log).series(Series::line("a", [(1.0, 0.0), (2.0, -1.0)]));
    let message = chart.svg().unwrap_err().to_string();
    assert!(message.contains("2 of 2 points left out: not positive"), "{message}");
}

#[test]
fn what_lies_outside_the_axes_is_reported() {
    let chart = curves(1)
        .y_range(10.0, 20.0)
        .reference(Reference::horizontal(5.0, "target"))
        .reference(Reference::vertical(300.0, "warm-up"));
    let dir = tempfile::tempdir().unwrap();
    let warnings = chart.save(dir.path(), "t").unwrap().warnings;
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("reference line \"target\"") && warnings[1].contains("series \"arm 0\""));
}

#[test]
fn sizes_that_cannot_be_laid_out_are_refused() {
    for (width, height) in [(0, 0), (100, 400), (400, 100_000)] {
        let error = curves(1).with_size(width, height).svg().unwrap_err();
        assert!(matches!(error, PlotError::Size { .. }), "{error}");
    }
    assert!(curves(4).with_size(160, 160).svg().is_ok());
}

/// The text elements of an SVG with their `x` and the place of their end, in units of the picture.
fn texts(svg: &str) -> Vec<(f64, String)> {
    svg.split("<text ")
        .skip(1)
        .map(|element| {
            let x = element.split("x=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
            let text = element.split(">\n").nth(1).unwrap().split("\n<").next().unwrap();
            (x, text.to_owned())
        })
        .collect()
}

#[test]
fn sixty_four_series_are_all_named_beside_the_plot() {
    let svg = curves(64).svg().unwrap();
    let plot_right: f64 = svg
        .lines()
        .filter(|line| line.contains("stroke=\"#B4B4B4\""))
        .filter_map(|line| line.rsplit(' ').nth(1)?.split(',').next()?.parse().ok())
        .fold(0.0, f64::max);
    let texts = texts(&svg);
    for k in 0..64 {
        let name = format!("arm {k}");
        let (x, _) = texts.iter().find(|(_, text)| *text == name).expect("named");
        assert!(*x > plot_right, "{name} at {x} is right of the plot, which ends at {plot_right}");
    }
}

#[test]
fn few_lines_that_end_apart_are_named_at_their_ends_and_others_in_a_legend() {
    let rising = |k: u32| Series::line(format!("arm {k}"), (0..10).map(|i| (f64::from(i), f64::from(i * k))));
    let apart = LineChart::new("t").series(rising(1)).series(rising(2)).svg().unwrap();
    let swatches = |svg: &str| svg.matches("stroke=\"#222222\"").count();
    assert_eq!(swatches(&apart), 1, "no swatch beside the line itself");
    let short = LineChart::new("t").series(rising(1)).series(Series::line("b", [(0.0, 1.0), (1.0, 2.0)]));
    assert_eq!(swatches(&short.svg().unwrap()), 2, "a line that ends early needs a legend");
    assert_eq!(swatches(&short.legend(Legend::Hidden).svg().unwrap()), 1);
}

#[test]
fn tick_labels_are_for_people() {
    let powers = (-6..=0).map(|e| (10_f64.powi(-e), 10_f64.powi(e)));
    let svg = LineChart::new("t").x_scale(Scale::Log).y_scale(Scale::Log).series(Series::line("a", powers));
    let svg = svg.svg().unwrap();
    let labels: Vec<String> = texts(&svg).into_iter().map(|(_, text)| text).collect();
    for label in ["10⁻⁶", "1", "1k", "1M"] {
        assert!(labels.iter().any(|l| l == label), "{label} in {labels:?}");
    }
    assert!(!svg.contains("0.000001") && !labels.iter().any(|l| l == "1.0"));
}

#[test]
fn heat_maps_print_small_matrices_and_not_large_ones() {
    let rows = |n: usize| (1..=n).map(|l| vec![1.0 / l as f64; l]).collect::<Vec<_>>();
    let small = HeatMap::new("p").range(0.0, 1.0).panel(Panel::of_rows("a", &rows(16))).svg().unwrap();
    assert_eq!(small.matches("\n0.25\n").count(), 4);
    let large = HeatMap::new("p").range(0.0, 1.0).panel(Panel::of_rows("a", &rows(17))).svg().unwrap();
    assert_eq!(large.matches("\n0.25\n").count(), 0);
    check_xml(&large);
}

#[test]
fn heat_map_cells_out_of_range_or_not_finite_are_reported() {
    let panel = Panel::new("seed 1", vec![vec![Some(0.5), Some(2.0), Some(f64::NAN), None]]);
    let dir = tempfile::tempdir().unwrap();
    let saved = HeatMap::new("p").range(0.0, 1.0).panel(panel).save(dir.path(), "p").unwrap();
    assert_eq!(
        saved.warnings,
        [
            "panel \"seed 1\": 1 cells are not finite and stay white",
            "panel \"seed 1\": 1 cells lie outside the colour range 0 to 1"
        ]
    );
    let error = HeatMap::new("p").panel(Panel::new("a", vec![vec![None]])).svg().unwrap_err();
    assert!(matches!(error, PlotError::Empty { .. }), "{error}");
}

#[test]
fn heat_maps_of_any_shape_find_a_size() {
    for (rows, columns, panels) in [(1, 1, 1), (1, 512, 4), (512, 1, 24), (128, 512, 5), (16, 16, 24)] {
        let panel = Panel::of_rows("a", &vec![vec![-1.25; columns]; rows]);
        let figure = (0..panels).fold(HeatMap::new("p"), |figure, _| figure.panel(panel.clone()));
        let svg = figure.svg();
        assert!(svg.is_ok(), "{rows} x {columns}, {panels} panels: {:?}", svg.err());
    }
    let panel = Panel::of_rows("a", &[vec![1.0]]);
    let error = (0..25).fold(HeatMap::new("p"), |figure, _| figure.panel(panel.clone())).svg().unwrap_err();
    assert!(error.to_string().contains("25 panels"), "{error}");
}

#[test]
fn labels_cannot_break_the_markup() {
    let nasty = "a<b>&\"quoted\" 'x' ]]> \u{0}\u{1b}[31m\u{fffe} font-family=\"Ubuntu\" opacity=\"1\"";
    let chart = LineChart::new(nasty)
        .subtitle(nasty)
        .x_label(nasty)
        .y_label(nasty)
        .series(Series::line(nasty, [(0.0, 1.0), (1.0, 2.0)]))
        .reference(Reference::horizontal(1.5, nasty));
    let svg = chart.svg().unwrap();
    check_xml(&svg);
    assert!(svg.contains("a&lt;b&gt;&amp;"));
}

/// Numbers that break plots: not finite, huge, tiny, equal, of either sign.
fn wild() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(0.0),
        Just(-0.0),
        Just(1.0),
        Just(1.0 + f64::EPSILON),
        Just(f64::MAX),
        Just(f64::MIN),
        Just(f64::MIN_POSITIVE),
        Just(5e-324),
        -1e3..1e3_f64,
        1e-9..1e-6_f64,
        1e15..1e16_f64,
        any::<f64>(),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        ".{0,20}",
        Just("very long name ".repeat(60)),
        Just("漢字 😀 ± ατθ\u{301}".to_owned())
    ]
}

fn series() -> impl Strategy<Value = Series> {
    let points = prop::collection::vec((wild(), wild()), 0..12);
    let band = prop::collection::vec((wild(), wild(), wild()), 0..6);
    (name(), points, band, any::<(bool, bool)>(), 0..70_usize, wild()).prop_map(
        |(name, points, band, (is_line, marked), arm, width)| {
            let series = if is_line { Series::line(name, points) } else { Series::scatter(name, points) };
            let series = series.band(band).arm(arm).width(width);
            if marked { series.marker(Marker::Cross).dash(Dash::DashDot) } else { series }
        },
    )
}

prop_compose! {
    fn line_chart()(
        title in name(),
        labels in (name(), name(), name()),
        logs in any::<(bool, bool)>(),
        series in prop::collection::vec(series(), 0..8),
        reference in (wild(), any::<bool>(), name()),
        ranges in prop::option::of((wild(), wild())),
        clip in wild(),
        quantiles in (wild(), wild()),
        legend in prop::sample::select(vec![Legend::Auto, Legend::Right, Legend::LineEnds, Legend::Hidden]),
        size in prop::option::of((160..500_u32, 160..500_u32)),
    ) -> LineChart {
        let scale = |log: bool| if log { Scale::Log } else { Scale::Linear };
        let (at, is_horizontal, text) = reference;
        let reference = if is_horizontal { Reference::horizontal(at, text) } else { Reference::vertical(at, text) };
        let mut chart = LineChart::new(title).subtitle(labels.0).x_label(labels.1).y_label(labels.2)
            .x_scale(scale(logs.0)).y_scale(scale(logs.1)).reference(reference)
            .clip_start(clip).y_quantiles(quantiles.0, quantiles.1).legend(legend);
        if let Some((low, high)) = ranges {
            chart = chart.y_range(low, high);
        }
        if let Some((width, height)) = size {
            chart = chart.with_size(width, height);
        }
        series.into_iter().fold(chart, LineChart::series)
    }
}

fn mark() -> impl Strategy<Value = Mark> {
    let point = || (wild(), wild());
    let path = prop::collection::vec(point(), 0..20);
    (0..6, point(), point(), wild(), path, 0..3, name()).prop_map(|(kind, a, b, size, path, course, name)| {
        let mark = match kind {
            0 => Mark::block(a, b),
            1 => Mark::disc(a, size),
            2 => Mark::circle(a, size),
            3 => Mark::capsule(a, b, size),
            4 => Mark::ground(size),
            _ => Mark::path(path),
        };
        let mark = mark.name(name);
        match course {
            0 => mark,
            1 => mark.fading(),
            _ => mark.color_map(ColorMap::Viridis),
        }
    })
}

fn holds(result: Result<String, PlotError>) -> Result<(), TestCaseError> {
    match result {
        Ok(svg) => {
            check_xml(&svg);
            prop_assert!(!svg.contains("NaN") || svg.matches("NaN").count() == svg.matches(">\nNaN").count());
            Ok(())
        }
        Err(PlotError::Empty { .. } | PlotError::Range { .. } | PlotError::Data { .. } | PlotError::Size { .. }) => {
            Ok(())
        }
        Err(other) => Err(TestCaseError::fail(other.to_string())),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_data_makes_a_line_chart_panic(chart in line_chart()) {
        holds(chart.svg())?;
    }

    #[test]
    fn no_data_makes_a_heat_map_panic(
        title in name(),
        panels in prop::collection::vec((name(), prop::collection::vec(prop::collection::vec(prop::option::of(wild()), 0..20), 0..20)), 0..6),
        range in prop::option::of((wild(), wild())),
        signed: bool,
    ) {
        let mut figure = HeatMap::new(title.clone()).y_label(title.clone()).x_label(title.clone()).value_label(title);
        figure = figure.color_map(if signed { ColorMap::BlueRed } else { ColorMap::Viridis });
        if let Some((low, high)) = range {
            figure = figure.range(low, high);
        }
        for (name, rows) in panels {
            figure = figure.panel(Panel::new(name, rows));
        }
        let svg = figure.svg();
        prop_assert!(!matches!(svg, Err(PlotError::Size { .. })), "its size is its own affair: {svg:?}");
        holds(svg)?;
    }

    #[test]
    fn no_data_makes_a_bar_chart_panic(
        title in name(),
        groups in prop::collection::vec(name(), 0..9),
        values in prop::collection::vec((name(), prop::collection::vec(wild(), 9), prop::collection::vec(wild(), 9)), 0..5),
        range in prop::option::of((wild(), wild())),
        decimals in prop::option::of(0..4_usize),
    ) {
        let count = groups.len();
        let mut chart = BarChart::new(title.clone()).y_label(title).groups(groups);
        if let Some((low, high)) = range {
            chart = chart.y_range(low, high);
        }
        if let Some(decimals) = decimals {
            chart = chart.print_values(decimals);
        }
        for (name, values, errors) in values {
            chart = chart.bars(Bars::new(name, values[..count].to_vec()).errors(errors[..count].to_vec()));
        }
        holds(chart.svg())?;
    }

    #[test]
    fn no_data_makes_scenes_panic(
        title in name(),
        panels in prop::collection::vec(
            (name(), prop::collection::vec(mark(), 0..8), prop::option::of((wild(), wild(), wild(), wild()))),
            0..6,
        ),
        a_row in prop::option::of(0..10_usize),
    ) {
        let mut figure = ScenePanels::new(title.clone()).subtitle(title.clone()).x_label(title.clone()).y_label(title);
        if let Some(a_row) = a_row {
            figure = figure.panels_a_row(a_row);
        }
        for (name, marks, view) in panels {
            let mut panel = marks.into_iter().fold(ScenePanel::new(name), ScenePanel::mark);
            if let Some((left, right, low, high)) = view {
                panel = panel.view((left, right), (low, high));
            }
            figure = figure.panel(panel);
        }
        let svg = figure.svg();
        prop_assert!(!matches!(svg, Err(PlotError::Size { .. })), "its size is its own affair: {svg:?}");
        holds(svg)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn no_data_makes_the_bitmap_panic(chart in line_chart()) {
        let dir = tempfile::tempdir().unwrap();
        if let Ok(saved) = chart.save(dir.path(), "any") {
            let png = Png::read(&saved.png);
            prop_assert!(png.width >= 320 && png.height >= 320);
        }
    }
}
