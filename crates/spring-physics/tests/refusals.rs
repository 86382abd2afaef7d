//! Bad input is refused with a message, and changes nothing.

use spring_physics::{
    Actuator, Axis, Block, Geom, Joint, Link, ModelBuilder, ModelError, Options, Simulation, SimulationError, models,
};

fn pole() -> Link {
    let hinge = Joint::hinge(Axis::new("pivot", [0.0, 1.0, 0.0]));
    Link::new("pole", None, [0.0; 3], hinge).with(Geom::capsule([0.0; 3], [0.0, 0.0, 1.0], 0.1))
}

fn refused(build: impl FnOnce(&mut ModelBuilder)) -> ModelError {
    let mut builder = ModelBuilder::new(Options::default());
    build(&mut builder);
    builder.build().expect_err("a refusal")
}

#[test]
fn a_description_that_is_no_model_is_refused() {
    let with = |link: Link| {
        refused(|builder| {
            builder.link(link);
        })
    };
    assert_eq!(refused(|_| ()), ModelError::NoLinks);
    assert!(matches!(with(Link { parent: Some(0), ..pole() }), ModelError::Parent { parent: 0, .. }));
    assert_eq!(with(Link { geoms: Vec::new(), ..pole() }), ModelError::NoMass("pole".into()));
    assert!(matches!(with(pole().turned([0.0; 4])), ModelError::Number { .. }));
    assert!(matches!(with(pole().anchored([f64::NAN, 0.0, 0.0])), ModelError::Number { what: "anchor", .. }));
    assert!(matches!(with(pole().with(Geom::sphere([0.0; 3], -1.0))), ModelError::Number { what: "radius", .. }));
    assert!(matches!(with(pole().with(Geom::capsule([0.0; 3], [0.0; 3], 1.0))), ModelError::Number { .. }));
    assert!(matches!(with(pole().with(Geom::sphere([0.0; 3], 1.0).density(f64::NAN))), ModelError::Number { .. }));
    let joint = |joint: Joint| with(Link { joint, ..pole() });
    assert!(matches!(joint(Joint::Hinges(Vec::new())), ModelError::AxisCount { count: 0, .. }));
    let axis = |name: &str, direction| Axis::new(name, direction);
    let leaning = vec![axis("a", [1.0, 0.0, 0.0]), axis("b", [1.0, 1.0, 0.0])];
    assert!(matches!(joint(Joint::Hinges(leaning)), ModelError::AxesNotOrthogonal { .. }));
    let twice = vec![axis("a", [1.0, 0.0, 0.0]), axis("a", [0.0, 1.0, 0.0])];
    assert_eq!(joint(Joint::Slides(twice)), ModelError::DuplicateName { kind: "joint", name: "a".into() });
    assert!(matches!(joint(Joint::hinge(axis("a", [0.0; 3]))), ModelError::Number { .. }));
    let turned_round = axis("a", [1.0, 0.0, 0.0]).between(1.0, -1.0);
    assert!(matches!(joint(Joint::hinge(turned_round)), ModelError::Number { what: "upper limit", .. }));
    let two = refused(|builder| {
        builder.link(pole());
        builder.link(pole());
    });
    assert_eq!(two, ModelError::DuplicateName { kind: "link", name: "pole".into() });
    let child = refused(|builder| {
        let parent = builder.link(pole());
        builder.link(Link::new("child", Some(parent), [0.0; 3], Joint::Free).with(Geom::sphere([0.0; 3], 1.0)));
    });
    assert_eq!(child, ModelError::FreeChild("child".into()));
    let motor = refused(|builder| {
        builder.link(pole());
        builder.actuator(Actuator::new("elbow", 1.0));
    });
    assert_eq!(motor.to_string(), "actuator 0 drives joint `elbow`, which no link has");
    let flat = refused(|builder| {
        builder.link(pole());
        builder.block(Block::new([0.0; 3], [1.0, 1.0, 0.0]));
    });
    assert_eq!(flat.to_string(), "box 0: half size is 0, but must be positive");
    let still = models::ant(&models::Ant { dt: 0.0, ..Default::default() }).expect_err("a refusal");
    assert_eq!(still.to_string(), "the options: dt is 0, but must be positive");
}

#[test]
fn a_bad_reset_changes_nothing() {
    let mut builder = ModelBuilder::new(Options::default());
    builder.link(Link::new("ball", None, [0.0; 3], Joint::Free).with(Geom::sphere([0.0; 3], 0.1)));
    let model = builder.build().expect("a model");
    assert_eq!(Simulation::<f32>::new(model.clone(), 0).err(), Some(SimulationError::Environments(0)));
    assert!(Simulation::<f32>::new(model.clone(), usize::MAX).is_err());
    let mut simulation = Simulation::<f32>::new(model, 2).expect("a simulation");
    let before = simulation.snapshot();
    let good = [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0];
    let errors = [
        simulation.reset(2, &good, &[0.0; 6]),
        simulation.reset(0, &good[1..], &[0.0; 6]),
        simulation.reset(0, &good, &[0.0; 7]),
        simulation.reset(0, &[f32::NAN; 7], &[0.0; 6]),
        simulation.reset(0, &[0.0; 7], &[0.0; 6]),
    ];
    let messages: Vec<String> = errors.into_iter().map(|e| e.expect_err("a refusal").to_string()).collect();
    assert_eq!(
        messages,
        [
            "environment 2 was asked for, but there are 2",
            "q has 6 numbers, but 7 are needed",
            "qd has 7 numbers, but 6 are needed",
            "q: number 0 is not finite",
            "the orientation of link `ball` is a quaternion of length zero",
        ]
    );
    assert_eq!(simulation.snapshot(), before);
    simulation.reset(1, &good, &[0.0; 6]).expect("a start");
    assert_ne!(simulation.snapshot(), before);
}
