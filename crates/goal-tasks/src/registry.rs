//! Tasks by name.

use std::sync::Arc;

use crate::{AntMaze, HumanoidTask, PointMaze, SharedTask, TaskError, Variant, maze_names, named_maze};

/// The task without walls.
const HUMANOID: &str = "humanoid";

/// The tasks of the arm.
const PUSH: &str = "arm_push_hard";
const BINPICK: &str = "arm_binpick_hard";

/// The command that installs the physics library of the arm.
macro_rules! install {
    () => {
        "pip install --no-deps --upgrade --target ~/.mujoco mujoco==3.17.0"
    };
}

/// The same for messages that are made elsewhere.
#[cfg(feature = "mujoco")]
pub(crate) const MUJOCO_INSTALL: &str = install!();

/// The mazes that the humanoid walks in.
const OF_HUMANOID: [&str; 5] = ["u_maze", "u_maze_eval", "big_maze", "big_maze_eval", "hardest_maze"];

/// The names of all tasks of a variant.
pub fn task_names(variant: Variant) -> Vec<String> {
    let mazes = ["point", "ant", "humanoid"]
        .iter()
        .flat_map(|agent| maze_names(variant).map(move |maze| (*agent, maze)))
        .filter(|(agent, maze)| *agent != "humanoid" || OF_HUMANOID.contains(maze))
        .map(|(agent, maze)| format!("{agent}_{maze}"));
    mazes.chain([HUMANOID, PUSH, BINPICK].map(str::to_owned)).collect()
}

/// The task of a name: an agent (`point`, `ant`, `humanoid`) and a maze with `_` between them, or one of the tasks
/// without a maze. [`task_names`] lists them.
///
/// # Errors
/// [`TaskError::Unknown`] with the nearest names, [`TaskError::NeedsFeature`] for tasks of the arm in a build without
/// the feature `mujoco`, and [`TaskError::NeedsLibrary`] for these where the library is missing or of another version.
pub fn task(name: &str, variant: Variant) -> Result<SharedTask, TaskError> {
    if [PUSH, BINPICK].contains(&name) {
        return arm(name, variant);
    }
    if name == HUMANOID {
        return Ok(HumanoidTask::open(name, variant)?.into());
    }
    let Some((agent, maze_name)) = name.split_once('_') else { return Err(unknown(name, variant)) };
    let Some(maze) = named_maze(maze_name, variant) else { return Err(unknown(name, variant)) };
    // Where there is a layout with far goals only, the programs evaluate on that.
    let evaluated_on = match named_maze(&format!("{maze_name}_eval"), variant) {
        Some(_) => format!("{name}_eval"),
        None => name.to_owned(),
    };
    match agent {
        "point" => Ok(Arc::new(PointMaze::new(name, maze, variant))),
        "ant" => Ok(AntMaze::new(name, &maze, variant)?.evaluated_on(&evaluated_on).into()),
        "humanoid" if OF_HUMANOID.contains(&maze_name) => {
            // scaling-crl has the layout of JaxGCRL here.
            let maze = named_maze(maze_name, Variant::JaxGcrl).unwrap_or(maze);
            Ok(HumanoidTask::in_maze(name, &maze, variant)?.evaluated_on(&evaluated_on).into())
        }
        _ => Err(unknown(name, variant)),
    }
}

#[cfg(feature = "mujoco")]
fn arm(name: &str, variant: Variant) -> Result<SharedTask, TaskError> {
    let task = if name == PUSH { crate::ArmTask::push_hard } else { crate::ArmTask::binpick_hard };
    Ok(task(name, variant)?.into())
}

#[cfg(not(feature = "mujoco"))]
fn arm(name: &str, _: Variant) -> Result<SharedTask, TaskError> {
    Err(TaskError::NeedsFeature {
        name: name.to_owned(),
        needs: "the physics library MuJoCo",
        advice: concat!(
            "build with `--features mujoco`, and install the library with `",
            install!(),
            "`; tasks of the point, the ant and the humanoid need neither"
        ),
    })
}

fn unknown(name: &str, variant: Variant) -> TaskError {
    // A name may be as long as a file; the message need not be.
    let name: String = name.chars().take(80).collect();
    let all = task_names(variant);
    let likeness = |known: &str| strsim::jaro_winkler(&name, known);
    let mut ranked: Vec<&str> = all.iter().map(String::as_str).collect();
    ranked.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
    let nearest = ranked.into_iter().take(3).map(|known| format!("`{known}`")).collect();
    TaskError::Unknown { name, nearest, all }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_makes_a_task_or_says_what_is_missing() {
        for variant in [Variant::ScalingCrl, Variant::JaxGcrl] {
            for name in task_names(variant) {
                match task(&name, variant) {
                    Ok(made) => {
                        let spec = made.spec();
                        assert_eq!((spec.name.as_str(), spec.variant), (name.as_str(), variant));
                        assert!(task(&spec.evaluated_on, variant).is_ok(), "{name}: {}", spec.evaluated_on);
                    }
                    Err(TaskError::NeedsFeature { .. }) if cfg!(not(feature = "mujoco")) => {}
                    Err(error) => panic!("{name}: {error}"),
                }
            }
        }
    }

    #[test]
    fn unknown_names_say_what_there_is() {
        for name in ["point_umaze", "point", "", "ünknown", "point_u_maze_"] {
            let message = task(name, Variant::default()).err().unwrap().to_string();
            assert!(message.contains("point_u_maze") && message.contains("arm_push_hard"), "{message}");
        }
        let message = task("point_u_mase", Variant::default()).err().unwrap().to_string();
        assert!(message.contains("did you mean `point_u_maze`"), "{message}");
    }

    #[cfg(not(feature = "mujoco"))]
    #[test]
    fn without_the_feature_the_arm_says_how_to_get_it() {
        for name in [PUSH, BINPICK] {
            let message = task(name, Variant::default()).err().unwrap().to_string();
            for part in [name, "MuJoCo", "--features mujoco", install!()] {
                assert!(message.contains(part), "{part}: {message}");
            }
        }
    }
}
