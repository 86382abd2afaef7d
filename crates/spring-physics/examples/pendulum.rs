//! A double pendulum of one's own: two poles on hinges, let go from the side.

use spring_physics::{Axis, Geom, Joint, Link, ModelBuilder, Options, Simulation, Surface};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options =
        Options { dt: 0.001, stiffness: 50_000.0, angle_damping: 0.0, inertia_scale: 0.0, ..Options::default() };
    let mut builder = ModelBuilder::new(options);
    let pole = || Geom::capsule([0.0; 3], [0.0, 0.0, -0.5], 0.05).mass(1.0).surface(Surface::NONE);
    let hinge = |name| Joint::hinge(Axis::new(name, [0.0, 1.0, 0.0]));
    let upper = builder.link(Link::new("upper", None, [0.0, 0.0, 2.0], hinge("shoulder")).with(pole()));
    let lower = builder.link(Link::new("lower", Some(upper), [0.0, 0.0, -0.5], hinge("elbow")).with(pole()));
    let mut pendulum = Simulation::<f64>::new(builder.build()?, 1)?;
    pendulum.reset(0, &[1.5, 0.0], &[0.0, 0.0])?;
    println!("seconds  shoulder  elbow    height of the lower pole");
    for tenth in 0..=20 {
        let state = pendulum.environment(0);
        let (q, height) = (state.q(), state.link(lower).center_of_mass[2]);
        println!("{:7.1}  {:8.3}  {:5.3}  {height:8.3}", f64::from(tenth) / 10.0, q[0], q[1]);
        pendulum.step(&[], 100);
    }
    Ok(())
}
