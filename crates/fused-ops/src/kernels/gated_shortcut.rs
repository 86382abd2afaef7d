//! A shortcut whose size each row decides: `base + (1 + tanh(query . rms_norm(base))) * weight * state`.

use rayon::prelude::*;

use super::{
    CHUNK,
    simd::{dot, simd_kernel},
};

/// What the operation reads: two matrices `[rows, width]` and two rows.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// What the shortcut is added to, `[rows, width]`; its normalised rows open the gate.
    pub base: &'a [f32],
    /// What the shortcut brings, `[rows, width]`.
    pub state: &'a [f32],
    /// Of each feature of the state, `[width]`.
    pub weight: &'a [f32],
    /// What the gate looks for, `[width]`.
    pub query: &'a [f32],
    /// Added to the mean square of a row.
    pub eps: f32,
}

impl<'a> Inputs<'a> {
    fn check(&self) {
        same_length!("gated_shortcut", self.base, self.state);
        same_length!("gated_shortcut", self.weight, self.query);
        let fits = !self.weight.is_empty() && self.base.len().is_multiple_of(self.weight.len());
        assert!(fits, "gated_shortcut: rows have the width of the weight");
    }

    /// Elements of the rows of one task.
    fn span(&self) -> usize {
        (CHUNK / self.weight.len()).max(1) * self.weight.len()
    }

    /// The inputs in tasks of so many elements.
    fn tasks(self, span: usize) -> impl IndexedParallelIterator<Item = Self> {
        let rows = self.base.par_chunks(span).zip(self.state.par_chunks(span));
        rows.map(move |(base, state)| Self { base, state, ..self })
    }
}

/// Overwrites `output`, `[rows, width]`.
pub fn forward(inputs: Inputs<'_>, output: &mut [f32]) {
    inputs.check();
    same_length!("gated_shortcut", inputs.base, output);
    let span = inputs.span();
    if output.len() <= span {
        return forward_rows(inputs, output);
    }
    output.par_chunks_mut(span).zip(inputs.tasks(span)).for_each(|(output, inputs)| forward_rows(inputs, output));
}

/// The reciprocal of a row's root mean square, and the hyperbolic tangent of its normalised product with the query.
#[inline(always)]
fn gate(row: &[f32], query: &[f32], eps: f32) -> (f32, f32) {
    let inverse = 1.0 / (dot(row, row) / row.len() as f32 + eps).sqrt();
    (inverse, (dot(query, row) * inverse).tanh())
}

simd_kernel! {
    fn forward_rows(inputs: Inputs<'_>, output: &mut [f32]) {
        let Inputs { base, state, weight, query, eps } = inputs;
        let width = weight.len();
        let rows = base.chunks_exact(width).zip(state.chunks_exact(width)).zip(output.chunks_exact_mut(width));
        for ((base, state), output) in rows {
            let open = 1.0 + gate(base, query, eps).1;
            for (((o, b), s), w) in output.iter_mut().zip(base).zip(state).zip(weight) {
                *o = b + open * (w * s);
            }
        }
    }
}

/// Backward of [`forward`]: overwrites the gradients of base and state, and returns those of weight and query.
pub fn backward(
    inputs: Inputs<'_>,
    upstream: &[f32],
    base_gradient: &mut [f32],
    state_gradient: &mut [f32],
) -> [Vec<f32>; 2] {
    inputs.check();
    same_length!("gated_shortcut", inputs.base, upstream, base_gradient, state_gradient);
    let (width, span) = (inputs.weight.len(), inputs.span());
    // Summed task after task, in one order for any number of threads.
    let parts: Vec<[Vec<f32>; 2]> = base_gradient
        .par_chunks_mut(span)
        .zip(state_gradient.par_chunks_mut(span))
        .zip(upstream.par_chunks(span))
        .zip(inputs.tasks(span))
        .map(|(((db, ds), g), inputs)| {
            let [mut dw, mut dq] = [(); 2].map(|()| vec![0.0; width]);
            backward_rows(inputs, g, db, ds, &mut dw, &mut dq);
            [dw, dq]
        })
        .collect();
    let mut total = [(); 2].map(|()| vec![0.0; width]);
    for part in parts {
        for (t, p) in total.iter_mut().flatten().zip(part.iter().flatten()) {
            *t += p;
        }
    }
    total
}

simd_kernel! {
    fn backward_rows(
        inputs: Inputs<'_>,
        upstream: &[f32],
        dbase: &mut [f32],
        dstate: &mut [f32],
        dweight: &mut [f32],
        dquery: &mut [f32],
    ) {
        let Inputs { base, state, weight, query, eps } = inputs;
        let width = weight.len();
        let read = base.chunks_exact(width).zip(state.chunks_exact(width)).zip(upstream.chunks_exact(width));
        let written = dbase.chunks_exact_mut(width).zip(dstate.chunks_exact_mut(width));
        for (((base, state), g), (db, ds)) in read.zip(written) {
            let (inverse, tanh) = gate(base, query, eps);
            let open = 1.0 + tanh;
            // For now `ds` holds `g * weight`: with the state, what the gate receives.
            for ((ds, g), w) in ds.iter_mut().zip(g).zip(weight) {
                *ds = g * w;
            }
            let score = (1.0 - tanh * tanh) * dot(ds, state);
            for (((dw, ds), g), s) in dweight.iter_mut().zip(ds.iter_mut()).zip(g).zip(state) {
                *dw += open * g * s;
                *ds *= open;
            }
            let along = score * inverse;
            let pull = along * dot(query, base) * inverse * inverse / width as f32;
            for ((((db, dq), g), b), q) in db.iter_mut().zip(dquery.iter_mut()).zip(g).zip(base).zip(query) {
                *dq += along * b;
                *db = g + along * q - pull * b;
            }
        }
    }
}
