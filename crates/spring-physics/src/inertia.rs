//! Mass, centre of mass and moments of inertia of links, from their geoms.

use std::f64::consts::PI;

use nalgebra::{Matrix3, Rotation3, Vector3};

use crate::spec::{Geom, Mass, Shape};

/// What a link weighs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Inertia {
    pub mass: f64,
    /// In the frame of the link.
    pub center: Vector3<f64>,
    /// About the centre of mass, along the axes of the link.
    pub tensor: Matrix3<f64>,
}

impl Inertia {
    /// The sum of geoms; a centre at the origin where there is no mass.
    pub fn of(geoms: &[Geom]) -> Self {
        let parts: Vec<Self> = geoms.iter().map(Self::of_geom).collect();
        let mass: f64 = parts.iter().map(|part| part.mass).sum();
        let moment: Vector3<f64> = parts.iter().map(|part| part.center * part.mass).sum();
        let center = if mass > 0.0 { moment / mass } else { Vector3::zeros() };
        let tensor = parts.iter().map(|part| part.tensor + part.mass * away(part.center - center)).sum();
        Self { mass, center, tensor }
    }

    fn of_geom(geom: &Geom) -> Self {
        match geom.shape {
            Shape::Sphere { center, radius } => {
                let mass = geom.mass.over(4.0 / 3.0 * PI * radius.powi(3));
                let tensor = Matrix3::identity() * (0.4 * mass * radius * radius);
                Self { mass, center: center.into(), tensor }
            }
            Shape::Capsule { from, to, radius } => {
                let (from, to) = (Vector3::from(from), Vector3::from(to));
                let axis = to - from;
                let length = axis.norm();
                let (rod_volume, ball_volume) = (PI * radius * radius * length, 4.0 / 3.0 * PI * radius.powi(3));
                let mass = geom.mass.over(rod_volume + ball_volume);
                let rod = mass * rod_volume / (rod_volume + ball_volume);
                let ball = mass - rod;
                let (square, half) = (radius * radius, 0.5 * length);
                let along = 0.5 * rod * square + 0.4 * ball * square;
                let across = rod * (0.25 * square + length * length / 12.0)
                    + ball * (0.4 * square + half * half + 0.75 * half * radius);
                let turn = Rotation3::rotation_between(&Vector3::z(), &axis).unwrap_or_else(|| {
                    // The axis is upside down, which is as good for a body that is symmetric about it.
                    Rotation3::identity()
                });
                let principal = Matrix3::from_diagonal(&Vector3::new(across, across, along));
                let tensor = turn.matrix() * principal * turn.matrix().transpose();
                Self { mass, center: 0.5 * (from + to), tensor }
            }
        }
    }

    /// Inverse of the tensor with each principal moment raised to `1 - scale`.
    pub fn inverse(&self, scale: f64) -> Matrix3<f64> {
        if scale == 1.0 {
            return Matrix3::identity();
        }
        let eigen = self.tensor.symmetric_eigen();
        let powers = eigen.eigenvalues.map(|moment| moment.powf(scale - 1.0));
        eigen.eigenvectors * Matrix3::from_diagonal(&powers) * eigen.eigenvectors.transpose()
    }
}

/// Tensor of a unit mass at a point.
fn away(point: Vector3<f64>) -> Matrix3<f64> {
    Matrix3::identity() * point.norm_squared() - point * point.transpose()
}

impl Mass {
    fn over(self, volume: f64) -> f64 {
        match self {
            Self::Density(density) => density * volume,
            Self::Total(mass) => mass,
        }
    }
}
