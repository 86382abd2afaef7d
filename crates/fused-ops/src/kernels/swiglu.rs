//! The gated activation `silu(gate) * up` of LLaMA's feed-forward network (Shazeer 2020).

use rayon::prelude::*;

use super::{
    CHUNK,
    simd::{exp, simd_kernel},
};

/// `output = gate * sigmoid(gate) * up`, element by element.
pub fn forward(gate: &[f32], up: &[f32], output: &mut [f32]) {
    same_length!("swiglu", output, gate, up);
    if output.len() <= CHUNK {
        return forward_chunk(gate, up, output);
    }
    output
        .par_chunks_mut(CHUNK)
        .zip(gate.par_chunks(CHUNK))
        .zip(up.par_chunks(CHUNK))
        .for_each(|((o, a), b)| forward_chunk(a, b, o));
}

simd_kernel! {
    fn forward_chunk(gate: &[f32], up: &[f32], output: &mut [f32]) {
        for ((o, a), b) in output.iter_mut().zip(gate).zip(up) {
            *o = a / (1.0 + exp(-a)) * b;
        }
    }
}

/// Backward of [`forward`]: writes the gradients of `gate` and `up`.
pub fn backward(gate: &[f32], up: &[f32], upstream: &[f32], gate_gradient: &mut [f32], up_gradient: &mut [f32]) {
    same_length!("swiglu", upstream, gate, up, gate_gradient, up_gradient);
    if upstream.len() <= CHUNK {
        return backward_chunk(gate, up, upstream, gate_gradient, up_gradient);
    }
    gate_gradient
        .par_chunks_mut(CHUNK)
        .zip(up_gradient.par_chunks_mut(CHUNK))
        .zip(gate.par_chunks(CHUNK))
        .zip(up.par_chunks(CHUNK))
        .zip(upstream.par_chunks(CHUNK))
        .for_each(|((((da, db), a), b), g)| backward_chunk(a, b, g, da, db));
}

simd_kernel! {
    fn backward_chunk(gate: &[f32], up: &[f32], upstream: &[f32], da: &mut [f32], db: &mut [f32]) {
        for ((((da, db), a), b), g) in da.iter_mut().zip(db).zip(gate).zip(up).zip(upstream) {
            let sigmoid = 1.0 / (1.0 + exp(-a));
            let silu = a * sigmoid;
            *db = g * silu;
            *da = g * b * (sigmoid + silu * (1.0 - sigmoid));
        }
    }
}
