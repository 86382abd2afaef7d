use std::collections::BTreeMap;

use super::*;
use crate::mujoco::library;

const PENDULUM: &str = r#"<mujoco><worldbody><body name="bob"><joint name="hinge"/><geom size="1"/></body></worldbody>
<actuator><motor joint="hinge"/></actuator></mujoco>"#;

fn opened() -> Arc<Library> {
    library().unwrap_or_else(|error| panic!("{error}"))
}

/// What MuJoCo prints of a model or a simulation: the words of each line, under the title of its block. What stands on
/// the line of the title is the first line.
pub(crate) type Printed = BTreeMap<String, Vec<Vec<String>>>;

fn printed(print: impl FnOnce(&libloading::Library, *const c_char, *const c_char)) -> Printed {
    let library = opened();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("printed.txt");
    let name = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: it is loaded already.
    print(&unsafe { libloading::Library::new(&library.path) }.unwrap(), name.as_ptr(), c"%.15g".as_ptr());
    let (mut blocks, mut title) = (Printed::new(), String::new());
    for line in std::fs::read_to_string(path).unwrap().lines().filter(|line| !line.trim().is_empty()) {
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        if !line.starts_with(' ') {
            // `BODY 1:` is a title of its own; of `qpos0 1 2 3` the first word is.
            (title, words) = match line.strip_suffix(':') {
                Some(whole) => (whole.to_owned(), Vec::new()),
                None => (words.remove(0), words),
            };
        }
        blocks.entry(title.clone()).or_default().push(words);
    }
    blocks
}

/// The numbers of one column, without the line of the title.
pub(crate) fn column(printed: &Printed, title: &str) -> Vec<f64> {
    printed[title][1..].iter().map(|words| words[0].parse().unwrap()).collect()
}

impl Model {
    /// All its numbers.
    pub(crate) fn printed(&self) -> Printed {
        printed(|library, path, format| {
            type Print = unsafe extern "C" fn(*const RawModel, *const c_char, *const c_char);
            // SAFETY: the signature is that of mujoco.h; the model is alive, and both strings end with 0.
            unsafe { library.get::<Print>(b"mj_printFormattedModel\0").unwrap()(self.pointer.as_ptr(), path, format) }
        })
    }
}

impl Data {
    /// All its numbers.
    pub(crate) fn printed(&self) -> Printed {
        printed(|library, path, format| {
            type Print = unsafe extern "C" fn(*const RawModel, *const RawData, *const c_char, *const c_char);
            // SAFETY: as for the model.
            unsafe {
                let print = library.get::<Print>(b"mj_printFormattedData\0").unwrap();
                print(self.model.pointer.as_ptr(), self.pointer.as_ptr(), path, format);
            }
        })
    }
}

#[test]
fn what_the_library_fails_with_is_an_error() {
    let model = Model::compile(&opened(), PENDULUM).unwrap();
    // SAFETY: the model is alive; the mask has bits that mean nothing, which MuJoCo refuses.
    let result = guarded(|| unsafe { (model.library.functions.mj_stateSize)(model.pointer.as_ptr(), 1 << 30) });
    let message = result.unwrap_err();
    assert!(message.contains("state"), "{message}");
    // It goes on as before.
    let mut data = Data::new(&Arc::new(model)).unwrap();
    data.write(Part::Controls, &[1.0]);
    data.step(10).unwrap();
    let mut position = [0.0];
    data.read(Part::Positions, &mut position);
    assert!(position[0] > 0.0);
}

#[test]
fn what_the_compiler_says_is_passed_on() {
    let library = opened();
    for (xml, words) in [
        ("<mujoco", "XML"),
        ("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>", "mass"),
        ("<mujoco>\0</mujoco>", "nul byte"),
    ] {
        let message = Model::compile(&library, xml).err().unwrap();
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn states_and_bodies_are_those_of_the_model() {
    let model = Arc::new(Model::compile(&opened(), PENDULUM).unwrap());
    let lengths = [Part::Positions, Part::Velocities, Part::Controls].map(|part| model.len(part));
    assert_eq!(lengths, [1, 1, 1]);
    assert_eq!((model.body("bob"), model.body("hinge"), model.body("b\0b")), (Some(BodyId(1)), None, None));
    let mut data = Data::new(&model).unwrap();
    data.write(Part::Positions, &[std::f64::consts::FRAC_PI_2]);
    data.write(Part::Velocities, &[3.0]);
    data.write(Part::Controls, &[0.25]);
    data.forward().unwrap();
    let (position, rotation) = data.pose(BodyId(1));
    assert_eq!(position, [0.0; 3]);
    let half = std::f64::consts::FRAC_1_SQRT_2;
    assert!((rotation[0] - half).abs() < 1e-15 && (rotation[3] - half).abs() < 1e-15, "{rotation:?}");
    // The mask of the version is the right one: what is written there is a control and nothing else.
    assert_eq!(column(&data.printed(), "CTRL"), [0.25]);
}

#[test]
#[should_panic = "Positions"]
fn a_part_has_its_length() {
    let model = Arc::new(Model::compile(&opened(), PENDULUM).unwrap());
    Data::new(&model).unwrap().read(Part::Positions, &mut [0.0; 2]);
}
