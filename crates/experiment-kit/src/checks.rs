//! Checks that the settings and models of every program have in common, with messages that name what would work.

use thiserror::Error;

/// The largest number whose divisors are looked for.
const MOST: usize = 1 << 24;

/// A value that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CheckError {
    /// A size is zero.
    #[error("{prefix}{name} is 0: give a positive number")]
    Zero {
        /// What stands before the name, such as `data.` or `the model's `, with its last character.
        prefix: &'static str,
        /// Which size.
        name: &'static str,
    },
    /// A size that no machine holds.
    #[error("{prefix}{name} is {size}: at most {limit} is possible")]
    TooLarge {
        /// What stands before the name.
        prefix: &'static str,
        /// Which size.
        name: &'static str,
        /// Its value.
        size: usize,
        /// The largest that is accepted.
        limit: usize,
    },
    /// Micro-batches do not make up a batch.
    #[error("data.micro_batch = {micro} does not divide data.batch = {batch}: take one of {divisors:?}")]
    MicroBatch {
        /// Examples at once.
        micro: usize,
        /// Examples of a step.
        batch: usize,
        /// What would work.
        divisors: Vec<usize>,
    },
    /// The heads do not divide the width evenly.
    #[error("{heads} heads do not divide a width of {width}: take {fitting}")]
    Heads {
        /// Attention heads.
        heads: usize,
        /// Width of the stream.
        width: usize,
        /// What would work, in words.
        fitting: String,
    },
    /// The seed does not fit a settings file.
    #[error("seed = {0} is too large: at most {max} is possible", max = i64::MAX)]
    Seed(u64),
}

/// Checks that no size is zero; `prefix` stands before the names in the message.
///
/// # Errors
/// [`CheckError::Zero`] for the first that is.
pub fn positive(prefix: &'static str, sizes: &[(&'static str, usize)]) -> Result<(), CheckError> {
    match sizes.iter().find(|(_, size)| *size == 0) {
        Some(&(name, _)) => Err(CheckError::Zero { prefix, name }),
        None => Ok(()),
    }
}

/// Checks that no size is above a limit; `prefix` stands before the names in the message.
///
/// # Errors
/// [`CheckError::TooLarge`] for the first that is.
pub fn at_most(prefix: &'static str, sizes: &[(&'static str, usize)], limit: usize) -> Result<(), CheckError> {
    match sizes.iter().find(|(_, size)| *size > limit) {
        Some(&(name, size)) => Err(CheckError::TooLarge { prefix, name, size, limit }),
        None => Ok(()),
    }
}

/// Checks that a batch is made of whole micro-batches. Both are positive.
///
/// # Errors
/// [`CheckError::MicroBatch`], with the nearest micro-batches that would do.
pub fn micro_batch(batch: usize, micro: usize) -> Result<(), CheckError> {
    match batch.is_multiple_of(micro) {
        true => Ok(()),
        false => Err(CheckError::MicroBatch { micro, batch, divisors: nearest_divisors(batch, micro, 6) }),
    }
}

/// Checks that a seed can be written as TOML, whose integers are signed.
///
/// # Errors
/// [`CheckError::Seed`].
pub fn seed(seed: u64) -> Result<(), CheckError> {
    match i64::try_from(seed) {
        Ok(_) => Ok(()),
        Err(_) => Err(CheckError::Seed(seed)),
    }
}

/// Checks that attention heads divide a width evenly. `fitting` says which numbers of heads would do, asked only if
/// these do not; see [`nearest_divisors`] and [`listed`].
///
/// # Errors
/// [`CheckError::Heads`].
pub fn heads(width: usize, heads: usize, fitting: impl FnOnce() -> String) -> Result<(), CheckError> {
    match width.is_multiple_of(heads) {
        true => Ok(()),
        false => Err(CheckError::Heads { heads, width, fitting: fitting() }),
    }
}

/// The `count` divisors of a number that are nearest to the one wanted, in ascending order; of two that are equally near
/// the smaller one comes first. Divisors above 2^24 are not looked for.
pub fn nearest_divisors(of: usize, wanted: usize, count: usize) -> Vec<usize> {
    let mut divisors: Vec<usize> = (1..=of.min(MOST)).filter(|d| of.is_multiple_of(*d)).collect();
    divisors.sort_by_key(|d| d.abs_diff(wanted));
    divisors.truncate(count);
    divisors.sort_unstable();
    divisors
}

/// Numbers in words: "2, 4 or 8".
pub fn listed(numbers: &[usize]) -> String {
    let words: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    match words.as_slice() {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        words => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_size_that_does_not_fit_is_named() {
        let sizes = [("batch", 4), ("context", 0), ("micro_batch", 0)];
        let message = |result: Result<(), CheckError>| result.unwrap_err().to_string();
        assert_eq!(message(positive("data.", &sizes)), "data.context is 0: give a positive number");
        assert_eq!(
            message(at_most("the model's ", &[("width", 8), ("depth", 9)], 8)),
            "the model's depth is 9: at most 8 is possible"
        );
        assert_eq!((positive("", &sizes[..1]), at_most("", &sizes, 4)), (Ok(()), Ok(())));
    }

    #[test]
    fn a_micro_batch_that_does_not_divide_is_answered_with_those_that_do() {
        assert_eq!(micro_batch(8, 4), Ok(()));
        let message = micro_batch(60, 7).unwrap_err().to_string();
        assert_eq!(message, "data.micro_batch = 7 does not divide data.batch = 60: take one of [2, 3, 4, 5, 6, 10]");
    }

    #[test]
    fn a_seed_fits_a_settings_file() {
        assert_eq!(seed(i64::MAX as u64), Ok(()));
        assert_eq!(seed(i64::MAX as u64 + 1), Err(CheckError::Seed(1 << 63)));
    }

    #[test]
    fn divisors_near_a_number_are_listed_in_words() {
        assert_eq!(nearest_divisors(64, 7, 3), [2, 4, 8]);
        assert_eq!(nearest_divisors(12, 5, 1), [4], "the smaller one of two");
        assert_eq!(nearest_divisors(0, 5, 3), [0; 0]);
        assert_eq!(nearest_divisors(usize::MAX, 2, 2), [1, 3], "soon found, for any size");
        let listed = |numbers: &[usize]| listed(numbers);
        assert_eq!([listed(&[]), listed(&[5]), listed(&[2, 4, 8])], ["", "5", "2, 4 or 8"]);
        let error = heads(64, 7, || listed(&nearest_divisors(64, 7, 3))).unwrap_err();
        assert_eq!(error.to_string(), "7 heads do not divide a width of 64: take 2, 4 or 8");
    }
}
