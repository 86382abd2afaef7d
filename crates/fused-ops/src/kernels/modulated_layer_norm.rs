//! Layer normalisation of rows, then a scale and a shift for each sequence: adaLN of DiT (Peebles and Xie 2023).

use rayon::prelude::*;

use super::{
    CHUNK,
    sequences::Sequences,
    simd::{dot, simd_kernel, sum},
};

/// `output[r] = (input[r] - mean) / sqrt(variance + eps) * (1 + scale[b]) + shift[b]` for every row `r` of sequence
/// `b`, with the mean and the biased variance of the row.
pub fn forward(input: &[f32], shift: &[f32], scale: &[f32], sizes: Sequences, eps: f32, output: &mut [f32]) {
    sizes.check("modulated_layer_norm", &[input.len(), output.len()], &[shift.len(), scale.len()]);
    if sizes.is_empty() {
        return;
    }
    let sequences = sizes.per_task(CHUNK);
    let (rows, modulation) = (sequences * sizes.elements(), sequences * sizes.width);
    if output.len() <= rows {
        return forward_sequences(input, shift, scale, sizes, eps, output);
    }
    output
        .par_chunks_mut(rows)
        .zip(input.par_chunks(rows))
        .zip(shift.par_chunks(modulation))
        .zip(scale.par_chunks(modulation))
        .for_each(|(((o, x), shift), scale)| forward_sequences(x, shift, scale, sizes, eps, o));
}

/// Writes the row less its mean, and returns what it is to be multiplied by to have unit variance.
#[inline(always)]
fn centre(row: &[f32], eps: f32, centred: &mut [f32]) -> f32 {
    let width = row.len() as f32;
    let mean = sum(row) / width;
    for (c, x) in centred.iter_mut().zip(row) {
        *c = x - mean;
    }
    1.0 / (dot(centred, centred) / width + eps).sqrt()
}

simd_kernel! {
    fn forward_sequences(input: &[f32], shift: &[f32], scale: &[f32], sizes: Sequences, eps: f32, output: &mut [f32]) {
        let (span, width) = (sizes.elements(), sizes.width);
        let rows = output.chunks_exact_mut(span).zip(input.chunks_exact(span));
        for ((o, x), (shift, scale)) in rows.zip(shift.chunks_exact(width).zip(scale.chunks_exact(width))) {
            for (o, x) in o.chunks_exact_mut(width).zip(x.chunks_exact(width)) {
                let inverse = centre(x, eps, o);
                for ((o, shift), scale) in o.iter_mut().zip(shift).zip(scale) {
                    *o = *o * inverse * (1.0 + scale) + shift;
                }
            }
        }
    }
}

/// Backward of [`forward`]: overwrites the gradients of the input, the shift and the scale. The shift itself is not
/// needed.
#[allow(clippy::too_many_arguments)]
pub fn backward(
    input: &[f32],
    scale: &[f32],
    upstream: &[f32],
    sizes: Sequences,
    eps: f32,
    input_gradient: &mut [f32],
    shift_gradient: &mut [f32],
    scale_gradient: &mut [f32],
) {
    let rows = [input.len(), upstream.len(), input_gradient.len()];
    let modulation = [scale.len(), shift_gradient.len(), scale_gradient.len()];
    sizes.check("modulated_layer_norm", &rows, &modulation);
    shift_gradient.fill(0.0);
    scale_gradient.fill(0.0);
    if sizes.is_empty() {
        return;
    }
    let sequences = sizes.per_task(CHUNK);
    let (rows, modulation) = (sequences * sizes.elements(), sequences * sizes.width);
    input_gradient
        .par_chunks_mut(rows)
        .zip(shift_gradient.par_chunks_mut(modulation))
        .zip(scale_gradient.par_chunks_mut(modulation))
        .zip(input.par_chunks(rows))
        .zip(upstream.par_chunks(rows))
        .zip(scale.par_chunks(modulation))
        .for_each(|(((((dx, dshift), dscale), x), g), scale)| {
            let mut row = vec![0.0; sizes.width];
            backward_sequences(x, scale, g, sizes, eps, &mut row, dx, dshift, dscale);
        });
}

simd_kernel! {
    fn backward_sequences(
        input: &[f32],
        scale: &[f32],
        upstream: &[f32],
        sizes: Sequences,
        eps: f32,
        pulled: &mut [f32],
        dx: &mut [f32],
        dshift: &mut [f32],
        dscale: &mut [f32],
    ) {
        let (span, width) = (sizes.elements(), sizes.width);
        let rows = dx.chunks_exact_mut(span).zip(input.chunks_exact(span)).zip(upstream.chunks_exact(span));
        let modulation =
            dshift.chunks_exact_mut(width).zip(dscale.chunks_exact_mut(width)).zip(scale.chunks_exact(width));
        for (((dx, x), g), ((dshift, dscale), scale)) in rows.zip(modulation) {
            for ((dx, x), g) in dx.chunks_exact_mut(width).zip(x.chunks_exact(width)).zip(g.chunks_exact(width)) {
                let inverse = centre(x, eps, dx);
                // `dx` becomes the normalised row, `pulled` its gradient.
                let row = dx.iter_mut().zip(pulled.iter_mut()).zip(g).zip(scale);
                for ((((normed, pulled), g), scale), (dshift, dscale)) in
                    row.zip(dshift.iter_mut().zip(dscale.iter_mut()))
                {
                    *normed *= inverse;
                    *dscale += g * *normed;
                    *dshift += g;
                    *pulled = g * (1.0 + scale);
                }
                let (mean, pull) = (sum(pulled) / width as f32, dot(pulled, dx) / width as f32);
                for (dx, pulled) in dx.iter_mut().zip(pulled.iter()) {
                    *dx = (pulled - mean - *dx * pull) * inverse;
                }
            }
        }
    }
}
