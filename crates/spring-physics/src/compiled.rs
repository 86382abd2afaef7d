//! A model as the constants that steps read, rounded to the type they are computed in.

use nalgebra::{Matrix3, Vector3};

use crate::{
    contacts::Contacts,
    model::{Model, Motion},
    real::Real,
    spec::Compatibility,
};

/// Constants of all links; the number after the last link stands for the world.
#[derive(Clone, Debug)]
pub(crate) struct Compiled<F> {
    pub links: Vec<CompiledLink<F>>,
    pub contacts: Contacts<F>,
    pub exact: bool,
    pub dt: F,
    pub half_dt: F,
    /// Velocity that gravity adds in a step.
    pub fall: [F; 3],
    pub stiffness: F,
    pub velocity_damping: F,
    pub limit_stiffness: F,
    pub angle_damping: F,
    /// What is left of velocities after a step.
    pub linear_decay: F,
    pub angular_decay: F,
}

#[derive(Clone, Debug)]
pub(crate) struct CompiledLink<F> {
    pub parent: usize,
    pub motion: Motion,
    pub q: usize,
    pub qd: usize,
    /// Centre of mass in the frame of the link.
    pub center: [F; 3],
    pub inverse_mass: F,
    pub inverse_inertia: InverseInertia<F>,
    /// The joint in the frame of the parent and of the link.
    pub parent_anchor: [F; 3],
    pub anchor: [F; 3],
    /// Axes of the joint in both frames, completed to three: the hinges themselves, or the axes of the link for slides.
    pub parent_frame: [[F; 3]; 3],
    pub frame: [[F; 3]; 3],
    /// Slides in the frame of the parent.
    pub slides: [[F; 3]; 2],
    pub axes: usize,
    /// -1 where a third hinge points against the cross product of the first two.
    pub handedness: F,
    pub low: [F; 3],
    pub high: [F; 3],
}

/// Inverse inertia along the axes of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InverseInertia<F> {
    /// The same about all axes.
    Even(F),
    /// A tensor, by rows.
    Tensor([[F; 3]; 3]),
}

impl<F: Real> Compiled<F> {
    pub fn new(model: &Model) -> Self {
        let options = &model.options;
        let real = F::from_f64;
        let dt = options.dt;
        let world = model.links.len();
        let links = model.links.iter().zip(&model.bodies).map(|(link, body)| {
            let (mut frame, handedness) = match body.motion {
                Motion::Hinges => complete(&body.axes),
                Motion::Free | Motion::Slides => ([Vector3::x(), Vector3::y(), Vector3::z()], 1.0),
            };
            let anchor = Vector3::from(link.anchor);
            let parent_anchor = Vector3::from(link.position) + body.rotation * anchor;
            let parent_frame = frame.map(|axis| round(body.rotation * axis));
            let (mut low, mut high) = ([real(f64::NEG_INFINITY); 3], [real(f64::INFINITY); 3]);
            for (k, dof) in model.dofs.iter().filter(|dof| body.axes.len() > dof.qd.wrapping_sub(body.qd)).enumerate() {
                if let Some([l, h]) = dof.range {
                    (low[k], high[k]) = (real(l), real(h));
                }
            }
            let mut slides = [[F::default(); 3]; 2];
            if body.motion == Motion::Slides {
                for (slide, axis) in slides.iter_mut().zip(&body.axes) {
                    *slide = round(body.rotation * axis);
                }
            }
            CompiledLink {
                parent: link.parent.unwrap_or(world),
                motion: body.motion,
                q: body.q,
                qd: body.qd,
                center: round(body.inertia.center),
                inverse_mass: real(1.0 / body.effective_mass),
                inverse_inertia: InverseInertia::new(&body.inverse_inertia),
                parent_anchor: round(parent_anchor),
                anchor: link.anchor.map(real),
                parent_frame,
                frame: frame.each_mut().map(|axis| round(*axis)),
                slides,
                axes: body.axes.len(),
                handedness: real(handedness),
                low,
                high,
            }
        });
        Self {
            links: links.collect(),
            contacts: Contacts::new(model),
            exact: options.compatibility == Compatibility::Exact,
            dt: real(dt),
            half_dt: real(0.5 * dt),
            fall: options.gravity.map(|g| real(g * dt)),
            stiffness: real(options.stiffness),
            velocity_damping: real(options.velocity_damping),
            limit_stiffness: real(options.limit_stiffness),
            angle_damping: real(options.angle_damping),
            linear_decay: real((options.linear_damping * dt).exp()),
            angular_decay: real((options.angular_damping * dt).exp()),
        }
    }
}

impl<F: Real> InverseInertia<F> {
    pub fn new(tensor: &Matrix3<f64>) -> Self {
        let even = tensor[(0, 0)];
        if (tensor - Matrix3::identity() * even).amax() <= 1e-12 * even {
            return Self::Even(F::from_f64(even));
        }
        Self::Tensor([0, 1, 2].map(|row| [0, 1, 2].map(|column| F::from_f64(tensor[(row, column)]))))
    }
}

fn round<F: Real>(v: Vector3<f64>) -> [F; 3] {
    [v.x, v.y, v.z].map(F::from_f64)
}

/// One to three axes at right angles as a right-handed frame, and whether the third one points against it.
fn complete(axes: &[Vector3<f64>]) -> ([Vector3<f64>; 3], f64) {
    let first = axes[0];
    let second = axes.get(1).copied().unwrap_or_else(|| {
        // Any direction across the first will do: the angle about it is the same.
        let other = if first.y.abs() < 0.5 { Vector3::y() } else { Vector3::z() };
        (other - first * first.dot(&other)).normalize()
    });
    let third = first.cross(&second);
    let handedness = axes.get(2).map_or(1.0, |axis| third.dot(axis).signum());
    ([first, second, third], handedness)
}
