//! A checked model: what its links weigh, how its numbers are counted, and where it starts.

use nalgebra::{Matrix3, UnitQuaternion, Vector3};

use crate::{
    inertia::Inertia,
    spec::{Actuator, Block, Floor, Joint, Link, Options},
};

/// Articulated bodies and the world they meet; made by a [`ModelBuilder`](crate::ModelBuilder).
///
/// Positions `q` and velocities `qd` are counted link by link. A free link has 7 positions (point, quaternion `w, x,
/// y, z`) and 6 velocities (of its origin in world axes, then angular in its own axes); a hinge has its angle in
/// radians and its rate, a slide its distance in metres and its speed.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) options: Options,
    pub(crate) links: Vec<Link>,
    pub(crate) bodies: Vec<Body>,
    pub(crate) dofs: Vec<Dof>,
    pub(crate) actuators: Vec<Actuator>,
    pub(crate) drives: Vec<Drive>,
    pub(crate) floor: Option<Floor>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) q_len: usize,
    pub(crate) qd_len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    Free,
    Hinges,
    Slides,
}

/// What follows from a link.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub motion: Motion,
    /// Of length 1, at right angles.
    pub axes: Vec<Vector3<f64>>,
    /// Its first position and velocity.
    pub q: usize,
    pub qd: usize,
    pub rotation: UnitQuaternion<f64>,
    pub inertia: Inertia,
    /// `mass^(1 - mass_scale)`.
    pub effective_mass: f64,
    /// Of the scaled inertia, along the axes of the link.
    pub inverse_inertia: Matrix3<f64>,
}

/// A named degree of freedom: a hinge or a slide.
#[derive(Clone, Debug, PartialEq)]
pub struct Dof {
    /// Name of the joint.
    pub name: String,
    /// Number of the link it moves.
    pub link: usize,
    /// Where its position stands in `q`.
    pub q: usize,
    /// Where its velocity stands in `qd`, and its torque among those of actuators.
    pub qd: usize,
    /// Smallest and largest position.
    pub range: Option<[f64; 2]>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Drive {
    pub qd: usize,
    pub gear: f64,
    pub range: [f64; 2],
}

impl Model {
    /// The constants of its dynamics.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Its links, in the order in which they were added.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The number of the link with this name.
    pub fn link_index(&self, name: &str) -> Option<usize> {
        self.links.iter().position(|link| link.name == name)
    }

    /// Its hinges and slides, in the order of `qd`.
    pub fn dofs(&self) -> &[Dof] {
        &self.dofs
    }

    /// Numbers in `q`.
    pub fn q_len(&self) -> usize {
        self.q_len
    }

    /// Numbers in `qd`.
    pub fn qd_len(&self) -> usize {
        self.qd_len
    }

    /// Number of actuators.
    pub fn control_len(&self) -> usize {
        self.drives.len()
    }

    /// Smallest and largest control of each actuator; controls are cut to it.
    pub fn control_ranges(&self) -> impl ExactSizeIterator<Item = [f64; 2]> {
        self.drives.iter().map(|drive| drive.range)
    }

    /// Its motors, in the order of controls.
    pub fn actuators(&self) -> &[Actuator] {
        &self.actuators
    }

    /// Boxes of the world.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The floor, if there is one.
    pub fn floor(&self) -> Option<Floor> {
        self.floor
    }

    /// Kilograms of a link, by its geoms.
    ///
    /// # Panics
    /// Where there is no such link; so do the other functions about a link.
    pub fn mass(&self, link: usize) -> f64 {
        self.bodies[link].inertia.mass
    }

    /// Kilograms of all links, by their geoms.
    pub fn total_mass(&self) -> f64 {
        self.bodies.iter().map(|body| body.inertia.mass).sum()
    }

    /// The mass that the dynamics use: `mass^(1 - mass_scale)`.
    pub fn effective_mass(&self, link: usize) -> f64 {
        self.bodies[link].effective_mass
    }

    /// Centre of mass of a link in its frame.
    pub fn center_of_mass(&self, link: usize) -> [f64; 3] {
        self.bodies[link].inertia.center.into()
    }

    /// Tensor of inertia of a link by its geoms, about its centre of mass and along its axes: rows of kilograms times
    /// square metres.
    pub fn inertia(&self, link: usize) -> [[f64; 3]; 3] {
        self.bodies[link].inertia.tensor.transpose().into()
    }

    /// Inverse of the inertia that the dynamics use, along the axes of the link, by rows.
    pub fn inverse_inertia(&self, link: usize) -> [[f64; 3]; 3] {
        self.bodies[link].inverse_inertia.transpose().into()
    }

    /// Positions at rest: free links where they were placed, every joint at zero.
    pub fn rest(&self) -> Vec<f64> {
        let mut q = vec![0.0; self.q_len];
        for (link, body) in self.links.iter().zip(&self.bodies) {
            if link.joint == Joint::Free {
                q[body.q..body.q + 3].copy_from_slice(&link.position);
                let [x, y, z, w] = body.rotation.coords.into();
                q[body.q + 3..body.q + 7].copy_from_slice(&[w, x, y, z]);
            }
        }
        q
    }
}
