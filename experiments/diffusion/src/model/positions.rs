//! The fixed two-dimensional sine-cosine table of positions.

/// The table, `[rows * columns, width]` in row-major order of the positions. The first half of the features encodes the
/// column and the second the row (the authors' "w goes first"); each half is sines, then cosines, of the coordinate times
/// `10000^(-4 i / width)`. Computed in `f64` and rounded once.
///
/// `width` is a multiple of 4.
pub fn sine_cosine(rows: usize, columns: usize, width: usize) -> Vec<f32> {
    let quarter = width / 4;
    let frequency = |i: usize| 1.0 / 10_000f64.powf(i as f64 / quarter as f64);
    let mut table = Vec::with_capacity(rows * columns * width);
    for row in 0..rows {
        for column in 0..columns {
            for coordinate in [column, row] {
                let angle = |i: usize| coordinate as f64 * frequency(i);
                table.extend((0..quarter).map(|i| angle(i).sin() as f32));
                table.extend((0..quarter).map(|i| angle(i).cos() as f32));
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_first() {
        let table = sine_cosine(2, 3, 8);
        // Row 1, column 2: frequencies 1 and 1/100.
        let entry: Vec<f64> = table[5 * 8..].iter().map(|&x| f64::from(x)).collect();
        let expected = [
            2f64.sin(),
            0.02f64.sin(),
            2f64.cos(),
            0.02f64.cos(),
            1f64.sin(),
            0.01f64.sin(),
            1f64.cos(),
            0.01f64.cos(),
        ];
        for (a, e) in entry.iter().zip(expected) {
            assert!((a - e).abs() < 1e-7, "{entry:?}");
        }
    }
}
