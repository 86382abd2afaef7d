//! From what was asked for to a comparison or a run that can be made: checked, and with its directory.

use std::path::{Path, PathBuf};

use ancre::Arm;
use anyhow::{Context, Result, bail};
use command_line::Failure;
use training::{
    device::DeviceChoice,
    memory::{MemoryEstimate, Ram},
    run_directory::{RunDirectoryError, RunPaths, read_text},
};

use crate::{
    RunSettings,
    compare::{self, Comparison},
    run::Start,
};

/// A comparison to be made.
#[derive(Clone, Debug)]
pub struct CompareRequest<S> {
    /// What is compared.
    pub comparison: Comparison<S>,
    /// The directory.
    pub path: PathBuf,
    /// Whether it is there already.
    pub resume: bool,
}

/// One run to be made.
#[derive(Clone, Debug)]
pub struct TrainRequest<S> {
    /// Its settings.
    pub settings: S,
    /// The directory.
    pub path: PathBuf,
    /// Whether it is there already.
    pub start: Start,
}

/// The flags of a comparison that are not settings of its runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompareFlags<'a> {
    /// Go on with the comparison in this directory.
    pub resume: Option<&'a Path>,
    /// A settings file, which may be the config.toml of a comparison: that says which arms and seeds, too.
    pub config: Option<&'a Path>,
    /// The arms; none leaves those of the files, or the usual ones.
    pub arms: &'a [Arm],
    /// The arms of this program's ordinary comparison; none takes [the kit's](compare::default_arms).
    pub usual_arms: &'a [Arm],
    /// Depths to make the arms at; none leaves those of the files, or that of the settings.
    pub depths: &'a [usize],
    /// How many seeds.
    pub seeds: Option<u64>,
    /// Whether arms are made one after another.
    pub sequential: bool,
}

/// What the flags of a comparison mean. `settings` lays everything that was asked for over the stored settings, or over
/// those of a preset; `directory` is where a new comparison goes.
///
/// # Errors
/// If flags, files and settings do not make sense together; the message names the flag, the file or the setting.
pub fn compare<S: RunSettings>(
    flags: &CompareFlags<'_>,
    settings: impl FnOnce(Option<S>) -> Result<S>,
    directory: impl FnOnce() -> PathBuf,
) -> Result<CompareRequest<S>> {
    let stored = flags.resume.map(compare::read::<S>).transpose()?;
    let from_file = |file: &Path| toml::from_str::<Comparison<S>>(&read_text(file).ok()?).ok();
    let given = flags.config.and_then(from_file);
    let run = settings(stored.as_ref().map(|comparison| comparison.run.clone()))?;
    let known = stored.as_ref().or(given.as_ref());
    let mut arms = match (known, flags.arms) {
        (Some(known), []) => known.arms.clone(),
        (None, []) if flags.usual_arms.is_empty() => compare::default_arms(),
        (None, []) => flags.usual_arms.to_vec(),
        (_, given) => given.to_vec(),
    };
    let mut seen = Vec::new();
    arms.retain(|arm| {
        !seen.contains(arm) && {
            seen.push(arm.clone());
            true
        }
    });
    let mut depths = match flags.depths {
        [] => known.map(|known| known.depths.clone()).unwrap_or_default(),
        given => given.to_vec(),
    };
    depths.sort_unstable();
    depths.dedup();
    let comparison = Comparison {
        arms,
        depths,
        seeds: flags.seeds.or(known.map(|k| k.seeds)).unwrap_or(1),
        // Whether arms share the memory changes no value, so a resumed comparison may choose anew.
        sequential: flags.sequential || known.is_some_and(|k| k.sequential),
        run,
    };
    if comparison.seeds == 0 {
        bail!("there is no seed to run: seeds must be at least 1");
    }
    // The last seed has to fit a settings file, too.
    let last = comparison.run.seed().saturating_add(comparison.seeds - 1);
    comparison.run.with_arm_and_seed(comparison.run.arm(), last).check()?;
    for variant in comparison.variants() {
        let first = comparison.run.seed();
        comparison.settings(&variant, first).check().with_context(|| format!("arm {variant}"))?;
    }
    if let (Some(stored), Some(path)) = (&stored, flags.resume) {
        let unchanged = Comparison { sequential: stored.sequential, ..comparison.clone() } == *stored;
        if !unchanged {
            bail!(
                "{} was started with other settings (its config.toml has them): resume it without further flags, or start a \
                 new comparison with --out",
                path.display()
            );
        }
    }
    if comparison.arms.is_empty() {
        bail!("there is no arm to compare: give --arms, such as --arms cascade,ancre");
    }
    let path = flags.resume.map_or_else(directory, Path::to_owned);
    Ok(CompareRequest { comparison, path, resume: flags.resume.is_some() })
}

/// What the flags of a single run mean; `settings` and `directory` as for [`compare()`]. With `allow_changes`, a resumed run
/// may have other settings than its checkpoint.
///
/// # Errors
/// As [`compare()`].
pub fn train<S: RunSettings>(
    resume: Option<&Path>,
    allow_changes: bool,
    settings: impl FnOnce(Option<S>) -> Result<S>,
    directory: impl FnOnce() -> PathBuf,
) -> Result<TrainRequest<S>> {
    let stored = match resume {
        Some(path) if path.join("arms").is_dir() => {
            bail!("{} is a comparison: resume it with the command that compares", path.display())
        }
        Some(path) => {
            let stored = RunPaths::new(path).read_config::<S>();
            Some(stored.with_context(|| format!("{} is not a run that this command makes", path.display()))?)
        }
        None => None,
    };
    let settings = settings(stored)?;
    settings.check()?;
    let start = match resume {
        Some(_) => Start::Resume { allow_changes },
        None => Start::New,
    };
    Ok(TrainRequest { settings, path: resume.map_or_else(directory, Path::to_owned), start })
}

/// The next free directory under `runs/`: `runs/NAME-1`, or the first number that is not taken.
pub fn next_directory(name: &str) -> PathBuf {
    let numbered = |n: usize| Path::new("runs").join(format!("{name}-{n}"));
    (1..).map(numbered).find(|path| !path.exists()).unwrap_or_else(|| numbered(0))
}

/// Says early that a directory exists, before any data is read.
///
/// # Errors
/// If something has the name.
pub fn check_is_free(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Ok(_) => Err(RunDirectoryError::Exists { path: path.to_owned() }.into()),
        Err(_) => Ok(()),
    }
}

/// Refuses what cannot fit into main memory. What a GPU holds is not asked. `remedy` is what the user can change.
///
/// # Errors
/// [`Failure::Usage`], with the parts of the estimate.
pub fn check_memory(
    device: DeviceChoice,
    estimate: impl FnOnce() -> MemoryEstimate,
    remedy: &str,
) -> Result<(), Failure> {
    let (DeviceChoice::Cpu, Some(ram)) = (device, Ram::now()) else { return Ok(()) };
    estimate().check(ram.available, remedy).map_err(|error| Failure::Usage(error.into()))
}
