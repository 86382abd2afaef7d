use pulp::Arch;

use super::*;
use crate::{Axis, Block, Compatibility, Geom, Joint, Link, ModelBuilder, Options, Surface, models, real::Sealed};

/// All sets of instructions that this CPU has.
fn arches() -> Vec<Arch> {
    #[cfg(target_arch = "x86_64")]
    {
        let found = [pulp::x86::V4::try_new().map(Arch::V4), pulp::x86::V3::try_new().map(Arch::V3)];
        found.into_iter().flatten().chain([Arch::Scalar]).collect()
    }
    #[cfg(not(target_arch = "x86_64"))]
    vec![Arch::new(), Arch::Scalar]
}

fn bits_of_a_run<F: Real>(arch: Arch) -> Vec<F> {
    let walls = vec![Block::new([1.2, 0.0, 0.3], [1.0, 1.0, 0.3]), Block::new([-1.2, 0.1, 0.15], [1.0, 1.0, 0.15])];
    let model = models::ant(&models::Ant { walls, ..Default::default() }).expect("an ant");
    let mut simulation = Simulation::<F>::new(model, 19).expect("a simulation");
    simulation.arch = arch;
    let real = |values: &[f64]| values.iter().map(|&x| F::from_f64(x)).collect::<Vec<F>>();
    for environment in 0..19 {
        let mut q = models::Ant::standing(0.05 * environment as f64 - 0.3, 0.1);
        q[2] += 0.05 * environment as f64;
        let speed = [environment as f64 * 0.2 - 2.0; 16];
        simulation.reset(environment, &real(&q), &real(&speed)).expect("a start");
    }
    let controls: Vec<f64> = (0..19 * 8).map(|k| f64::from(k).sin()).collect();
    simulation.step(&real(&controls), 60);
    simulation.snapshot()
}

#[test]
fn all_instruction_sets_give_the_same_bits() {
    let arches = arches();
    println!("{} instruction sets", arches.len());
    let (single, double) = (bits_of_a_run::<f32>(arches[0]), bits_of_a_run::<f64>(arches[0]));
    assert!(single.iter().all(|x| x.is_finite()) && double.iter().all(|x| x.is_finite()));
    for &arch in &arches[1..] {
        assert_eq!(bits_of_a_run::<f32>(arch), single, "{arch:?}");
        assert_eq!(bits_of_a_run::<f64>(arch), double, "{arch:?}");
    }
}

/// Positions and velocities as they are read from the poses that a reset made.
fn read_back(model: Model, q: &[f64], qd: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let mut simulation = Simulation::<f64>::new(model, 1).expect("a simulation");
    simulation.reset(0, q, qd).expect("a start");
    let (compiled, arch) = (&simulation.compiled, simulation.arch);
    f64::run(arch, Steps { compiled, group: &mut simulation.groups[0], count: 0 });
    (simulation.environment(0).q(), simulation.environment(0).qd())
}

fn close(what: &str, actual: &[f64], expected: &[f64]) {
    for (k, (a, e)) in actual.iter().zip(expected).enumerate() {
        assert!((a - e).abs() < 1e-9, "{what}, number {k}: {a}, expected {e}");
    }
}

#[test]
fn coordinates_are_read_as_they_were_set() {
    let humanoid = |compatibility| models::Humanoid { compatibility, ..Default::default() };
    let model = models::humanoid(&humanoid(Compatibility::Exact)).expect("a humanoid");
    let mut q = model.rest();
    q[3..7].copy_from_slice(&[0.5, -0.5, 0.5, 0.5]);
    for (k, x) in q[7..].iter_mut().enumerate() {
        *x = 0.9 * (3.0 * k as f64).sin();
    }
    let qd: Vec<f64> = (0..25).map(|k| 2.0 * (k as f64).cos()).collect();
    let (actual_q, actual_qd) = read_back(model, &q, &qd);
    close("q", &actual_q, &q);
    close("qd", &actual_qd, &qd);
    let model = models::humanoid(&humanoid(Compatibility::Brax)).expect("a humanoid");
    close("q as brax has it", &read_back(model, &q, &[0.0; 25]).0, &q);
}

#[test]
fn slides_on_a_moving_link_are_read_as_they_were_set() {
    let mut builder = ModelBuilder::new(Options { compatibility: Compatibility::Exact, ..Options::default() });
    let ball = || Geom::sphere([0.1, 0.0, 0.2], 0.1).surface(Surface::NONE);
    let hinge = Joint::hinge(Axis::new("hinge", [0.0, 0.0, 1.0]));
    let arm = builder.link(Link::new("arm", None, [1.0, 0.0, 0.0], hinge).with(ball()));
    let slides = vec![Axis::new("x", [0.6, 0.8, 0.0]), Axis::new("z", [0.0, 0.0, 1.0])];
    let cart = Link::new("cart", Some(arm), [0.0, 0.5, 0.0], Joint::Slides(slides)).turned([0.9, 0.1, 0.3, -0.2]);
    builder.link(cart.with(ball()));
    let (q, qd) = ([0.4, -0.3, 0.2], [0.0, 1.1, 0.8]);
    let (actual_q, actual_qd) = read_back(builder.build().expect("a model"), &q, &qd);
    close("q", &actual_q, &q);
    close("qd", &actual_qd, &qd);
}
