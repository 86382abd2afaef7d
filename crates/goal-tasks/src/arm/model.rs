//! The arm and its surroundings in MuJoCo's XML format.
//!
//! The numbers are those that the paper's program ends up with, after its environments have fused bodies without
//! joints into their parents: the joints of the arm have neither damping nor armature, only three of them have limits,
//! and the mass of the hand is gone.

use std::fmt::Write;

use crate::{Variant, WallBox};

/// Seconds of a step of the simulation.
pub(super) const TIME_STEP: f64 = 0.002;

/// The motor of a joint: its force is `gain u - stiffness q - damping v`, cut off at `force`, with `u` cut off at
/// `range`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Motor {
    gain: f64,
    stiffness: f64,
    damping: f64,
    force: f64,
    range: [f64; 2],
}

impl Motor {
    const fn new(gain: f64, stiffness: f64, damping: f64, force: f64, range: [f64; 2]) -> Self {
        Self { gain, stiffness, damping, force, range }
    }

    /// Its force.
    pub(super) fn force(&self, control: f64, position: f64, velocity: f64) -> f64 {
        let control = control.clamp(self.range[0], self.range[1]);
        let force = self.gain * control - self.stiffness * position - self.damping * velocity;
        force.clamp(-self.force, self.force)
    }
}

/// The motors of joints 1 to 7. Gain and stiffness of joints 3 to 7 differ in the original, too, so that these joints
/// come to rest at 4/7 or 1/2 of what they are told.
pub(super) const MOTORS: [Motor; 7] = [
    Motor::new(4500.0, 4500.0, 450.0, 87.0, [-2.8973, 2.8973]),
    Motor::new(4500.0, 4500.0, 450.0, 87.0, [-1.7628, 1.7628]),
    Motor::new(2000.0, 3500.0, 350.0, 87.0, [-2.8973, 2.8973]),
    Motor::new(2000.0, 3500.0, 350.0, 87.0, [-3.0718, -0.0698]),
    Motor::new(1000.0, 2000.0, 200.0, 12.0, [-2.8973, 2.8973]),
    Motor::new(1000.0, 2000.0, 200.0, 12.0, [-0.0175, 3.7525]),
    Motor::new(1000.0, 2000.0, 200.0, 12.0, [-2.8973, 2.8973]),
];

/// What surrounds the arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Surroundings {
    /// A table.
    Table,
    /// A table with two bins.
    Bins,
}

impl Surroundings {
    /// Where cube and marker are before anything is drawn.
    pub(super) fn rest(self) -> [f64; 3] {
        match self {
            Self::Table => [-0.25, 0.65, 0.07],
            Self::Bins => [-0.3, 0.6, 0.07],
        }
    }

    /// The walls of the bins.
    pub(super) fn walls(self) -> Vec<WallBox> {
        let (across, along) = ([0.195, 0.005, 0.033], [0.005, 0.185, 0.033]);
        let wall = |x, y, half| WallBox { centre: [x, y, 0.033], half };
        match self {
            Self::Table => Vec::new(),
            Self::Bins => vec![
                wall(-0.3, 0.41, across),
                wall(-0.3, 0.79, across),
                wall(-0.11, 0.6, along),
                wall(-0.49, 0.6, along),
                wall(0.3, 0.41, across),
                wall(0.3, 0.79, across),
                wall(0.49, 0.6, along),
                wall(0.11, 0.6, along),
            ],
        }
    }

    /// Names of the walls, in the same order.
    fn wall_names(self) -> &'static [&'static str] {
        match self {
            Self::Table => &[],
            Self::Bins => &["binA1", "binA2", "binA3", "binA4", "binB1", "binB2", "binB3", "binB4"],
        }
    }

    /// What stands on the floor: patches that nothing touches, or walls.
    fn fixtures(self) -> String {
        let mut text = String::new();
        if self == Self::Table {
            for (name, x) in [("binA_floor", -0.25), ("binB_floor", 0.25)] {
                _ = writeln!(text, r#"<geom name="{name}" type="box" size=".25 .25 .0005" pos="{x} .65 .0005"/>"#);
            }
        }
        for (name, WallBox { centre: [x, y, z], half: [a, b, c] }) in self.wall_names().iter().zip(self.walls()) {
            _ = writeln!(text, r#"<geom name="{name}" type="box" size="{a} {b} {c}" pos="{x} {y} {z}"/>"#);
        }
        text
    }

    /// Which geometries touch: no others do.
    fn pairs(self) -> String {
        let moving = ["cube_geom", "hand_geom", "left_finger_geom", "right_finger_geom"];
        let mut pairs = Vec::new();
        for geometry in moving {
            pairs.push(("table_geom", geometry));
            pairs.extend(self.wall_names().iter().map(|&wall| (wall, geometry)));
        }
        pairs.extend(moving[1..].iter().map(|&geometry| ("cube_geom", geometry)));
        pairs.push(("left_finger_geom", "right_finger_geom"));
        let mut text = String::new();
        for (first, second) in pairs {
            // Stated here, as a pair would otherwise take the larger friction of its two geometries.
            let contact = r#"condim="3" friction="1 1 .005 .0001 .0001" solref=".02 1" solimp=".9 .95 .001 .5 2""#;
            _ = writeln!(text, r#"<pair geom1="{first}" geom2="{second}" {contact}/>"#);
        }
        text
    }
}

/// The model.
pub(super) fn xml(surroundings: Surroundings, variant: Variant, contacts: bool) -> String {
    let impratio = if surroundings == Surroundings::Bins { 10 } else { 1 };
    // The fingers open to 8 cm each, or to 5 cm.
    let (opening, finger_gain) = match variant {
        Variant::ScalingCrl => (0.08, 0.15686),
        Variant::JaxGcrl => (0.05, 0.09804),
    };
    let contact = if contacts { "enable" } else { "disable" };
    let [x, y, z] = surroundings.rest();
    let (fixtures, pairs) = (surroundings.fixtures(), surroundings.pairs());
    let mut motors = String::new();
    for (joint, motor) in (1..).zip(MOTORS) {
        let Motor { gain, stiffness, damping, force, range: [low, high] } = motor;
        _ = writeln!(
            motors,
            r#"<general name="actuator{joint}" joint="joint{joint}" biastype="affine" gainprm="{gain}"
                biasprm="0 -{stiffness} -{damping}" forcerange="-{force} {force}" ctrlrange="{low} {high}"/>"#
        );
    }
    for finger in 1..=2 {
        _ = writeln!(
            motors,
            r#"<general name="actuator{}" joint="finger_joint{finger}" biastype="affine" gainprm="{finger_gain}"
                biasprm="0 -500 -50" forcerange="-500 500" ctrlrange="0 255"/>"#,
            7 + finger
        );
    }
    // Iterations of the solver as the environments set them. A state that is no number must stay visible, so MuJoCo
    // does not reset it. Contacts and solver of one environment take 60 KB at most in practice; MuJoCo would reserve
    // 14 MB.
    format!(
        r#"<mujoco model="arm">
<compiler angle="radian"/>
<option timestep="{TIME_STEP}" iterations="6" ls_iterations="12" integrator="implicitfast" cone="pyramidal"
        solver="Newton" tolerance="1e-8" impratio="{impratio}">
  <flag contact="{contact}" autoreset="disable"/>
</option>
<size memory="1M"/>
<default>
  <geom contype="0" conaffinity="0"/>
  <default class="finger">
    <joint type="slide" axis="0 1 0" range="0 {opening}" damping="5" armature=".1"/>
    <geom type="box" size=".015 .005 .04" pos="0 .0055 .035" friction="10 .005 .0001"/>
  </default>
</default>
<worldbody>
  {fixtures}
  <geom name="table_geom" type="plane" size="2.8 2.4 .1" pos="0 .2 0" friction=".2 .005 .0001"/>
  <body name="cube" pos="{x} {y} {z}">
    <freejoint/>
    <geom name="cube_geom" type="box" size=".03 .03 .03" density="1000"/>
  </body>
  <body name="goal_marker" pos="{x} {y} {z}" gravcomp="1">
    <freejoint/>
    <geom name="goal_marker_geom" type="box" size=".03 .03 .03" density="1000"/>
  </body>
  <body name="link1" pos="0 0 .333">
    <inertial mass="4.970684" pos=".003875 .002081 -.04762"
              fullinertia=".70337 .70661 .009117 -.000139 .006772 .019169"/>
    <joint name="joint1"/>
    <body name="link2" quat="1 -1 0 0">
      <inertial mass=".646926" pos="-.003141 -.02872 .003495"
                fullinertia=".007962 .02811 .025995 -.003925 .010254 .000704"/>
      <joint name="joint2" range="-1.7628 1.7628"/>
      <body name="link3" pos="0 -.316 0" quat="1 1 0 0">
        <inertial mass="3.228604" pos=".027518 .039252 -.066502"
                  fullinertia=".037242 .036155 .01083 -.004761 -.011396 -.012805"/>
        <joint name="joint3"/>
        <body name="link4" pos=".0825 0 0" quat="1 1 0 0">
          <inertial mass="3.587895" pos="-.05317 .104419 .027454"
                    fullinertia=".025853 .019552 .028323 .007796 -.001332 .008641"/>
          <joint name="joint4" range="-3.0718 -.0698"/>
          <body name="link5" pos="-.0825 .384 0" quat="1 -1 0 0">
            <inertial mass="1.225946" pos="-.011953 .041065 -.038437"
                      fullinertia=".035549 .029474 .008627 -.002117 -.004037 .000229"/>
            <joint name="joint5"/>
            <body name="link6" quat="1 1 0 0">
              <inertial mass="1.666555" pos=".060149 -.014117 -.010517"
                        fullinertia=".001964 .004354 .005433 .000109 -.001158 .000341"/>
              <joint name="joint6" range="-.0175 3.7525"/>
              <body name="link7" pos=".088 0 0" quat="1 1 0 0">
                <inertial mass=".735522" pos=".010517 -.004252 .061597"
                          fullinertia=".012516 .010027 .004815 -.000428 -.001196 -.000741"/>
                <joint name="joint7"/>
                <geom name="hand_geom" type="capsule" size=".04 .06" pos="0 0 .142"
                      quat=".653281535 .653281535 -.270597922 -.270597922"/>
                <body name="left_finger" pos="0 0 .1654" quat=".923879607 0 0 -.382683252" childclass="finger">
                  <inertial mass=".015" pos="0 0 0" diaginertia="2.375e-6 2.375e-6 7.5e-7"/>
                  <joint name="finger_joint1"/>
                  <geom name="left_finger_geom"/>
                </body>
                <body name="right_finger" pos="0 0 .1654" quat=".382683252 0 0 .923879607" childclass="finger">
                  <inertial mass=".015" pos="0 0 0" diaginertia="2.375e-6 2.375e-6 7.5e-7"/>
                  <joint name="finger_joint2"/>
                  <geom name="right_finger_geom"/>
                </body>
              </body>
            </body>
          </body>
        </body>
      </body>
    </body>
  </body>
</worldbody>
<contact>
  {pairs}
</contact>
<equality>
  <joint joint1="finger_joint1" joint2="finger_joint2" solref=".005 1" solimp=".95 .99 .001"/>
</equality>
<actuator>
  {motors}
</actuator>
</mujoco>
"#
    )
}
