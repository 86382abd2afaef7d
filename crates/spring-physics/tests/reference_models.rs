//! Masses, inertias, joints and motors against the compiled models of MuJoCo.

mod common;

use common::{numbers, read};
use nalgebra::{Matrix3, Quaternion, UnitQuaternion, Vector3};
use serde_json::Value;
use spring_physics::{Joint, Model, models};

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().expect("a text")
}

/// How MuJoCo's files name what has no name or another one here.
fn check(what: &str, model: &Model, file: &Value, spring_gears: &[f64]) {
    let bodies = file["bodies"].as_array().expect("bodies");
    assert_eq!(bodies.len(), model.links().len() + 1, "{what}: the world and the links");
    assert!((model.total_mass() - file["total_mass"].as_f64().expect("a mass")).abs() < 1e-9, "{what}: total mass");
    for (link, body) in bodies[1..].iter().enumerate() {
        let place = format!("{what}, link {link}");
        let parent = body["parent"].as_u64().expect("a parent") as usize;
        assert_eq!(model.links()[link].parent, parent.checked_sub(1), "{place}: parent");
        assert!((model.mass(link) - body["mass"].as_f64().expect("a mass")).abs() < 1e-9, "{place}: mass");
        let center = Vector3::from(model.center_of_mass(link));
        assert!((center - Vector3::from_vec(numbers(&body["ipos"]))).amax() < 1e-8, "{place}: centre of mass");
        // The file has principal moments and the orientation of their axes.
        let q = numbers(&body["iquat"]);
        let turn = UnitQuaternion::from_quaternion(Quaternion::new(q[0], q[1], q[2], q[3])).to_rotation_matrix();
        let moments = Matrix3::from_diagonal(&Vector3::from_vec(numbers(&body["inertia"])));
        let expected = turn.matrix() * moments * turn.matrix().transpose();
        let actual = Matrix3::from(model.inertia(link));
        assert!((actual - expected).amax() < 2e-8, "{place}: inertia is {actual}, expected {expected}");
    }
    let joints = file["joints"].as_array().expect("joints");
    let axes: Vec<&Value> = joints.iter().filter(|joint| text(joint, "type") != "free").collect();
    assert_eq!(axes.len(), model.dofs().len(), "{what}: joints");
    for (dof, joint) in model.dofs().iter().zip(axes) {
        let place = format!("{what}, joint `{}`", dof.name);
        assert_eq!(dof.q as u64, joint["qposadr"].as_u64().expect("a place"), "{place}: place in q");
        assert_eq!(dof.qd as u64, joint["dofadr"].as_u64().expect("a place"), "{place}: place in qd");
        let range = dof.range.expect("a range");
        assert!(numbers(&joint["range"]).iter().zip(range).all(|(a, b)| (a - b).abs() < 1e-8), "{place}: range");
        let link = &model.links()[dof.link];
        let (Joint::Hinges(axes) | Joint::Slides(axes)) = &link.joint else { panic!("{place}: a free link") };
        let axis = axes.iter().find(|axis| axis.name == dof.name).expect("its axis");
        let direction = Vector3::from(axis.direction).normalize();
        assert!((direction - Vector3::from_vec(numbers(&joint["axis"]))).amax() < 1e-8, "{place}: axis");
        assert!(
            (Vector3::from(link.anchor) - Vector3::from_vec(numbers(&joint["pos"]))).amax() < 1e-12,
            "{place}: anchor"
        );
    }
    let motors = file["actuators"].as_array().expect("actuators");
    assert_eq!(motors.len(), model.control_len(), "{what}: motors");
    for (k, (motor, range)) in motors.iter().zip(model.control_ranges()).enumerate() {
        assert_eq!(numbers(&motor["ctrlrange"]), range, "{what}, motor {k}: range");
        let actuator = &model.actuators()[k];
        assert_eq!(actuator.joint, text(motor, "joint"), "{what}, motor {k}: joint");
        assert_eq!(actuator.gear, spring_gears[k], "{what}, motor {k}: gear");
    }
}

#[test]
fn models_are_those_of_the_files() {
    let (file, runs) = (read("models.json"), read("traj_brax_spring.json"));
    let ant = models::ant(&models::Ant::default()).expect("an ant");
    check("ant", &ant, &file["ant_flat_fused"], &numbers(&runs["ant_floor_const"]["gear"]));
    let humanoid = models::humanoid(&models::Humanoid::default()).expect("a humanoid");
    check("humanoid", &humanoid, &file["humanoid_fused"], &numbers(&runs["humanoid_dt0.003"]["gear"]));
    let rest = numbers(&file["humanoid_fused"]["qpos0"]);
    assert!(humanoid.rest().iter().zip(&rest).all(|(a, b)| (a - b).abs() < 1e-12), "rest is {:?}", humanoid.rest());
}
