//! Trajectories against those of brax's spring backend in double precision, with the slips that it has.

mod common;

use common::{numbers, read, read_own, worst};
use spring_physics::{Block, Model, Simulation, models};

fn model_of(name: &str, dt: f64) -> Model {
    if name.starts_with("ant") {
        models::ant(&models::Ant { dt, ..Default::default() }).expect("an ant")
    } else {
        models::humanoid(&models::Humanoid { dt, ..Default::default() }).expect("a humanoid")
    }
}

/// The files hold 9 digits.
const DIGITS: f64 = 2e-8;

#[test]
fn trajectories_are_those_of_brax() {
    let file = read("traj_brax_spring.json");
    let mut checked = 0;
    for (name, case) in file.as_object().expect("cases by name") {
        let model = model_of(name, case["dt"].as_f64().expect("dt"));
        for (link, mass) in numbers(&case["mass_eff"]).into_iter().enumerate() {
            assert!((model.effective_mass(link) - mass).abs() < 1e-7, "{name}: mass of link {link}");
        }
        let records = case["records"].as_array().expect("records");
        let (q, qd) = (numbers(&records[0]["q"]), numbers(&records[0]["qd"]));
        let control = numbers(&case["ctrl"]);
        let mut simulation = Simulation::<f64>::new(model.clone(), 1).expect("a simulation");
        simulation.reset(0, &q, &qd).expect("a start");
        let mut single = Simulation::<f32>::new(model, 1).expect("a simulation");
        let round = |values: &[f64]| values.iter().map(|&x| x as f32).collect::<Vec<f32>>();
        single.reset(0, &round(&q), &round(&qd)).expect("a start");
        let mut step = 0;
        for record in records {
            let until = record["step"].as_u64().expect("a step") as usize;
            simulation.step(&control, until - step);
            single.step(&round(&control), until - step);
            step = until;
            let (q, qd) = (numbers(&record["q"]), numbers(&record["qd"]));
            let state = simulation.environment(0);
            let off = [worst(&state.q(), &q), worst(&state.qd(), &qd)];
            let state = single.environment(0);
            let wide = |values: Vec<f32>| values.into_iter().map(f64::from).collect::<Vec<f64>>();
            let off_single = [worst(&wide(state.q()), &q), worst(&wide(state.qd()), &qd)];
            println!("{name}, step {step}: off by {off:?} in double, {off_single:?} in single precision");
            assert!(off[0] <= DIGITS && off[1] <= DIGITS, "{name}, step {step}: off by {off:?}");
            if step <= 60 {
                assert!(off_single[0] <= 1e-4 && off_single[1] <= 1e-2, "{name}, step {step}: off by {off_single:?}");
            }
            checked += 1;
        }
        let state = simulation.environment(0);
        let (places, turns) = (numbers(&case["final_link_pos"]), numbers(&case["final_link_rot"]));
        for link in 0..simulation.model().links().len() {
            let pose = state.link(link);
            assert!(worst(&pose.position, &places[link * 3..][..3]) <= DIGITS, "{name}: place of link {link}");
            assert!(worst(&pose.rotation, &turns[link * 4..][..4]) <= DIGITS, "{name}: orientation of link {link}");
        }
    }
    println!("{checked} records");
    assert!(checked > 0);
}

/// Reset with noise (a root quaternion that is not normalised, random rates) and steps of the tasks.
#[test]
fn steps_of_the_tasks_are_those_of_brax() {
    let file = read("env_steps.json");
    let mut checked = 0;
    for (name, case) in file.as_object().expect("cases by name").iter().filter(|(name, _)| name.contains("spring")) {
        let ant = name.starts_with("ant");
        let scale = if ant { 1.0 } else { 0.4 };
        let dt = case["dt"].as_f64().expect("dt") / 10.0;
        let mut simulation = Simulation::<f64>::new(model_of(name, dt), 1).expect("a simulation");
        let records = case["records"].as_array().expect("records");
        simulation.reset(0, &numbers(&records[0]["q"]), &numbers(&records[0]["qd"])).expect("a start");
        for (k, record) in records.iter().enumerate() {
            if k > 0 {
                let control: Vec<f64> = numbers(&record["action"]).iter().map(|a| a * scale).collect();
                simulation.step(&control, 10);
            }
            let state = simulation.environment(0);
            let (q, qd) = (numbers(&record["q"]), numbers(&record["qd"]));
            let places = numbers(&record["xpos"]);
            let links = 0..simulation.model().links().len();
            let actual: Vec<f64> = links.flat_map(|link| state.link(link).position).collect();
            let off = [worst(&state.q(), &q), worst(&state.qd(), &qd), worst(&actual, &places)];
            println!("{name}, record {k}: off by {off:?}");
            // What the start lacks in digits grows with the feet on the floor.
            assert!(
                off.iter().zip([DIGITS, 3e-7, DIGITS]).all(|(off, allowed)| *off <= allowed),
                "{name}, record {k}: {off:?}"
            );
            checked += 1;
        }
    }
    println!("{checked} records");
    assert!(checked > 0);
}

/// Ants and humanoids that are thrown at boxes (against their sides, onto their tops, over their edges and corners),
/// and a humanoid at half the time step.
#[test]
fn walls_are_met_as_in_brax() {
    let file = read_own("traj_brax_spring_walls.json");
    let mut checked = 0;
    for case in file["cases"].as_array().expect("cases") {
        let name = case["model"].as_str().expect("a name");
        let walls = case["walls"].as_array().expect("walls").iter().map(numbers);
        let walls: Vec<Block> = walls.map(|w| Block::new([w[0], w[1], w[2]], [w[3], w[4], w[5]])).collect();
        let (dt, walled) = (case["dt"].as_f64().expect("dt"), !walls.is_empty());
        let model = if name == "ant" {
            models::ant(&models::Ant { dt, walls, ..Default::default() })
        } else {
            models::humanoid(&models::Humanoid { dt, walls, ..Default::default() })
        };
        let mut free = Simulation::<f64>::new(model_of(name, dt), 1).expect("a simulation");
        let mut simulation = Simulation::<f64>::new(model.expect("a model"), 1).expect("a simulation");
        for (run, case) in case["runs"].as_array().expect("runs").iter().enumerate() {
            let records = case["records"].as_array().expect("records");
            let (q, qd) = (numbers(&records[0]["q"]), numbers(&records[0]["qd"]));
            let control = numbers(&case["ctrl"]);
            simulation.reset(0, &q, &qd).expect("a start");
            free.reset(0, &q, &qd).expect("a start");
            let (mut step, mut apart) = (0, 0.0);
            for record in records {
                let until = record["step"].as_u64().expect("a step") as usize;
                simulation.step(&control, until - step);
                free.step(&control, until - step);
                step = until;
                let (q, qd) = (numbers(&record["q"]), numbers(&record["qd"]));
                let state = simulation.environment(0);
                let off = [worst(&state.q(), &q), worst(&state.qd(), &qd)];
                apart = worst(&free.environment(0).q(), &q);
                println!("{name}, dt {dt}, run {run}, step {step}: off by {off:?}, by {apart:.3} without walls");
                // Later on contacts make more of every difference.
                let allowed = if step <= 100 { [1e-9, 1e-8] } else { [1e-4, 1e-3] };
                let close = off.iter().zip(allowed).all(|(off, allowed)| *off <= allowed);
                assert!(close, "{name}, run {run}, step {step}: off by {off:?}");
                checked += 1;
            }
            assert!(!walled || apart > 0.01, "{name}, run {run} meets no wall");
        }
    }
    println!("{checked} records");
    assert!(checked > 0);
}
