//! A whole block of the paper's deep residual MLPs: layers of one width (matrix product, bias, layer normalisation with gain
//! and offset, swish) with a shortcut around them.
//!
//! At the widths of these networks a layer is a few microseconds of arithmetic, less than the bookkeeping of a graph takes for
//! it. So a block is one operation, and its parameters are one array: for each layer the matrix `[width, width]`, then rows of
//! bias, gain and offset.

use rayon::prelude::*;

use super::{
    bias_norm_swish::{Affine, normalise},
    products::multiply,
    simd::{dot, exp, simd_kernel, sum},
};

/// Sizes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockShape {
    /// Number of layers.
    pub layers: usize,
    /// Width of a row.
    pub width: usize,
}

/// Multiplications of one task, roughly: below that the hand-over to another thread costs as much as the work.
const TASK: usize = 1 << 22;

impl BlockShape {
    /// Parameters of a layer.
    fn layer_len(self) -> usize {
        (self.width + 3) * self.width
    }

    /// Parameters of the block.
    pub fn parameters(self) -> usize {
        self.layers * self.layer_len()
    }

    /// What the forward pass keeps of each row for the backward pass: the normalised row of every layer, what leaves every
    /// layer but the last, and the inverse deviation of every layer.
    pub fn saved_len(self) -> usize {
        (2 * self.layers - 1) * self.width + self.layers
    }

    fn hidden_start(self) -> usize {
        self.layers * self.width
    }

    fn inverse_start(self) -> usize {
        (2 * self.layers - 1) * self.width
    }

    /// Whether it is worth the hand-over to give parts of so many rows to threads.
    fn has_parts(self, rows: usize) -> bool {
        rows > self.rows_a_task() && rayon::current_num_threads() > 1
    }

    /// Rows that one task handles; it depends on nothing but the shape, and so do the sums over rows.
    fn rows_a_task(self) -> usize {
        (TASK / (self.layers * self.width * self.width).max(1)).clamp(16, 1024)
    }

    fn rows(self, input: &[f32], parameters: &[f32]) -> usize {
        assert!(
            self.layers > 0
                && self.width > 0
                && input.len().is_multiple_of(self.width)
                && parameters.len() == self.parameters(),
            "residual_block: rows of one width, and (width + 3) * width parameters a layer"
        );
        input.len() / self.width
    }

    /// Matrix and affine part of a layer.
    fn layer(self, parameters: &[f32], layer: usize) -> (&[f32], Affine<'_>) {
        let (matrix, rest) =
            parameters[layer * self.layer_len()..][..self.layer_len()].split_at(self.width * self.width);
        let (bias, rest) = rest.split_at(self.width);
        let (gain, offset) = rest.split_at(self.width);
        (matrix, Affine { bias, gain, offset })
    }
}

/// `output = input + layers(input)`; `eps` is added to variances. Where `saved` is given, `[rows, saved_len]`, it is filled for
/// [`backward`].
pub fn forward(
    shape: BlockShape,
    input: &[f32],
    parameters: &[f32],
    eps: f32,
    saved: Option<&mut [f32]>,
    output: &mut [f32],
) {
    let rows = shape.rows(input, parameters);
    same_length!("residual_block", output, input);
    if rows == 0 {
        return;
    }
    let (span, kept) = (shape.rows_a_task() * shape.width, shape.rows_a_task() * shape.saved_len());
    // The parts are the same whoever does them, so that the number of threads changes no bit.
    match (saved, shape.has_parts(rows)) {
        (Some(saved), parts) => {
            assert_eq!(saved.len(), rows * shape.saved_len(), "residual_block: room for what is kept of every row");
            let run = |((o, x), s): ((&mut [f32], &[f32]), &mut [f32])| forward_task(shape, x, parameters, eps, s, o);
            match parts {
                true => {
                    let tasks = output.par_chunks_mut(span).zip(input.par_chunks(span));
                    tasks.zip(saved.par_chunks_mut(kept)).for_each(run);
                }
                false => {
                    let tasks = output.chunks_mut(span).zip(input.chunks(span));
                    tasks.zip(saved.chunks_mut(kept)).for_each(run);
                }
            }
        }
        (None, parts) => {
            let room = || vec![0.0; kept.min(rows * shape.saved_len())];
            let run = |saved: &mut Vec<f32>, (o, x): (&mut [f32], &[f32])| {
                let used = x.len() / shape.width * shape.saved_len();
                forward_task(shape, x, parameters, eps, &mut saved[..used], o);
            };
            match parts {
                true => output.par_chunks_mut(span).zip(input.par_chunks(span)).for_each_init(room, run),
                false => {
                    let mut saved = room();
                    output.chunks_mut(span).zip(input.chunks(span)).for_each(|task| run(&mut saved, task));
                }
            }
        }
    }
}

fn forward_task(shape: BlockShape, input: &[f32], parameters: &[f32], eps: f32, saved: &mut [f32], output: &mut [f32]) {
    let BlockShape { layers, width } = shape;
    let (rows, stride) = (input.len() / width, shape.saved_len());
    let mut product = vec![0.0; input.len()];
    for layer in 0..layers {
        let (matrix, affine) = shape.layer(parameters, layer);
        let left = match layer {
            0 => (input.as_ptr(), width, 1),
            _ => (saved[shape.hidden_start() + (layer - 1) * width..].as_ptr(), stride, 1),
        };
        // SAFETY: `left` has `rows` rows of `width` elements, `stride` apart where they lie in `saved`, whose length was
        // checked; matrix and product are `[width, width]` and `[rows, width]`.
        unsafe {
            multiply((rows, width, width), (product.as_mut_ptr(), width), false, left, (matrix.as_ptr(), width, 1));
        }
        forward_rows(shape, layer, &product, affine, eps, saved, input, output);
    }
}

simd_kernel! {
    fn forward_rows(
        shape: BlockShape,
        layer: usize,
        product: &[f32],
        affine: Affine<'_>,
        eps: f32,
        saved: &mut [f32],
        input: &[f32],
        output: &mut [f32],
    ) {
        let BlockShape { layers, width } = shape;
        let rows = product.chunks_exact(width).zip(saved.chunks_exact_mut(shape.saved_len()));
        let ends = input.chunks_exact(width).zip(output.chunks_exact_mut(width));
        for ((product, saved), (x, o)) in rows.zip(ends) {
            let (normed, rest) = saved.split_at_mut(shape.hidden_start());
            let (hidden, inverse) = rest.split_at_mut((layers - 1) * width);
            let normed = &mut normed[layer * width..][..width];
            inverse[layer] = normalise(product, affine.bias, eps, normed);
            if layer + 1 < layers {
                let hidden = &mut hidden[layer * width..][..width];
                for (((h, n), gain), offset) in hidden.iter_mut().zip(normed.iter()).zip(affine.gain).zip(affine.offset) {
                    let u = n * gain + offset;
                    *h = u / (1.0 + exp(-u));
                }
            } else {
                for ((((o, n), gain), offset), x) in
                    o.iter_mut().zip(normed.iter()).zip(affine.gain).zip(affine.offset).zip(x)
                {
                    let u = n * gain + offset;
                    *o = x + u / (1.0 + exp(-u));
                }
            }
        }
    }
}

/// What the forward pass had and kept.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// `[rows, width]`.
    pub input: &'a [f32],
    /// The parameters of the block.
    pub parameters: &'a [f32],
    /// What [`forward`] filled.
    pub saved: &'a [f32],
}

/// The part of one task in a backward pass.
struct BackwardTask<'a> {
    seen: Seen<'a>,
    upstream: &'a [f32],
    /// Filled with the gradients of the matrix products, `[rows, layers * width]`.
    products: &'a mut [f32],
    input_gradient: Option<&'a mut [f32]>,
}

/// Backward of [`forward`]: the gradient of the input is written where it is wanted, and so is that of the parameters.
pub fn backward(
    shape: BlockShape,
    seen: Seen<'_>,
    upstream: &[f32],
    input_gradient: Option<&mut [f32]>,
    parameter_gradient: Option<&mut [f32]>,
) {
    let rows = shape.rows(seen.input, seen.parameters);
    same_length!("residual_block", seen.input, upstream);
    assert_eq!(seen.saved.len(), rows * shape.saved_len(), "residual_block: what was kept of every row");
    if rows == 0 {
        return;
    }
    let (width, at_once) = (shape.width, shape.rows_a_task());
    // Of all layers, so that the gradients of the matrices are made over all rows at once.
    let mut products = vec![0.0; rows * shape.layers * width];
    let mut input_gradients = input_gradient.map(|gradient| gradient.chunks_mut(at_once * width));
    let tasks: Vec<BackwardTask<'_>> = (seen.input.chunks(at_once * width))
        .zip(seen.saved.chunks(at_once * shape.saved_len()))
        .zip(upstream.chunks(at_once * width))
        .zip(products.chunks_mut(at_once * shape.layers * width))
        .map(|(((input, saved), upstream), products)| BackwardTask {
            seen: Seen { input, saved, ..seen },
            upstream,
            products,
            input_gradient: input_gradients.as_mut().and_then(Iterator::next),
        })
        .collect();
    let affine: Vec<Vec<f32>> = match shape.has_parts(rows) {
        true => tasks.into_par_iter().map(|task| backward_task(shape, task)).collect(),
        false => tasks.into_iter().map(|task| backward_task(shape, task)).collect(),
    };
    let Some(gradient) = parameter_gradient else { return };
    assert_eq!(gradient.len(), shape.parameters(), "residual_block: room for the gradient of the parameters");
    let of_layer = |(layer, gradient): (usize, &mut [f32])| {
        let (matrix, rest) = gradient.split_at_mut(width * width);
        matrix_gradient(shape, layer, seen, &products, matrix);
        for (i, g) in rest.iter_mut().enumerate() {
            *g = affine.iter().map(|part| part[layer * 3 * width + i]).sum();
        }
    };
    match shape.has_parts(rows) {
        true => gradient.par_chunks_mut(shape.layer_len()).enumerate().for_each(of_layer),
        false => gradient.chunks_mut(shape.layer_len()).enumerate().for_each(of_layer),
    }
}

/// Goes through the layers of some rows, last first, and returns the gradients of bias, gain and offset of every layer.
fn backward_task(shape: BlockShape, task: BackwardTask<'_>) -> Vec<f32> {
    let BlockShape { layers, width } = shape;
    let BackwardTask { seen, upstream, products, mut input_gradient } = task;
    let rows = upstream.len() / width;
    let mut affine_gradient = vec![0.0; layers * 3 * width];
    let mut pulled = vec![0.0; width];
    // The gradient of what leaves a layer.
    let mut leaving = upstream.to_vec();
    for layer in (0..layers).rev() {
        let (matrix, affine) = shape.layer(seen.parameters, layer);
        let sums = &mut affine_gradient[layer * 3 * width..][..3 * width];
        backward_rows(shape, layer, seen.saved, affine, &leaving, &mut pulled, products, sums);
        let (destination, add) = match (&mut input_gradient, layer) {
            (Some(gradient), 0) => {
                gradient.copy_from_slice(upstream);
                (gradient.as_mut_ptr(), true)
            }
            (None, 0) => continue,
            _ => (leaving.as_mut_ptr(), false),
        };
        let left = products[layer * width..].as_ptr();
        // SAFETY: `left` has `rows` rows of `width` elements, `layers * width` apart; the destination is `[rows, width]`, and
        // the matrix `[width, width]`, read as its transpose.
        unsafe {
            multiply(
                (rows, width, width),
                (destination, width),
                add,
                (left, layers * width, 1),
                (matrix.as_ptr(), 1, width),
            );
        }
    }
    affine_gradient
}

simd_kernel! {
    fn backward_rows(
        shape: BlockShape,
        layer: usize,
        saved: &[f32],
        affine: Affine<'_>,
        leaving: &[f32],
        pulled: &mut [f32],
        products: &mut [f32],
        affine_gradient: &mut [f32],
    ) {
        let BlockShape { layers, width } = shape;
        let (dbias, rest) = affine_gradient.split_at_mut(width);
        let (dgain, doffset) = rest.split_at_mut(width);
        let rows = saved.chunks_exact(shape.saved_len()).zip(leaving.chunks_exact(width));
        for ((saved, g), products) in rows.zip(products.chunks_exact_mut(layers * width)) {
            let (normed, inverse) = (&saved[layer * width..][..width], saved[shape.inverse_start() + layer]);
            let row = normed.iter().zip(pulled.iter_mut()).zip(g).zip(affine.gain).zip(affine.offset);
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
            let (mean, pull) = (sum(pulled) / width as f32, dot(pulled, normed) / width as f32);
            let product = &mut products[layer * width..][..width];
            for (((dx, pulled), normed), dbias) in
                product.iter_mut().zip(pulled.iter()).zip(normed).zip(dbias.iter_mut())
            {
                *dx = (pulled - mean - normed * pull) * inverse;
                *dbias += *dx;
            }
        }
    }
}

/// What entered a layer, transposed, times the gradient of its product, over all rows.
fn matrix_gradient(shape: BlockShape, layer: usize, seen: Seen<'_>, products: &[f32], gradient: &mut [f32]) {
    let BlockShape { layers, width } = shape;
    let rows = seen.input.len() / width;
    let entered = match layer {
        0 => (seen.input.as_ptr(), 1, width),
        _ => (seen.saved[shape.hidden_start() + (layer - 1) * width..].as_ptr(), 1, shape.saved_len()),
    };
    let right = (products[layer * width..].as_ptr(), layers * width, 1);
    // SAFETY: what entered has `rows` columns here, `width` or `saved_len` elements apart; the gradients of the products have as
    // many rows, `layers * width` apart; the gradient is `[width, width]`.
    unsafe { multiply((width, width, rows), (gradient.as_mut_ptr(), width), false, entered, right) }
}
