//! Stopping a run from the keyboard or by a scheduler.

use std::{
    io::{Write, stderr},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Whether the user, or the system, wants the run to stop.
///
/// The first Ctrl-C (or SIGTERM, or SIGHUP) sets the flag, and the loop is expected to save and stop; one that comes a
/// second or more later ends the process at once, with exit code 130. Some programs (`timeout`, job schedulers) send a
/// signal twice in a row: that counts once. Copies share the flag.
///
/// ```
/// let interrupt = training::interrupt::Interrupt::manual();
/// assert!(!interrupt.is_set());
/// interrupt.trigger();
/// assert!(interrupt.is_set());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    count: Arc<AtomicUsize>,
}

/// The signals cannot be caught.
#[derive(Clone, Debug, thiserror::Error)]
#[error("Ctrl-C cannot be caught: {reason}")]
pub struct InterruptError {
    reason: String,
}

static INSTALLED: OnceLock<Result<Interrupt, InterruptError>> = OnceLock::new();

impl Interrupt {
    /// Catches the signals of this process. A process has one handler: further calls give the same flag.
    ///
    /// # Errors
    /// If the system does not allow it, or another part of the program has a handler already.
    pub fn install() -> Result<Self, InterruptError> {
        let install = || {
            let interrupt = Self::manual();
            let flag = interrupt.clone();
            let mut first: Option<Instant> = None;
            let handler = move || match first {
                None => {
                    first = Some(Instant::now());
                    flag.trigger();
                    // The terminal may be gone, which is why the signal came.
                    let _ =
                        writeln!(stderr(), "\nstopping after this step, and saving; press Ctrl-C again to end at once");
                }
                Some(first) if first.elapsed() < Duration::from_secs(1) => {}
                Some(_) => std::process::exit(130),
            };
            match ctrlc::set_handler(handler) {
                Ok(()) => Ok(interrupt),
                Err(error) => Err(InterruptError { reason: error.to_string() }),
            }
        };
        INSTALLED.get_or_init(install).clone()
    }

    /// The flag of [`install`](Self::install) where that has been called, and else one that no signal sets: for work inside a
    /// step that takes long.
    pub fn current() -> Self {
        INSTALLED.get().and_then(|installed| installed.clone().ok()).unwrap_or_default()
    }

    /// A flag that no signal sets, for a program that has its own way to be stopped.
    pub fn manual() -> Self {
        Self::default()
    }

    /// Sets the flag, and tells how often that was done.
    pub fn trigger(&self) -> usize {
        self.count.fetch_add(1, Relaxed) + 1
    }

    /// Whether the run is to stop.
    pub fn is_set(&self) -> bool {
        self.count.load(Relaxed) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_share_the_flag_and_installing_twice_gives_the_same_one() {
        let first = Interrupt::install().unwrap();
        let second = Interrupt::install().unwrap();
        assert!(!first.is_set() && !second.is_set());
        assert_eq!(first.trigger(), 1);
        assert!(second.is_set() && Interrupt::current().is_set());
        assert_eq!(second.trigger(), 2);
        assert!(!Interrupt::manual().is_set());
    }
}
