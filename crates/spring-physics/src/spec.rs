//! What a model is made of: links with geoms and joints, actuators, the world they meet, and options.

/// Metres, in the frame of a link or of the world.
pub type Point = [f64; 3];

/// A rigid body with the joint that holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Its name, unique among links.
    pub name: String,
    /// The link it hangs on; the world where `None`.
    pub parent: Option<usize>,
    /// Origin of its frame in the parent's frame, at rest.
    pub position: Point,
    /// Orientation `w, x, y, z` of its frame in the parent's frame, at rest; any length but zero.
    pub rotation: [f64; 4],
    /// Where the joint is, in the frame of the link.
    pub anchor: Point,
    /// How it may move against its parent.
    pub joint: Joint,
    /// Its mass and what it touches the world with.
    pub geoms: Vec<Geom>,
}

impl Link {
    /// A link with its frame at `position` of the parent's (of the world's, where `parent` is `None`).
    pub fn new(name: impl Into<String>, parent: Option<usize>, position: Point, joint: Joint) -> Self {
        Self {
            name: name.into(),
            parent,
            position,
            rotation: [1.0, 0.0, 0.0, 0.0],
            anchor: [0.0; 3],
            joint,
            geoms: Vec::new(),
        }
    }

    /// With its frame turned against the parent's: `w, x, y, z`.
    pub fn turned(mut self, rotation: [f64; 4]) -> Self {
        self.rotation = rotation;
        self
    }

    /// With its joint at a point of its frame other than the origin.
    pub fn anchored(mut self, anchor: Point) -> Self {
        self.anchor = anchor;
        self
    }

    /// With one more geom.
    pub fn with(mut self, geom: Geom) -> Self {
        self.geoms.push(geom);
        self
    }
}

/// How a link may move against its parent. Axes of one link are at right angles to each other.
#[derive(Clone, Debug, PartialEq)]
pub enum Joint {
    /// Freely: 7 positions (point, quaternion) and 6 velocities. Only without a parent.
    Free,
    /// About one to three axes through the anchor, each turned by those before it.
    Hinges(Vec<Axis>),
    /// Along one or two axes.
    Slides(Vec<Axis>),
}

impl Joint {
    /// A single hinge.
    pub fn hinge(axis: Axis) -> Self {
        Self::Hinges(vec![axis])
    }

    /// A single slide.
    pub fn slide(axis: Axis) -> Self {
        Self::Slides(vec![axis])
    }
}

/// One degree of freedom of a joint.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its name, unique among joints.
    pub name: String,
    /// Direction in the frame of the link, for a slide in that of the parent turned by the link's rotation; any
    /// length but zero.
    pub direction: Point,
    /// Smallest and largest position, in radians or metres.
    pub range: Option<[f64; 2]>,
}

impl Axis {
    /// An axis without limits.
    pub fn new(name: impl Into<String>, direction: Point) -> Self {
        Self { name: name.into(), direction, range: None }
    }

    /// With limits in radians (hinges) or metres (slides).
    pub fn between(mut self, low: f64, high: f64) -> Self {
        self.range = Some([low, high]);
        self
    }

    /// With limits in degrees.
    pub fn between_degrees(self, low: f64, high: f64) -> Self {
        self.between(low.to_radians(), high.to_radians())
    }
}

/// Where the mass of a geom comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mass {
    /// Kilograms a cubic metre.
    Density(f64),
    /// Kilograms.
    Total(f64),
}

/// The surface of a geom, in the frame of its link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// A ball.
    Sphere {
        /// Its middle.
        center: Point,
        /// Its radius in metres.
        radius: f64,
    },
    /// All points within a radius of a segment.
    Capsule {
        /// One end of the segment.
        from: Point,
        /// The other end.
        to: Point,
        /// The radius in metres.
        radius: f64,
    },
}

/// Which surfaces touch, and how rough they are. As in MuJoCo, two of them touch if a bit of the `contype` of one is
/// in the `conaffinity` of the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surface {
    /// Bits that are looked for in the other's affinity.
    pub contype: u32,
    /// Bits that the other's type is looked for in.
    pub conaffinity: u32,
    /// Coefficient of sliding friction; the larger of the two counts.
    pub friction: f64,
}

impl Surface {
    /// Touches nothing.
    pub const NONE: Self = Self { contype: 0, conaffinity: 0, friction: 1.0 };
    /// Touches every surface that is not `NONE`.
    pub const ALL: Self = Self { contype: 1, conaffinity: 1, friction: 1.0 };

    /// Whether two surfaces touch.
    pub fn touches(self, other: Self) -> bool {
        self.contype & other.conaffinity != 0 || other.contype & self.conaffinity != 0
    }
}

/// A part of a link: mass and surface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Geom {
    /// Its form.
    pub shape: Shape,
    /// Its mass.
    pub mass: Mass,
    /// What it touches.
    pub surface: Surface,
}

impl Geom {
    /// A ball with the density of water that touches all there is.
    pub fn sphere(center: Point, radius: f64) -> Self {
        Self { shape: Shape::Sphere { center, radius }, mass: Mass::Density(1000.0), surface: Surface::ALL }
    }

    /// A capsule with the density of water that touches all there is.
    pub fn capsule(from: Point, to: Point, radius: f64) -> Self {
        Self { shape: Shape::Capsule { from, to, radius }, mass: Mass::Density(1000.0), surface: Surface::ALL }
    }

    /// With another density, in kilograms a cubic metre.
    pub fn density(mut self, density: f64) -> Self {
        self.mass = Mass::Density(density);
        self
    }

    /// With this mass in kilograms.
    pub fn mass(mut self, mass: f64) -> Self {
        self.mass = Mass::Total(mass);
        self
    }

    /// With another surface.
    pub fn surface(mut self, surface: Surface) -> Self {
        self.surface = surface;
        self
    }
}

/// A motor on one axis: its force is `gear * control`, the control cut to its range.
#[derive(Clone, Debug, PartialEq)]
pub struct Actuator {
    /// Name of the axis.
    pub joint: String,
    /// Newton metres (newtons for a slide) at control 1.
    pub gear: f64,
    /// Smallest and largest control.
    pub control_range: [f64; 2],
}

impl Actuator {
    /// A motor with controls from -1 to 1.
    pub fn new(joint: impl Into<String>, gear: f64) -> Self {
        Self { joint: joint.into(), gear, control_range: [-1.0, 1.0] }
    }

    /// With another range of controls.
    pub fn between(mut self, low: f64, high: f64) -> Self {
        self.control_range = [low, high];
        self
    }
}

/// A box of the world with its sides along the axes, such as the wall of a maze.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Its middle.
    pub center: Point,
    /// Half its extent along each axis.
    pub half_size: Point,
    /// What it touches.
    pub surface: Surface,
}

impl Block {
    /// A box that touches all there is.
    pub fn new(center: Point, half_size: Point) -> Self {
        Self { center, half_size, surface: Surface::ALL }
    }
}

/// The floor: all points of the world below a height are inside it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    /// Height in metres.
    pub height: f64,
    /// What it touches.
    pub surface: Surface,
}

/// Whether two slips of brax's spring backend are kept, and how velocities are reset and read.
///
/// Numbers of the paper's models are reproduced only with them; a new model has no reason to keep them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compatibility {
    /// The physics that is meant: damping acts on the relative velocity of the two anchors, contacts know the inertia
    /// of the links that meet, and velocities of joints are the rates of their positions.
    #[default]
    Exact,
    /// As brax computes: the lever arm in the damped velocity is reversed and the child's velocity is taken at its
    /// origin; contacts take one element of the stacked inverse inertias for the inverse inertia of a link; resets
    /// turn angular velocities of all hinges of a link by its whole orientation and use the root's quaternion as it
    /// is given; nearest points of segments are softened by 1e-6.
    Brax,
}

/// Constants of the dynamics; one set for all joints.
///
/// Steps are explicit, so springs and dampers must not be too strong for what they hold: `stiffness * dt^2` and
/// `velocity_damping * dt` well below the smallest mass, `limit_stiffness * dt^2` and `angle_damping * dt` well below
/// the smallest moment of inertia, both as scaled. That is why the scale of inertias is 1 unless it is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Seconds a step.
    pub dt: f64,
    /// Metres a square second.
    pub gravity: Point,
    /// Spring that holds anchors together and axes aligned: newtons a metre, newton metres a radian.
    pub stiffness: f64,
    /// Damping of the relative velocity of anchors: newton seconds a metre.
    pub velocity_damping: f64,
    /// Spring against positions outside a range.
    pub limit_stiffness: f64,
    /// Damping of the relative angular velocity: newton metre seconds.
    pub angle_damping: f64,
    /// Velocities grow by `exp(linear_damping * dt)` a step, so damping is negative.
    pub linear_damping: f64,
    /// Angular velocities grow by `exp(angular_damping * dt)` a step.
    pub angular_damping: f64,
    /// Share of a penetration that contacts undo in a step.
    pub baumgarte: f64,
    /// Share of the approaching velocity that contacts return.
    pub elasticity: f64,
    /// The dynamics use `mass^(1 - mass_scale)`.
    pub mass_scale: f64,
    /// The dynamics use `inertia^(1 - inertia_scale)`, for each principal moment: at 1 every link has unit inertia.
    pub inertia_scale: f64,
    /// Whether brax's slips are kept.
    pub compatibility: Compatibility,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dt: 0.005,
            gravity: [0.0, 0.0, -9.81],
            stiffness: 4000.0,
            velocity_damping: 20.0,
            limit_stiffness: 1000.0,
            angle_damping: 10.0,
            linear_damping: 0.0,
            angular_damping: 0.0,
            baumgarte: 0.1,
            elasticity: 0.0,
            mass_scale: 0.0,
            inertia_scale: 1.0,
            compatibility: Compatibility::Exact,
        }
    }
}
