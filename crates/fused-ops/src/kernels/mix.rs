//! The connection's mix: a weighted sum of many states, and its gradient in one pass.

use rayon::prelude::*;

use super::{
    CHUNK,
    simd::{LANES, dot_f64, simd_kernel},
};

/// Elements handled at a time inside a chunk: the output tile stays in L1 while every state streams past once.
const TILE: usize = 1024;

/// `total += sum_i coefficients[i] * states[i]`, element by element; all slices have the length of `total`.
pub fn forward(coefficients: &[f32], states: &[&[f32]], total: &mut [f32]) {
    assert_eq!(coefficients.len(), states.len(), "mix: one coefficient for each state");
    for state in states {
        same_length!("mix", total, state);
    }
    let run = |start: usize, total: &mut [f32]| forward_chunk(coefficients, states, start, total);
    if total.len() <= CHUNK {
        return run(0, total);
    }
    total.par_chunks_mut(CHUNK).enumerate().for_each(|(k, chunk)| run(k * CHUNK, chunk));
}

simd_kernel! {
    fn forward_chunk(coefficients: &[f32], states: &[&[f32]], start: usize, total: &mut [f32]) {
        for (t, tile) in total.chunks_mut(TILE).enumerate() {
            let from = start + t * TILE;
            let range = from..from + tile.len();
            for (&c, state) in coefficients.iter().zip(states) {
                for (o, h) in tile.iter_mut().zip(&state[range.clone()]) {
                    *o += c * h;
                }
            }
        }
    }
}

/// One state's part of the backward pass.
pub struct StateGradient<'a> {
    /// The state `h_i`; `None` where the coefficient needs no gradient, so that the state need not be read.
    pub state: Option<&'a [f32]>,
    /// Receives `c_i * upstream`; `None` where the state needs no gradient.
    pub gradient: Option<&'a mut [f32]>,
    /// Whether `gradient` already holds a sum that is to be added to, rather than memory to be overwritten.
    pub add: bool,
}

/// Backward of [`forward`] in one pass over the upstream gradient and each state: writes or adds `c_i * upstream` to
/// every state's gradient and returns `sum(upstream * h_i)` for every coefficient (0 where `state` is `None`).
pub fn backward(coefficients: &[f32], upstream: &[f32], parts: Vec<StateGradient<'_>>) -> Vec<f32> {
    let n = parts.len();
    assert_eq!(coefficients.len(), n, "mix: one coefficient for each state");
    for part in &parts {
        let lengths = [part.state.map(<[f32]>::len), part.gradient.as_ref().map(|g| g.len())];
        assert!(lengths.into_iter().flatten().all(|n| n == upstream.len()), "mix: slices have one length");
    }
    // Every part is cut into the same fixed chunks, so that sums come out alike for any number of threads.
    let mut chunks: Vec<(&[f32], Vec<StateGradient<'_>>)> =
        upstream.chunks(CHUNK).map(|g| (g, Vec::with_capacity(n))).collect();
    for part in parts {
        let mut states = part.state.map(|s| s.chunks(CHUNK));
        let mut gradients = part.gradient.map(|g| g.chunks_mut(CHUNK));
        for (_, pieces) in &mut chunks {
            pieces.push(StateGradient {
                state: states.as_mut().and_then(Iterator::next),
                gradient: gradients.as_mut().and_then(Iterator::next),
                add: part.add,
            });
        }
    }
    let run = |(upstream, mut pieces): (&[f32], Vec<StateGradient<'_>>)| {
        let mut dots = vec![0.0; n];
        backward_chunk(coefficients, upstream, &mut pieces, &mut dots);
        dots
    };
    let partial: Vec<Vec<f64>> = if chunks.len() == 1 {
        chunks.into_iter().map(run).collect()
    } else {
        chunks.into_par_iter().map(run).collect()
    };
    (0..n).map(|i| partial.iter().map(|dots| dots[i]).sum::<f64>() as f32).collect()
}

simd_kernel! {
    fn backward_chunk(coefficients: &[f32], upstream: &[f32], parts: &mut [StateGradient<'_>], dots: &mut [f64]) {
        for from in (0..upstream.len()).step_by(TILE) {
            let range = from..(from + TILE).min(upstream.len());
            let tile = &upstream[range.clone()];
            for ((part, &c), total) in parts.iter_mut().zip(coefficients).zip(dots.iter_mut()) {
                if let Some(state) = part.state {
                    *total += dot_f64(tile, &state[range.clone()]);
                }
                if let Some(gradient) = &mut part.gradient {
                    let gradient = &mut gradient[range.clone()];
                    if part.add {
                        for (o, g) in gradient.iter_mut().zip(tile) {
                            *o += c * g;
                        }
                    } else {
                        for (o, g) in gradient.iter_mut().zip(tile) {
                            *o = c * g;
                        }
                    }
                }
            }
        }
    }
}

/// `total = [total +] sum_k coefficients[k] * gradients[k]`, where `add` says whether `total` holds a sum already, and the products
/// `sum(gradients[k] * state)` where there is a state, and 0 where not: what a state gathers from the mixes that took it.
pub fn gather(
    coefficients: &[f32],
    gradients: &[&[f32]],
    state: Option<&[f32]>,
    total: &mut [f32],
    add: bool,
) -> Vec<f32> {
    let n = gradients.len();
    assert_eq!(coefficients.len(), n, "mix: one coefficient for each gradient");
    for other in gradients.iter().chain(&state) {
        same_length!("mix", total, other);
    }
    let run = |start: usize, total: &mut [f32]| {
        let mut dots = vec![0.0; n];
        gather_chunk(coefficients, gradients, state, start, total, add, &mut dots);
        dots
    };
    // Fixed chunks, whose sums are added in order.
    let partial: Vec<Vec<f64>> = match total.len() <= CHUNK {
        true => vec![run(0, total)],
        false => total.par_chunks_mut(CHUNK).enumerate().map(|(k, chunk)| run(k * CHUNK, chunk)).collect(),
    };
    (0..n).map(|i| partial.iter().map(|dots| dots[i]).sum::<f64>() as f32).collect()
}

simd_kernel! {
    fn gather_chunk(
        coefficients: &[f32],
        gradients: &[&[f32]],
        state: Option<&[f32]>,
        start: usize,
        total: &mut [f32],
        add: bool,
        dots: &mut [f64],
    ) {
        for (t, tile) in total.chunks_mut(TILE).enumerate() {
            let from = start + t * TILE;
            let range = from..from + tile.len();
            if !add {
                tile.fill(0.0);
            }
            for ((&c, gradient), dot) in coefficients.iter().zip(gradients).zip(dots.iter_mut()) {
                let gradient = &gradient[range.clone()];
                match state {
                    Some(state) => *dot += add_and_dot(c, gradient, &state[range.clone()], tile),
                    None => {
                        for (o, g) in tile.iter_mut().zip(gradient) {
                            *o += c * g;
                        }
                    }
                }
            }
        }
    }
}

/// Products that are summed in single precision before they go into a sum in double precision, in each lane: conversions of every
/// number would take longer than all the rest.
const SINGLE: usize = 8;

/// Adds `c * gradient` to `total`, and returns the product of the gradient with a state.
#[inline(always)]
fn add_and_dot(c: f32, gradient: &[f32], state: &[f32], total: &mut [f32]) -> f64 {
    const BLOCK: usize = SINGLE * LANES;
    let mut wide = [0.0f64; LANES];
    let mut totals = total.chunks_exact_mut(BLOCK);
    let (gradients, states) = (gradient.chunks_exact(BLOCK), state.chunks_exact(BLOCK));
    let (last_gradients, last_states) = (gradients.remainder(), states.remainder());
    for ((g, h), o) in gradients.zip(states).zip(&mut totals) {
        let mut lanes = [0.0f32; LANES];
        for step in 0..SINGLE {
            let at = step * LANES;
            let (g, h, o) = (&g[at..at + LANES], &h[at..at + LANES], &mut o[at..at + LANES]);
            for lane in 0..LANES {
                lanes[lane] += g[lane] * h[lane];
                o[lane] += c * g[lane];
            }
        }
        for (w, lane) in wide.iter_mut().zip(lanes) {
            *w += f64::from(lane);
        }
    }
    let mut tail = 0.0;
    for ((g, h), o) in last_gradients.iter().zip(last_states).zip(totals.into_remainder()) {
        tail += f64::from(*g) * f64::from(*h);
        *o += c * g;
    }
    wide.iter().sum::<f64>() + tail
}
