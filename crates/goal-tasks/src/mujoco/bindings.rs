//! The functions of the library, behind types that own what they allocate. All unsafe code of the crate is here.

use std::{
    any::Any,
    error::Error,
    ffi::{CStr, CString, c_char, c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Path, PathBuf},
    ptr::{self, NonNull},
    sync::{Arc, Mutex, PoisonError},
};

use super::Version;

/// `mjOBJ_BODY` and `mjOBJ_XBODY`, the same in both versions: a body, and the frame of a body.
const BODY: c_int = 1;
const FRAME: c_int = 2;

/// Bytes of an error message.
const MESSAGE: usize = 1024;

/// `mjSpec`, `mjModel` and `mjData`, of which only pointers are handled.
#[repr(C)]
struct RawSpec([u8; 0]);
#[repr(C)]
struct RawModel([u8; 0]);
#[repr(C)]
struct RawData([u8; 0]);

/// What `mju_user_error` and `mju_user_warning` hold.
type Handler = Option<unsafe extern "C-unwind" fn(*const c_char)>;

/// Declares the functions and how they are found.
macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        #[allow(non_snake_case)]
        struct Functions {
            $($name: unsafe extern "C-unwind" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// # Safety
            /// The library must have the functions with these signatures, or none of that name.
            unsafe fn find(library: &libloading::Library) -> Result<Self, libloading::Error> {
                // SAFETY: the signatures are the caller's promise; a `Functions` lives beside the library.
                unsafe { Ok(Self { $($name: *library.get(concat!(stringify!($name), "\0").as_bytes())?,)* }) }
            }
        }
    };
}

// Signatures of mujoco.h. `mjVFS` is never given, hence `c_void`; `mjtNum` is f64 and `mjtByte` u8 in the wheels.
functions! {
    mj_parseXMLString(*const c_char, *const c_void, *mut c_char, c_int) -> *mut RawSpec;
    mj_compile(*mut RawSpec, *const c_void) -> *mut RawModel;
    mjs_getError(*mut RawSpec) -> *const c_char;
    mj_deleteSpec(*mut RawSpec);
    mj_deleteModel(*mut RawModel);
    mj_name2id(*const RawModel, c_int, *const c_char) -> c_int;
    mj_makeData(*const RawModel) -> *mut RawData;
    mj_deleteData(*mut RawData);
    mj_resetData(*const RawModel, *mut RawData);
    mj_forward(*const RawModel, *mut RawData);
    mj_step(*const RawModel, *mut RawData);
    mj_stateSize(*const RawModel, c_int) -> c_int;
    mj_getState(*const RawModel, *const RawData, *mut f64, c_int);
    mj_setState(*const RawModel, *mut RawData, *const f64, c_int);
    mj_objectVelocity(*const RawModel, *const RawData, c_int, c_int, *mut f64, c_int);
    mj_local2Global(*mut RawData, *mut f64, *mut f64, *const f64, *const f64, c_int, u8);
    mju_mat2Quat(*mut f64, *const f64);
}

/// Why a file cannot be used.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// It cannot be loaded.
    Load(String),
    /// It is no MuJoCo, or a damaged one.
    Foreign(String),
    /// It has this version.
    Version(String),
}

/// What went wrong, and what the system says about it.
fn reason(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

/// The library. It stays open for as long as the program runs, as its handlers point into the program.
pub(crate) struct Library {
    functions: Functions,
    version: Version,
    path: PathBuf,
}

impl Library {
    /// Opens a file, provided that it is one of the [`Version`]s.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        // SAFETY: loading runs the file's initialisers; those of MuJoCo have no preconditions, and which file is loaded
        // is the choice of whoever runs the program.
        let library = unsafe { libloading::Library::new(path) }.map_err(|error| OpenError::Load(reason(&error)))?;
        let foreign = |error: libloading::Error| OpenError::Foreign(reason(&error));
        // SAFETY: these two have had the same signatures in all versions; the second gives a static string.
        let (number, name) = unsafe {
            let number = library.get::<unsafe extern "C" fn() -> c_int>(b"mj_version\0").map_err(foreign)?;
            let name =
                library.get::<unsafe extern "C" fn() -> *const c_char>(b"mj_versionString\0").map_err(foreign)?;
            (number(), text(name()))
        };
        let version = Version::of(number).ok_or(OpenError::Version(name))?;
        // SAFETY: the signatures are those of the headers of both versions.
        let functions = unsafe { Functions::find(&library) }.map_err(foreign)?;
        // SAFETY: these are variables of that type in both versions. Nothing of this copy of the library runs yet in
        // this program: its functions are called through the value that is made here.
        unsafe {
            **library.get::<*mut Handler>(b"mju_user_error\0").map_err(foreign)? = Some(fail);
            **library.get::<*mut Handler>(b"mju_user_warning\0").map_err(foreign)? = Some(ignore);
        }
        // Never closed: function pointers of it may be anywhere.
        std::mem::forget(library);
        Ok(Self { functions, version, path: path.to_owned() })
    }

    /// Its version.
    pub(crate) fn version(&self) -> Version {
        self.version
    }
}

/// What [`fail`] throws.
struct Failure(String);

/// Takes the place of MuJoCo's own handler of errors, which ends the process. It must not return, because MuJoCo does
/// not expect that; [`guarded`] catches what it throws. MuJoCo's own bindings of other languages leave it the same way.
unsafe extern "C-unwind" fn fail(message: *const c_char) {
    // SAFETY: MuJoCo gives a string that ends with 0.
    let message = unsafe { text(message) };
    // Not a panic: no hook is told, nothing is printed.
    resume_unwind(Box::new(Failure(message)));
}

/// Takes the place of MuJoCo's own handler of warnings, which writes a file. What it warns of, numbers that are none,
/// is found by looking at them.
unsafe extern "C-unwind" fn ignore(_: *const c_char) {}

/// Runs a function of the library, and gives the message where it fails.
fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    // After a failure the caller may only reset or delete what the call was about.
    catch_unwind(AssertUnwindSafe(call)).map_err(|thrown: Box<dyn Any + Send>| match thrown.downcast::<Failure>() {
        Ok(failure) => failure.0,
        Err(other) => resume_unwind(other),
    })
}

/// # Safety
/// Null, or a string that ends with 0.
unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: it is such a string, as the caller promises.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// The compiler is not said to be fit for several threads.
static COMPILER: Mutex<()> = Mutex::new(());

/// A part of the state of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Positions of the joints.
    Positions,
    /// Velocities of the joints.
    Velocities,
    /// What the actuators are told.
    Controls,
    /// All that the future depends on.
    Integration,
}

/// A compiled model, which nothing changes afterwards.
pub(crate) struct Model {
    library: Arc<Library>,
    pointer: NonNull<RawModel>,
    lengths: [usize; 4],
}

// SAFETY: a model is only read once it is compiled, and MuJoCo reads one from many threads at a time by design.
unsafe impl Send for Model {}
// SAFETY: as above.
unsafe impl Sync for Model {}

impl Model {
    /// Compiles a model in MuJoCo's XML format.
    ///
    /// # Errors
    /// What the compiler says.
    pub(crate) fn compile(library: &Arc<Library>, xml: &str) -> Result<Self, String> {
        let functions = &library.functions;
        let source = CString::new(xml).map_err(|error| error.to_string())?;
        let mut message = [0; MESSAGE];
        let one_at_a_time = COMPILER.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: `source` ends with 0 and outlives the call, no file system is given, and the message has its length.
        let spec = guarded(|| unsafe {
            (functions.mj_parseXMLString)(source.as_ptr(), ptr::null(), message.as_mut_ptr(), MESSAGE as c_int)
        })?;
        if spec.is_null() {
            // SAFETY: the array was zero, and the function ends what it writes with 0.
            return Err(unsafe { text(message.as_ptr()) });
        }
        // SAFETY: `spec` is what parsing gave, and it is deleted once, after its last use.
        let (pointer, reason) = guarded(|| unsafe {
            let pointer = (functions.mj_compile)(spec, ptr::null());
            let reason = if pointer.is_null() { text((functions.mjs_getError)(spec)) } else { String::new() };
            (functions.mj_deleteSpec)(spec);
            (pointer, reason)
        })?;
        drop(one_at_a_time);
        let pointer = NonNull::new(pointer).ok_or(reason)?;
        let mut model = Self { library: library.clone(), pointer, lengths: [0; 4] };
        for part in [Part::Positions, Part::Velocities, Part::Controls, Part::Integration] {
            // SAFETY: the model is alive.
            let length = guarded(|| unsafe { (functions.mj_stateSize)(model.pointer.as_ptr(), model.mask(part)) })?;
            model.lengths[part as usize] = usize::try_from(length).map_err(|error| error.to_string())?;
        }
        Ok(model)
    }

    fn mask(&self, part: Part) -> c_int {
        let version = self.library.version;
        match part {
            Part::Positions => 1 << 1,
            Part::Velocities => 1 << 2,
            Part::Controls => version.controls(),
            Part::Integration => version.integration(),
        }
    }

    /// How many numbers a part of the state has.
    pub(crate) fn len(&self, part: Part) -> usize {
        self.lengths[part as usize]
    }

    /// The library that it was compiled with.
    pub(crate) fn library(&self) -> &Library {
        &self.library
    }

    /// The body of a name. Only simulations of this model may be asked about it.
    pub(crate) fn body(&self, name: &str) -> Option<BodyId> {
        let name = CString::new(name).ok()?;
        // SAFETY: the model is alive and the name ends with 0.
        let id = guarded(|| unsafe { (self.library.functions.mj_name2id)(self.pointer.as_ptr(), BODY, name.as_ptr()) });
        id.ok().filter(|id| *id >= 0).map(BodyId)
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("library", &self.library.path).finish_non_exhaustive()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: it was compiled by this library and is deleted once; simulations hold it until they are deleted.
        let _ = guarded(|| unsafe { (self.library.functions.mj_deleteModel)(self.pointer.as_ptr()) });
    }
}

/// A body of the model that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BodyId(c_int);

/// The state of one simulation.
pub(crate) struct Data {
    model: Arc<Model>,
    pointer: NonNull<RawData>,
}

// SAFETY: it belongs to no thread: MuJoCo keeps nothing about it elsewhere.
unsafe impl Send for Data {}
// SAFETY: what takes `&self` only hands it to functions that take it as const.
unsafe impl Sync for Data {}

impl Data {
    /// A simulation at the model's own positions.
    ///
    /// # Errors
    /// Where there is no memory for it.
    pub(crate) fn new(model: &Arc<Model>) -> Result<Self, String> {
        // SAFETY: the model is alive, and `model` keeps it so.
        let pointer = guarded(|| unsafe { (model.library.functions.mj_makeData)(model.pointer.as_ptr()) })?;
        let pointer = NonNull::new(pointer).ok_or("there is no memory for another environment")?;
        Ok(Self { model: model.clone(), pointer })
    }

    fn functions(&self) -> &Functions {
        &self.model.library.functions
    }

    /// Goes back to what [`new`](Self::new) gave, also after a failure.
    pub(crate) fn reset(&mut self) -> Result<(), String> {
        // SAFETY: both are alive.
        guarded(|| unsafe { (self.functions().mj_resetData)(self.model.pointer.as_ptr(), self.pointer.as_ptr()) })
    }

    /// Computes all that follows from positions, velocities and controls.
    pub(crate) fn forward(&mut self) -> Result<(), String> {
        // SAFETY: both are alive.
        guarded(|| unsafe { (self.functions().mj_forward)(self.model.pointer.as_ptr(), self.pointer.as_ptr()) })
    }

    /// Takes so many steps.
    pub(crate) fn step(&mut self, steps: usize) -> Result<(), String> {
        guarded(|| {
            for _ in 0..steps {
                // SAFETY: both are alive.
                unsafe { (self.functions().mj_step)(self.model.pointer.as_ptr(), self.pointer.as_ptr()) }
            }
        })
    }

    /// Reads a part of the state.
    ///
    /// # Panics
    /// Where `to` has not the length of the part.
    pub(crate) fn read(&self, part: Part, to: &mut [f64]) {
        assert_eq!(to.len(), self.model.len(part), "{part:?}");
        // SAFETY: both are alive, and the function writes as many numbers as it said for the same mask. It fails for a
        // mask alone, which those in `mask` are not.
        let _ = guarded(|| unsafe {
            let (model, data) = (self.model.pointer.as_ptr(), self.pointer.as_ptr());
            (self.functions().mj_getState)(model, data, to.as_mut_ptr(), self.model.mask(part));
        });
    }

    /// Writes a part of the state.
    ///
    /// # Panics
    /// Where `from` has not the length of the part.
    pub(crate) fn write(&mut self, part: Part, from: &[f64]) {
        assert_eq!(from.len(), self.model.len(part), "{part:?}");
        // SAFETY: as in `read`, the other way around.
        let _ = guarded(|| unsafe {
            let (model, data) = (self.model.pointer.as_ptr(), self.pointer.as_ptr());
            (self.functions().mj_setState)(model, data, from.as_ptr(), self.model.mask(part));
        });
    }

    /// Position and quaternion (w, x, y, z) of the frame of a body, as the last step or [`forward`](Self::forward)
    /// began with.
    pub(crate) fn pose(&mut self, body: BodyId) -> ([f64; 3], [f64; 4]) {
        let (mut position, mut matrix, mut rotation) = ([0.0; 3], [0.0; 9], [0.0; 4]);
        let (origin, identity) = ([0.0; 3], [1.0, 0.0, 0.0, 0.0]);
        // SAFETY: `body` is one of this model, and the arrays have the lengths of the signatures. 0 says that the point
        // has no frame in common with the body.
        let _ = guarded(|| unsafe {
            (self.functions().mj_local2Global)(
                self.pointer.as_ptr(),
                position.as_mut_ptr(),
                matrix.as_mut_ptr(),
                origin.as_ptr(),
                identity.as_ptr(),
                body.0,
                0,
            );
            (self.functions().mju_mat2Quat)(rotation.as_mut_ptr(), matrix.as_ptr());
        });
        (position, rotation)
    }

    /// Linear velocity of the origin of the frame of a body along the axes of the world, as old as the
    /// [`pose`](Self::pose).
    pub(crate) fn velocity(&self, body: BodyId) -> [f64; 3] {
        let mut both = [0.0; 6];
        // SAFETY: as in `pose`; the function writes six numbers. 0 says that the axes are those of the world.
        let _ = guarded(|| unsafe {
            let (model, data) = (self.model.pointer.as_ptr(), self.pointer.as_ptr());
            (self.functions().mj_objectVelocity)(model, data, FRAME, body.0, both.as_mut_ptr(), 0);
        });
        [both[3], both[4], both[5]]
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        // SAFETY: it was made by this library and is deleted once.
        let _ = guarded(|| unsafe { (self.functions().mj_deleteData)(self.pointer.as_ptr()) });
    }
}

#[cfg(test)]
pub(crate) mod tests;
