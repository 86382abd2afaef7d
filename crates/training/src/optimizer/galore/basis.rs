//! Singular vectors of a gradient.

use nalgebra::{DMatrix, SymmetricEigen};

/// The left singular vectors of a matrix that belong to its `rank` largest singular values, the largest first: each a
/// `Vec` of as many entries as the matrix has rows. `columns` holds the matrix column by column.
///
/// They are the eigenvectors of the matrix times its transpose, in `f64`. Squaring costs half of the digits, which leaves as
/// many as a decomposition in `f32` has. A singular vector is known up to its sign: here the entry of largest magnitude
/// (the first of several) is positive. The work is done on one thread, so that the bits do not depend on how many there are.
///
/// A matrix with entries that are not finite has no singular vectors; the axes stand in.
///
/// # Panics
/// If there are not `rows` entries for each column, or fewer rows than `rank`.
pub fn leading_vectors(rows: usize, columns: Vec<f64>, rank: usize) -> Vec<Vec<f64>> {
    assert!(rank <= rows && columns.len().is_multiple_of(rows), "the sizes of a matrix");
    if !columns.iter().all(|value| value.is_finite()) {
        return (0..rank).map(|axis| (0..rows).map(|row| f64::from(u8::from(row == axis))).collect()).collect();
    }
    // Of length 1 at most, so that no square is too large or too small.
    let largest = columns.iter().fold(f64::MIN_POSITIVE, |largest, value| value.abs().max(largest));
    let matrix = DMatrix::from_vec(rows, columns.len() / rows, columns) / largest;
    let SymmetricEigen { eigenvectors, eigenvalues } = SymmetricEigen::new(&matrix * matrix.transpose());
    let mut order: Vec<usize> = (0..rows).collect();
    order.sort_by(|&a, &b| eigenvalues[b].total_cmp(&eigenvalues[a]));
    order[..rank].iter().map(|&at| with_sign(eigenvectors.column(at).iter().copied().collect())).collect()
}

fn with_sign(mut vector: Vec<f64>) -> Vec<f64> {
    let largest =
        vector.iter().fold(0.0f64, |largest, &value| if value.abs() > largest.abs() { value } else { largest });
    if largest < 0.0 {
        for value in &mut vector {
            *value = -*value;
        }
    }
    vector
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    proptest! {
        #[test]
        fn vectors_are_orthonormal_signed_and_carry_the_largest_singular_values(
            rows in 1usize..9,
            columns in 1usize..12,
            entries in prop::collection::vec(-1.0..1.0f64, 108),
            exponent in -30..30i32,
        ) {
            let scale = 10f64.powi(exponent);
            let entries: Vec<f64> = entries[..rows * columns].iter().map(|entry| entry * scale).collect();
            let vectors = leading_vectors(rows, entries.clone(), rows);
            let mut singular = DMatrix::from_vec(rows, columns, entries.clone()).singular_values().as_slice().to_vec();
            singular.sort_by(|a, b| b.total_cmp(a));
            for (i, a) in vectors.iter().enumerate() {
                for (j, b) in vectors.iter().enumerate() {
                    prop_assert!((dot(a, b) - f64::from(u8::from(i == j))).abs() < 1e-10);
                }
                let largest = a.iter().fold(0.0f64, |m, v| if v.abs() > m.abs() { *v } else { m });
                prop_assert!(largest > 0.0);
                let projected: f64 = entries.chunks(rows).map(|column| dot(a, column).powi(2)).sum::<f64>().sqrt();
                let expected = singular.get(i).copied().unwrap_or(0.0);
                prop_assert!((projected - expected).abs() < 1e-6 * singular[0], "{i}: {projected} {expected}");
            }
        }
    }

    #[test]
    fn what_is_zero_or_not_finite_gives_vectors_all_the_same() {
        let zero = leading_vectors(3, vec![0.0; 6], 2);
        assert!((dot(&zero[0], &zero[0]) - 1.0).abs() < 1e-12 && dot(&zero[0], &zero[1]).abs() < 1e-12);
        let axes = vec![vec![1.0, 0.0, 0.0], vec![0.0, 1.0, 0.0]];
        for bad in [f64::NAN, f64::INFINITY] {
            assert_eq!(leading_vectors(3, vec![1.0, 2.0, bad], 2), axes);
        }
    }
}
