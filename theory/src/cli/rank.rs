//! `theory rank`.

use super::Failure;
use super::args::RankArgs;

pub(super) fn rank(_args: &RankArgs) -> Result<(), Failure> {
    Ok(())
}
