//! From positions and velocities of joints to poses and velocities of links, in double precision.

use nalgebra::{Quaternion, UnitQuaternion, Vector3};

use crate::{
    error::SimulationError,
    model::{Model, Motion},
    spec::Compatibility,
};

/// Pose and velocity of one link: of its centre of mass, with the orientation of its frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkState {
    pub center: Vector3<f64>,
    pub rotation: Quaternion<f64>,
    pub velocity: Vector3<f64>,
    pub angular: Vector3<f64>,
}

/// A frame on the way down the tree. The quaternion has the length of the root's.
#[derive(Clone, Copy)]
struct Frame {
    origin: Vector3<f64>,
    rotation: Quaternion<f64>,
    velocity: Vector3<f64>,
    angular: Vector3<f64>,
}

const WORLD: Frame = Frame {
    origin: Vector3::new(0.0, 0.0, 0.0),
    rotation: Quaternion::from_vector(nalgebra::Vector4::new(0.0, 0.0, 0.0, 1.0)),
    velocity: Vector3::new(0.0, 0.0, 0.0),
    angular: Vector3::new(0.0, 0.0, 0.0),
};

/// `q v q*`, which for a quaternion of length `s` also stretches by `s^2`.
fn rotate(q: &Quaternion<f64>, v: Vector3<f64>) -> Vector3<f64> {
    let (w, u) = (q.w, q.vector().into_owned());
    2.0 * u.dot(&v) * u + (w * w - u.dot(&u)) * v + 2.0 * w * u.cross(&v)
}

/// The states of all links.
///
/// # Errors
/// Where the quaternion of a free link has length zero.
pub(crate) fn forward(model: &Model, q: &[f64], qd: &[f64]) -> Result<Vec<LinkState>, SimulationError> {
    let exact = model.options.compatibility == Compatibility::Exact;
    let mut frames: Vec<Frame> = Vec::with_capacity(model.links.len());
    for (link, body) in model.links.iter().zip(&model.bodies) {
        let (q, qd) = (&q[body.q..], &qd[body.qd..]);
        let parent = link.parent.map_or(WORLD, |parent| frames[parent]);
        let frame = match body.motion {
            Motion::Free => {
                let rotation = Quaternion::new(q[3], q[4], q[5], q[6]);
                let length = rotation.norm();
                if !(length > 0.0 && length.is_finite()) {
                    return Err(SimulationError::NoOrientation(link.name.clone()));
                }
                let rotation = if exact { rotation / length } else { rotation };
                Frame {
                    origin: Vector3::new(q[0], q[1], q[2]),
                    rotation,
                    velocity: Vector3::new(qd[0], qd[1], qd[2]),
                    angular: rotate(&rotation, Vector3::new(qd[3], qd[4], qd[5])),
                }
            }
            Motion::Hinges => {
                let anchor = Vector3::from(link.anchor);
                let mut turn = Quaternion::identity();
                // The rate in the frame before the joint, with each axis turned by the hinges before it.
                let mut rate = Vector3::zeros();
                let mut sum = Vector3::zeros();
                for (k, axis) in body.axes.iter().enumerate() {
                    rate += rotate(&turn, *axis) * qd[k];
                    sum += axis * qd[k];
                    let (sin, cos) = (0.5 * q[k]).sin_cos();
                    turn *= Quaternion::from_parts(cos, axis * sin);
                }
                let offset = anchor - rotate(&turn, anchor);
                let origin = parent.origin
                    + rotate(&parent.rotation, Vector3::from(link.position) + body.rotation.transform_vector(&offset));
                let rotation = parent.rotation * body.rotation.quaternion() * turn;
                let (velocity, angular);
                if exact {
                    angular = parent.angular + rotate(&(parent.rotation * body.rotation.quaternion()), rate);
                    let joint = origin + rotate(&rotation, anchor);
                    velocity = parent.velocity
                        + parent.angular.cross(&(joint - parent.origin))
                        + angular.cross(&(origin - joint));
                } else {
                    angular = parent.angular + rotate(&rotation, sum);
                    velocity = parent.velocity + parent.angular.cross(&(origin - parent.origin));
                }
                Frame { origin, rotation, velocity, angular }
            }
            Motion::Slides => {
                let shift: Vector3<f64> = body.axes.iter().zip(q).map(|(axis, &q)| axis * q).sum();
                let speed: Vector3<f64> = body.axes.iter().zip(qd).map(|(axis, &qd)| axis * qd).sum();
                let origin = parent.origin
                    + rotate(&parent.rotation, Vector3::from(link.position) + body.rotation.transform_vector(&shift));
                let rotation = parent.rotation * body.rotation.quaternion();
                let slip = if exact { rotate(&rotation, speed) } else { rotate(&parent.rotation, speed) };
                Frame {
                    origin,
                    rotation,
                    velocity: parent.velocity + parent.angular.cross(&(origin - parent.origin)) + slip,
                    angular: parent.angular,
                }
            }
        };
        frames.push(frame);
    }
    let state = |(frame, body): (&Frame, &crate::model::Body)| {
        let rotation = UnitQuaternion::from_quaternion(frame.rotation);
        let arm = rotation.transform_vector(&body.inertia.center);
        LinkState {
            center: frame.origin + arm,
            rotation: rotation.into_inner(),
            velocity: frame.velocity + frame.angular.cross(&arm),
            angular: frame.angular,
        }
    };
    Ok(frames.iter().zip(&model.bodies).map(state).collect())
}
