use std::{fs, path::Path};

use reference_vectors::assert_close;
use serde_json::Value;

use super::*;
use crate::mujoco::column;

fn reference(file: &str) -> Value {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference");
    let path = reference_vectors::family(default, "rl_tasks").join(file);
    let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().flat_map(numbers).collect(),
        Value::Bool(value) => vec![f64::from(u8::from(*value))],
        value => vec![value.as_f64().expect("a number")],
    }
}

fn compiled(surroundings: Surroundings, variant: Variant, contacts: bool) -> Arc<Model> {
    let library = mujoco::library().unwrap_or_else(|error| panic!("{error}"));
    Arc::new(Model::compile(&library, &model::xml(surroundings, variant, contacts)).expect("a model"))
}

/// What the name of a case says. Models whose bodies are not fused are not simulated by the programs.
fn of_case(name: &str) -> Option<(Surroundings, Variant)> {
    let surroundings = match name {
        _ if !name.contains("fused") => return None,
        _ if name.starts_with("arm_push_hard") => Surroundings::Table,
        _ if name.starts_with("arm_binpick_hard") => Surroundings::Bins,
        _ => return None,
    };
    Some((surroundings, if name.contains("jaxgcrl") { Variant::JaxGcrl } else { Variant::ScalingCrl }))
}

/// One block of what MuJoCo prints of a model.
struct Block<'a>(&'a [Vec<String>]);

impl Block<'_> {
    fn words(&self, key: &str) -> &[String] {
        let line = self.0.iter().find(|line| line.first().is_some_and(|word| word == key));
        &line.unwrap_or_else(|| panic!("no {key} in {:?}", self.0))[1..]
    }

    fn numbers(&self, key: &str) -> Vec<f64> {
        self.words(key).iter().map(|word| word.parse().expect("a number")).collect()
    }

    fn index(&self, key: &str) -> usize {
        self.numbers(key)[0] as usize
    }
}

/// Compares what both hold, beginning with the first number.
fn same(what: &str, actual: &[f64], expected: &Value) {
    let expected = numbers(expected);
    assert!(actual.len() >= expected.len(), "{what}: {actual:?}");
    // Files hold nine digits behind the point. Where two moments of inertia are nearly the same, version 3.2.6 finds
    // their axes less exactly, and with them what joints feel.
    let allowed = if what.ends_with("iquat") || what.ends_with("dof_M0") { 1e-6 } else { 1e-9 };
    assert_close(what, &actual[..expected.len()], &expected, allowed, 0.0, allowed);
}

#[test]
fn the_model_is_that_of_the_programs() {
    let mut checked = 0;
    for (case, expected) in reference("models.json").as_object().expect("models") {
        let Some((surroundings, variant)) = of_case(case) else { continue };
        let model = compiled(surroundings, variant, true);
        let printed = model.printed();
        let block = |kind: &str, index: usize| Block(&printed[&format!("{kind} {index}")]);
        let list = |key: &str| expected[key].as_array().expect("a list").iter().enumerate().collect::<Vec<_>>();
        let name = |kind: &str, index: usize| block(kind, index).words("name").join(" ");
        for key in ["nq", "nv", "nu", "nbody", "njnt", "ngeom", "npair", "neq"] {
            same(&format!("{case}: {key}"), &Block(&printed["SIZES"]).numbers(key), &expected[key]);
        }
        for (key, title) in [("qpos0", "qpos0"), ("total_mass", "totalmass")] {
            let values: Vec<f64> = printed[title][0].iter().map(|word| word.parse().expect("a number")).collect();
            same(&format!("{case}: {key}"), &values, &expected[key]);
        }
        for (index, body) in list("bodies") {
            assert_eq!(name("BODY", index), body["name"].as_str().unwrap());
            for (key, printed) in [("parent", "parentid"), ("pos", "pos"), ("quat", "quat"), ("mass", "mass")]
                .into_iter()
                .chain([("ipos", "ipos"), ("iquat", "iquat"), ("inertia", "inertia"), ("gravcomp", "gravcomp")])
            {
                same(
                    &format!("{case}, {body}: {key}"),
                    &block("BODY", index).numbers(&format!("body_{printed}")),
                    &body[key],
                );
            }
        }
        for (index, joint) in list("joints") {
            let of_joint = block("JOINT", index);
            assert_eq!(name("JOINT", index), joint["name"].as_str().unwrap());
            for key in ["axis", "pos", "limited", "range", "stiffness", "qposadr", "dofadr"] {
                same(&format!("{case}, {joint}: {key}"), &of_joint.numbers(&format!("jnt_{key}")), &joint[key]);
            }
            let of_velocity = block("DOF", of_joint.index("jnt_dofadr"));
            for key in ["damping", "armature"] {
                same(&format!("{case}, {joint}: {key}"), &of_velocity.numbers(&format!("dof_{key}")), &joint[key]);
            }
        }
        for (index, inertia) in list("dof_M0") {
            same(&format!("{case}, velocity {index}: dof_M0"), &block("DOF", index).numbers("dof_M0"), inertia);
        }
        for (index, geometry) in list("geoms") {
            assert_eq!(name("GEOM", index), geometry["name"].as_str().unwrap());
            for key in ["size", "pos", "quat", "contype", "conaffinity", "condim", "friction"] {
                same(
                    &format!("{case}, {geometry}: {key}"),
                    &block("GEOM", index).numbers(&format!("geom_{key}")),
                    &geometry[key],
                );
            }
            same(case, &block("GEOM", index).numbers("geom_bodyid"), &geometry["body"]);
        }
        for (index, motor) in list("actuators") {
            let of_motor = block("ACTUATOR", index);
            let joint = of_motor.index("actuator_trnid");
            assert_eq!([name("ACTUATOR", index).as_str(), &name("JOINT", joint)], [&motor["name"], &motor["joint"]]);
            for (key, printed) in
                [("gear", "gear"), ("gainprm0", "gainprm"), ("biasprm", "biasprm")].into_iter().chain([
                    ("ctrlrange", "ctrlrange"),
                    ("ctrllimited", "ctrllimited"),
                    ("forcerange", "forcerange"),
                    ("forcelimited", "forcelimited"),
                ])
            {
                same(
                    &format!("{case}, {motor}: {key}"),
                    &of_motor.numbers(&format!("actuator_{printed}")),
                    &motor[key],
                );
            }
        }
        for (index, pair) in list("pairs") {
            let of_pair = block("PAIR", index);
            let names = ["geom1", "geom2"].map(|key| name("GEOM", of_pair.index(&format!("pair_{key}"))));
            assert_eq!([&names[0], &names[1]], [&pair["geoms"][0], &pair["geoms"][1]], "{case}");
            for key in ["dim", "friction", "solref", "solimp"] {
                same(&format!("{case}, {pair}: {key}"), &of_pair.numbers(&format!("pair_{key}")), &pair[key]);
            }
        }
        for (index, equality) in list("equality") {
            let of_equality = block("EQUALITY", index);
            let names = ["obj1id", "obj2id"].map(|key| name("JOINT", of_equality.index(&format!("eq_{key}"))));
            assert_eq!([&names[0], &names[1]], [&equality["obj"][0], &equality["obj"][1]], "{case}");
            for key in ["type", "data", "solref", "solimp"] {
                same(&format!("{case}, {equality}: {key}"), &of_equality.numbers(&format!("eq_{key}")), &equality[key]);
            }
        }
        let options = Block(&printed["OPTION"]);
        for key in ["timestep", "impratio", "tolerance"] {
            same(&format!("{case}: {key}"), &options.numbers(key), &expected["option"][key]);
        }
        // Integrator implicitfast, pyramidal cone, Newton; iterations as the environments set them after compiling.
        for (key, value) in [("integrator", 3), ("cone", 0), ("solver", 2), ("iterations", 6), ("ls_iterations", 12)] {
            assert_eq!(options.index(key), value, "{case}: {key}");
        }
        let mut data = Data::new(&model).expect("a simulation");
        data.forward().expect("poses");
        for ((index, place), body) in list("xpos_at_init").into_iter().zip(list("bodies")) {
            let body = model.body(body.1["name"].as_str().unwrap()).expect("a body");
            same(&format!("{case}, body {index}"), &data.pose(body).0, place);
        }
        checked += 1;
    }
    assert!(checked >= 4, "{checked} models of the arm");
}

/// Until the hand touches anything the simulation repeats the record but for its rounding: nine digits behind the point
/// of positions. Such contacts are chaotic, and rounding grows with them. Measured: 5e-10 before, 2.3e-3 after.
#[test]
fn trajectories_are_those_of_the_library_itself() {
    let version = mujoco::library().unwrap_or_else(|error| panic!("{error}")).version();
    let file = reference(&format!("traj_mujoco_{}.json", version.name()));
    let mut checked = 0;
    for (name, case) in file.as_object().expect("cases") {
        let Some((surroundings, variant)) = of_case(name) else { continue };
        let model = compiled(surroundings, variant, !name.ends_with("nocontact"));
        let mut data = Data::new(&model).expect("a simulation");
        data.write(Part::Controls, &numbers(&case["ctrl"]["value"]));
        let (mut q, mut v, mut at) = ([0.0; POSITIONS], [0.0; VELOCITIES], 0);
        // The four contacts of a cube that lies on the table are not chaotic.
        let mut touching = false;
        let mut worst = [0.0f64; 2];
        for record in case["records"].as_array().expect("records") {
            let step = record["step"].as_u64().expect("a step") as usize;
            if step == 0 {
                data.write(Part::Positions, &numbers(&record["qpos"]));
            }
            data.step(step - at).expect("steps");
            at = step;
            data.read(Part::Positions, &mut q);
            data.read(Part::Velocities, &mut v);
            touching |= name.ends_with("closed_reach") && record["ncon"].as_u64() > Some(0);
            let (of_positions, of_velocities) = if touching { (2e-2, 0.5) } else { (1e-8, 1e-7) };
            let what = format!("{name}, step {step}");
            assert_close(&what, &q, &numbers(&record["qpos"]), of_positions, 0.0, 0.0);
            assert_close(&what, &v, &numbers(&record["qvel"]), of_velocities, 0.0, 0.0);
            let difference = q.iter().zip(numbers(&record["qpos"])).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            worst[usize::from(touching)] = worst[usize::from(touching)].max(difference);
            checked += 1;
        }
        println!("{name}: {:.1e} m or rad before contacts of the hand, {:.1e} after", worst[0], worst[1]);
    }
    assert!(checked > 0, "no arm");
}

/// What parts 3.17.0 from 3.2.6, and with that from the paper's programs: where a motor is at the limit of its force,
/// the newer version leaves out what the velocity does to that force when it steps implicitly.
#[test]
fn the_versions_part_while_motors_are_at_their_limits() {
    let [old, new] = ["3.2.6", "3.17.0"].map(|version| reference(&format!("traj_mujoco_{version}.json")));
    for name in ["arm_push_hard_scaling_fused_nocontact", "arm_binpick_hard_scaling_fused_nocontact"] {
        let after_20 = [&old, &new].map(|file| numbers(&file[name]["records"][1]["qpos"]));
        let difference = after_20[0].iter().zip(&after_20[1]).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(difference > 0.3, "{name}: {difference}");
        // At the start the motors of joints 4, 6 and 7 are.
        let controls = numbers(&new[name]["ctrl"]["value"]);
        let limits: Vec<f64> = (0..7).map(|joint| MOTORS[joint].force(controls[joint], READY[joint], 0.0)).collect();
        assert_eq!([limits[3], limits[5], limits[6]], [87.0, -12.0, -12.0]);
    }
}

fn push(variant: Variant, environments: usize) -> Arms {
    let task = ArmTask::push_hard("push", variant).unwrap_or_else(|error| panic!("{error}"));
    Arms::new(&task, environments).expect("arms")
}

const BEGINNING: [f64; START] = [-0.2, 0.6, 0.3, 0.7];

fn step(arms: &mut Arms, action: [f32; 5]) -> Outcome {
    let count = arms.arms.len();
    let mut outcomes = vec![Outcome::default(); count];
    arms.step(&action.repeat(count), &mut outcomes, &mut vec![0.0; 3 * count]);
    outcomes[0]
}

#[test]
fn actions_are_targets() {
    let file = reference("traj_mujoco_3.17.0.json");
    for (name, case) in file.as_object().expect("cases").iter().filter(|(name, _)| of_case(name).is_some()) {
        let action: Vec<f32> = numbers(&case["ctrl"]["action"]).into_iter().map(|value| value as f32).collect();
        assert_close(name, &controls(&action), &numbers(&case["ctrl"]["value"]), 0.0, 0.0, 1e-7);
    }
    let told = controls(&[-1.0, 1.0, 1.0, -1.0, 0.0]);
    assert_close("ends", &told, &[0.3491, 1.48353, 0.0, -0.0698, 0.0, 2.3562, 1.4487, OPEN, OPEN], 0.0, 0.0, 1e-12);
}

#[test]
fn late_entries_belong_to_the_beginning_of_the_last_step() {
    let mut arms = push(Variant::JaxGcrl, 1);
    arms.begin(0, &BEGINNING).unwrap();
    let action = [0.3, 0.5, -0.4, 0.2, 1.0];
    let mut by_hand = Data::new(&arms.model).unwrap();
    by_hand.write(Part::Positions, &arms.arms[0].positions);
    by_hand.write(Part::Controls, &controls(&action));
    by_hand.step(24).unwrap();
    by_hand.forward().unwrap();
    step(&mut arms, action);
    let mut observed = [0.0; 21];
    arms.observe(&mut observed);
    let hand = arms.bodies[HAND];
    let (place, velocity) = (by_hand.pose(hand).0, by_hand.velocity(hand));
    for axis in 0..3 {
        assert_eq!([observed[10 + axis], observed[13 + axis]], [place[axis] as f32, velocity[axis] as f32]);
    }
    assert!(velocity.iter().any(|value| value.abs() > 0.1), "{velocity:?}");
    // The library has the forces of the motors, too.
    let forces = column(&arms.arms[0].data.printed(), "QFRC_ACTUATOR");
    let mean = forces[..VELOCITIES - 2].iter().sum::<f64>() / 19.0;
    assert!(mean.abs() > 1.0, "{forces:?}");
    assert_close("force", &[f64::from(observed[17])], &[0.1 * mean], 1e-6, 0.0, 0.0);
    by_hand.step(1).unwrap();
    let mut ahead = [0.0; POSITIONS];
    by_hand.read(Part::Positions, &mut ahead);
    assert_eq!(observed[..3], [ahead[0], ahead[1], ahead[2]].map(|value| value as f32));
    assert_eq!(observed[3..10], ahead[JOINTS..JOINTS + 7].iter().map(|value| *value as f32).collect::<Vec<_>>());
    assert_eq!(observed[18..], [0.3f32, 0.7, 0.03]);
}

#[test]
fn a_lost_state_ends_the_episode_and_nothing_else() {
    let mut arms = push(Variant::ScalingCrl, 2);
    for environment in 0..2 {
        arms.begin(environment, &BEGINNING).unwrap();
    }
    for bad in [f64::NAN, f64::INFINITY, 1e300] {
        let positions = [bad; POSITIONS];
        arms.arms[0].data.write(Part::Positions, &positions);
        let mut outcomes = [Outcome::default(); 2];
        arms.step(&[0.0; 10], &mut outcomes, &mut [0.0; 6]);
        assert!(outcomes[0].terminated && outcomes[0].distance.is_nan(), "{bad}: {outcomes:?}");
        assert!(!outcomes[1].terminated && outcomes[1].distance.is_finite(), "{bad}: {outcomes:?}");
        arms.begin(0, &BEGINNING).unwrap();
        assert!(step(&mut arms, [0.0; 5]).distance.is_finite());
    }
    // An action that is no number is refused before it comes here; it does no harm, either.
    step(&mut arms, [f32::NAN; 5]);
    assert!(!Path::new("MUJOCO_LOG.TXT").exists(), "MuJoCo wrote its log");
    assert!(arms.begin(0, &[f64::NAN; START]).is_err() && arms.begin(0, &[0.0; 3]).is_err());
}

#[test]
fn snapshots_of_another_version_or_size_are_refused_and_change_nothing() {
    let mut arms = push(Variant::ScalingCrl, 2);
    for environment in 0..2 {
        arms.begin(environment, &BEGINNING).unwrap();
    }
    step(&mut arms, [0.5; 5]);
    let good = arms.snapshot();
    let damaged = |place: usize, value: f64| {
        let mut snapshot = good.clone();
        snapshot[place] = value;
        snapshot
    };
    for (snapshot, words) in [
        (Vec::new(), "empty"),
        (damaged(0, 330.0), "another version of MuJoCo"),
        (good[..good.len() - 1].to_vec(), "arms of"),
        (damaged(good.len() - 1, f64::NAN), "arm 1 is not finite"),
    ] {
        let message = arms.restore(&snapshot).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
        assert_eq!(arms.snapshot(), good);
    }
    step(&mut arms, [-0.5; 5]);
    arms.restore(&good).unwrap();
    assert_eq!(arms.snapshot(), good);
}

#[test]
fn goals_are_drawn_on_the_other_side_and_redrawn_where_the_arm_is() {
    let mut random = Random::new(1, 1);
    let task = ArmTask::binpick_hard("bins", Variant::ScalingCrl).unwrap_or_else(|error| panic!("{error}"));
    let mut arms = Arms::new(&task, 1).expect("arms");
    let mut start = [0.0; START];
    for _ in 0..200 {
        arms.draw_start(&mut random, &mut start);
        let middles = [-0.3, 0.6, 0.3, 0.6];
        assert!(start.iter().zip(middles).all(|(value, middle)| (value - middle).abs() <= 0.15), "{start:?}");
    }
    arms.begin(0, &start).unwrap();
    let before = arms.scene(0);
    arms.redraw_goal(0, &mut random);
    let after = arms.scene(0);
    assert_eq!((before.agent, &before.bodies), (after.agent, &after.bodies));
    assert!(before.goal != after.goal && after.goal[2] == GOAL_HEIGHT);
    assert_eq!((arms.walls().len(), arms.bodies().len()), (8, after.bodies.len()));
}
