//! The ant: a torso on four legs of two links, each with a hip and an ankle.

use crate::{
    Actuator, Axis, Block, Compatibility, Floor, Geom, Joint, Link, Model, ModelBuilder, ModelError, Options, Surface,
};

/// Number of the ant's torso among its links.
const TORSO: usize = 0;

/// What may differ between ants.
#[derive(Clone, Debug, PartialEq)]
pub struct Ant {
    /// Seconds a step.
    pub dt: f64,
    /// Walls of its maze, with surfaces of their own; feet and torso meet them where these say so, legs meet nothing.
    pub walls: Vec<Block>,
    /// Farthest that the target slides along x and y, in metres.
    pub target_range: f64,
    /// Whether brax's slips are kept; the numbers of the paper need them.
    pub compatibility: Compatibility,
}

impl Default for Ant {
    /// On an open floor, 0.005 s a step, as in the paper.
    fn default() -> Self {
        Self { dt: 0.005, walls: Vec::new(), target_range: 100.0, compatibility: Compatibility::Brax }
    }
}

impl Ant {
    /// Positions in which it stands on its feet with the torso at `(x, y, 0.55)` and the target at `(0, 0)`.
    pub fn standing(x: f64, y: f64) -> [f64; 17] {
        [x, y, 0.55, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, -1.0, 0.0, -1.0, 0.0, 1.0, 0.0, 0.0]
    }
}

/// The ant of the maze tasks: links `torso`, for each leg `upper_n` and `lower_n`, and `target`, a ball that slides
/// on x and y; 17 positions, 16 velocities, 8 motors. Every link moves as if it had mass 1 and unit inertia.
///
/// Feet meet the floor, walls, parts of the torso and each other; the torso meets walls but not the floor. Motors
/// drive, in this order, hip and ankle of legs 4, 1, 2 and 3.
///
/// # Errors
/// Where a wall or a number is none that a model can have.
pub fn ant(ant: &Ant) -> Result<Model, ModelError> {
    let mut builder = ModelBuilder::new(Options {
        dt: ant.dt,
        stiffness: 4000.0,
        velocity_damping: 20.0,
        limit_stiffness: 1000.0,
        angle_damping: 10.0,
        mass_scale: 1.0,
        inertia_scale: 1.0,
        compatibility: ant.compatibility,
        ..Options::default()
    });
    let passive = Surface { contype: 0, conaffinity: 1, friction: 1.0 };
    let signs = [[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]];
    let leg = |[x, y]: [f64; 2], length: f64| {
        Geom::capsule([0.0; 3], [x * length, y * length, 0.0], 0.08).density(5.0).surface(Surface::NONE)
    };
    let mut torso = Link::new("torso", None, [0.0, 0.0, 0.75], Joint::Free)
        .with(Geom::sphere([0.0; 3], 0.25).density(5.0).surface(passive));
    for sign in signs {
        torso = torso.with(leg(sign, 0.2).surface(passive));
    }
    builder.link(torso);
    let ankles = [([-1.0, 1.0], [30.0, 70.0]), ([1.0, 1.0], [-70.0, -30.0])];
    let ankles = [ankles[0], ankles[1], ([-1.0, 1.0], [-70.0, -30.0]), ([1.0, 1.0], [30.0, 70.0])];
    for (n, (sign, (axis, [low, high]))) in signs.into_iter().zip(ankles).enumerate() {
        let n = n + 1;
        let at = [0.2 * sign[0], 0.2 * sign[1], 0.0];
        let hip = Axis::new(format!("hip_{n}"), [0.0, 0.0, 1.0]).between_degrees(-30.0, 30.0);
        let upper =
            builder.link(Link::new(format!("upper_{n}"), Some(TORSO), at, Joint::hinge(hip)).with(leg(sign, 0.2)));
        let ankle = Axis::new(format!("ankle_{n}"), [axis[0], axis[1], 0.0]).between_degrees(low, high);
        let foot = Geom::sphere([0.4 * sign[0], 0.4 * sign[1], 0.0], 0.08).mass(0.0).surface(Surface::ALL);
        let lower = Link::new(format!("lower_{n}"), Some(upper), at, Joint::hinge(ankle));
        builder.link(lower.with(leg(sign, 0.4)).with(foot));
    }
    builder.link(target(0.01, 0.9, ant.target_range));
    for n in [4, 1, 2, 3] {
        builder.actuator(Actuator::new(format!("hip_{n}"), 150.0));
        builder.actuator(Actuator::new(format!("ankle_{n}"), 150.0));
    }
    builder.floor(Floor { height: 0.0, surface: passive });
    for wall in &ant.walls {
        builder.block(*wall);
    }
    builder.build()
}

/// The ball that marks a goal.
pub(super) fn target(height: f64, radius: f64, range: f64) -> Link {
    let slides = vec![
        Axis::new("target_x", [1.0, 0.0, 0.0]).between(-range, range),
        Axis::new("target_y", [0.0, 1.0, 0.0]).between(-range, range),
    ];
    Link::new("target", None, [0.0, 0.0, height], Joint::Slides(slides))
        .with(Geom::sphere([0.0; 3], radius).mass(1.0).surface(Surface::NONE))
}
