//! Which device a run uses, and whether it is there.

use std::{fmt, str::FromStr};

use libloading::Library;
use serde::{Deserialize, Serialize, de};

/// The device of a run, as a command line or a settings file names it: `cpu`, `cuda` or `cuda:1`.
///
/// With clap, a field of this type needs nothing more than `#[arg(long, default_value_t)]`.
///
/// ```
/// use training::device::DeviceChoice;
/// assert_eq!("cuda:1".parse::<DeviceChoice>().unwrap(), DeviceChoice::Cuda(1));
/// assert_eq!("cuda".parse::<DeviceChoice>().unwrap(), DeviceChoice::Cuda(0));
/// assert_eq!(DeviceChoice::default().to_string(), "cpu");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The processor.
    #[default]
    Cpu,
    /// The NVIDIA GPU of this number, from 0.
    Cuda(usize),
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.pad("cpu"),
            Self::Cuda(index) => f.pad(&format!("cuda:{index}")),
        }
    }
}

impl FromStr for DeviceChoice {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            _ => text
                .strip_prefix("cuda:")
                .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
                .and_then(|number| number.parse().ok())
                .map(Self::Cuda)
                .ok_or_else(|| DeviceError::Unknown { text: text.to_owned() }),
        }
    }
}

impl Serialize for DeviceChoice {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DeviceChoice {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Why a device cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// The text names none.
    #[error("`{text}` is no device; write cpu, cuda, or cuda:N with the number of the GPU")]
    Unknown {
        /// The text.
        text: String,
    },
    /// The program has no CUDA backend.
    #[error("this program was built without CUDA; build it again with `--features cuda`, or use --device cpu")]
    NotBuilt,
    /// The driver or the compiler that the kernels need is missing or does not work.
    #[error("CUDA cannot be used: {reason}; use --device cpu, or {remedy}")]
    NoCuda {
        /// What is missing.
        reason: String,
        /// What would help.
        remedy: &'static str,
    },
    /// There are fewer GPUs.
    #[error("there is no GPU number {index}; this machine has {count}, numbered from 0")]
    NoSuchGpu {
        /// The number asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
}

impl DeviceChoice {
    /// Whether the device can be used, found out before any tensor is made: the CUDA backend itself panics in a thread of
    /// its own where there is no driver.
    ///
    /// # Errors
    /// Says what is missing and what to do about it.
    pub fn check(self) -> Result<(), DeviceError> {
        match self {
            Self::Cpu => Ok(()),
            Self::Cuda(_) if cfg!(not(feature = "cuda")) => Err(DeviceError::NotBuilt),
            Self::Cuda(index) => match probe_cuda()? {
                count if index < count => Ok(()),
                count => Err(DeviceError::NoSuchGpu { index, count }),
            },
        }
    }
}

const DRIVER: &[&str] = if cfg!(windows) { &["nvcuda.dll"] } else { &["libcuda.so.1", "libcuda.so"] };
const COMPILER: &[&str] = if cfg!(windows) {
    &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll"]
} else {
    &["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"]
};

/// How many GPUs the CUDA driver offers (at least one), provided that the runtime compiler is there too.
///
/// Works without the feature `cuda`: it only opens the shared libraries.
///
/// # Errors
/// [`DeviceError::NoCuda`] says what is missing.
pub fn probe_cuda() -> Result<usize, DeviceError> {
    probe(DRIVER, COMPILER)
}

/// As [`probe_cuda`], with the libraries of these names.
fn probe(driver_names: &[&str], compiler_names: &[&str]) -> Result<usize, DeviceError> {
    let first = |names: &[&str]| names.first().copied().unwrap_or_default().to_owned();
    let driver = open(driver_names).ok_or_else(|| {
        missing(format!("no NVIDIA driver ({} not found)", first(driver_names)), "install the driver for your GPU")
    })?;
    let broken = |error: libloading::Error| {
        let reason = format!("{} is not a CUDA driver ({error})", first(driver_names));
        missing(reason, "install the driver for your GPU anew")
    };
    let mut count = 0;
    // SAFETY: these are the signatures of the driver API (cuda.h), stable since CUDA 1.0; `cuInit` takes flags that must
    // be 0, and `cuDeviceGetCount` writes one int to the pointer, which is valid for the call.
    let (init, get_count) = unsafe {
        let init = driver.get::<unsafe extern "C" fn(u32) -> i32>(b"cuInit\0").map_err(broken)?;
        let get_count = driver.get::<unsafe extern "C" fn(*mut i32) -> i32>(b"cuDeviceGetCount\0").map_err(broken)?;
        match init(0) {
            0 => (0, get_count(&mut count)),
            code => (code, 0),
        }
    };
    let count = gpus(init, get_count, count)?;
    if open(compiler_names).is_none() {
        return Err(missing(
            format!("the runtime compiler of the CUDA toolkit was not found ({})", first(compiler_names)),
            "install the toolkit, or add its folder to the library path",
        ));
    }
    Ok(count)
}

fn missing(reason: String, remedy: &'static str) -> DeviceError {
    DeviceError::NoCuda { reason, remedy }
}

/// What the driver's answers mean: the codes of `cuInit` and `cuDeviceGetCount`, and the count.
fn gpus(init: i32, get_count: i32, count: i32) -> Result<usize, DeviceError> {
    match (init, get_count, usize::try_from(count)) {
        (0, 0, Ok(count)) if count > 0 => Ok(count),
        // CUDA_ERROR_NO_DEVICE, or success with none.
        (100, _, _) | (0, 0, _) | (0, 100, _) => {
            Err(missing("the driver sees no GPU".into(), "check CUDA_VISIBLE_DEVICES and `nvidia-smi`"))
        }
        (0, code, _) => Err(missing(format!("cuDeviceGetCount failed with code {code}"), "check `nvidia-smi`")),
        (code, ..) => Err(missing(format!("cuInit failed with code {code}"), "check `nvidia-smi`")),
    }
}

fn open(names: &[&str]) -> Option<Library> {
    // SAFETY: opening runs the library's initialisers; those of NVIDIA's libraries have no preconditions.
    names.iter().find_map(|name| unsafe { Library::new(*name) }.ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_devices_go_both_ways() {
        for device in [DeviceChoice::Cpu, DeviceChoice::Cuda(0), DeviceChoice::Cuda(17)] {
            assert_eq!(device.to_string().parse(), Ok(device));
            let json = serde_json::to_string(&device).unwrap();
            assert_eq!(serde_json::from_str::<DeviceChoice>(&json).unwrap(), device);
        }
        for text in ["", "gpu", "CPU", "cuda:", "cuda:x", "cuda:-1", "cuda:+1", "cuda:99999999999999999999999"] {
            let message = text.parse::<DeviceChoice>().unwrap_err().to_string();
            assert!(message.contains("cpu, cuda, or cuda:N"), "{message}");
        }
    }

    #[test]
    fn a_missing_driver_is_one_clean_message() {
        let message = probe(&["no-such-driver.so"], &[]).unwrap_err().to_string();
        let expected = "CUDA cannot be used: no NVIDIA driver (no-such-driver.so not found); use --device cpu, or install \
                        the driver for your GPU";
        assert_eq!(message, expected);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_library_that_is_no_driver_is_named() {
        // The unwinder, which every program of this language needs.
        let message = probe(&["libgcc_s.so.1"], &[]).unwrap_err().to_string();
        assert!(message.contains("libgcc_s.so.1 is not a CUDA driver"), "{message}");
    }

    #[test]
    fn the_drivers_answers_are_understood() {
        assert_eq!(gpus(0, 0, 3), Ok(3));
        for (answers, part) in [
            ((0, 0, 0), "sees no GPU"),
            ((100, 0, 0), "sees no GPU"),
            ((0, 100, 0), "sees no GPU"),
            ((0, 0, -1), "sees no GPU"),
            ((803, 0, 2), "cuInit failed with code 803"),
            ((0, 999, 2), "cuDeviceGetCount failed with code 999"),
        ] {
            let message = gpus(answers.0, answers.1, answers.2).unwrap_err().to_string();
            assert!(message.contains(part) && message.contains("--device cpu"), "{message}");
        }
    }

    #[test]
    fn a_device_that_is_not_there_is_refused() {
        assert_eq!(DeviceChoice::Cpu.check(), Ok(()));
        let error = DeviceChoice::Cuda(100_000).check().unwrap_err();
        if cfg!(not(feature = "cuda")) {
            assert_eq!(error, DeviceError::NotBuilt);
            assert!(error.to_string().contains("--features cuda"));
        } else {
            let expected = matches!(error, DeviceError::NoCuda { .. } | DeviceError::NoSuchGpu { index: 100_000, .. });
            assert!(expected, "{error}");
        }
    }
}
