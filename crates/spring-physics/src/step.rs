//! One step of the dynamics, for the environments of one register.

use crate::{
    algebra::{Quaternion, Rotation, Vector},
    compiled::{Compiled, CompiledLink, InverseInertia},
    lanes::Lanes,
    model::Motion,
    real::Real,
};

/// Environments that are stored together, so that their numbers fill the widest registers.
pub(crate) const GROUP: usize = 16;

/// Numbers of a link's state: centre of mass, quaternion, velocity, angular velocity.
pub(crate) const STATE: usize = 13;

/// Numbers of [`GROUP`] environments; each array holds the lanes of its first number, then those of its second, and
/// so on.
#[derive(Clone, Debug)]
pub(crate) struct Group<F> {
    /// [`STATE`] numbers a link.
    pub state: Vec<F>,
    pub q: Vec<F>,
    pub qd: Vec<F>,
    /// Torques of actuators, one a velocity.
    pub torque: Vec<F>,
}

/// Steps to take with the torques in a group.
pub struct Steps<'a, F> {
    pub(crate) compiled: &'a Compiled<F>,
    pub(crate) group: &'a mut Group<F>,
    pub(crate) count: usize,
}

/// State of a link.
#[derive(Clone, Copy)]
pub(crate) struct Moving<N> {
    pub center: Vector<N>,
    pub rotation: Quaternion<N>,
    pub velocity: Vector<N>,
    pub angular: Vector<N>,
}

/// What follows from it, and what is summed up in a step.
#[derive(Clone, Copy)]
pub(crate) struct Derived<N> {
    pub axes: Rotation<N>,
    /// Of the link's frame.
    pub origin: Vector<N>,
    /// Of the link's frame.
    pub velocity: Vector<N>,
    pub force: Vector<N>,
    pub torque: Vector<N>,
}

/// All links in the environments of a register, and the world after them.
pub(crate) struct Work<N> {
    pub moving: Vec<Moving<N>>,
    pub derived: Vec<Derived<N>>,
}

#[inline(always)]
pub(crate) fn run<N: Lanes>(token: N::Token, steps: Steps<'_, N::Real>) {
    let Steps { compiled, group, count } = steps;
    let zero = Vector::splat(token, [N::Real::default(); 3]);
    let mut from = 0;
    while from < GROUP {
        let mut work = load::<N>(token, compiled, group, from);
        let mut contacts = compiled.contacts.scratch(zero);
        for _ in 0..count {
            step(token, compiled, &group.torque, from, &mut work, &mut contacts);
        }
        store(compiled, group, from, &mut work);
        from += N::WIDTH;
    }
}

#[inline(always)]
fn load<N: Lanes>(token: N::Token, compiled: &Compiled<N::Real>, group: &Group<N::Real>, from: usize) -> Work<N> {
    let real = N::Real::from_f64;
    let zero = Vector::splat(token, [real(0.0); 3]);
    let one = N::splat(token, real(1.0));
    let rest = Moving { center: zero, rotation: Quaternion { w: one, v: zero }, velocity: zero, angular: zero };
    let links = compiled.links.len();
    let mut moving = vec![rest; links + 1];
    let mut i = 0;
    while i < links {
        let at = |k: usize| N::load(token, &group.state[(i * STATE + k) * GROUP + from..][..N::WIDTH]);
        let vector = |k: usize| Vector { x: at(k), y: at(k + 1), z: at(k + 2) };
        moving[i] = Moving {
            center: vector(0),
            rotation: Quaternion { w: at(3), v: vector(4) },
            velocity: vector(7),
            angular: vector(10),
        };
        i += 1;
    }
    let still = Derived { axes: rest.rotation.rotation(), origin: zero, velocity: zero, force: zero, torque: zero };
    Work { moving, derived: vec![still; links + 1] }
}

/// Writes states, and the positions and velocities of joints that follow from them.
#[inline(always)]
fn store<N: Lanes>(compiled: &Compiled<N::Real>, group: &mut Group<N::Real>, from: usize, work: &mut Work<N>) {
    let mut i = 0;
    while i < compiled.links.len() {
        let link = &compiled.links[i];
        work.derived[i] = derive(link, &work.moving[i]);
        let Moving { center, rotation, velocity, angular } = work.moving[i];
        let numbers = [
            center.x,
            center.y,
            center.z,
            rotation.w,
            rotation.v.x,
            rotation.v.y,
            rotation.v.z,
            velocity.x,
            velocity.y,
            velocity.z,
            angular.x,
            angular.y,
            angular.z,
        ];
        let mut k = 0;
        while k < STATE {
            numbers[k].store(&mut group.state[(i * STATE + k) * GROUP + from..][..N::WIDTH]);
            k += 1;
        }
        // Parents come before their children, so theirs is derived by now.
        let parent = (&work.derived[link.parent], &work.moving[link.parent]);
        let (q, qd) = coordinates(compiled, link, (&work.derived[i], &work.moving[i]), parent);
        let (mut k, mut l) = (0, 0);
        while k < q.len {
            q.values[k].store(&mut group.q[(link.q + k) * GROUP + from..][..N::WIDTH]);
            k += 1;
        }
        while l < qd.len {
            qd.values[l].store(&mut group.qd[(link.qd + l) * GROUP + from..][..N::WIDTH]);
            l += 1;
        }
        i += 1;
    }
}

/// The frame of a link from its state.
#[inline(always)]
fn derive<N: Lanes>(link: &CompiledLink<N::Real>, moving: &Moving<N>) -> Derived<N> {
    let axes = moving.rotation.rotation();
    let arm = axes.of(link.center);
    let zero = Vector::splat(moving.center.x.token(), [N::Real::default(); 3]);
    Derived {
        axes,
        origin: moving.center - arm,
        velocity: moving.velocity - moving.angular.cross(arm),
        force: zero,
        torque: zero,
    }
}

#[inline(always)]
fn step<N: Lanes>(
    token: N::Token,
    compiled: &Compiled<N::Real>,
    torque: &[N::Real],
    from: usize,
    work: &mut Work<N>,
    contacts: &mut crate::contacts::Scratch<N>,
) {
    let links = compiled.links.len();
    let mut i = 0;
    while i < links {
        work.derived[i] = derive(&compiled.links[i], &work.moving[i]);
        i += 1;
    }
    let mut i = 0;
    while i < links {
        let link = &compiled.links[i];
        if link.motion != Motion::Free {
            let mut drives = [N::splat(token, N::Real::default()); 3];
            let mut k = 0;
            while k < link.axes {
                drives[k] = N::load(token, &torque[(link.qd + k) * GROUP + from..][..N::WIDTH]);
                k += 1;
            }
            pull(compiled, link, i, drives, work);
        }
        i += 1;
    }
    let fall = Vector::splat(token, compiled.fall);
    let mut i = 0;
    while i < links {
        let link = &compiled.links[i];
        let Derived { axes, force, torque, .. } = work.derived[i];
        let moving = &mut work.moving[i];
        moving.velocity = moving.velocity + fall + force.times(link.inverse_mass).times(compiled.dt);
        moving.angular = moving.angular + link.inverse_inertia.of(axes, torque).times(compiled.dt);
        i += 1;
    }
    compiled.contacts.resolve(compiled, work, contacts);
    let mut i = 0;
    while i < links {
        let (push, twist) = contacts.change(compiled, work, i);
        let moving = &mut work.moving[i];
        moving.velocity = moving.velocity.times(compiled.linear_decay) + push;
        moving.angular = moving.angular.times(compiled.angular_decay) + twist;
        moving.center = moving.center + moving.velocity.times(compiled.dt);
        moving.rotation = moving.rotation.advanced(moving.angular.times(compiled.half_dt));
        i += 1;
    }
}

/// Adds the force of a link's joint to the link and, reversed, to its parent.
#[inline(always)]
fn pull<N: Lanes>(
    compiled: &Compiled<N::Real>,
    link: &CompiledLink<N::Real>,
    i: usize,
    drives: [N; 3],
    work: &mut Work<N>,
) {
    let (child, parent) = (work.derived[i], work.derived[link.parent]);
    let (child_moving, parent_moving) = (work.moving[i], work.moving[link.parent]);
    let (stiffness, limit) = (compiled.stiffness, compiled.limit_stiffness);
    let parent_arm = parent.axes.of(link.parent_anchor);
    let arm = child.axes.of(link.anchor);
    let (parent_anchor, anchor) = (parent.origin + parent_arm, child.origin + arm);
    let gap = anchor - parent_anchor;
    let lever = parent_moving.angular.cross(parent_arm);
    let slip = if compiled.exact {
        child.velocity + child_moving.angular.cross(arm) - (parent.velocity + lever)
    } else {
        child.velocity - (parent.velocity - lever)
    };
    let mut force = -gap.times(stiffness) - slip.times(compiled.velocity_damping);
    let mut torque = -(child_moving.angular - parent_moving.angular).times(compiled.angle_damping);
    let frames = joint_axes(link, &child, &parent);
    let (outer, inner) = (frames.outer, frames.inner);
    if link.motion == Motion::Slides {
        let mut k = 0;
        while k < link.axes {
            let slide = parent.axes.of(link.slides[k]);
            force = force - slide.scale(slide.dot(force));
            k += 1;
        }
        let mut k = 0;
        while k < link.axes {
            let slide = parent.axes.of(link.slides[k]);
            force = force + slide.scale(drives[k] - excess(link, k, slide.dot(gap)) * limit);
            k += 1;
        }
        let lean = [outer[0].cross(inner[0]), outer[1].cross(inner[1]), outer[2].cross(inner[2])];
        torque = if link.axes == 1 {
            torque - (lean[0] + lean[1]).times(stiffness)
        } else {
            torque - lean[1].times(limit) - lean[2].times(stiffness)
        };
    } else {
        let angles = frames.angles(link);
        let axes = [outer[0], inner[1], inner[2].times(link.handedness)];
        let mut k = 0;
        while k < link.axes {
            torque = torque + axes[k].scale(drives[k] - excess(link, k, angles[k]) * limit);
            k += 1;
        }
        if link.axes == 1 {
            torque = torque - outer[0].cross(inner[0]).times(stiffness);
        } else if link.axes == 2 {
            let across = inner[1] - outer[0].scale(outer[0].dot(inner[1]));
            let across = across.scale(across.x.constant(1.0) / across.norm());
            torque = torque - across.cross(inner[1]).times(limit);
        }
    }
    let twist = (anchor - child_moving.center).cross(force) + torque;
    let at = if compiled.exact { anchor } else { parent_anchor };
    let parent_twist = (at - parent_moving.center).cross(force) + torque;
    let child = &mut work.derived[i];
    (child.force, child.torque) = (child.force + force, child.torque + twist);
    let parent = &mut work.derived[link.parent];
    (parent.force, parent.torque) = (parent.force - force, parent.torque - parent_twist);
}

/// How far a position is outside its range, with sign.
#[inline(always)]
fn excess<N: Lanes>(link: &CompiledLink<N::Real>, k: usize, position: N) -> N {
    position - position.max(position.like(link.low[k])).min(position.like(link.high[k]))
}

/// The three axes of a joint as the parent and as the link carry them, in world axes.
struct JointAxes<N> {
    outer: [Vector<N>; 3],
    inner: [Vector<N>; 3],
}

#[inline(always)]
fn joint_axes<N: Lanes>(link: &CompiledLink<N::Real>, child: &Derived<N>, parent: &Derived<N>) -> JointAxes<N> {
    let [a, b, c] = link.parent_frame;
    let outer = [parent.axes.of(a), parent.axes.of(b), parent.axes.of(c)];
    let [a, b, c] = link.frame;
    JointAxes { outer, inner: [child.axes.of(a), child.axes.of(b), child.axes.of(c)] }
}

impl<N: Lanes> JointAxes<N> {
    /// Angles about the first axis, about the second one turned with it, and about the third one of the link.
    #[inline(always)]
    fn angles(&self, link: &CompiledLink<N::Real>) -> [N; 3] {
        let Self { outer, inner } = self;
        let first = (-outer[1].dot(inner[2])).atan2(outer[2].dot(inner[2]));
        let mut angles = [first; 3];
        if link.axes > 1 {
            let sine = outer[0].dot(inner[2]);
            let cosine = (sine.constant(1.0) - sine * sine).max(sine.constant(0.0)).sqrt();
            angles[1] = sine.atan2(cosine);
        }
        if link.axes > 2 {
            angles[2] = (-outer[0].dot(inner[1])).atan2(outer[0].dot(inner[0])) * link.handedness;
        }
        angles
    }

    /// Rates of the angles at a relative angular velocity.
    #[inline(always)]
    fn rates(&self, link: &CompiledLink<N::Real>, spin: Vector<N>, exact: bool) -> [N; 3] {
        let Self { outer, inner } = self;
        let third = inner[2].dot(spin);
        if exact && link.axes == 3 {
            // The second axis lies across the first and the third, which lean against each other.
            let node = inner[2].cross(outer[0]);
            let lean = outer[0].dot(inner[2]);
            let first = outer[0].dot(spin);
            let square = (lean.constant(1.0) - lean * lean).max(lean.constant(1e-12));
            return [
                (first - lean * third) / square,
                node.dot(spin) / square.sqrt(),
                (third - lean * first) / square * link.handedness,
            ];
        }
        let first = if exact { outer[0] } else { inner[0] };
        [first.dot(spin), inner[1].dot(spin), third * link.handedness]
    }
}

struct Numbers<N> {
    values: [N; 7],
    len: usize,
}

/// Positions and velocities of a joint.
#[inline(always)]
fn coordinates<N: Lanes>(
    compiled: &Compiled<N::Real>,
    link: &CompiledLink<N::Real>,
    (child, child_moving): (&Derived<N>, &Moving<N>),
    (parent, parent_moving): (&Derived<N>, &Moving<N>),
) -> (Numbers<N>, Numbers<N>) {
    let zero = child.origin.x.constant(0.0);
    let (mut q, mut qd) = ([zero; 7], [zero; 7]);
    match link.motion {
        Motion::Free => {
            let Quaternion { w, v } = child_moving.rotation;
            q = [child.origin.x, child.origin.y, child.origin.z, w, v.x, v.y, v.z];
            let (linear, angular) = (child.velocity, child.axes.back(child_moving.angular));
            qd = [linear.x, linear.y, linear.z, angular.x, angular.y, angular.z, zero];
            return (Numbers { values: q, len: 7 }, Numbers { values: qd, len: 6 });
        }
        Motion::Hinges => {
            let frames = joint_axes(link, child, parent);
            let spin = child_moving.angular - parent_moving.angular;
            let (angles, rates) = (frames.angles(link), frames.rates(link, spin, compiled.exact));
            [q[0], q[1], q[2]] = angles;
            [qd[0], qd[1], qd[2]] = rates;
        }
        Motion::Slides => {
            let parent_arm = parent.axes.of(link.parent_anchor);
            let arm = child.axes.of(link.anchor);
            let gap = child.origin + arm - (parent.origin + parent_arm);
            let lever = parent_moving.angular.cross(parent_arm);
            let slip = if compiled.exact {
                child.velocity + child_moving.angular.cross(arm) - (parent.velocity + lever)
            } else {
                child.velocity - (parent.velocity - lever)
            };
            let mut k = 0;
            while k < link.axes {
                let slide = parent.axes.of(link.slides[k]);
                (q[k], qd[k]) = (slide.dot(gap), slide.dot(slip));
                k += 1;
            }
        }
    }
    (Numbers { values: q, len: link.axes }, Numbers { values: qd, len: link.axes })
}

impl<F: Real> InverseInertia<F> {
    /// Its product with a vector in world axes, for a link with these axes.
    #[inline(always)]
    pub fn of<N: Lanes<Real = F>>(&self, axes: Rotation<N>, v: Vector<N>) -> Vector<N> {
        match self {
            Self::Even(value) => v.times(*value),
            Self::Tensor(rows) => {
                let local = axes.back(v);
                let token = v.x.token();
                axes.apply(Vector {
                    x: Vector::splat(token, rows[0]).dot(local),
                    y: Vector::splat(token, rows[1]).dot(local),
                    z: Vector::splat(token, rows[2]).dot(local),
                })
            }
        }
    }
}
