//! Vectors that are known up to their signs.

/// The sign of each vector of `actual` that makes it the one of `expected`, both as `[vector][entry]`.
///
/// # Panics
/// If there are not as many, or a pair is further apart than a cosine of `least`.
pub fn signs(what: &str, actual: &[Vec<f64>], expected: &[Vec<f64>], least: f64) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    assert_eq!(actual.len(), expected.len(), "{what}: number of vectors");
    let sign = |(index, (a, e)): (usize, (&Vec<f64>, &Vec<f64>))| {
        assert_eq!(a.len(), e.len(), "{what}: entries of vector {index}");
        let cosine = dot(a, e) / (dot(a, a) * dot(e, e)).sqrt();
        assert!(cosine.abs() >= least, "{what}: vector {index} is another one, the cosine is {cosine}");
        cosine.signum()
    };
    actual.iter().zip(expected).enumerate().map(sign).collect()
}

/// The transpose of a matrix of `columns` columns, row by row: its columns as vectors.
pub fn columns(values: &[f64], columns: usize) -> Vec<Vec<f64>> {
    (0..columns).map(|column| values[column..].iter().step_by(columns).copied().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_those_of_the_cosines() {
        let expected = vec![vec![3.0, 4.0], vec![4.0, -3.0]];
        assert_eq!(signs("two", &columns(&[0.6, -0.8, 0.8, 0.6], 2), &expected, 0.99), [1.0, -1.0]);
    }

    #[test]
    #[should_panic(expected = "vector 0 is another one")]
    fn another_vector_is_not_taken() {
        signs("one", &[vec![1.0, 0.1]], &[vec![1.0, 0.0]], 0.999);
    }
}
