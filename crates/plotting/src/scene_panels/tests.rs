use super::*;
use crate::{ColorMap, Figure};

fn two_panels(second: ScenePanel) -> ScenePanels {
    let first = ScenePanel::new("a").mark(Mark::disc((0.0, 0.0), 1.0)).view((-4.0, 4.0), (-2.0, 2.0));
    ScenePanels::new("t").panel(first).panel(second)
}

#[test]
fn both_directions_of_all_panels_have_one_scale() {
    let second = ScenePanel::new("b").mark(Mark::disc((9.0, 0.0), 1.0)).view((7.0, 11.0), (-2.0, 2.0));
    let figure = two_panels(second);
    let layout = figure.layout().unwrap();
    for place in &layout.places {
        assert!((place.rect.width() / (place.x.1 - place.x.0) - layout.scale).abs() < 1e-9);
        assert!((place.rect.height() / (place.y.1 - place.y.0) - layout.scale).abs() < 1e-9);
    }
    assert_eq!(layout.places[0].rect.bottom, layout.places[1].rect.bottom);
}

#[test]
fn numbers_stand_at_outer_edges_and_where_the_view_changes() {
    let edges = |figure: &ScenePanels| -> Vec<(bool, bool)> {
        figure.layout().unwrap().places.iter().map(|p| (p.below.is_some(), p.left.is_some())).collect()
    };
    let panel = |at: f64| ScenePanel::new("").mark(Mark::disc((at, 0.0), 1.0));
    let grid = (0..5).fold(ScenePanels::new("t").panels_a_row(2), |figure, i| figure.panel(panel(f64::from(i))));
    assert_eq!(edges(&grid), [(false, true), (false, false), (false, true), (true, false), (true, true)]);
    let moved = two_panels(panel(0.0).view((-4.0, 4.0), (-1.0, 3.0))).panels_a_row(2);
    assert_eq!(edges(&moved), [(true, true), (true, true)]);
    let stacked = two_panels(panel(9.0).view((5.0, 13.0), (-2.0, 2.0))).panels_a_row(1);
    assert_eq!(edges(&stacked), [(true, true), (true, true)]);
}

#[test]
fn panels_without_a_view_share_one_that_holds_all_of_their_marks() {
    let figure = ScenePanels::new("t")
        .panel(ScenePanel::new("a").mark(Mark::block((0.0, 0.0), (1.0, 1.0))))
        .panel(ScenePanel::new("b").mark(Mark::capsule((0.0, 0.0), (5.0, 0.0), 0.5)).mark(Mark::ground(-3.0)));
    for place in figure.layout().unwrap().places {
        assert!(place.x.0 <= -1.0 && place.x.1 >= 5.5 && place.y.0 <= -3.0 && place.y.1 >= 1.0);
        assert!(place.x.1 < 6.0, "it holds little more");
    }
}

#[test]
fn what_cannot_be_drawn_is_left_out_and_reported() {
    let panel = ScenePanel::new("b")
        .mark(Mark::disc((0.0, f64::NAN), 1.0))
        .mark(Mark::circle((0.0, 0.0), -1.0))
        .mark(Mark::path([(0.0, 0.0), (f64::INFINITY, 1.0), (2.0, 1.0)]))
        .mark(Mark::disc((90.0, 0.0), 1.0))
        .view((-4.0, 4.0), (-2.0, 2.0));
    assert_eq!(
        two_panels(panel).check().unwrap(),
        [
            "panel \"b\": 2 marks left out: their place or size is not finite, or the size is negative",
            "panel \"b\": 1 of 3 points of paths left out: not finite",
            "panel \"b\": 1 marks lie outside of the part that is shown",
        ]
    );
}

#[test]
fn figures_without_marks_or_with_too_much_are_refused() {
    let message = |figure: &ScenePanels| figure.svg().unwrap_err().to_string();
    assert!(message(&ScenePanels::new("t")).contains("it has no panel"));
    assert!(message(&ScenePanels::new("t").panel(ScenePanel::new("").mark(Mark::ground(0.0)))).contains("1 panels"));
    let many = (0..25).fold(ScenePanels::new("t"), |f, _| f.panel(ScenePanel::new("").mark(Mark::disc((0., 0.), 1.))));
    assert!(message(&many).contains("25 panels"));
    let long = Mark::path((0..=MOST_POINTS).map(|i| (i as f64, 0.0)));
    assert!(message(&ScenePanels::new("t").panel(ScenePanel::new("").mark(long))).contains("200001 points"));
    let turned = ScenePanel::new("").mark(Mark::disc((0.0, 0.0), 1.0)).view((1.0, 0.0), (0.0, 1.0));
    assert!(matches!(ScenePanels::new("t").panel(turned).svg(), Err(PlotError::Range { axis: "x", .. })));
}

#[test]
fn the_legend_names_each_look_once() {
    let path = || Mark::path([(0.0, 0.0), (1.0, 1.0)]).name("path");
    let panel = || ScenePanel::new("").mark(path()).mark(path().fading()).mark(Mark::disc((0.0, 0.0), 1.0));
    let figure = ScenePanels::new("t").panel(panel()).panel(panel().mark(Mark::ground(0.0).name("ground")));
    let names: Vec<_> = figure.named().iter().map(|mark| mark.name.as_str()).collect();
    assert_eq!(names, ["path", "path", "ground"]);
    assert_eq!(figure.svg().unwrap().matches("\nground\n").count(), 1);
}

#[test]
fn a_path_coloured_by_time_begins_and_ends_with_the_ends_of_its_scale() {
    let path = Mark::path((0..100).map(|i| (f64::from(i), 0.0))).color_map(ColorMap::Viridis);
    let svg = ScenePanels::new("t").panel(ScenePanel::new("").mark(path)).svg().unwrap();
    for color in ["#440154", "#FDE725"] {
        assert!(svg.contains(color), "{color}");
    }
}

#[test]
fn the_largest_figures_still_have_a_size_that_can_be_drawn() {
    for count in 1..=MOST_PANELS {
        for a_row in [1, 4, 99] {
            let figure = (0..count).fold(ScenePanels::new("t").panels_a_row(a_row).x_label("x"), |figure, i| {
                let moved = f64::from(u8::try_from(i).unwrap());
                let disc = Mark::disc((0.0, 0.0), 1.0).name("disc");
                figure.panel(ScenePanel::new("title").mark(disc).view((-moved - 1.0, 1.0), (-1.0, 1.0 + moved)))
            });
            let (width, height) = figure.size();
            assert!((160..=3000).contains(&width) && (160..=3000).contains(&height), "{count}: {width} x {height}");
        }
    }
}

#[test]
fn numbers_below_neighbouring_panels_keep_apart() {
    let fonts = crate::font::Fonts::get().unwrap();
    let figure = (0..6).fold(ScenePanels::new("t").panels_a_row(6), |figure, i| {
        let at = 0.013 * f64::from(i);
        figure.panel(ScenePanel::new("").mark(Mark::disc((at, 0.0), 0.1)).view((at - 0.55, at + 0.55), (0.0, 1.9)))
    });
    let mut end = f64::NEG_INFINITY;
    for place in figure.layout().unwrap().places {
        let (axis, ticks) = place.below.unwrap();
        assert!(!ticks.labelled.is_empty());
        for tick in ticks.labelled {
            let at = place.rect.left + axis.at(tick.at) * place.rect.width();
            let half = fonts.width(&tick.label, crate::style::TICK_SIZE) / 2.0;
            assert!(at - half >= end + 3.0, "{}", tick.label);
            end = at + half;
        }
    }
}
