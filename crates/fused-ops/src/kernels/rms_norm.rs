//! Root-mean-square normalisation of rows, after Zhang and Sennrich (2019).

use rayon::prelude::*;

use super::{
    CHUNK,
    simd::{dot, simd_kernel},
};

fn rows_fit(input: &[f32], weight: &[f32]) -> bool {
    !weight.is_empty() && input.len().is_multiple_of(weight.len())
}

/// Rows handled by one task, for rows of `width` elements.
fn rows_per_task(width: usize) -> usize {
    (CHUNK / width.max(1)).max(1)
}

/// `output[r] = input[r] / sqrt(mean(input[r]^2) + eps) * weight` for every row of `weight.len()` elements.
pub fn forward(input: &[f32], weight: &[f32], eps: f32, output: &mut [f32]) {
    same_length!("rms_norm", output, input);
    assert!(rows_fit(input, weight), "rms_norm: rows have the width of the weight");
    let span = rows_per_task(weight.len()) * weight.len();
    if output.len() <= span {
        return forward_rows(input, weight, eps, output);
    }
    output.par_chunks_mut(span).zip(input.par_chunks(span)).for_each(|(o, x)| forward_rows(x, weight, eps, o));
}

simd_kernel! {
    fn forward_rows(input: &[f32], weight: &[f32], eps: f32, output: &mut [f32]) {
        let width = weight.len();
        for (x, o) in input.chunks_exact(width).zip(output.chunks_exact_mut(width)) {
            let inverse = 1.0 / (dot(x, x) / width as f32 + eps).sqrt();
            for ((o, x), w) in o.iter_mut().zip(x).zip(weight) {
                *o = x * inverse * w;
            }
        }
    }
}

/// Backward of [`forward`]: writes the gradient of the input and returns that of the weight.
pub fn backward(input: &[f32], weight: &[f32], upstream: &[f32], eps: f32, input_gradient: &mut [f32]) -> Vec<f32> {
    same_length!("rms_norm", input, upstream, input_gradient);
    assert!(rows_fit(input, weight), "rms_norm: rows have the width of the weight");
    let width = weight.len();
    let span = rows_per_task(width) * width;
    let run = |((dx, x), g): ((&mut [f32], &[f32]), &[f32])| {
        let mut dw = vec![0.0; width];
        backward_rows(x, weight, g, eps, dx, &mut dw);
        dw
    };
    let partial: Vec<Vec<f32>> = if input.len() <= span {
        vec![run(((input_gradient, input), upstream))]
    } else {
        input_gradient
            .par_chunks_mut(span)
            .zip(input.par_chunks(span))
            .zip(upstream.par_chunks(span))
            .map(run)
            .collect()
    };
    let mut total = vec![0.0; width];
    for part in partial {
        for (t, p) in total.iter_mut().zip(part) {
            *t += p;
        }
    }
    total
}

simd_kernel! {
    fn backward_rows(input: &[f32], weight: &[f32], upstream: &[f32], eps: f32, dx: &mut [f32], dw: &mut [f32]) {
        let width = weight.len();
        for ((x, g), dx) in input.chunks_exact(width).zip(upstream.chunks_exact(width)).zip(dx.chunks_exact_mut(width)) {
            let inverse = 1.0 / (dot(x, x) / width as f32 + eps).sqrt();
            for ((((dw, dx), x), g), w) in dw.iter_mut().zip(dx.iter_mut()).zip(x).zip(g).zip(weight) {
                *dw += g * x * inverse;
                *dx = g * w;
            }
            let pull = dot(dx, x) * inverse * inverse * inverse / width as f32;
            for (dx, x) in dx.iter_mut().zip(x) {
                *dx = *dx * inverse - x * pull;
            }
        }
    }
}
