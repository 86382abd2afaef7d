//! Maximal-coordinate spring dynamics of articulated bodies, for many environments side by side.
//!
//! Every link is a rigid body of its own with the pose and velocity of its centre of mass. Joints are springs and
//! dampers that hold links together, so a step has no system of equations to solve: forces of joints, gravity,
//! impulses of contacts, symplectic Euler. It is the dynamics of brax's spring backend (Freeman et al. 2021), on
//! which the humanoid and ant tasks of the paper run; [`models`] has these two, with their walls, and a
//! [`ModelBuilder`] makes others.
//!
//! A [`Simulation`] holds environments of one [`Model`] in `f32` or `f64`. Sixteen of them lie side by side, so that
//! a step fills the registers of the CPU (AVX-512, AVX2 or none, chosen at run time; the bits are the same), and
//! groups of them are stepped on rayon's threads. The crate knows no tensors, goals, rewards or observations.
//!
//! # A step
//! With `h` the seconds of a step, for all links at once:
//! 1. A joint pulls the child's anchor to the parent's with `-k gap - c_v slip`, and turns the links with
//!    `-c_a spin`, the torques of motors, springs that align axes, and springs against angles outside their ranges.
//!    Both links feel it, with opposite signs.
//! 2. `v += h (g + F / m)`, `w += h I^-1 T`. There is no gyroscopic term.
//! 3. Contacts are found at the poses before the step. One that is inside (`distance < 0`) and approaching gets the
//!    impulse `(-(1 + e) v_n - baumgarte / h * distance) / (1 / m + ...)` along its normal and friction across it; a
//!    link's impulses are divided by how many there are.
//! 4. Velocities are damped, poses move with them, and quaternions are normalised.
//!
//! # What was found about walls
//! Contacts with boxes follow MJX 3.2.6, which brax calls; trajectories against boxes agree to 1e-11 over a hundred
//! steps.
//! - A sphere meets a box once, at the nearest point of its surface; a middle inside the box leaves through the
//!   nearest face.
//! - A capsule meets a box twice: its segment is cut to the sides of the face that it is least inside of, and both
//!   ends of what is left are contacts of their own. One contact at the nearest of the twelve edges takes their place
//!   where it is the shallower one, faces outwards and does not lean with the face.
//! - Boxes are taken one by one, so a link that slides along two walls side by side is held by both.
//!
//! # Slips
//! brax's code has slips that change the dynamics, and trained policies live in them. [`Compatibility::Brax`] keeps
//! them and is what the models of the paper are made with; [`Compatibility::Exact`] is for new models.
//!
//! ```
//! use spring_physics::{Simulation, models};
//! let model = models::ant(&models::Ant::default())?;
//! let mut ants = Simulation::<f32>::new(model, 32)?;
//! let standing = models::Ant::standing(0.0, 0.0).map(|x| x as f32);
//! for environment in 0..32 {
//!     ants.reset(environment, &standing, &[0.0; 16])?;
//! }
//! // Half a second with all motors off: they come to stand on their feet.
//! ants.step(&[0.0; 32 * 8], 100);
//! let height = ants.environment(31).q()[2];
//! assert!(0.4 < height && height < 0.8);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod algebra;
mod builder;
mod compiled;
mod contacts;
mod error;
mod inertia;
mod kinematics;
mod lanes;
mod model;
pub mod models;
mod real;
mod simulation;
mod spec;
mod step;

pub use builder::ModelBuilder;
pub use error::{ModelError, SimulationError};
pub use model::{Dof, Model};
pub use real::Real;
pub use simulation::{Environment, LinkState, Simulation};
pub use spec::{Actuator, Axis, Block, Compatibility, Floor, Geom, Joint, Link, Mass, Options, Point, Shape, Surface};
