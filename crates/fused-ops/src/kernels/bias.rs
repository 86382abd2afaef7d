//! The bias of a linear layer, alone and with GELU after it.

use rayon::prelude::*;

use super::{
    CHUNK, LIGHT_CHUNK,
    simd::{exp, simd_kernel},
};

/// Elements of the whole rows that one task of about `elements` handles.
fn span(elements: usize, width: usize) -> usize {
    (elements / width.max(1)).max(1) * width
}

fn rows_fit(rows: &[f32], bias: &[f32]) -> bool {
    !bias.is_empty() && rows.len().is_multiple_of(bias.len())
}

/// `x[r] += bias` for every row of `bias.len()` elements, in place.
pub fn add(x: &mut [f32], bias: &[f32]) {
    assert!(rows_fit(x, bias), "add_bias: rows have the width of the bias");
    let span = span(LIGHT_CHUNK, bias.len());
    if x.len() <= span {
        return add_rows(x, bias);
    }
    x.par_chunks_mut(span).for_each(|x| add_rows(x, bias));
}

simd_kernel! {
    fn add_rows(x: &mut [f32], bias: &[f32]) {
        for x in x.chunks_exact_mut(bias.len()) {
            for (x, b) in x.iter_mut().zip(bias) {
                *x += b;
            }
        }
    }
}

/// Sum of every column of a matrix with rows of `width` elements: the gradient of a bias.
pub fn column_sums(matrix: &[f32], width: usize) -> Vec<f32> {
    assert!(width > 0 && matrix.len().is_multiple_of(width), "column_sums: rows have the given width");
    let span = span(LIGHT_CHUNK, width);
    let run = |rows: &[f32]| {
        let mut sums = vec![0.0; width];
        add_columns(rows, &mut sums);
        sums
    };
    if matrix.len() <= span {
        return run(matrix);
    }
    total(width, matrix.par_chunks(span).map(run).collect())
}

simd_kernel! {
    fn add_columns(rows: &[f32], sums: &mut [f32]) {
        for row in rows.chunks_exact(sums.len()) {
            for (s, x) in sums.iter_mut().zip(row) {
                *s += x;
            }
        }
    }
}

/// Adds the sums of all tasks, in order.
fn total(width: usize, partial: Vec<Vec<f32>>) -> Vec<f32> {
    let mut total = vec![0.0; width];
    for part in partial {
        for (t, p) in total.iter_mut().zip(part) {
            *t += p;
        }
    }
    total
}

/// GELU in its tanh form (Hendrycks and Gimpel 2016), and its derivative.
///
/// `(1 + tanh(z)) / 2` is the logistic function of `2 z`. With `e = exp(-2 z)` it is `1 / (1 + e)`, and 1 less it is
/// `e / (1 + e)`: neither loses digits where the tanh is near -1 or 1.
#[inline(always)]
fn gelu(u: f32) -> (f32, f32) {
    const SLOPE: f32 = 1.595_769_2; // 2 sqrt(2 / pi)
    const CUBIC: f32 = 0.044_715;
    let square = u * u;
    let e = exp(-(SLOPE * u * (1.0 + CUBIC * square)));
    let logistic = 1.0 / (1.0 + e);
    let value = u * logistic;
    (value, logistic + value * (e * logistic) * (SLOPE * (1.0 + 3.0 * CUBIC * square)))
}

/// `x[r] = gelu(x[r] + bias)` for every row of `bias.len()` elements, in place.
pub fn add_gelu(x: &mut [f32], bias: &[f32]) {
    assert!(rows_fit(x, bias), "bias_gelu: rows have the width of the bias");
    let span = span(CHUNK, bias.len());
    if x.len() <= span {
        return gelu_rows(x, bias);
    }
    x.par_chunks_mut(span).for_each(|x| gelu_rows(x, bias));
}

simd_kernel! {
    fn gelu_rows(x: &mut [f32], bias: &[f32]) {
        for x in x.chunks_exact_mut(bias.len()) {
            for (x, b) in x.iter_mut().zip(bias) {
                *x = gelu(*x + b).0;
            }
        }
    }
}

/// `output[r] = gelu(x[r] + bias)`; the derivative there replaces `x`.
pub fn add_gelu_with_derivative(x: &mut [f32], bias: &[f32], output: &mut [f32]) {
    same_length!("bias_gelu", x, output);
    assert!(rows_fit(x, bias), "bias_gelu: rows have the width of the bias");
    let span = span(CHUNK, bias.len());
    if x.len() <= span {
        return gelu_rows_with_derivative(x, bias, output);
    }
    x.par_chunks_mut(span)
        .zip(output.par_chunks_mut(span))
        .for_each(|(x, output)| gelu_rows_with_derivative(x, bias, output));
}

simd_kernel! {
    fn gelu_rows_with_derivative(x: &mut [f32], bias: &[f32], output: &mut [f32]) {
        for (x, output) in x.chunks_exact_mut(bias.len()).zip(output.chunks_exact_mut(bias.len())) {
            for ((x, o), b) in x.iter_mut().zip(output).zip(bias) {
                (*o, *x) = gelu(*x + b);
            }
        }
    }
}

/// Backward of [`add_gelu_with_derivative`]: the gradient of `x`, which replaces the derivative, and that of the bias.
pub fn add_gelu_backward(derivative: &mut [f32], upstream: &[f32], width: usize) -> Vec<f32> {
    same_length!("bias_gelu", derivative, upstream);
    assert!(width > 0 && upstream.len().is_multiple_of(width), "bias_gelu: rows have the width of the bias");
    let span = span(CHUNK, width);
    let run = |(derivative, upstream): (&mut [f32], &[f32])| {
        let mut sums = vec![0.0; width];
        multiply_and_add_columns(derivative, upstream, &mut sums);
        sums
    };
    if upstream.len() <= span {
        return run((derivative, upstream));
    }
    total(width, derivative.par_chunks_mut(span).zip(upstream.par_chunks(span)).map(run).collect())
}

simd_kernel! {
    fn multiply_and_add_columns(derivative: &mut [f32], upstream: &[f32], sums: &mut [f32]) {
        let width = sums.len();
        for (derivative, upstream) in derivative.chunks_exact_mut(width).zip(upstream.chunks_exact(width)) {
            for ((d, g), s) in derivative.iter_mut().zip(upstream).zip(sums.iter_mut()) {
                *d *= g;
                *s += *d;
            }
        }
    }
}
