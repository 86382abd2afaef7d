//! Fast paths of the CPU backend: from tensors to the slices that [`kernels`](crate::kernels) work on, and back.

use burn::{
    backend::Flex,
    tensor::{DType, Shape, TensorData},
};
use burn_flex::FlexTensor;

use crate::{
    FusedOps,
    kernels::{
        self, bias_norm_swish::Affine, mix::StateGradient, residual_block::Seen, sequences::Sequences, streams::Streams,
    },
    ops::{self, adamw::AdamWStep, attention::AttentionShape, cross_entropy::IGNORE_TARGET},
};

/// The elements of a contiguous `f32` tensor.
fn slice(tensor: &FlexTensor) -> &[f32] {
    tensor.as_slice().expect("callers made the tensor contiguous and checked that it is f32")
}

fn tensor(values: Vec<f32>, shape: Shape) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape))
}

fn shape(tensor: &FlexTensor) -> Shape {
    tensor.layout().shape().clone()
}

/// A contiguous tensor that this call alone owns, so that its storage may be written.
fn owned(tensor: FlexTensor) -> FlexTensor {
    let mut owned = tensor.to_contiguous();
    // Often the same storage: without this handle it is not shared, and need not be copied.
    drop(tensor);
    let _ = owned.storage_mut::<f32>();
    owned
}

fn all_f32(tensors: &[&FlexTensor]) -> bool {
    tensors.iter().all(|t| t.dtype() == DType::F32)
}

/// Sizes of rows `[batch * length, width]` and their modulation `[batch, width]`.
fn sequences(operation: &str, rows: &FlexTensor, modulation: &FlexTensor) -> Sequences {
    let (rows, modulation) = (shape(rows), shape(modulation));
    ops::sequences(operation, [rows[0], rows[1]], [modulation[0], modulation[1]])
}

fn rows_affine([bias, gain, offset]: &[FlexTensor; 3]) -> Affine<'_> {
    Affine { bias: slice(bias), gain: slice(gain), offset: slice(offset) }
}

fn gated_shortcut<'a>(
    [base, state]: &'a [FlexTensor; 2],
    [weight, query]: &'a [FlexTensor; 2],
    eps: f64,
) -> kernels::gated_shortcut::Inputs<'a> {
    let [base, state, weight, query] = [base, state, weight, query].map(slice);
    kernels::gated_shortcut::Inputs { base, state, weight, query, eps: eps as f32 }
}

fn all_streams<'a>(
    weights: &'a FlexTensor,
    streams: &'a FlexTensor,
    added: Option<&'a FlexTensor>,
    n: usize,
) -> Streams<'a> {
    let two = |tensor: &FlexTensor| [shape(tensor)[0], shape(tensor)[1]];
    let sizes = ops::streams::shape(two(weights), two(streams), n, added.is_some());
    Streams {
        weights: slice(weights),
        streams: slice(streams),
        added: added.map(slice),
        n,
        width: sizes.width,
        targets: sizes.targets,
        shared: two(weights)[0] == 1,
    }
}

impl FusedOps for Flex {
    fn fused(dtype: DType) -> bool {
        dtype == DType::F32
    }

    fn mix(coefficients: FlexTensor, first: usize, base: FlexTensor, states: Vec<FlexTensor>) -> FlexTensor {
        if !all_f32(&[&coefficients, &base]) || !states.iter().all(|s| s.dtype() == DType::F32) {
            return ops::mix::composition::<Self>(coefficients, first, base, states);
        }
        let coefficients = coefficients.to_contiguous();
        let states: Vec<_> = states.into_iter().map(|s| s.to_contiguous()).collect();
        let states: Vec<_> = states.iter().map(slice).collect();
        let used = &slice(&coefficients)[first..first + states.len()];
        // In the place of a block's output, which as a rule nobody else holds.
        let mut total = owned(base);
        kernels::mix::forward(used, &states, total.storage_mut::<f32>());
        total
    }

    fn mix_backward(
        coefficients: FlexTensor,
        first: usize,
        states: Vec<FlexTensor>,
        upstream: FlexTensor,
        want_coefficients: bool,
        gradients: Vec<Option<Option<FlexTensor>>>,
    ) -> (Option<FlexTensor>, Vec<Option<FlexTensor>>) {
        if !all_f32(&[&coefficients, &upstream]) || !states.iter().all(|s| s.dtype() == DType::F32) {
            return ops::mix::composition_backward::<Self>(
                coefficients,
                first,
                states,
                upstream,
                want_coefficients,
                gradients,
            );
        }
        let (coefficients, upstream) = (coefficients.to_contiguous(), upstream.to_contiguous());
        let states: Vec<_> = states.into_iter().map(|s| s.to_contiguous()).collect();
        let mut sums: Vec<(Option<FlexTensor>, bool)> = gradients
            .into_iter()
            .map(|wanted| match wanted {
                Some(Some(sum)) => (Some(owned(sum)), true),
                Some(None) => (Some(FlexTensor::empty(shape(&upstream), DType::F32)), false),
                None => (None, false),
            })
            .collect();
        let parts = states
            .iter()
            .zip(&mut sums)
            .map(|(state, (gradient, add))| StateGradient {
                state: want_coefficients.then(|| slice(state)),
                gradient: gradient.as_mut().map(|g| g.storage_mut::<f32>()),
                add: *add,
            })
            .collect();
        let used = &slice(&coefficients)[first..first + states.len()];
        let dots = kernels::mix::backward(used, slice(&upstream), parts);
        let coefficient_gradient = want_coefficients.then(|| {
            let mut all = vec![0.0; slice(&coefficients).len()];
            all[first..first + dots.len()].copy_from_slice(&dots);
            tensor(all, shape(&coefficients))
        });
        (coefficient_gradient, sums.into_iter().map(|(sum, _)| sum).collect())
    }

    fn gather(
        coefficients: FlexTensor,
        indices: &[usize],
        upstream: Option<FlexTensor>,
        gradients: Vec<FlexTensor>,
        state: Option<FlexTensor>,
    ) -> (Option<FlexTensor>, FlexTensor) {
        let floats = [Some(&coefficients), upstream.as_ref(), state.as_ref()].into_iter().flatten().chain(&gradients);
        if !floats.into_iter().all(|t| t.dtype() == DType::F32) {
            return ops::mix::composition_gather::<Self>(coefficients, indices, upstream, gradients, state);
        }
        let coefficients = coefficients.to_contiguous();
        let used: Vec<f32> = indices.iter().map(|&i| slice(&coefficients)[i]).collect();
        let gradients: Vec<_> = gradients.into_iter().map(|g| g.to_contiguous()).collect();
        let later: Vec<_> = gradients.iter().map(slice).collect();
        let state = state.map(|state| state.to_contiguous());
        let add = upstream.is_some();
        let mut total = match upstream {
            Some(upstream) => owned(upstream),
            None => FlexTensor::empty(shape(&gradients[0]), DType::F32),
        };
        let dots = kernels::mix::gather(&used, &later, state.as_ref().map(slice), total.storage_mut::<f32>(), add);
        let coefficient_gradient = state.is_some().then(|| {
            let mut all = vec![0.0; slice(&coefficients).len()];
            indices.iter().zip(dots).for_each(|(&i, dot)| all[i] += dot);
            tensor(all, shape(&coefficients))
        });
        (coefficient_gradient, total)
    }

    fn rms_norm(input: FlexTensor, weight: FlexTensor, eps: f64) -> FlexTensor {
        if !all_f32(&[&input, &weight]) {
            return ops::rms_norm::composition::<Self>(input, weight, eps);
        }
        let (input, weight) = (input.to_contiguous(), weight.to_contiguous());
        let mut output = vec![0.0; slice(&input).len()];
        kernels::rms_norm::forward(slice(&input), slice(&weight), eps as f32, &mut output);
        tensor(output, shape(&input))
    }

    fn rms_norm_backward(
        input: FlexTensor,
        weight: FlexTensor,
        upstream: FlexTensor,
        eps: f64,
    ) -> (FlexTensor, FlexTensor) {
        let (input, weight, upstream) = (input.to_contiguous(), weight.to_contiguous(), upstream.to_contiguous());
        let mut dx = vec![0.0; slice(&input).len()];
        let dw = kernels::rms_norm::backward(slice(&input), slice(&weight), slice(&upstream), eps as f32, &mut dx);
        (tensor(dx, shape(&input)), tensor(dw, shape(&weight)))
    }

    fn swiglu(gate: FlexTensor, up: FlexTensor) -> FlexTensor {
        if !all_f32(&[&gate, &up]) {
            return ops::swiglu::composition::<Self>(gate, up);
        }
        let (gate, up) = (gate.to_contiguous(), up.to_contiguous());
        let mut output = vec![0.0; slice(&gate).len()];
        kernels::swiglu::forward(slice(&gate), slice(&up), &mut output);
        tensor(output, shape(&gate))
    }

    fn swiglu_backward(gate: FlexTensor, up: FlexTensor, upstream: FlexTensor) -> (FlexTensor, FlexTensor) {
        let (gate, up, upstream) = (gate.to_contiguous(), up.to_contiguous(), upstream.to_contiguous());
        let n = slice(&gate).len();
        let (mut dgate, mut dup) = (vec![0.0; n], vec![0.0; n]);
        kernels::swiglu::backward(slice(&gate), slice(&up), slice(&upstream), &mut dgate, &mut dup);
        (tensor(dgate, shape(&gate)), tensor(dup, shape(&gate)))
    }

    fn causal_attention(
        queries: FlexTensor,
        keys: FlexTensor,
        values: FlexTensor,
        table: FlexTensor,
        sizes: AttentionShape,
    ) -> (FlexTensor, Option<FlexTensor>) {
        if !all_f32(&[&queries, &keys, &values, &table]) {
            return (ops::attention::composition::<Self>(queries, keys, values, table, sizes), None);
        }
        let (q, k, v) = (queries.to_contiguous(), keys.to_contiguous(), values.to_contiguous());
        let table = table.to_contiguous();
        let (cos, sin) = slice(&table).split_at(slice(&table).len() / 2);
        let mut output = vec![0.0; slice(&q).len()];
        let mut log_sums = vec![0.0; sizes.batch * sizes.heads * sizes.length];
        kernels::attention::forward(slice(&q), slice(&k), slice(&v), cos, sin, sizes, &mut output, &mut log_sums);
        let rows = log_sums.len();
        (tensor(output, shape(&q)), Some(tensor(log_sums, Shape::new([rows]))))
    }

    fn causal_attention_backward(
        [q, k, v]: [FlexTensor; 3],
        table: FlexTensor,
        log_sums: FlexTensor,
        upstream: FlexTensor,
        sizes: AttentionShape,
    ) -> [FlexTensor; 3] {
        let (q, k, v) = (q.to_contiguous(), k.to_contiguous(), v.to_contiguous());
        let (table, upstream) = (table.to_contiguous(), upstream.to_contiguous());
        let (cos, sin) = slice(&table).split_at(slice(&table).len() / 2);
        let n = slice(&q).len();
        let (mut dq, mut dk, mut dv) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        kernels::attention::backward(
            (slice(&q), slice(&k), slice(&v)),
            (cos, sin),
            slice(&log_sums),
            slice(&upstream),
            sizes,
            &mut dq,
            &mut dk,
            &mut dv,
        );
        [dq, dk, dv].map(|gradient| tensor(gradient, shape(&q)))
    }

    fn self_attention(packed: FlexTensor, sizes: AttentionShape) -> (FlexTensor, Option<FlexTensor>) {
        if !all_f32(&[&packed]) {
            return (ops::self_attention::composition::<Self>(packed, sizes), None);
        }
        let packed = packed.to_contiguous();
        let [rows, width] = [sizes.batch * sizes.length, sizes.heads * sizes.head_size];
        let mut output = vec![0.0; rows * width];
        let mut log_sums = vec![0.0; rows * sizes.heads];
        kernels::self_attention::forward(slice(&packed), sizes, &mut output, &mut log_sums);
        let log_sums = tensor(log_sums, Shape::new([rows * sizes.heads]));
        (tensor(output, Shape::new([rows, width])), Some(log_sums))
    }

    fn self_attention_backward(
        packed: FlexTensor,
        log_sums: FlexTensor,
        upstream: FlexTensor,
        sizes: AttentionShape,
    ) -> FlexTensor {
        let (packed, upstream) = (packed.to_contiguous(), upstream.to_contiguous());
        let mut gradient = vec![0.0; slice(&packed).len()];
        kernels::self_attention::backward(slice(&packed), slice(&log_sums), slice(&upstream), sizes, &mut gradient);
        tensor(gradient, shape(&packed))
    }

    fn modulated_layer_norm(input: FlexTensor, shift: FlexTensor, scale: FlexTensor, eps: f64) -> FlexTensor {
        if !all_f32(&[&input, &shift, &scale]) {
            return ops::modulated_layer_norm::composition::<Self>(input, shift, scale, eps);
        }
        let sizes = sequences("modulated_layer_norm", &input, &scale);
        let (input, shift, scale) = (input.to_contiguous(), shift.to_contiguous(), scale.to_contiguous());
        let mut output = vec![0.0; slice(&input).len()];
        kernels::modulated_layer_norm::forward(
            slice(&input),
            slice(&shift),
            slice(&scale),
            sizes,
            eps as f32,
            &mut output,
        );
        tensor(output, shape(&input))
    }

    fn modulated_layer_norm_backward(
        input: FlexTensor,
        scale: FlexTensor,
        upstream: FlexTensor,
        eps: f64,
    ) -> [FlexTensor; 3] {
        let sizes = sequences("modulated_layer_norm", &input, &scale);
        let (input, scale, upstream) = (input.to_contiguous(), scale.to_contiguous(), upstream.to_contiguous());
        let mut dx = vec![0.0; slice(&input).len()];
        let (mut dshift, mut dscale) = (vec![0.0; slice(&scale).len()], vec![0.0; slice(&scale).len()]);
        kernels::modulated_layer_norm::backward(
            slice(&input),
            slice(&scale),
            slice(&upstream),
            sizes,
            eps as f32,
            &mut dx,
            &mut dshift,
            &mut dscale,
        );
        [tensor(dx, shape(&input)), tensor(dshift, shape(&scale)), tensor(dscale, shape(&scale))]
    }

    fn gated_add(x: FlexTensor, gate: FlexTensor, branch: FlexTensor) -> FlexTensor {
        if !all_f32(&[&x, &gate, &branch]) {
            return ops::gated_add::composition::<Self>(x, gate, branch);
        }
        let sizes = sequences("gated_add", &x, &gate);
        let (gate, branch) = (gate.to_contiguous(), branch.to_contiguous());
        let mut x = owned(x);
        kernels::gated_add::forward(x.storage_mut(), slice(&gate), slice(&branch), sizes);
        x
    }

    fn gated_add_backward(gate: FlexTensor, branch: FlexTensor, upstream: FlexTensor) -> (FlexTensor, FlexTensor) {
        let sizes = sequences("gated_add", &branch, &gate);
        let (gate, branch, upstream) = (gate.to_contiguous(), branch.to_contiguous(), upstream.to_contiguous());
        let (mut dgate, mut dbranch) = (vec![0.0; slice(&gate).len()], vec![0.0; slice(&branch).len()]);
        kernels::gated_add::backward(slice(&gate), slice(&branch), slice(&upstream), sizes, &mut dgate, &mut dbranch);
        (tensor(dgate, shape(&gate)), tensor(dbranch, shape(&branch)))
    }

    fn add_bias(x: FlexTensor, bias: FlexTensor) -> FlexTensor {
        if !all_f32(&[&x, &bias]) {
            return ops::bias::add_composition::<Self>(x, bias);
        }
        let bias = bias.to_contiguous();
        let mut x = owned(x);
        kernels::bias::add(x.storage_mut(), slice(&bias));
        x
    }

    fn add_bias_backward(upstream: FlexTensor) -> FlexTensor {
        let upstream = upstream.to_contiguous();
        let width = shape(&upstream)[1];
        tensor(kernels::bias::column_sums(slice(&upstream), width), Shape::new([width]))
    }

    fn bias_gelu(x: FlexTensor, bias: FlexTensor) -> FlexTensor {
        if !all_f32(&[&x, &bias]) {
            return ops::bias::gelu_composition::<Self>(x, bias);
        }
        let bias = bias.to_contiguous();
        let mut x = owned(x);
        kernels::bias::add_gelu(x.storage_mut(), slice(&bias));
        x
    }

    fn bias_gelu_with_derivative(x: FlexTensor, bias: FlexTensor) -> (FlexTensor, FlexTensor) {
        let bias = bias.to_contiguous();
        let mut x = owned(x);
        let mut output = vec![0.0; slice(&x).len()];
        kernels::bias::add_gelu_with_derivative(x.storage_mut(), slice(&bias), &mut output);
        (tensor(output, shape(&x)), x)
    }

    fn bias_gelu_backward(derivative: FlexTensor, upstream: FlexTensor) -> (FlexTensor, FlexTensor) {
        let upstream = upstream.to_contiguous();
        let width = shape(&upstream)[1];
        let mut derivative = owned(derivative);
        let dbias = kernels::bias::add_gelu_backward(derivative.storage_mut(), slice(&upstream), width);
        (derivative, tensor(dbias, Shape::new([width])))
    }

    fn bias_norm_swish(x: FlexTensor, affine: [FlexTensor; 3], eps: f64) -> FlexTensor {
        let [bias, gain, offset] = &affine;
        if !all_f32(&[&x, bias, gain, offset]) {
            return ops::bias_norm_swish::composition::<Self>(x, affine, eps);
        }
        let (x, affine) = (x.to_contiguous(), affine.map(|t| t.to_contiguous()));
        let mut output = vec![0.0; slice(&x).len()];
        kernels::bias_norm_swish::forward(slice(&x), rows_affine(&affine), eps as f32, &mut output);
        tensor(output, shape(&x))
    }

    fn bias_norm_swish_backward(
        x: FlexTensor,
        affine: [FlexTensor; 3],
        upstream: FlexTensor,
        eps: f64,
    ) -> [FlexTensor; 4] {
        let (x, affine, upstream) = (x.to_contiguous(), affine.map(|t| t.to_contiguous()), upstream.to_contiguous());
        let mut dx = vec![0.0; slice(&x).len()];
        let [dbias, dgain, doffset] =
            kernels::bias_norm_swish::backward(slice(&x), rows_affine(&affine), slice(&upstream), eps as f32, &mut dx)
                .map(|gradient| tensor(gradient, shape(&affine[0])));
        [tensor(dx, shape(&x)), dbias, dgain, doffset]
    }

    fn gated_shortcut(rows: [FlexTensor; 2], parameters: [FlexTensor; 2], eps: f64) -> FlexTensor {
        let ([base, state], [weight, query]) = (&rows, &parameters);
        if !all_f32(&[base, state, weight, query]) {
            return ops::gated_shortcut::composition::<Self>(rows, parameters, eps);
        }
        let (rows, parameters) = (rows.map(|t| t.to_contiguous()), parameters.map(|t| t.to_contiguous()));
        let mut output = vec![0.0; slice(&rows[0]).len()];
        kernels::gated_shortcut::forward(gated_shortcut(&rows, &parameters, eps), &mut output);
        tensor(output, shape(&rows[0]))
    }

    fn gated_shortcut_backward(
        rows: [FlexTensor; 2],
        parameters: [FlexTensor; 2],
        upstream: FlexTensor,
        eps: f64,
    ) -> [FlexTensor; 4] {
        let (rows, parameters) = (rows.map(|t| t.to_contiguous()), parameters.map(|t| t.to_contiguous()));
        let upstream = upstream.to_contiguous();
        let [mut db, mut ds] = [(); 2].map(|()| vec![0.0; slice(&rows[0]).len()]);
        let inputs = gated_shortcut(&rows, &parameters, eps);
        let [dw, dq] = kernels::gated_shortcut::backward(inputs, slice(&upstream), &mut db, &mut ds);
        let [sizes, width] = [shape(&rows[0]), shape(&parameters[0])];
        [tensor(db, sizes.clone()), tensor(ds, sizes), tensor(dw, width.clone()), tensor(dq, width)]
    }

    fn pairwise_distances(left: FlexTensor, right: FlexTensor) -> FlexTensor {
        if !all_f32(&[&left, &right]) {
            return ops::distances::composition::<Self>(left, right);
        }
        let (left, right) = (left.to_contiguous(), right.to_contiguous());
        let sizes = Shape::new([shape(&left)[0], shape(&right)[0]]);
        let mut output = vec![0.0; sizes.num_elements()];
        kernels::distances::forward(slice(&left), slice(&right), shape(&left)[1], &mut output);
        tensor(output, sizes)
    }

    fn pairwise_distances_backward(
        [left, right, distances]: [FlexTensor; 3],
        upstream: FlexTensor,
        wanted: [bool; 2],
    ) -> [Option<FlexTensor>; 2] {
        let (left, right) = (left.to_contiguous(), right.to_contiguous());
        let (distances, upstream) = (distances.to_contiguous(), upstream.to_contiguous());
        let width = shape(&left)[1];
        let gradient = |of: &FlexTensor, other: &FlexTensor, transposed: bool| {
            let mut gradient = vec![0.0; slice(of).len()];
            let pairs = (slice(&distances), slice(&upstream), transposed);
            kernels::distances::backward(slice(of), slice(other), width, pairs, &mut gradient);
            tensor(gradient, shape(of))
        };
        [wanted[0].then(|| gradient(&left, &right, false)), wanted[1].then(|| gradient(&right, &left, true))]
    }

    fn mix_streams(weights: FlexTensor, streams: FlexTensor, added: Option<FlexTensor>, n: usize) -> FlexTensor {
        if !all_f32(&[&weights, &streams]) || !added.iter().all(|added| added.dtype() == DType::F32) {
            return ops::streams::composition::<Self>(weights, streams, added, n);
        }
        let [weights, streams] = [weights, streams].map(|t| t.to_contiguous());
        let added = added.map(|added| added.to_contiguous());
        let all = all_streams(&weights, &streams, added.as_ref(), n);
        let (rows, columns) = (shape(&streams)[0], all.targets * all.width);
        let mut output = vec![0.0; rows * columns];
        kernels::streams::forward(all, &mut output);
        tensor(output, Shape::new([rows, columns]))
    }

    fn mix_streams_backward(
        weights: FlexTensor,
        streams: FlexTensor,
        added: Option<FlexTensor>,
        upstream: FlexTensor,
        n: usize,
    ) -> (FlexTensor, FlexTensor, Option<FlexTensor>) {
        let [weights, streams, upstream] = [weights, streams, upstream].map(|t| t.to_contiguous());
        let added = added.map(|added| added.to_contiguous());
        let all = all_streams(&weights, &streams, added.as_ref(), n);
        let (rows, columns) = (shape(&streams)[0], shape(&weights)[1]);
        let (mut dw, mut dx) = (vec![0.0; rows * columns], vec![0.0; slice(&streams).len()]);
        let mut da = added.as_ref().map(|added| vec![0.0; slice(added).len()]);
        let gradients = kernels::streams::Gradients { weights: &mut dw, streams: &mut dx, added: da.as_deref_mut() };
        kernels::streams::backward(all, slice(&upstream), gradients);
        if all.shared {
            dw = kernels::bias::column_sums(&dw, columns);
        }
        let da = da.zip(added.as_ref()).map(|(values, added)| tensor(values, shape(added)));
        (tensor(dw, shape(&weights)), tensor(dx, shape(&streams)), da)
    }

    fn sinkhorn(logits: FlexTensor, n: usize, rounds: usize) -> FlexTensor {
        if !all_f32(&[&logits]) {
            return ops::sinkhorn::composition::<Self>(logits, n, rounds);
        }
        let logits = logits.to_contiguous();
        let mut output = vec![0.0; slice(&logits).len()];
        kernels::sinkhorn::forward(slice(&logits), n, rounds, &mut output);
        tensor(output, shape(&logits))
    }

    fn sinkhorn_backward(logits: FlexTensor, upstream: FlexTensor, n: usize, rounds: usize) -> FlexTensor {
        let (logits, upstream) = (logits.to_contiguous(), upstream.to_contiguous());
        let mut gradient = vec![0.0; slice(&logits).len()];
        kernels::sinkhorn::backward(slice(&logits), slice(&upstream), n, rounds, &mut gradient);
        tensor(gradient, shape(&logits))
    }

    fn residual_block(x: FlexTensor, parameters: FlexTensor, eps: f64) -> FlexTensor {
        if !all_f32(&[&x, &parameters]) {
            return ops::residual_block::composition::<Self>(x, parameters, eps);
        }
        let (x, parameters) = (x.to_contiguous(), parameters.to_contiguous());
        let mut output = vec![0.0; slice(&x).len()];
        let block = ops::residual_block::shape::<Self>(&parameters);
        kernels::residual_block::forward(block, slice(&x), slice(&parameters), eps as f32, None, &mut output);
        tensor(output, shape(&x))
    }

    fn residual_block_keeping(x: FlexTensor, parameters: FlexTensor, eps: f64) -> (FlexTensor, FlexTensor) {
        let (x, parameters) = (x.to_contiguous(), parameters.to_contiguous());
        let block = ops::residual_block::shape::<Self>(&parameters);
        let rows = shape(&x)[0];
        let mut saved = vec![0.0; rows * block.saved_len()];
        let mut output = vec![0.0; slice(&x).len()];
        let keep = Some(&mut saved[..]);
        kernels::residual_block::forward(block, slice(&x), slice(&parameters), eps as f32, keep, &mut output);
        (tensor(output, shape(&x)), tensor(saved, Shape::new([rows, block.saved_len()])))
    }

    fn residual_block_backward(
        [x, parameters, saved]: [FlexTensor; 3],
        upstream: FlexTensor,
        wanted: [bool; 2],
    ) -> [Option<FlexTensor>; 2] {
        let (x, parameters, upstream) = (x.to_contiguous(), parameters.to_contiguous(), upstream.to_contiguous());
        let block = ops::residual_block::shape::<Self>(&parameters);
        let seen = Seen { input: slice(&x), parameters: slice(&parameters), saved: slice(&saved) };
        let mut gradients =
            [(wanted[0], &x), (wanted[1], &parameters)].map(|(wanted, of)| wanted.then(|| vec![0.0; slice(of).len()]));
        let [dx, dp] = &mut gradients;
        kernels::residual_block::backward(block, seen, slice(&upstream), dx.as_deref_mut(), dp.as_deref_mut());
        let [dx, dp] = gradients;
        [dx.map(|values| tensor(values, shape(&x))), dp.map(|values| tensor(values, shape(&parameters)))]
    }

    fn cross_entropy(logits: FlexTensor, targets: FlexTensor) -> FlexTensor {
        if !all_f32(&[&logits]) {
            return ops::cross_entropy::composition::<Self>(logits, targets);
        }
        let logits = logits.to_contiguous();
        let classes = shape(&logits)[1];
        let loss = kernels::cross_entropy::forward(slice(&logits), &indices(targets), classes, IGNORE_TARGET, None);
        tensor(vec![loss], Shape::new([1]))
    }

    fn cross_entropy_with_gradient(logits: FlexTensor, targets: FlexTensor) -> (FlexTensor, FlexTensor) {
        let logits = logits.to_contiguous();
        let classes = shape(&logits)[1];
        let mut gradient = vec![0.0; slice(&logits).len()];
        let loss = kernels::cross_entropy::forward(
            slice(&logits),
            &indices(targets),
            classes,
            IGNORE_TARGET,
            Some(&mut gradient),
        );
        (tensor(vec![loss], Shape::new([1])), tensor(gradient, shape(&logits)))
    }

    fn adamw(
        parameter: FlexTensor,
        gradient: FlexTensor,
        first: FlexTensor,
        second: FlexTensor,
        step: &AdamWStep,
    ) -> [FlexTensor; 3] {
        if !all_f32(&[&parameter, &gradient, &first, &second]) {
            return ops::adamw::composition::<Self>(parameter, gradient, first, second, step);
        }
        let gradient = gradient.to_contiguous();
        let (mut p, mut m, mut v) = (owned(parameter), owned(first), owned(second));
        kernels::adamw::step(p.storage_mut(), slice(&gradient), m.storage_mut(), v.storage_mut(), step.coefficients());
        [p, m, v]
    }
}

/// Integer tensor of any width as `i64`s.
fn indices(tensor: FlexTensor) -> Vec<i64> {
    tensor.to_contiguous().into_data().iter::<i64>().collect()
}
