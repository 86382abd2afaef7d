//! Environments whose bodies are simulated with the spring dynamics of `spring-physics`.

use rayon::prelude::*;
use spring_physics::{Block, Environment, Model, Real, Shape, Simulation};

use crate::{Body, Outcome, Pose, Random, Scene, TaskError, WallBox, World};

/// Steps of the simulation for one of the task.
pub(crate) const SUBSTEPS: usize = 10;

/// Environments that a thread takes at least.
const PER_THREAD: usize = 16;

/// The numbers of the simulation.
///
/// Single precision is what the paper's programs compute with. In the recorded control steps that tests compare, it is
/// within 3e-5 of them, and double precision within 1e-6. Contacts are chaotic, so the two part in the long run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// 32 bits.
    #[default]
    Single,
    /// 64 bits.
    Double,
}

/// What is particular to one kind of agent. The last link of its model marks the goal.
pub(crate) trait Agent: Clone + Send + Sync + 'static {
    /// Draws positions and velocities of all links, the goal's included.
    fn draw_start(&self, random: &mut Random, q: &mut [f64], qd: &mut [f64]);

    /// What a motor gets for an entry of an action.
    fn control(&self, action: f32) -> f64;

    /// The point whose velocity is measured, in metres.
    fn centre<F: Real>(&self, environment: Environment<'_, F>) -> [f64; 3];

    /// What a step came to, given where the [`centre`](Self::centre) was before it.
    fn measure<F: Real>(
        &self,
        environment: Environment<'_, F>,
        action: &[f32],
        before: [f64; 3],
        metrics: &mut [f32],
    ) -> Outcome;

    /// Writes state and goal.
    fn observe<F: Real>(&self, environment: Environment<'_, F>, observation: &mut [f32]);

    /// Height at which the goal is drawn in pictures, in metres.
    fn goal_height(&self) -> f64;
}

/// Environments of an agent.
pub(crate) struct SpringWorld<F: Real, A> {
    simulation: Simulation<F>,
    agent: A,
    name: String,
    observation_len: usize,
    metrics_len: usize,
    controls: Vec<F>,
    before: Vec<[f64; 3]>,
}

/// A world of that precision.
pub(crate) fn world<A: Agent>(
    precision: Precision,
    model: Model,
    agent: A,
    spec: &crate::TaskSpec,
    environments: usize,
) -> Result<Box<dyn World>, TaskError> {
    match precision {
        Precision::Single => Ok(Box::new(SpringWorld::<f32, A>::new(model, agent, spec, environments)?)),
        Precision::Double => Ok(Box::new(SpringWorld::<f64, A>::new(model, agent, spec, environments)?)),
    }
}

impl<F: Real, A: Agent> SpringWorld<F, A> {
    fn new(model: Model, agent: A, spec: &crate::TaskSpec, environments: usize) -> Result<Self, TaskError> {
        let controls = vec![F::default(); model.control_len() * environments];
        let failed = |error: spring_physics::SimulationError| failed(&spec.name, &error);
        Ok(Self {
            simulation: Simulation::new(model, environments).map_err(failed)?,
            agent,
            name: spec.name.clone(),
            observation_len: spec.observation_len(),
            metrics_len: spec.metrics.len(),
            controls,
            before: vec![[0.0; 3]; environments],
        })
    }
}

/// The error of a simulation as one of a task.
pub(crate) fn failed(name: &str, error: &impl ToString) -> TaskError {
    TaskError::World { name: name.to_owned(), message: error.to_string() }
}

/// Walls as the simulation takes them.
pub(crate) fn blocks(walls: &[WallBox]) -> Vec<Block> {
    walls.iter().map(|wall| Block::new(wall.centre, wall.half)).collect()
}

impl<F: Real, A: Agent> World for SpringWorld<F, A> {
    fn start_len(&self) -> usize {
        self.simulation.model().q_len() + self.simulation.model().qd_len()
    }

    fn draw_start(&self, random: &mut Random, start: &mut [f64]) {
        let (q, qd) = start.split_at_mut(self.simulation.model().q_len());
        self.agent.draw_start(random, q, qd);
    }

    fn begin(&mut self, environment: usize, start: &[f64]) -> Result<(), TaskError> {
        let start: Vec<F> = start.iter().map(|&value| F::from_f64(value)).collect();
        let (q, qd) = start.split_at(self.simulation.model().q_len());
        self.simulation.reset(environment, q, qd).map_err(|error| failed(&self.name, &error))
    }

    /// The goal is a body that other bodies' numbers depend on; moving it would need another state of the whole.
    fn can_redraw_goals(&self) -> bool {
        false
    }

    fn redraw_goal(&mut self, _: usize, _: &mut Random) {}

    fn step(&mut self, actions: &[f32], outcomes: &mut [Outcome], metrics: &mut [f32]) {
        let Self { simulation, agent, metrics_len, controls, before, .. } = self;
        let action_len = simulation.model().control_len();
        before
            .par_iter_mut()
            .with_min_len(PER_THREAD)
            .enumerate()
            .for_each(|(index, before)| *before = agent.centre(simulation.environment(index)));
        controls.iter_mut().zip(actions).for_each(|(to, &action)| *to = F::from_f64(agent.control(action)));
        simulation.step(controls, SUBSTEPS);
        outcomes
            .par_iter_mut()
            .with_min_len(PER_THREAD)
            .zip(metrics.par_chunks_exact_mut(*metrics_len))
            .zip(actions.par_chunks_exact(action_len))
            .zip(before)
            .enumerate()
            .for_each(|(index, (((outcome, metrics), action), before))| {
                *outcome = agent.measure(simulation.environment(index), action, *before, metrics);
            });
    }

    fn observe(&self, observations: &mut [f32]) {
        observations
            .par_chunks_exact_mut(self.observation_len)
            .with_min_len(PER_THREAD)
            .enumerate()
            .for_each(|(index, observation)| self.agent.observe(self.simulation.environment(index), observation));
    }

    fn snapshot(&self) -> Vec<f64> {
        self.simulation.snapshot().into_iter().map(Real::to_f64).collect()
    }

    fn restore(&mut self, snapshot: &[f64]) -> Result<(), TaskError> {
        let snapshot: Vec<F> = snapshot.iter().map(|&value| F::from_f64(value)).collect();
        self.simulation.restore(&snapshot).map_err(|error| TaskError::Snapshot { message: error.to_string() })
    }

    fn scene(&self, environment: usize) -> Scene {
        let (environment, goal) = (self.simulation.environment(environment), self.goal_link());
        let wide = |values: [F; 3]| values.map(Real::to_f64);
        let [x, y, _] = wide(environment.link(goal).position);
        let pose = |link| {
            let link = environment.link(link);
            Pose { position: wide(link.position), rotation: link.rotation.map(Real::to_f64) }
        };
        let bodies: Vec<Pose> = (0..goal).map(pose).collect();
        Scene { agent: bodies[0].position, goal: [x, y, self.agent.goal_height()], bodies }
    }

    fn walls(&self) -> Vec<WallBox> {
        let wall = |block: &Block| WallBox { centre: block.center, half: block.half_size };
        self.simulation.model().blocks().iter().map(wall).collect()
    }

    fn bodies(&self) -> Vec<Body> {
        let links = &self.simulation.model().links()[..self.goal_link()];
        let capsule = |geom: &spring_physics::Geom| match geom.shape {
            Shape::Sphere { center, radius } => (center, center, radius),
            Shape::Capsule { from, to, radius } => (from, to, radius),
        };
        links
            .iter()
            .map(|link| Body { name: link.name.clone(), capsules: link.geoms.iter().map(capsule).collect() })
            .collect()
    }
}

impl<F: Real, A> SpringWorld<F, A> {
    fn goal_link(&self) -> usize {
        self.simulation.model().links().len() - 1
    }
}
