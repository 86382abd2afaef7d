//! A branch added to its residual stream through a gate for each sequence (adaLN-Zero of DiT, Peebles and Xie 2023).

use rayon::prelude::*;

use super::{LIGHT_CHUNK, sequences::Sequences, simd::simd_kernel};

/// `x[r] += gate[b] * branch[r]` for every row `r` of sequence `b`, in place.
pub fn forward(x: &mut [f32], gate: &[f32], branch: &[f32], sizes: Sequences) {
    sizes.check("gated_add", &[x.len(), branch.len()], &[gate.len()]);
    if sizes.is_empty() {
        return;
    }
    let sequences = sizes.per_task(LIGHT_CHUNK);
    let rows = sequences * sizes.elements();
    if x.len() <= rows {
        return forward_sequences(x, gate, branch, sizes);
    }
    x.par_chunks_mut(rows)
        .zip(branch.par_chunks(rows))
        .zip(gate.par_chunks(sequences * sizes.width))
        .for_each(|((x, branch), gate)| forward_sequences(x, gate, branch, sizes));
}

simd_kernel! {
    fn forward_sequences(x: &mut [f32], gate: &[f32], branch: &[f32], sizes: Sequences) {
        let (span, width) = (sizes.elements(), sizes.width);
        let sequences = x.chunks_exact_mut(span).zip(branch.chunks_exact(span)).zip(gate.chunks_exact(width));
        for ((x, branch), gate) in sequences {
            for (x, branch) in x.chunks_exact_mut(width).zip(branch.chunks_exact(width)) {
                for ((x, b), c) in x.iter_mut().zip(branch).zip(gate) {
                    *x += c * b;
                }
            }
        }
    }
}

/// Backward of [`forward`]: overwrites the gradients of the gate and the branch. That of `x` is `upstream` itself.
pub fn backward(
    gate: &[f32],
    branch: &[f32],
    upstream: &[f32],
    sizes: Sequences,
    gate_gradient: &mut [f32],
    branch_gradient: &mut [f32],
) {
    let rows = [branch.len(), upstream.len(), branch_gradient.len()];
    sizes.check("gated_add", &rows, &[gate.len(), gate_gradient.len()]);
    gate_gradient.fill(0.0);
    if sizes.is_empty() {
        return;
    }
    let sequences = sizes.per_task(LIGHT_CHUNK);
    let (rows, modulation) = (sequences * sizes.elements(), sequences * sizes.width);
    if upstream.len() <= rows {
        return backward_sequences(gate, branch, upstream, sizes, gate_gradient, branch_gradient);
    }
    branch_gradient
        .par_chunks_mut(rows)
        .zip(gate_gradient.par_chunks_mut(modulation))
        .zip(upstream.par_chunks(rows))
        .zip(branch.par_chunks(rows))
        .zip(gate.par_chunks(modulation))
        .for_each(|((((db, dc), g), b), c)| backward_sequences(c, b, g, sizes, dc, db));
}

simd_kernel! {
    fn backward_sequences(
        gate: &[f32],
        branch: &[f32],
        upstream: &[f32],
        sizes: Sequences,
        dgate: &mut [f32],
        dbranch: &mut [f32],
    ) {
        let (span, width) = (sizes.elements(), sizes.width);
        let rows = dbranch.chunks_exact_mut(span).zip(upstream.chunks_exact(span)).zip(branch.chunks_exact(span));
        for (((db, g), b), (dc, c)) in rows.zip(dgate.chunks_exact_mut(width).zip(gate.chunks_exact(width))) {
            for ((db, g), b) in db.chunks_exact_mut(width).zip(g.chunks_exact(width)).zip(b.chunks_exact(width)) {
                for ((((db, dc), g), b), c) in db.iter_mut().zip(dc.iter_mut()).zip(g).zip(b).zip(c) {
                    *db = g * c;
                    *dc += g * b;
                }
            }
        }
    }
}
