//! Pictures of recorded episodes: the way through a maze seen from above, and the bodies seen from the side.

use goal_tasks::{EpisodeRecord, Pose, Scene};
use plotting::{Color, Mark, ScenePanel, ScenePanels};

/// Share of its colour that the body farthest from the viewer keeps.
const FARTHEST: f64 = 0.45;
const LIMB: Color = Color(0x1f, 0x3a, 0x5f);

/// The way of the agent in each episode, seen from above in metres: walls, start, path, goal with the circle within
/// which a state is a success, and where the agent was at the end. One panel for each record, at most 24, under its
/// title; a record without a title has the name of its task.
pub fn maze_from_above(records: &[EpisodeRecord], titles: &[String], title: &str, subtitle: &str) -> ScenePanels {
    let figure = ScenePanels::new(title).subtitle(subtitle).x_label("x, m").y_label("y, m");
    // Six are two rows of three rather than four and two.
    let figure = if records.len() % 4 == 2 { figure.panels_a_row(3) } else { figure };
    records
        .iter()
        .enumerate()
        .fold(figure, |figure, (i, record)| figure.panel(way_from_above(record, titles.get(i).unwrap_or(&record.task))))
}

/// What became of an episode, in a few words: `episode 2: at the goal after 41 steps`.
pub fn outcome(number: usize, record: &EpisodeRecord) -> String {
    let steps = record.distances.len();
    let reached = record.distances.iter().position(|&distance| f64::from(distance) < record.success_within);
    let end = match (reached, record.terminated) {
        (Some(step), _) => format!("at the goal after {} steps", step + 1),
        (None, true) => format!("ended after {steps} steps"),
        (None, false) => format!("not at the goal in {steps} steps"),
    };
    format!("episode {number}: {end}")
}

fn way_from_above(record: &EpisodeRecord, title: &str) -> ScenePanel {
    let place = |[x, y, _]: [f64; 3]| (x, y);
    let mut panel = ScenePanel::new(title);
    for wall in &record.walls {
        panel = panel.mark(Mark::block(place(wall.centre), place(wall.half)).name("wall"));
    }
    let (Some(first), Some(last)) = (record.scenes.first(), record.scenes.last()) else { return panel };
    // A goal may be moved while the episode runs; the circle is where it was at the end.
    let goal = place(last.goal);
    let agent = |scene: &Scene| place(scene.agent);
    panel
        .mark(Mark::circle(goal, record.success_within).name("goal: success inside"))
        .mark(Mark::path(record.scenes.iter().map(agent)).fading().name("path, darker with time"))
        .mark(Mark::disc(agent(first), 0.0).name("start"))
        .mark(Mark::disc(agent(last), 0.0).color(plotting::arm_color(1)).name("end"))
}

/// `frames` scenes of an episode at even distances in time, the first and the last among them, seen from the side: x to
/// the right and z upwards in metres, the view moving along with the agent. Bodies farther from the viewer (larger y)
/// are paler and behind nearer ones; walls are not shown. At most 24 frames, no more than there are scenes. An agent
/// without bodies is a disc.
pub fn side_view(record: &EpisodeRecord, frames: usize, title: &str, subtitle: &str) -> ScenePanels {
    let figure = ScenePanels::new(title).subtitle(subtitle).x_label("x, m").y_label("z, m").panels_a_row(6);
    let chosen = evenly_spaced(record.scenes.len(), frames.min(24));
    let limbs: Vec<Vec<Limb>> = chosen.iter().map(|&i| limbs(record, &record.scenes[i])).collect();
    // One size for all frames: scales are equal, and the ground stays at one height.
    let (mut reach, mut low, mut high) = (0.5_f64, 0.0_f64, 0.5_f64);
    for (&i, limbs) in chosen.iter().zip(&limbs) {
        let x = record.scenes[i].agent[0];
        for limb in limbs {
            for end in [limb.from, limb.to] {
                // `max` and `min` pass over numbers that are not finite only where they are NaN.
                if end.iter().all(|value| value.is_finite()) {
                    reach = reach.max((end[0] - x).abs() + limb.radius);
                    (low, high) = (low.min(end[2] - limb.radius), high.max(end[2] + limb.radius));
                }
            }
        }
    }
    let decimals = match record.scenes.len() as f64 * record.step_seconds {
        seconds if seconds >= 100.0 => 0,
        seconds if seconds >= 10.0 => 1,
        _ => 2,
    };
    let (half, margin) = (1.05 * reach, 0.06 * (high - low));
    chosen.iter().zip(limbs).fold(figure, |figure, (&i, limbs)| {
        let scene = &record.scenes[i];
        let x = scene.agent[0];
        let mut panel = ScenePanel::new(format!("{:.decimals$} s", i as f64 * record.step_seconds))
            .mark(Mark::ground(0.0).name("ground"));
        if x.is_finite() {
            panel = panel.view((x - half, x + half), (low - margin, high + margin));
        }
        if (scene.goal[0] - x).abs() < half {
            let goal = Mark::circle((scene.goal[0], scene.goal[2]), 0.04 * (high - low)).name("goal");
            panel = panel.mark(goal);
        }
        figure.panel(limbs.into_iter().map(|limb| limb.mark()).fold(panel, ScenePanel::mark))
    })
}

/// Indices from 0 to `count - 1` at even distances.
fn evenly_spaced(count: usize, frames: usize) -> Vec<usize> {
    let frames = frames.min(count);
    let gaps = frames.saturating_sub(1).max(1);
    (0..frames).map(|k| (k * (count - 1) + gaps / 2) / gaps).collect()
}

/// A capsule in the coordinates of the world.
struct Limb {
    from: [f64; 3],
    to: [f64; 3],
    radius: f64,
    /// From 1 for the nearest to [`FARTHEST`].
    shade: f64,
}

impl Limb {
    fn mark(&self) -> Mark {
        let pale = |value: u8| (255.0 - (255.0 - f64::from(value)) * self.shade).round() as u8;
        let color = Color(pale(LIMB.0), pale(LIMB.1), pale(LIMB.2));
        let mark = Mark::capsule((self.from[0], self.from[2]), (self.to[0], self.to[2]), self.radius).color(color);
        // One entry of the legend stands for all shades.
        if self.shade == 1.0 { mark.name("body, paler farther away") } else { mark }
    }

    fn depth(&self) -> f64 {
        (self.from[1] + self.to[1]) / 2.0
    }
}

/// All capsules of a scene, the farthest first.
fn limbs(record: &EpisodeRecord, scene: &Scene) -> Vec<Limb> {
    let mut limbs: Vec<Limb> = record
        .bodies
        .iter()
        .zip(&scene.bodies)
        .flat_map(|(body, pose)| body.capsules.iter().map(move |capsule| (pose, capsule)))
        .map(|(pose, &(from, to, radius))| Limb { from: placed(pose, from), to: placed(pose, to), radius, shade: 1.0 })
        .collect();
    if limbs.is_empty() {
        let [x, y, z] = scene.agent;
        limbs.push(Limb { from: [x, y, z + 0.1], to: [x, y, z + 0.1], radius: 0.1, shade: 1.0 });
    }
    limbs.sort_by(|a, b| b.depth().total_cmp(&a.depth()));
    let (far, near) = (limbs[0].depth(), limbs[limbs.len() - 1].depth());
    for limb in &mut limbs {
        let share = (limb.depth() - near) / (far - near).max(1e-9);
        limb.shade = 1.0 - (1.0 - FARTHEST) * share.clamp(0.0, 1.0);
    }
    limbs
}

/// A point of a body in the coordinates of the world: `p + v + 2 q x (q x v + w v)`, with the rotation `(w, q)`.
fn placed(pose: &Pose, v: [f64; 3]) -> [f64; 3] {
    let [w, a, b, c] = pose.rotation;
    let cross = |v: [f64; 3]| [b * v[2] - c * v[1], c * v[0] - a * v[2], a * v[1] - b * v[0]];
    let once = cross(v);
    let twice = cross([once[0] + w * v[0], once[1] + w * v[1], once[2] + w * v[2]]);
    std::array::from_fn(|i| pose.position[i] + v[i] + 2.0 * twice[i])
}

#[cfg(test)]
mod tests {
    use plotting::Figure;

    use super::*;

    #[test]
    fn frames_are_spread_over_the_whole_episode() {
        assert_eq!(evenly_spaced(11, 6), [0, 2, 4, 6, 8, 10]);
        assert_eq!(evenly_spaced(1001, 3), [0, 500, 1000]);
        assert_eq!(evenly_spaced(3, 8), [0, 1, 2]);
        assert_eq!(evenly_spaced(5, 1), [0]);
        assert_eq!((evenly_spaced(0, 4), evenly_spaced(4, 0)), (vec![], vec![]));
    }

    #[test]
    fn a_quarter_turn_about_z_takes_x_to_y() {
        let half = std::f64::consts::FRAC_1_SQRT_2;
        let pose = Pose { position: [1.0, 2.0, 3.0], rotation: [half, 0.0, 0.0, half] };
        for (found, expected) in placed(&pose, [1.0, 0.0, 0.5]).into_iter().zip([1.0, 3.0, 3.5]) {
            assert!((found - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn recorded_episodes_are_drawn_and_an_empty_one_is_refused() {
        for name in ["point_u_maze", "ant_u_maze"] {
            let task = goal_tasks::task(name, goal_tasks::Variant::ScalingCrl).unwrap();
            let mut record = goal_tasks::record(&task, 0, Some(20), |_, action| action.fill(0.5)).unwrap();
            let above = maze_from_above(std::slice::from_ref(&record), &[], "t", "").svg().unwrap();
            assert!(above.contains(name) && above.contains("wall"));
            assert_eq!(outcome(1, &record), "episode 1: not at the goal in 20 steps");
            record.distances[6] = 0.1;
            assert_eq!(outcome(2, &record), "episode 2: at the goal after 7 steps");
            let side = side_view(&record, 4, "t", "").svg().unwrap();
            assert_eq!(side.matches(" s\n").count(), 4);
            record.scenes.clear();
            assert!(side_view(&record, 4, "t", "").svg().unwrap_err().to_string().contains("no panel"));
        }
    }
}
