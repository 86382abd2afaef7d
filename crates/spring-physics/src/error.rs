//! What can be wrong with a model or with what a simulation is given.

use thiserror::Error;

/// Why a description of bodies is no model.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ModelError {
    /// There is nothing to simulate.
    #[error("a model needs at least one link")]
    NoLinks,
    /// A number that is not finite, or outside what it may be.
    #[error("{place}: {what} is {value}, but must be {allowed}")]
    Number {
        /// The link, geom, joint, actuator or option.
        place: String,
        /// Which number.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What it may be.
        allowed: &'static str,
    },
    /// Two things of one kind have the same name.
    #[error("there are two {kind}s named `{name}`")]
    DuplicateName {
        /// Link or joint.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A parent that is not one of the links before.
    #[error("link `{link}` (number {index}) has parent {parent}: parents come before their children")]
    Parent {
        /// Name of the link.
        link: String,
        /// Its number.
        index: usize,
        /// The parent it names.
        parent: usize,
    },
    /// A free joint on a link that has a parent.
    #[error("link `{0}` is free and has a parent: a free link hangs on the world")]
    FreeChild(String),
    /// Too few or too many axes.
    #[error("link `{link}` has {count} {kind}, but may have {allowed}")]
    AxisCount {
        /// Name of the link.
        link: String,
        /// Hinges or slides.
        kind: &'static str,
        /// How many.
        count: usize,
        /// How many there may be.
        allowed: &'static str,
    },
    /// Axes of one link that are not at right angles.
    #[error("joints `{first}` and `{second}` of link `{link}` are not at right angles")]
    AxesNotOrthogonal {
        /// Name of the link.
        link: String,
        /// Name of the one joint.
        first: String,
        /// Name of the other.
        second: String,
    },
    /// A link without mass.
    #[error("link `{0}` has no mass: give one of its geoms a density or a mass")]
    NoMass(String),
    /// An actuator for a joint that does not exist.
    #[error("actuator {index} drives joint `{joint}`, which no link has")]
    UnknownJoint {
        /// Number of the actuator.
        index: usize,
        /// The joint it names.
        joint: String,
    },
    /// A model beyond what is sensible to simulate.
    #[error("the model has {count} {what}; at most {limit} are supported")]
    TooLarge {
        /// Links, geoms or boxes.
        what: &'static str,
        /// How many.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
}

/// Why a simulation cannot do what it is asked for.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SimulationError {
    /// No environments, or more than fit.
    #[error("{0} environments were asked for; there may be 1 to {limit}", limit = crate::simulation::MOST_ENVIRONMENTS)]
    Environments(usize),
    /// An environment that does not exist.
    #[error("environment {environment} was asked for, but there are {count}")]
    NoSuchEnvironment {
        /// Its number.
        environment: usize,
        /// How many there are.
        count: usize,
    },
    /// A slice of another length than the model asks for.
    #[error("{what} has {actual} numbers, but {expected} are needed")]
    Length {
        /// Which slice.
        what: &'static str,
        /// Its length.
        actual: usize,
        /// The right one.
        expected: usize,
    },
    /// A number that is not finite.
    #[error("{what}: number {index} is not finite")]
    NotFinite {
        /// Which slice.
        what: &'static str,
        /// Where in it.
        index: usize,
    },
    /// A root orientation of length zero.
    #[error("the orientation of link `{0}` is a quaternion of length zero")]
    NoOrientation(String),
}
