//! Many environments of one model, stepped together.

use nalgebra::{Quaternion, UnitQuaternion, Vector3};
use pulp::Arch;
use rayon::prelude::*;

use crate::{
    compiled::Compiled,
    error::SimulationError,
    kinematics,
    model::Model,
    real::Real,
    step::{GROUP, Group, STATE, Steps},
};

/// Most environments of a simulation.
pub(crate) const MOST_ENVIRONMENTS: usize = 1 << 20;

/// Environments of one model, each with its own state.
///
/// They are stepped in parallel on rayon's threads and, within a thread, side by side in the registers of the CPU.
/// What an environment does depends on nothing but its own state and controls: not on the number of threads, nor on
/// which environments are beside it.
#[derive(Clone, Debug)]
pub struct Simulation<F: Real> {
    model: Model,
    compiled: Compiled<F>,
    groups: Vec<Group<F>>,
    environments: usize,
    arch: Arch,
}

impl<F: Real> Simulation<F> {
    /// Environments at rest: [`Model::rest`], without velocity.
    ///
    /// # Errors
    /// Where there are none, or more than 2^20.
    pub fn new(model: Model, environments: usize) -> Result<Self, SimulationError> {
        if environments == 0 || environments > MOST_ENVIRONMENTS {
            return Err(SimulationError::Environments(environments));
        }
        let compiled = Compiled::new(&model);
        let links = model.links.len();
        let group = Group {
            state: vec![F::default(); links * STATE * GROUP],
            q: vec![F::default(); model.q_len * GROUP],
            qd: vec![F::default(); model.qd_len * GROUP],
            torque: vec![F::default(); model.qd_len * GROUP],
        };
        let groups = vec![group; environments.div_ceil(GROUP)];
        let mut simulation = Self { model, compiled, groups, environments, arch: Arch::new() };
        let (q, qd) = (simulation.model.rest(), vec![0.0; simulation.model.qd_len]);
        let states = kinematics::forward(&simulation.model, &q, &qd)?;
        // Lanes beyond the last environment rest, too.
        for environment in 0..simulation.groups.len() * GROUP {
            simulation.place(environment, &q, &qd, &states);
        }
        Ok(simulation)
    }

    /// What is simulated.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Number of environments.
    pub fn environments(&self) -> usize {
        self.environments
    }

    /// Puts one environment at positions `q` with velocities `qd`, and its torques to zero.
    ///
    /// Positions are kept as they are given until the next step; quaternions need not have length 1.
    ///
    /// # Errors
    /// Where there is no such environment, lengths do not fit the model, a number is not finite, or a quaternion is
    /// zero. The environment is then as it was.
    pub fn reset(&mut self, environment: usize, q: &[F], qd: &[F]) -> Result<(), SimulationError> {
        if environment >= self.environments {
            return Err(SimulationError::NoSuchEnvironment { environment, count: self.environments });
        }
        let wide = |what, values: &[F], expected| {
            if values.len() != expected {
                return Err(SimulationError::Length { what, actual: values.len(), expected });
            }
            let wide: Vec<f64> = values.iter().map(|value| value.to_f64()).collect();
            match wide.iter().position(|value| !value.is_finite()) {
                Some(index) => Err(SimulationError::NotFinite { what, index }),
                None => Ok(wide),
            }
        };
        let q = wide("q", q, self.model.q_len)?;
        let qd = wide("qd", qd, self.model.qd_len)?;
        let states = kinematics::forward(&self.model, &q, &qd)?;
        self.place(environment, &q, &qd, &states);
        Ok(())
    }

    fn place(&mut self, environment: usize, q: &[f64], qd: &[f64], states: &[kinematics::LinkState]) {
        let (group, lane) = (&mut self.groups[environment / GROUP], environment % GROUP);
        let put = |to: &mut [F], values: &[f64]| {
            for (k, &value) in values.iter().enumerate() {
                to[k * GROUP + lane] = F::from_f64(value);
            }
        };
        put(&mut group.q, q);
        put(&mut group.qd, qd);
        put(&mut group.torque, &vec![0.0; qd.len()]);
        for (i, state) in states.iter().enumerate() {
            let (c, r, v, a) = (state.center, state.rotation, state.velocity, state.angular);
            let numbers = [c.x, c.y, c.z, r.w, r.i, r.j, r.k, v.x, v.y, v.z, a.x, a.y, a.z];
            put(&mut group.state[i * STATE * GROUP..], &numbers);
        }
    }

    /// Takes `substeps` steps of `dt` with the same controls: one a motor, environment by environment, cut to their
    /// ranges.
    ///
    /// # Panics
    /// Where there are not [`Model::control_len`] controls for each environment.
    pub fn step(&mut self, controls: &[F], substeps: usize) {
        let count = self.model.drives.len();
        assert_eq!(
            controls.len(),
            count * self.environments,
            "{count} controls for each of {} environments",
            self.environments
        );
        let (compiled, drives, arch) = (&self.compiled, &self.model.drives, self.arch);
        let run = |(index, group): (usize, &mut Group<F>)| {
            if count > 0 {
                group.torque.fill(F::default());
                let start = (index * GROUP * count).min(controls.len());
                for (lane, row) in controls[start..].chunks_exact(count).take(GROUP).enumerate() {
                    for (drive, control) in drives.iter().zip(row) {
                        let torque = &mut group.torque[drive.qd * GROUP + lane];
                        let control = control.to_f64().clamp(drive.range[0], drive.range[1]);
                        *torque = F::from_f64(torque.to_f64() + drive.gear * control);
                    }
                }
            }
            F::run(arch, Steps { compiled, group, count: substeps });
        };
        if substeps > 0 {
            self.groups.par_iter_mut().enumerate().for_each(run);
        }
    }

    /// A look at one environment.
    ///
    /// # Panics
    /// Where there is no such environment.
    pub fn environment(&self, environment: usize) -> Environment<'_, F> {
        assert!(environment < self.environments, "environment {environment} of {}", self.environments);
        Environment { model: &self.model, group: &self.groups[environment / GROUP], lane: environment % GROUP }
    }

    /// The whole state as numbers, for [`restore`](Self::restore): a simulation that goes on from it takes the same
    /// steps, bit by bit.
    pub fn snapshot(&self) -> Vec<F> {
        let parts = |group: &Group<F>| [&group.state[..], &group.q, &group.qd, &group.torque].concat();
        self.groups.iter().flat_map(parts).collect()
    }

    /// Takes up a state that [`snapshot`](Self::snapshot) wrote, of as many environments of the same model.
    ///
    /// # Errors
    /// Where the length is another one; nothing is then changed.
    pub fn restore(&mut self, snapshot: &[F]) -> Result<(), SimulationError> {
        let one = self.groups[0].state.len() + self.groups[0].q.len() + 2 * self.groups[0].qd.len();
        let expected = one * self.groups.len();
        if snapshot.len() != expected {
            return Err(SimulationError::Length { what: "the snapshot", actual: snapshot.len(), expected });
        }
        for (group, mut numbers) in self.groups.iter_mut().zip(snapshot.chunks_exact(one)) {
            for part in [&mut group.state, &mut group.q, &mut group.qd, &mut group.torque] {
                let (head, rest) = numbers.split_at(part.len());
                part.copy_from_slice(head);
                numbers = rest;
            }
        }
        Ok(())
    }
}

/// State of one environment.
#[derive(Clone, Copy, Debug)]
pub struct Environment<'a, F: Real> {
    model: &'a Model,
    group: &'a Group<F>,
    lane: usize,
}

impl<F: Real> Environment<'_, F> {
    fn column(&self, numbers: &[F]) -> impl ExactSizeIterator<Item = F> {
        let lane = self.lane;
        numbers.chunks_exact(GROUP).map(move |lanes| lanes[lane])
    }

    /// Positions, in the order that [`Model`] states.
    pub fn q(&self) -> Vec<F> {
        self.column(&self.group.q).collect()
    }

    /// Velocities, in the order that [`Model`] states.
    pub fn qd(&self) -> Vec<F> {
        self.column(&self.group.qd).collect()
    }

    /// Torques of motors in the last step, one a velocity; zero after a reset.
    pub fn torques(&self) -> Vec<F> {
        self.column(&self.group.torque).collect()
    }

    /// Pose and velocity of a link.
    ///
    /// # Panics
    /// Where there is no such link.
    pub fn link(&self, link: usize) -> LinkState<F> {
        let numbers = &self.group.state[link * STATE * GROUP..(link + 1) * STATE * GROUP];
        let at = |k: usize| numbers[k * GROUP + self.lane].to_f64();
        let vector = |k: usize| Vector3::new(at(k), at(k + 1), at(k + 2));
        let (center, velocity, angular) = (vector(0), vector(7), vector(10));
        let rotation = Quaternion::new(at(3), at(4), at(5), at(6));
        let arm = UnitQuaternion::new_unchecked(rotation) * self.model.bodies[link].inertia.center;
        let round = |v: Vector3<f64>| [v.x, v.y, v.z].map(F::from_f64);
        LinkState {
            position: round(center - arm),
            rotation: [rotation.w, rotation.i, rotation.j, rotation.k].map(F::from_f64),
            velocity: round(velocity - angular.cross(&arm)),
            angular_velocity: round(angular),
            center_of_mass: round(center),
            center_velocity: round(velocity),
        }
    }
}

/// Pose and velocity of a link, all in world axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkState<F> {
    /// Origin of its frame, in metres.
    pub position: [F; 3],
    /// Orientation of its frame: `w, x, y, z`.
    pub rotation: [F; 4],
    /// Velocity of the origin.
    pub velocity: [F; 3],
    /// Angular velocity, in radians a second.
    pub angular_velocity: [F; 3],
    /// Its centre of mass.
    pub center_of_mass: [F; 3],
    /// Velocity of the centre of mass.
    pub center_velocity: [F; 3],
}

#[cfg(test)]
mod tests;
