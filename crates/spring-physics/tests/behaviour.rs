//! What holds for any bodies: laws of motion, symmetry, and independence of environments.

use nalgebra::{Matrix3, Quaternion, UnitQuaternion, Vector3};
use proptest::prelude::*;
use spring_physics::{
    Actuator, Axis, Block, Compatibility, Environment, Geom, Joint, Link, Model, ModelBuilder, Options, Simulation,
    Surface, models,
};

fn worst(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).fold(0.0, |m: f64, (a, b)| {
        let off = (a - b).abs();
        if off <= m { m } else { off }
    })
}

fn ball(mass: f64) -> Geom {
    Geom::sphere([0.05, -0.02, 0.1], 0.2).mass(mass).surface(Surface::NONE)
}

/// A free body, with a hinge, a double and a triple hinge in a row on it.
fn chain(compatibility: Compatibility, gravity: f64) -> Model {
    let options = Options { gravity: [0.0, 0.0, gravity], inertia_scale: 1.0, compatibility, ..Options::default() };
    let mut builder = ModelBuilder::new(options);
    let axes = |names: &[&str]| {
        let directions = [[0.0, 0.6, 0.8], [1.0, 0.0, 0.0], [0.0, -0.8, 0.6]];
        let axes = names.iter().zip(directions).map(|(name, direction)| Axis::new(*name, direction).between(-1.0, 1.0));
        Joint::Hinges(axes.collect())
    };
    let root = builder.link(Link::new("root", None, [0.0; 3], Joint::Free).with(ball(2.0)));
    let one = Link::new("one", Some(root), [0.3, 0.0, 0.1], axes(&["a"])).anchored([0.0, 0.1, 0.05]).with(ball(0.7));
    let one = builder.link(one.turned([0.9, 0.1, -0.2, 0.3]));
    let two = builder.link(Link::new("two", Some(one), [0.3, 0.0, 0.1], axes(&["b", "c"])).with(ball(1.3)));
    let three = Link::new("three", Some(two), [0.0, 0.2, 0.3], axes(&["d", "e", "f"])).with(ball(0.4));
    builder.link(three.anchored([0.1, 0.0, -0.1]));
    builder.build().expect("a model")
}

/// Linear momentum, and angular momentum about the origin (links have unit inertia).
fn momentum(model: &Model, state: Environment<'_, f64>) -> [f64; 6] {
    let (mut linear, mut angular) = (Vector3::zeros(), Vector3::zeros());
    for link in 0..model.links().len() {
        let pose = state.link(link);
        let push = Vector3::from(pose.center_velocity) * model.effective_mass(link);
        linear += push;
        angular += Vector3::from(pose.center_of_mass).cross(&push) + Vector3::from(pose.angular_velocity);
    }
    [linear.x, linear.y, linear.z, angular.x, angular.y, angular.z]
}

fn numbers(count: usize, size: f64) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-size..size, count)
}

/// Positions of the chain from thirteen numbers.
fn chain_start(noise: &[f64]) -> Vec<f64> {
    let mut q = noise.to_vec();
    q[3] = 1.0;
    q
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_free_body_falls_as_symplectic_euler_says(velocity in numbers(3, 5.0), steps in 1usize..200) {
        let mut builder = ModelBuilder::new(Options::default());
        builder.link(Link::new("ball", None, [0.0; 3], Joint::Free).with(Geom::sphere([0.0; 3], 0.1)));
        let model = builder.build().expect("a model");
        let mut simulation = Simulation::<f64>::new(model, 1).expect("a simulation");
        let rest = simulation.model().rest();
        simulation.reset(0, &rest, &[&velocity[..], &[0.0; 3]].concat()).expect("a start");
        simulation.step(&[], steps);
        let (h, n) = (0.005, steps as f64);
        let fall = -9.81 * h * h * n * (n + 1.0) / 2.0;
        let expected = [velocity[0] * h * n, velocity[1] * h * n, velocity[2] * h * n + fall];
        prop_assert!(worst(&simulation.environment(0).q()[..3], &expected) < 1e-9);
        prop_assert!((simulation.environment(0).qd()[2] - (velocity[2] - 9.81 * h * n)).abs() < 1e-9);
    }

    #[test]
    fn momentum_is_conserved_without_gravity(q in numbers(13, 0.8), qd in numbers(12, 2.0)) {
        for compatibility in [Compatibility::Exact, Compatibility::Brax] {
            let model = chain(compatibility, 0.0);
            let mut simulation = Simulation::<f64>::new(model.clone(), 1).expect("a simulation");
            simulation.reset(0, &chain_start(&q), &qd).expect("a start");
            let before = momentum(&model, simulation.environment(0));
            simulation.step(&[], 100);
            let after = momentum(&model, simulation.environment(0));
            // Brax lets the two sides of a joint pull at two points.
            let kept = if compatibility == Compatibility::Exact { 6 } else { 3 };
            prop_assert!(worst(&before[..kept], &after[..kept]) < 1e-9, "{compatibility:?}: {before:?}, {after:?}");
            prop_assert!(after.iter().all(|x| x.is_finite()));
        }
    }

    #[test]
    fn quaternions_stay_normalised(seed in numbers(17, 0.1), controls in numbers(8, 1.0)) {
        let model = models::ant(&models::Ant::default()).expect("an ant");
        let mut simulation = Simulation::<f32>::new(model, 1).expect("a simulation");
        let q: Vec<f32> =
            models::Ant::standing(0.0, 0.0).iter().zip(&seed).map(|(a, b)| (a + b) as f32).collect();
        simulation.reset(0, &q, &[0.3; 16]).expect("a start");
        let controls: Vec<f32> = controls.iter().map(|&x| x as f32).collect();
        simulation.step(&controls, 100);
        for link in 0..simulation.model().links().len() {
            let length: f32 = simulation.environment(0).link(link).rotation.iter().map(|x| x * x).sum();
            prop_assert!((length - 1.0).abs() < 1e-5, "link {link}: {length}");
        }
    }

    #[test]
    fn the_mirror_image_of_an_ant_moves_as_its_mirror_image(
        joints in numbers(8, 0.3), speed in numbers(6, 1.0), controls in numbers(8, 1.0)
    ) {
        // Legs 1 and 4, 2 and 3 change places; hips turn the other way, ankles the same. The wall stands in the middle.
        let wall = Block::new([1.4, 0.0, 0.5], [1.0, 1.0, 0.5]);
        let model =
            models::ant(&models::Ant { walls: vec![wall], compatibility: Compatibility::Exact, ..Default::default() });
        let mut simulation = Simulation::<f64>::new(model.expect("an ant"), 2).expect("a simulation");
        let legs = |v: &[f64]| [-v[6], v[7], -v[4], v[5], -v[2], v[3], -v[0], v[1]];
        let mut q = models::Ant::standing(0.0, 0.1).to_vec();
        q[7..15].iter_mut().zip(&joints).for_each(|(a, b)| *a += b);
        let mut qd = vec![0.0; 16];
        qd[..6].copy_from_slice(&speed);
        qd[0] += 2.0;
        let flip = |q: &[f64], qd: &[f64]| {
            let mut other = (q.to_vec(), qd.to_vec());
            for k in [1, 4, 6, 16] {
                other.0[k] = -q[k];
            }
            other.0[7..15].copy_from_slice(&legs(&q[7..15]));
            for k in [1, 3, 5, 15] {
                other.1[k] = -qd[k];
            }
            other.1[6..14].copy_from_slice(&legs(&qd[6..14]));
            other
        };
        let (mirrored_q, mirrored_qd) = flip(&q, &qd);
        simulation.reset(0, &q, &qd).expect("a start");
        simulation.reset(1, &mirrored_q, &mirrored_qd).expect("a start");
        // Controls come as legs 4, 1, 2, 3.
        let c = &controls;
        let mirrored = [-c[2], c[3], -c[0], c[1], -c[6], c[7], -c[4], c[5]];
        simulation.step(&[&c[..], &mirrored].concat(), 60);
        let state = simulation.environment(0);
        let (expected_q, expected_qd) = flip(&state.q(), &state.qd());
        let mirror = simulation.environment(1);
        prop_assert!(worst(&mirror.q(), &expected_q) < 1e-6, "{:?} {expected_q:?}", mirror.q());
        prop_assert!(worst(&mirror.qd(), &expected_qd) < 1e-4, "{:?} {expected_qd:?}", mirror.qd());
    }

    #[test]
    fn an_environment_does_not_depend_on_its_neighbours(
        start in numbers(17, 0.1), place in 0usize..37, controls in numbers(8, 1.0)
    ) {
        let walls = vec![Block::new([1.3, 0.0, 0.5], [1.0, 1.0, 0.5]), Block::new([-1.3, 0.2, 0.2], [1.0, 1.0, 0.2])];
        let model = models::ant(&models::Ant { walls, ..Default::default() }).expect("an ant");
        let q: Vec<f32> =
            models::Ant::standing(0.1, 0.0).iter().zip(&start).map(|(a, b)| (a + b) as f32).collect();
        let qd: Vec<f32> = start.iter().take(16).map(|&x| 10.0 * x as f32).collect();
        let control: Vec<f32> = controls.iter().map(|&x| x as f32).collect();
        let mut alone = Simulation::<f32>::new(model.clone(), 1).expect("a simulation");
        alone.reset(0, &q, &qd).expect("a start");
        alone.step(&control, 70);
        let mut many = Simulation::<f32>::new(model, 37).expect("a simulation");
        let mut all: Vec<f32> = (0..37 * 8).map(|k| (k as f32).sin()).collect();
        // Some go wrong altogether.
        all[..8].fill(f32::NAN);
        all[30 * 8..31 * 8].fill(f32::NAN);
        for other in 0..37 {
            let q: Vec<f32> = q.iter().enumerate().map(|(k, x)| x + 0.01 * ((other * 17 + k) as f32).cos()).collect();
            many.reset(other, &q, &qd).expect("a start");
        }
        many.reset(place, &q, &qd).expect("a start");
        all[place * 8..place * 8 + 8].copy_from_slice(&control);
        let threads = rayon::ThreadPoolBuilder::new().num_threads(1 + place % 3).build().expect("threads");
        threads.install(|| {
            many.step(&all, 35);
            many.step(&all, 35);
        });
        let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<u32>>();
        let (a, b) = (alone.environment(0), many.environment(place));
        prop_assert_eq!(bits(a.q()), bits(b.q()));
        prop_assert_eq!(bits(a.qd()), bits(b.qd()));
        prop_assert!(a.q().iter().all(|x| x.is_finite()));
    }

    #[test]
    fn walls_out_of_reach_change_nothing(
        start in numbers(17, 0.1), far in prop::collection::vec((2.5f64..30.0, -30.0f64..30.0), 1..20)
    ) {
        let q: Vec<f64> = models::Ant::standing(0.0, 0.0).iter().zip(&start).map(|(a, b)| a + b).collect();
        let near = Block::new([1.6, 0.3, 0.5], [1.0, 1.0, 0.5]);
        let run = |walls: Vec<Block>| {
            let model = models::ant(&models::Ant { walls, ..Default::default() }).expect("an ant");
            let mut simulation = Simulation::<f64>::new(model, 1).expect("a simulation");
            let mut qd = vec![0.0; 16];
            qd[0] = 2.0;
            simulation.reset(0, &q, &qd).expect("a start");
            simulation.step(&[0.1; 8], 60);
            simulation.environment(0).q()
        };
        let mut walls: Vec<Block> = far.iter().map(|&(x, y)| Block::new([-x - 1.0, y, 0.5], [0.8, 0.8, 0.5])).collect();
        walls.push(near);
        prop_assert_eq!(run(vec![near]), run(walls));
    }
}

#[test]
fn a_joint_at_rest_stays() {
    for compatibility in [Compatibility::Exact, Compatibility::Brax] {
        let model = chain(compatibility, 0.0);
        let mut simulation = Simulation::<f64>::new(model, 1).expect("a simulation");
        let mut q = simulation.model().rest();
        q[7..].copy_from_slice(&[0.3, -0.2, 0.4, 0.5, 0.1, -0.6]);
        simulation.reset(0, &q, &[0.0; 12]).expect("a start");
        simulation.step(&[], 200);
        let state = simulation.environment(0);
        assert!(worst(&state.q(), &q) < 1e-12, "{compatibility:?}: {:?}", state.q());
        assert!(worst(&state.qd(), &[0.0; 12]) < 1e-12, "{compatibility:?}: {:?}", state.qd());
    }
}

#[test]
fn a_motor_turns_both_links_by_their_inertias() {
    let options = Options { gravity: [0.0; 3], inertia_scale: 0.0, ..Options::default() };
    let mut builder = ModelBuilder::new(options);
    let rod = |to| Geom::capsule([0.1, 0.0, 0.0], to, 0.1).surface(Surface::NONE);
    let root = Link::new("root", None, [0.0; 3], Joint::Free).turned([0.5, 0.5, -0.5, 0.5]);
    let root = builder.link(root.with(rod([0.3, 0.4, 0.1])));
    let hinge = Joint::hinge(Axis::new("hinge", [0.0, 0.6, 0.8]));
    let link = Link::new("link", Some(root), [0.2, 0.0, 0.3], hinge).turned([0.9, 0.3, 0.1, 0.2]);
    builder.link(link.with(rod([-0.2, 0.1, 0.5])));
    builder.actuator(Actuator::new("hinge", 3.0));
    let model = builder.build().expect("a model");
    let mut simulation = Simulation::<f64>::new(model.clone(), 1).expect("a simulation");
    let turn = |state: Environment<'_, f64>, link| {
        let [w, x, y, z] = state.link(link).rotation;
        UnitQuaternion::from_quaternion(Quaternion::new(w, x, y, z)).to_rotation_matrix()
    };
    let turns = [0, 1].map(|link| turn(simulation.environment(0), link));
    simulation.step(&[0.5], 1);
    let torque = turns[1] * Vector3::new(0.0, 0.6, 0.8) * 1.5;
    for (link, sign) in [(0, -1.0), (1, 1.0)] {
        let inverse =
            turns[link].matrix() * Matrix3::from(model.inverse_inertia(link)) * turns[link].matrix().transpose();
        let expected: [f64; 3] = (inverse * torque * sign * model.options().dt).into();
        let actual = simulation.environment(0).link(link).angular_velocity;
        assert!(worst(&actual, &expected) < 1e-12, "link {link}: {actual:?}, expected {expected:?}");
    }
    let torques = simulation.environment(0).torques();
    assert_eq!(torques, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.5]);
}

#[test]
fn a_weight_on_slides_sags_by_its_spring() {
    let model = models::ant(&models::Ant::default()).expect("an ant");
    let target = model.link_index("target").expect("a target");
    let mut simulation = Simulation::<f64>::new(model, 1).expect("a simulation");
    simulation.step(&[0.0; 8], 2000);
    let [x, y, z] = simulation.environment(0).link(target).position;
    assert!((z - (0.01 - 9.81 / 4000.0)).abs() < 1e-9, "the target is at {z}");
    assert!(x.abs() < 1e-12 && y.abs() < 1e-12);
}

#[test]
fn what_rests_on_the_floor_does_not_sink() {
    let mut builder = ModelBuilder::new(Options::default());
    builder.link(Link::new("ball", None, [0.0, 0.0, 0.3], Joint::Free).with(Geom::sphere([0.0; 3], 0.1)));
    builder.floor(spring_physics::Floor { height: 0.1, surface: Surface::ALL });
    let mut simulation = Simulation::<f32>::new(builder.build().expect("a model"), 1).expect("a simulation");
    simulation.step(&[], 2000);
    let z = simulation.environment(0).q()[2];
    assert!((z - 0.2).abs() < 0.01, "the ball is at {z}");
}

#[test]
fn a_snapshot_goes_on_bit_by_bit() {
    let model = models::humanoid(&models::Humanoid::default()).expect("a humanoid");
    let mut simulation = Simulation::<f32>::new(model, 20).expect("a simulation");
    let controls: Vec<f32> = (0..20 * 17).map(|k| 0.4 * (k as f32).sin()).collect();
    simulation.step(&controls, 30);
    let snapshot = simulation.snapshot();
    let mut other = Simulation::<f32>::new(simulation.model().clone(), 20).expect("a simulation");
    other.restore(&snapshot).expect("a state");
    assert_eq!(other.environment(7).q(), simulation.environment(7).q());
    simulation.step(&controls, 30);
    other.step(&controls, 30);
    assert_eq!(other.snapshot(), simulation.snapshot());
    assert!(other.restore(&snapshot[1..]).is_err());
}
