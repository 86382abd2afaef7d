//! Sums of parallel streams with weights for every row.

use rayon::prelude::*;

use super::{
    CHUNK,
    simd::{dot, simd_kernel},
};

/// What is mixed.
#[derive(Clone, Copy, Debug)]
pub struct Streams<'a> {
    /// `[rows, sources, targets]`, or `[sources, targets]` for weights that all rows share.
    pub weights: &'a [f32],
    /// `[rows, n, width]`.
    pub streams: &'a [f32],
    /// One more source, `[rows, width]`.
    pub added: Option<&'a [f32]>,
    /// Number of streams.
    pub n: usize,
    /// Columns of a stream.
    pub width: usize,
    /// Number of sums.
    pub targets: usize,
    /// Whether all rows share the weights.
    pub shared: bool,
}

impl<'a> Streams<'a> {
    fn sources(&self) -> usize {
        self.n + usize::from(self.added.is_some())
    }

    fn rows_per_task(&self) -> usize {
        (CHUNK / (self.n * self.width).max(1)).max(1)
    }

    fn check(&self) -> usize {
        let rows = self.streams.len() / (self.n * self.width).max(1);
        let weights = self.sources() * self.targets * if self.shared { 1 } else { rows };
        assert!(
            self.streams.len() == rows * self.n * self.width
                && self.weights.len() == weights
                && self.added.is_none_or(|added| added.len() == rows * self.width),
            "streams: slices fit each other"
        );
        rows
    }

    /// Rows `from..from + count`.
    fn part(self, from: usize, count: usize) -> Self {
        let size = self.sources() * self.targets;
        Self {
            weights: if self.shared { self.weights } else { &self.weights[from * size..][..count * size] },
            streams: &self.streams[from * self.n * self.width..][..count * self.n * self.width],
            added: self.added.map(|added| &added[from * self.width..][..count * self.width]),
            ..self
        }
    }

    #[inline(always)]
    fn row_weights(&self, row: usize) -> &'a [f32] {
        let size = self.sources() * self.targets;
        if self.shared { self.weights } else { &self.weights[row * size..][..size] }
    }

    #[inline(always)]
    fn source(&self, row: usize, s: usize) -> &'a [f32] {
        match self.added {
            Some(added) if s == self.n => &added[row * self.width..][..self.width],
            _ => &self.streams[(row * self.n + s) * self.width..][..self.width],
        }
    }
}

/// `output[row, t] = sum_s weights[row, s, t] * source[row, s]`; `output` is `[rows, targets, width]`.
pub fn forward(all: Streams<'_>, output: &mut [f32]) {
    let rows = all.check();
    let row = all.targets * all.width;
    assert_eq!(output.len(), rows * row, "streams: slices fit each other");
    let at_once = all.rows_per_task();
    if rows <= at_once {
        return forward_rows(all, output);
    }
    let tasks = output.par_chunks_mut(at_once * row).enumerate();
    tasks.for_each(|(i, output)| forward_rows(all.part(i * at_once, output.len() / row), output));
}

simd_kernel! {
    fn forward_rows(all: Streams<'_>, output: &mut [f32]) {
        let Streams { width, targets, .. } = all;
        for (row, output) in output.chunks_exact_mut(targets * width).enumerate() {
            let weights = all.row_weights(row);
            for s in 0..all.sources() {
                let source = all.source(row, s);
                for (output, &weight) in output.chunks_exact_mut(width).zip(&weights[s * targets..][..targets]) {
                    if s == 0 {
                        for (o, x) in output.iter_mut().zip(source) {
                            *o = weight * x;
                        }
                    } else {
                        for (o, x) in output.iter_mut().zip(source) {
                            *o += weight * x;
                        }
                    }
                }
            }
        }
    }
}

/// Where the gradients go.
#[derive(Debug)]
pub struct Gradients<'a> {
    /// As the weights of every row, even where rows share them.
    pub weights: &'a mut [f32],
    /// As the streams.
    pub streams: &'a mut [f32],
    /// As what is added.
    pub added: Option<&'a mut [f32]>,
}

/// Backward of [`forward`]: `upstream` is `[rows, targets, width]`.
pub fn backward(all: Streams<'_>, upstream: &[f32], gradients: Gradients<'_>) {
    let rows = all.check();
    let (size, row) = (all.sources() * all.targets, all.targets * all.width);
    same_length!("streams", gradients.streams, all.streams);
    assert!(
        upstream.len() == rows * row
            && gradients.weights.len() == rows * size
            && gradients.added.as_ref().map(|added| added.len()) == all.added.map(<[f32]>::len),
        "streams: slices fit each other"
    );
    let at_once = all.rows_per_task();
    if rows <= at_once {
        return backward_rows(all, upstream, gradients);
    }
    let mut added = gradients.added.map(|added| added.chunks_mut(at_once * all.width));
    let tasks: Vec<_> = upstream
        .chunks(at_once * row)
        .zip(gradients.weights.chunks_mut(at_once * size))
        .zip(gradients.streams.chunks_mut(at_once * all.n * all.width))
        .enumerate()
        .map(|(i, ((upstream, weights), streams))| {
            let added = added.as_mut().and_then(Iterator::next);
            (all.part(i * at_once, upstream.len() / row), upstream, Gradients { weights, streams, added })
        })
        .collect();
    tasks.into_par_iter().for_each(|(part, upstream, gradients)| backward_rows(part, upstream, gradients));
}

simd_kernel! {
    fn backward_rows(all: Streams<'_>, upstream: &[f32], gradients: Gradients<'_>) {
        let mut gradients = gradients;
        let Streams { width, targets, n, .. } = all;
        let sources = all.sources();
        let size = sources * targets;
        for (row, upstream) in upstream.chunks_exact(targets * width).enumerate() {
            let weights = all.row_weights(row);
            let dweights = &mut gradients.weights[row * size..][..size];
            for s in 0..sources {
                let source = all.source(row, s);
                let gradient = match &mut gradients.added {
                    Some(added) if s == n => &mut added[row * width..][..width],
                    _ => &mut gradients.streams[(row * n + s) * width..][..width],
                };
                for (t, g) in upstream.chunks_exact(width).enumerate() {
                    let weight = weights[s * targets + t];
                    dweights[s * targets + t] = dot(source, g);
                    if t == 0 {
                        for (o, g) in gradient.iter_mut().zip(g) {
                            *o = weight * g;
                        }
                    } else {
                        for (o, g) in gradient.iter_mut().zip(g) {
                            *o += weight * g;
                        }
                    }
                }
            }
        }
    }
}
