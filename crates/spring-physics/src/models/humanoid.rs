//! The humanoid: torso, waist, pelvis, legs and arms, 17 hinges.

use super::ant::target;
use crate::{
    Actuator, Axis, Block, Compatibility, Floor, Geom, Joint, Link, Model, ModelBuilder, ModelError, Options, Point,
    Surface,
};

/// What may differ between humanoids.
#[derive(Clone, Debug, PartialEq)]
pub struct Humanoid {
    /// Seconds a step: 0.003 with the versions that the paper's code pins, 0.0015 in its mazes.
    pub dt: f64,
    /// Walls of its maze.
    pub walls: Vec<Block>,
    /// Farthest that the target slides along x and y, in metres.
    pub target_range: f64,
    /// Whether brax's slips are kept; the numbers of the paper need them.
    pub compatibility: Compatibility,
}

impl Default for Humanoid {
    /// On an open floor, 0.003 s a step, as in the paper.
    fn default() -> Self {
        Self { dt: 0.003, walls: Vec::new(), target_range: 20.0, compatibility: Compatibility::Brax }
    }
}

/// The humanoid of the paper's tasks: 11 links and `target`, a ball that slides on x and y; 26 positions, 25
/// velocities, 17 motors. Links have their masses and unit inertia.
///
/// Its links meet the floor and walls, not each other. Motors drive, in this order, abdomen y, z, x; right hip x, z,
/// y and knee; the left ones; shoulders and elbow, right and left.
///
/// # Errors
/// Where a wall or a number is none that a model can have.
pub fn humanoid(humanoid: &Humanoid) -> Result<Model, ModelError> {
    let mut builder = ModelBuilder::new(Options {
        dt: humanoid.dt,
        stiffness: 27_000.0,
        velocity_damping: 80.0,
        limit_stiffness: 2500.0,
        angle_damping: 30.0,
        angular_damping: -0.05,
        mass_scale: 0.0,
        inertia_scale: 1.0,
        compatibility: humanoid.compatibility,
        ..Options::default()
    });
    let lean = [1.0, 0.0, -0.002, 0.0];
    let torso = builder.link(
        Link::new("torso", None, [0.0, 0.0, 1.4], Joint::Free)
            .with(capsule([0.0, -0.07, 0.0], [0.0, 0.07, 0.0], 0.07))
            .with(sphere([0.0, 0.0, 0.19], 0.09))
            .with(capsule([-0.01, -0.06, -0.12], [-0.01, 0.06, -0.12], 0.06)),
    );
    let abdomen =
        vec![axis("abdomen_z", [0.0, 0.0, 1.0], [-45.0, 45.0]), axis("abdomen_y", [0.0, 1.0, 0.0], [-75.0, 30.0])];
    let waist = builder.link(
        Link::new("lwaist", Some(torso), [-0.01, 0.0, -0.26], Joint::Hinges(abdomen))
            .turned(lean)
            .anchored([0.0, 0.0, 0.065])
            .with(capsule([0.0, -0.06, 0.0], [0.0, 0.06, 0.0], 0.06)),
    );
    let pelvis = builder.link(
        Link::new(
            "pelvis",
            Some(waist),
            [0.0, 0.0, -0.165],
            Joint::hinge(axis("abdomen_x", [1.0, 0.0, 0.0], [-35.0, 35.0])),
        )
        .turned(lean)
        .anchored([0.0, 0.0, 0.1])
        .with(capsule([-0.02, -0.07, 0.0], [-0.02, 0.07, 0.0], 0.09)),
    );
    for (side, sign) in [("right", -1.0), ("left", 1.0)] {
        leg(&mut builder, pelvis, side, sign);
    }
    for (side, sign) in [("right", -1.0), ("left", 1.0)] {
        arm(&mut builder, torso, side, sign);
    }
    builder.link(target(1.25, 0.5, humanoid.target_range));
    let mut motor = |joint: &str, gear| {
        builder.actuator(Actuator::new(joint, gear).between(-0.4, 0.4));
    };
    for joint in ["abdomen_y", "abdomen_z", "abdomen_x"] {
        motor(joint, 350.0);
    }
    for side in ["right", "left"] {
        for joint in ["hip_x", "hip_z", "hip_y", "knee"] {
            motor(&format!("{side}_{joint}"), 350.0);
        }
    }
    for side in ["right", "left"] {
        for joint in ["shoulder1", "shoulder2", "elbow"] {
            motor(&format!("{side}_{joint}"), 100.0);
        }
    }
    builder.floor(Floor { height: 0.0, surface: Surface::ALL });
    for wall in &humanoid.walls {
        builder.block(*wall);
    }
    builder.build()
}

/// `sign` is that of the leg's y.
fn leg(builder: &mut ModelBuilder, pelvis: usize, side: &str, sign: f64) {
    let hips = vec![
        axis(&format!("{side}_hip_x"), [-sign, 0.0, 0.0], [-25.0, 5.0]),
        axis(&format!("{side}_hip_z"), [0.0, 0.0, -sign], [-60.0, 35.0]),
        axis(&format!("{side}_hip_y"), [0.0, 1.0, 0.0], [-110.0, 20.0]),
    ];
    let thigh =
        builder.link(
            Link::new(format!("{side}_thigh"), Some(pelvis), [0.0, 0.1 * sign, -0.04], Joint::Hinges(hips))
                .with(capsule([0.0; 3], [0.0, -0.01 * sign, -0.34], 0.06)),
        );
    let knee = axis(&format!("{side}_knee"), [0.0, -1.0, 0.0], [-160.0, -2.0]);
    builder.link(
        Link::new(format!("{side}_shin"), Some(thigh), [0.0, -0.01 * sign, -0.403], Joint::hinge(knee))
            .anchored([0.0, 0.0, 0.02])
            .with(capsule([0.0; 3], [0.0, 0.0, -0.3], 0.049))
            .with(sphere([0.0, 0.0, -0.35], 0.075)),
    );
}

/// `sign` is that of the arm's y.
fn arm(builder: &mut ModelBuilder, torso: usize, side: &str, sign: f64) {
    let range = if sign < 0.0 { [-85.0, 60.0] } else { [-60.0, 85.0] };
    let shoulders = vec![
        axis(&format!("{side}_shoulder1"), [2.0, -sign, 1.0], range),
        axis(&format!("{side}_shoulder2"), [0.0, sign, 1.0], range),
    ];
    let upper = builder.link(
        Link::new(format!("{side}_upper_arm"), Some(torso), [0.0, 0.17 * sign, 0.06], Joint::Hinges(shoulders))
            .with(capsule([0.0; 3], [0.16, 0.16 * sign, -0.16], 0.04)),
    );
    let elbow = axis(&format!("{side}_elbow"), [0.0, -1.0, -sign], [-90.0, 50.0]);
    builder.link(
        Link::new(format!("{side}_lower_arm"), Some(upper), [0.18, 0.18 * sign, -0.18], Joint::hinge(elbow))
            .with(capsule([0.01, -0.01 * sign, 0.01], [0.17, -0.17 * sign, 0.17], 0.031))
            .with(sphere([0.18, -0.18 * sign, 0.18], 0.04)),
    );
}

/// Surfaces that meet the floor and walls, but not each other.
const SKIN: Surface = Surface { contype: 1, conaffinity: 0, friction: 1.0 };

fn capsule(from: Point, to: Point, radius: f64) -> Geom {
    Geom::capsule(from, to, radius).surface(SKIN)
}

fn sphere(center: Point, radius: f64) -> Geom {
    Geom::sphere(center, radius).surface(SKIN)
}

fn axis(name: &str, direction: Point, [low, high]: [f64; 2]) -> Axis {
    Axis::new(name, direction).between_degrees(low, high)
}
