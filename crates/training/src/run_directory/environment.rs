//! What a run was made with: versions, machine, command line.

use std::{
    path::Path,
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

/// The version of the tensor library that this crate is pinned to.
pub const BURN_VERSION: &str = "0.21.0";

/// Facts about the process that makes a run; stored as `environment.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Environment {
    /// The name of the program.
    pub program: String,
    /// The version of the program's package.
    pub version: String,
    /// The git commit of the sources (with `-dirty` if they were changed), where git and the sources can be found.
    pub commit: Option<String>,
    /// The version of burn.
    pub burn: String,
    /// The device that the tensors live on.
    pub device: String,
    /// Operating system and processor architecture, `linux x86_64`.
    pub platform: String,
    /// The processor's name, where the system tells it.
    pub cpu: Option<String>,
    /// The vector instructions that the processor offers, of those that make a difference here.
    pub cpu_features: Vec<String>,
    /// How many threads the kernels run on.
    pub threads: usize,
    /// Main memory in bytes, where the system tells it.
    pub memory: Option<u64>,
    /// Program and arguments as typed.
    pub command_line: Vec<String>,
    /// When the process started its work, UTC, `2026-03-31T12:00:00Z`.
    pub started: String,
}

impl Environment {
    /// Collects what can be found out; nothing of it can fail. `program` and `version` are the caller's
    /// `env!("CARGO_PKG_NAME")` and `env!("CARGO_PKG_VERSION")`.
    pub fn collect(program: &str, version: &str, device: &str) -> Self {
        Self {
            program: program.to_owned(),
            version: version.to_owned(),
            commit: git_commit(Path::new(env!("CARGO_MANIFEST_DIR"))),
            burn: BURN_VERSION.to_owned(),
            device: device.to_owned(),
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            cpu: cpu_name(),
            cpu_features: cpu_features(),
            threads: rayon::current_num_threads(),
            memory: crate::memory::Ram::now().map(|ram| ram.total),
            command_line: std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect(),
            started: timestamp(SystemTime::now()),
        }
    }
}

/// The commit of the repository around `folder`: where the sources were when the program was built, if they are still
/// there.
fn git_commit(folder: &Path) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"])
        .output()
        .ok()?;
    let commit = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !commit.is_empty()).then_some(commit)
}

fn cpu_name() -> Option<String> {
    let mut system = sysinfo::System::new().ok()?;
    system.refresh_cpu_list(sysinfo::CpuRefreshKind::nothing());
    let name = system.cpus().first()?.brand().trim().to_owned();
    (!name.is_empty()).then_some(name)
}

fn cpu_features() -> Vec<String> {
    let mut features: Vec<String> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        // The macro takes literals only.
        macro_rules! probe {
            ($($name:tt)*) => { $(if std::arch::is_x86_feature_detected!($name) { features.push($name.into()); })* };
        }
        probe!("sse4.2" "avx" "fma" "avx2" "avx512f" "avx512bw" "avx512vl" "avx512bf16");
    }
    #[cfg(target_arch = "aarch64")]
    if std::arch::is_aarch64_feature_detected!("neon") {
        features.push("neon".into());
    }
    features.shrink_to_fit();
    features
}

/// `time` as `2026-03-31T12:00:00Z`.
fn timestamp(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, second) = ((seconds / 86_400) as i64, seconds % 86_400);
    // The civil date of a day count, in eras of 400 years that begin on the first of March.
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn timestamps_are_civil_dates() {
        let at = |seconds| timestamp(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_826_154), "2000-02-29T12:09:14Z");
        assert_eq!(at(1_767_225_599), "2025-12-31T23:59:59Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn the_environment_is_collected_without_git_too() {
        let environment = Environment::collect("demo", "1.2.3", "cpu");
        assert_eq!((environment.program.as_str(), environment.burn.as_str()), ("demo", BURN_VERSION));
        assert!(
            environment.threads >= 1
                && environment.memory.is_some_and(|bytes| bytes > 0)
                && !environment.command_line.is_empty()
        );
        assert_eq!(git_commit(Path::new("/no/such/folder")), None);
    }

    #[test]
    fn the_stated_version_of_burn_is_the_pinned_one() {
        let lock = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock"));
        assert!(lock.contains(&format!("name = \"burn\"\nversion = \"{BURN_VERSION}\"")));
    }
}
