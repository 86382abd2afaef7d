//! What follows the matrix product in a layer of the paper's deep residual MLPs: bias, layer normalisation with gain and
//! offset, swish.

use rayon::prelude::*;

use super::{
    CHUNK,
    simd::{dot, exp, simd_kernel, sum},
};

/// What a layer adds to and multiplies its rows by; each has the width of a row.
#[derive(Clone, Copy, Debug)]
pub struct Affine<'a> {
    /// Added before the normalisation.
    pub bias: &'a [f32],
    /// Multiplies the normalised row.
    pub gain: &'a [f32],
    /// Added after that.
    pub offset: &'a [f32],
}

impl Affine<'_> {
    fn width(&self, rows: usize) -> usize {
        let width = self.bias.len();
        assert!(
            width > 0 && self.gain.len() == width && self.offset.len() == width && rows.is_multiple_of(width),
            "bias_norm_swish: rows have the width of bias, gain and offset"
        );
        width
    }
}

/// Elements of the whole rows that one task handles.
fn span(width: usize) -> usize {
    (CHUNK / width).max(1) * width
}

/// `output[r] = swish(layer_norm(input[r] + bias) * gain + offset)`, with the mean and the biased variance of each row.
pub fn forward(input: &[f32], affine: Affine<'_>, eps: f32, output: &mut [f32]) {
    same_length!("bias_norm_swish", output, input);
    let span = span(affine.width(input.len()));
    if output.len() <= span {
        return forward_rows(input, affine, eps, output);
    }
    output.par_chunks_mut(span).zip(input.par_chunks(span)).for_each(|(o, x)| forward_rows(x, affine, eps, o));
}

/// Writes the normalised row of `row + bias`, and returns the inverse of its deviation.
#[inline(always)]
pub(super) fn normalise(row: &[f32], bias: &[f32], eps: f32, normed: &mut [f32]) -> f32 {
    let width = row.len() as f32;
    for ((n, x), b) in normed.iter_mut().zip(row).zip(bias) {
        *n = x + b;
    }
    let mean = sum(normed) / width;
    for n in normed.iter_mut() {
        *n -= mean;
    }
    let inverse = 1.0 / (dot(normed, normed) / width + eps).sqrt();
    for n in normed.iter_mut() {
        *n *= inverse;
    }
    inverse
}

simd_kernel! {
    fn forward_rows(input: &[f32], affine: Affine<'_>, eps: f32, output: &mut [f32]) {
        let width = affine.bias.len();
        for (x, o) in input.chunks_exact(width).zip(output.chunks_exact_mut(width)) {
            normalise(x, affine.bias, eps, o);
            for ((o, gain), offset) in o.iter_mut().zip(affine.gain).zip(affine.offset) {
                let u = *o * gain + offset;
                *o = u / (1.0 + exp(-u));
            }
        }
    }
}

/// Backward of [`forward`]: writes the gradient of the input, and returns those of bias, gain and offset.
pub fn backward(
    input: &[f32],
    affine: Affine<'_>,
    upstream: &[f32],
    eps: f32,
    input_gradient: &mut [f32],
) -> [Vec<f32>; 3] {
    same_length!("bias_norm_swish", input, upstream, input_gradient);
    let width = affine.width(input.len());
    let span = span(width);
    let run = |((dx, x), g): ((&mut [f32], &[f32]), &[f32])| {
        let [mut dbias, mut dgain, mut doffset] = [(); 3].map(|()| vec![0.0; width]);
        let mut pulled = vec![0.0; width];
        backward_rows(x, affine, g, eps, &mut pulled, dx, &mut dbias, &mut dgain, &mut doffset);
        [dbias, dgain, doffset]
    };
    if input.len() <= span {
        return run(((input_gradient, input), upstream));
    }
    let partial: Vec<[Vec<f32>; 3]> = input_gradient
        .par_chunks_mut(span)
        .zip(input.par_chunks(span))
        .zip(upstream.par_chunks(span))
        .map(run)
        .collect();
    let mut total = [(); 3].map(|()| vec![0.0; width]);
    for part in &partial {
        for (total, part) in total.iter_mut().zip(part) {
            for (t, p) in total.iter_mut().zip(part) {
                *t += p;
            }
        }
    }
    total
}

simd_kernel! {
    fn backward_rows(
        input: &[f32],
        affine: Affine<'_>,
        upstream: &[f32],
        eps: f32,
        pulled: &mut [f32],
        dx: &mut [f32],
        dbias: &mut [f32],
        dgain: &mut [f32],
        doffset: &mut [f32],
    ) {
        let width = affine.bias.len();
        for ((x, g), dx) in input.chunks_exact(width).zip(upstream.chunks_exact(width)).zip(dx.chunks_exact_mut(width)) {
            let inverse = normalise(x, affine.bias, eps, dx);
            // `dx` is the normalised row, `pulled` becomes its gradient.
            let row = dx.iter().zip(pulled.iter_mut()).zip(g).zip(affine.gain).zip(affine.offset);
            for (((((normed, pulled), g), gain), offset), (dgain, doffset)) in
                row.zip(dgain.iter_mut().zip(doffset.iter_mut()))
            {
                let u = normed * gain + offset;
                let sigmoid = 1.0 / (1.0 + exp(-u));
                let du = g * (sigmoid + u * sigmoid * (1.0 - sigmoid));
                *dgain += du * normed;
                *doffset += du;
                *pulled = du * gain;
            }
            let (mean, pull) = (sum(pulled) / width as f32, dot(pulled, dx) / width as f32);
            for ((dx, pulled), dbias) in dx.iter_mut().zip(pulled.iter()).zip(dbias.iter_mut()) {
                *dx = (pulled - mean - *dx * pull) * inverse;
                *dbias += *dx;
            }
        }
    }
}
