//! From a description to a checked [`Model`].

use std::collections::HashSet;

use nalgebra::{Quaternion, UnitQuaternion, Vector3};

use crate::{
    error::ModelError,
    inertia::Inertia,
    model::{Body, Dof, Drive, Model, Motion},
    spec::{Actuator, Axis, Block, Floor, Geom, Joint, Link, Mass, Options, Shape, Surface},
};

/// Most links, geoms of links, and boxes of the world.
const LIMITS: [usize; 3] = [1024, 4096, 1 << 16];

/// Collects links, actuators and the world, and checks them in [`build`](Self::build).
///
/// ```
/// use spring_physics::{Actuator, Axis, Geom, Joint, Link, ModelBuilder, Options, Simulation, Surface};
/// // A pole on a cart.
/// let mut builder = ModelBuilder::new(Options { stiffness: 10_000.0, ..Options::default() });
/// let rail = Joint::slide(Axis::new("rail", [1.0, 0.0, 0.0]).between(-2.0, 2.0));
/// let cart = builder.link(
///     Link::new("cart", None, [0.0, 0.0, 1.0], rail)
///         .with(Geom::sphere([0.0; 3], 0.1).mass(1.0).surface(Surface::NONE)),
/// );
/// builder.link(
///     Link::new("pole", Some(cart), [0.0; 3], Joint::hinge(Axis::new("pivot", [0.0, 1.0, 0.0])))
///         .with(Geom::capsule([0.0; 3], [0.0, 0.0, 0.6], 0.05).mass(0.5).surface(Surface::NONE)),
/// );
/// builder.actuator(Actuator::new("rail", 10.0));
/// let model = builder.build()?;
/// assert_eq!((model.q_len(), model.qd_len(), model.control_len()), (2, 2, 1));
///
/// // Two carts are pushed to either side for half a second.
/// let mut simulation = Simulation::<f32>::new(model, 2)?;
/// simulation.step(&[0.5, -0.5], 100);
/// assert!(simulation.environment(0).q()[0] > 0.1 && simulation.environment(1).q()[0] < -0.1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ModelBuilder {
    options: Options,
    links: Vec<Link>,
    actuators: Vec<Actuator>,
    floor: Option<Floor>,
    blocks: Vec<Block>,
}

impl ModelBuilder {
    /// An empty model.
    pub fn new(options: Options) -> Self {
        Self { options, links: Vec::new(), actuators: Vec::new(), floor: None, blocks: Vec::new() }
    }

    /// Adds a link and returns its number, by which children name it.
    pub fn link(&mut self, link: Link) -> usize {
        self.links.push(link);
        self.links.len() - 1
    }

    /// Adds a motor. The order in which they are added is the order of controls.
    pub fn actuator(&mut self, actuator: Actuator) -> &mut Self {
        self.actuators.push(actuator);
        self
    }

    /// Sets the floor.
    pub fn floor(&mut self, floor: Floor) -> &mut Self {
        self.floor = Some(floor);
        self
    }

    /// Adds a box to the world.
    pub fn block(&mut self, block: Block) -> &mut Self {
        self.blocks.push(block);
        self
    }

    /// The model, checked.
    ///
    /// # Errors
    /// Where a number is not finite or not allowed, names are taken twice, parents do not come before their children,
    /// axes of a link are not at right angles, a link has no mass, or an actuator drives no joint.
    pub fn build(self) -> Result<Model, ModelError> {
        check_options(&self.options)?;
        if self.links.is_empty() {
            return Err(ModelError::NoLinks);
        }
        let geoms: usize = self.links.iter().map(|link| link.geoms.len()).sum();
        let counts = [("links", self.links.len()), ("geoms", geoms), ("boxes", self.blocks.len())];
        for ((what, count), limit) in counts.into_iter().zip(LIMITS) {
            if count > limit {
                return Err(ModelError::TooLarge { what, count, limit });
            }
        }
        let mut names = HashSet::new();
        let (mut bodies, mut dofs) = (Vec::new(), Vec::new());
        let (mut q, mut qd) = (0, 0);
        for (index, link) in self.links.iter().enumerate() {
            if !names.insert(link.name.as_str()) {
                return Err(ModelError::DuplicateName { kind: "link", name: link.name.clone() });
            }
            let body = check_link(index, link, q, qd, &self.options)?;
            if let Joint::Hinges(axes) | Joint::Slides(axes) = &link.joint {
                dofs.extend(axes.iter().zip(&body.axes).enumerate().map(|(k, (axis, _))| Dof {
                    name: axis.name.clone(),
                    link: index,
                    q: q + k,
                    qd: qd + k,
                    range: axis.range,
                }));
            }
            (q, qd) = (q + link.joint.q_len(), qd + link.joint.qd_len());
            bodies.push(body);
        }
        let mut joint_names = HashSet::new();
        if let Some(dof) = dofs.iter().find(|dof| !joint_names.insert(dof.name.as_str())) {
            return Err(ModelError::DuplicateName { kind: "joint", name: dof.name.clone() });
        }
        let drives = check_actuators(&self.actuators, &dofs)?;
        if let Some(floor) = &self.floor {
            finite("the floor", "height", &[floor.height])?;
            check_surface("the floor", floor.surface)?;
        }
        for (index, block) in self.blocks.iter().enumerate() {
            let place = format!("box {index}");
            finite(&place, "center", &block.center)?;
            for &value in &block.half_size {
                check(&place, "half size", value, value > 0.0 && value.is_finite(), "positive")?;
            }
            check_surface(&place, block.surface)?;
        }
        Ok(Model {
            options: self.options,
            links: self.links,
            bodies,
            dofs,
            actuators: self.actuators,
            drives,
            floor: self.floor,
            blocks: self.blocks,
            q_len: q,
            qd_len: qd,
        })
    }
}

impl Joint {
    /// Positions of the joint.
    pub(crate) fn q_len(&self) -> usize {
        match self {
            Self::Free => 7,
            Self::Hinges(axes) | Self::Slides(axes) => axes.len(),
        }
    }

    /// Velocities of the joint.
    pub(crate) fn qd_len(&self) -> usize {
        match self {
            Self::Free => 6,
            Self::Hinges(axes) | Self::Slides(axes) => axes.len(),
        }
    }
}

fn check(place: &str, what: &'static str, value: f64, holds: bool, allowed: &'static str) -> Result<(), ModelError> {
    if holds { Ok(()) } else { Err(ModelError::Number { place: place.to_owned(), what, value, allowed }) }
}

fn finite(place: &str, what: &'static str, values: &[f64]) -> Result<(), ModelError> {
    values.iter().try_for_each(|&value| check(place, what, value, value.is_finite(), "finite"))
}

fn check_options(options: &Options) -> Result<(), ModelError> {
    let place = "the options";
    check(place, "dt", options.dt, options.dt > 0.0 && options.dt.is_finite(), "positive")?;
    finite(place, "gravity", &options.gravity)?;
    let not_negative = [
        ("stiffness", options.stiffness),
        ("velocity damping", options.velocity_damping),
        ("limit stiffness", options.limit_stiffness),
        ("angle damping", options.angle_damping),
        ("baumgarte", options.baumgarte),
        ("elasticity", options.elasticity),
    ];
    for (what, value) in not_negative {
        check(place, what, value, value >= 0.0 && value.is_finite(), "zero or more")?;
    }
    finite(place, "linear damping", &[options.linear_damping])?;
    finite(place, "angular damping", &[options.angular_damping])?;
    for (what, value) in [("mass scale", options.mass_scale), ("inertia scale", options.inertia_scale)] {
        check(place, what, value, (0.0..=1.0).contains(&value), "from 0 to 1")?;
    }
    Ok(())
}

fn check_surface(place: &str, surface: Surface) -> Result<(), ModelError> {
    let friction = surface.friction;
    check(place, "friction", friction, friction >= 0.0 && friction.is_finite(), "zero or more")
}

fn check_geom(place: &str, geom: &Geom) -> Result<(), ModelError> {
    let radius = match geom.shape {
        Shape::Sphere { center, radius } => {
            finite(place, "center", &center)?;
            radius
        }
        Shape::Capsule { from, to, radius } => {
            finite(place, "from", &from)?;
            finite(place, "to", &to)?;
            let length = (Vector3::from(to) - Vector3::from(from)).norm();
            check(place, "length", length, length > 0.0, "positive (a capsule without length is a sphere)")?;
            radius
        }
    };
    check(place, "radius", radius, radius > 0.0 && radius.is_finite(), "positive")?;
    let (what, mass) = match geom.mass {
        Mass::Density(density) => ("density", density),
        Mass::Total(mass) => ("mass", mass),
    };
    check(place, what, mass, mass >= 0.0 && mass.is_finite(), "zero or more")?;
    check_surface(place, geom.surface)
}

fn check_link(index: usize, link: &Link, q: usize, qd: usize, options: &Options) -> Result<Body, ModelError> {
    let name = &link.name;
    let place = format!("link `{name}`");
    if let Some(parent) = link.parent.filter(|&parent| parent >= index) {
        return Err(ModelError::Parent { link: name.clone(), index, parent });
    }
    finite(&place, "position", &link.position)?;
    finite(&place, "rotation", &link.rotation)?;
    finite(&place, "anchor", &link.anchor)?;
    let [w, x, y, z] = link.rotation;
    let length = Quaternion::new(w, x, y, z).norm();
    check(&place, "length of the rotation", length, length > 0.0 && length.is_finite(), "positive")?;
    for (k, geom) in link.geoms.iter().enumerate() {
        check_geom(&format!("link `{name}`, geom {k}"), geom)?;
    }
    let (motion, axes) = match &link.joint {
        Joint::Free if link.parent.is_some() => return Err(ModelError::FreeChild(name.clone())),
        Joint::Free => (Motion::Free, Vec::new()),
        Joint::Hinges(axes) => (Motion::Hinges, check_axes(name, "hinges", axes, 3, "1 to 3")?),
        Joint::Slides(axes) => (Motion::Slides, check_axes(name, "slides", axes, 2, "1 or 2")?),
    };
    let inertia = Inertia::of(&link.geoms);
    if inertia.mass <= 0.0 {
        return Err(ModelError::NoMass(name.clone()));
    }
    check(&place, "mass", inertia.mass, inertia.mass.is_finite(), "finite")?;
    let inverse_inertia = inertia.inverse(options.inertia_scale);
    let inverse_is_finite = inverse_inertia.iter().all(|value| value.is_finite());
    check(&place, "inverse inertia", inverse_inertia[(0, 0)], inverse_is_finite, "finite")?;
    Ok(Body {
        motion,
        axes,
        q,
        qd,
        rotation: UnitQuaternion::from_quaternion(Quaternion::new(w, x, y, z)),
        effective_mass: inertia.mass.powf(1.0 - options.mass_scale),
        inverse_inertia,
        inertia,
    })
}

/// The axes with length 1.
fn check_axes(
    link: &str,
    kind: &'static str,
    axes: &[Axis],
    most: usize,
    allowed: &'static str,
) -> Result<Vec<Vector3<f64>>, ModelError> {
    if axes.is_empty() || axes.len() > most {
        return Err(ModelError::AxisCount { link: link.to_owned(), kind, count: axes.len(), allowed });
    }
    let mut directions: Vec<Vector3<f64>> = Vec::new();
    for (k, axis) in axes.iter().enumerate() {
        let place = format!("joint `{}`", axis.name);
        finite(&place, "axis", &axis.direction)?;
        let direction = Vector3::from(axis.direction);
        let length = direction.norm();
        check(&place, "length of the axis", length, length > 0.0 && length.is_finite(), "positive")?;
        if let Some([low, high]) = axis.range {
            check(&place, "lower limit", low, !low.is_nan(), "a number")?;
            check(&place, "upper limit", high, high >= low, "at least the lower one")?;
        }
        let direction = direction / length;
        if let Some(other) = directions.iter().position(|other| other.dot(&direction).abs() > 1e-6) {
            return Err(ModelError::AxesNotOrthogonal {
                link: link.to_owned(),
                first: axes[other].name.clone(),
                second: axes[k].name.clone(),
            });
        }
        directions.push(direction);
    }
    Ok(directions)
}

fn check_actuators(actuators: &[Actuator], dofs: &[Dof]) -> Result<Vec<Drive>, ModelError> {
    let one = |(index, actuator): (usize, &Actuator)| {
        let place = format!("actuator {index} (`{}`)", actuator.joint);
        finite(&place, "gear", &[actuator.gear])?;
        let [low, high] = actuator.control_range;
        check(&place, "lower control", low, !low.is_nan(), "a number")?;
        check(&place, "upper control", high, high >= low, "at least the lower one")?;
        let dof = dofs
            .iter()
            .find(|dof| dof.name == actuator.joint)
            .ok_or_else(|| ModelError::UnknownJoint { index, joint: actuator.joint.clone() })?;
        Ok(Drive { qd: dof.qd, gear: actuator.gear, range: actuator.control_range })
    };
    actuators.iter().enumerate().map(one).collect()
}
