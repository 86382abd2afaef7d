//! The gradients of a step as a whole: norm, clipping, accumulation.
//!
//! The functions walk a module in the order of its fields, so that sums are taken in the same order in every run, and
//! they read each gradient once. A norm waits for the device once, however many parameters there are.

use std::any::Any;

use burn::{
    backend::flex::FlexTensor,
    module::{AutodiffModule, ModuleVisitor, Param},
    optim::GradientsParams,
    tensor::{
        DType, ElementConversion, Tensor, TensorPrimitive,
        backend::{AutodiffBackend, Backend},
    },
};

use crate::parameters::{PathTracker, track_path};

/// The L2 norm over all gradients, summed in `f64` where they can be read in place (on the CPU).
///
/// ```
/// use burn::{backend::{Autodiff, Flex}, nn::LinearConfig, optim::GradientsParams, tensor::Tensor};
/// use training::gradients::{clip_by_global_norm, global_norm};
/// type B = Autodiff<Flex>;
/// let device = Default::default();
/// let linear = LinearConfig::new(2, 1).with_bias(false).init::<B>(&device);
/// let loss = linear.forward(Tensor::<B, 2>::from_floats([[3.0, 4.0]], &device)).sum();
/// let gradients = GradientsParams::from_grads(loss.backward(), &linear);
/// assert_eq!(global_norm(&linear, &gradients), 5.0);
/// let (gradients, before) = clip_by_global_norm(&linear, gradients, 1.0);
/// assert_eq!(before, 5.0);
/// assert!((global_norm(&linear, &gradients) - 1.0).abs() < 1e-6);
/// ```
pub fn global_norm<B: AutodiffBackend, M: AutodiffModule<B>>(module: &M, gradients: &GradientsParams) -> f64 {
    norm_where(module, gradients, |_| true)
}

/// The L2 norm over the gradients of the parameters whose names are selected.
pub fn norm_where<B: AutodiffBackend, M: AutodiffModule<B>>(
    module: &M,
    gradients: &GradientsParams,
    select: impl Fn(&str) -> bool,
) -> f64 {
    let mut visitor = Squares { path: PathTracker::default(), gradients, select, host: 0.0, device: Vec::new() };
    module.visit(&mut visitor);
    let Squares { host, device, .. } = visitor;
    let device: f64 = match device.is_empty() {
        true => 0.0,
        false => Tensor::cat(device, 0).into_data().iter::<f64>().sum(),
    };
    (host + device).sqrt()
}

struct Squares<'a, I: Backend, F> {
    path: PathTracker,
    gradients: &'a GradientsParams,
    select: F,
    /// The sum of squares so far, of tensors that lie in main memory.
    host: f64,
    /// One sum of squares for each other tensor, still on the device.
    device: Vec<Tensor<I, 1>>,
}

impl<B: AutodiffBackend, F: Fn(&str) -> bool> ModuleVisitor<B> for Squares<'_, B::InnerBackend, F> {
    track_path!();

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        if !(self.select)(&self.path.name()) {
            return;
        }
        let Some(gradient) = self.gradients.get::<B::InnerBackend, D>(param.id) else { return };
        match host_sum_of_squares(&gradient) {
            Some(sum) => self.host += sum,
            // Squares of small half-precision numbers would vanish.
            None if matches!(gradient.dtype(), DType::F16 | DType::BF16) => {
                self.device.push(gradient.cast(DType::F32).square().sum());
            }
            None => self.device.push(gradient.square().sum()),
        }
    }
}

/// The sum of squares of a tensor of the CPU backend, without a copy of it.
fn host_sum_of_squares<I: Backend, const D: usize>(tensor: &Tensor<I, D>) -> Option<f64> {
    let TensorPrimitive::Float(primitive) = tensor.clone().into_primitive() else { return None };
    let tensor = (&primitive as &dyn Any).downcast_ref::<FlexTensor>()?.to_contiguous();
    match tensor.dtype() {
        DType::F32 => tensor.as_slice::<f32>().map(|values| sum_of_squares(values, |value| f64::from(*value))),
        DType::F64 => tensor.as_slice::<f64>().map(|values| sum_of_squares(values, |value| *value)),
        _ => None,
    }
}

/// A sum in a fixed order: eight running sums, so that the processor need not wait for one addition after another.
fn sum_of_squares<T>(values: &[T], to_f64: impl Fn(&T) -> f64) -> f64 {
    let mut sums = [0.0; 8];
    for chunk in values.chunks(8) {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            let value = to_f64(value);
            *sum += value * value;
        }
    }
    sums.iter().sum()
}

/// PyTorch's factor for gradients of this norm: `min(1, max / (norm + 1e-6))`.
///
/// A norm just above `max` is scaled to slightly below it.
pub fn clip_factor(norm: f64, max: f64) -> f64 {
    (max / (norm + 1e-6)).min(1.0)
}

/// Scales all gradients by [`clip_factor`], and returns the norm before.
pub fn clip_by_global_norm<B: AutodiffBackend, M: AutodiffModule<B>>(
    module: &M,
    gradients: GradientsParams,
    max: f64,
) -> (GradientsParams, f64) {
    let norm = global_norm(module, &gradients);
    (scale(module, gradients, clip_factor(norm, max)), norm)
}

/// Multiplies all gradients, in place where the backend can.
pub fn scale<B: AutodiffBackend, M: AutodiffModule<B>>(
    module: &M,
    mut gradients: GradientsParams,
    factor: f64,
) -> GradientsParams {
    struct Scale<'a> {
        gradients: &'a mut GradientsParams,
        factor: f64,
    }
    impl<B: AutodiffBackend> ModuleVisitor<B> for Scale<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
            if let Some(gradient) = self.gradients.remove::<B::InnerBackend, D>(param.id) {
                self.gradients.register(param.id, gradient.mul_scalar(self.factor));
            }
        }
    }
    if factor != 1.0 {
        module.visit(&mut Scale { gradients: &mut gradients, factor });
    }
    gradients
}

/// Adds the gradients of a further micro-batch to the sum so far. Both are expected to carry their weight already.
pub fn accumulate<B: AutodiffBackend, M: AutodiffModule<B>>(
    module: &M,
    mut sum: GradientsParams,
    more: GradientsParams,
) -> GradientsParams {
    struct Accumulate<'a> {
        sum: &'a mut GradientsParams,
        more: GradientsParams,
    }
    impl<B: AutodiffBackend> ModuleVisitor<B> for Accumulate<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
            let Some(more) = self.more.remove::<B::InnerBackend, D>(param.id) else { return };
            let sum = match self.sum.remove::<B::InnerBackend, D>(param.id) {
                Some(sum) => sum + more,
                None => more,
            };
            self.sum.register(param.id, sum);
        }
    }
    if sum.is_empty() {
        return more;
    }
    module.visit(&mut Accumulate { sum: &mut sum, more });
    sum
}

/// The names of the parameters whose gradients are not finite throughout. [`global_norm`] is finite if there is none, so
/// this is only needed to say which.
pub fn non_finite<B: AutodiffBackend, M: AutodiffModule<B>>(module: &M, gradients: &GradientsParams) -> Vec<String> {
    struct NonFinite<'a> {
        path: PathTracker,
        gradients: &'a GradientsParams,
        names: Vec<String>,
    }
    impl<B: AutodiffBackend> ModuleVisitor<B> for NonFinite<'_> {
        track_path!();

        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
            let Some(gradient) = self.gradients.get::<B::InnerBackend, D>(param.id) else { return };
            if !gradient.is_finite().all().into_scalar().elem::<bool>() {
                self.names.push(self.path.name());
            }
        }
    }
    let mut visitor = NonFinite { path: PathTracker::default(), gradients, names: Vec::new() };
    module.visit(&mut visitor);
    visitor.names
}

#[cfg(test)]
mod tests {
    use burn::{
        backend::{Autodiff, Flex},
        module::Module,
        tensor::TensorData,
    };
    use proptest::prelude::*;

    use super::*;

    type B = Autodiff<Flex>;

    #[derive(Module, Debug)]
    struct Two<B: Backend> {
        matrix: Param<Tensor<B, 2>>,
        vector: Param<Tensor<B, 1>>,
    }

    fn two() -> Two<B> {
        let device = Default::default();
        Two {
            matrix: Param::from_tensor(Tensor::zeros([2, 3], &device)),
            vector: Param::from_tensor(Tensor::zeros([19], &device)),
        }
    }

    fn filled(module: &Two<B>, matrix: &[f32], vector: &[f32]) -> GradientsParams {
        let device = Default::default();
        let mut gradients = GradientsParams::new();
        let data = TensorData::new(matrix.to_vec(), [3, 2]);
        // A transposed view, as some backward passes give.
        gradients.register(module.matrix.id, Tensor::<Flex, 2>::from_data(data, &device).transpose());
        let data = TensorData::new(vector.to_vec(), [19]);
        gradients.register(module.vector.id, Tensor::<Flex, 1>::from_data(data, &device));
        gradients
    }

    fn finite() -> impl Strategy<Value = (Vec<f32>, Vec<f32>)> {
        (prop::collection::vec(-1e15..1e15f32, 6), prop::collection::vec(-1e-3..1e3f32, 19))
    }

    proptest! {
        #[test]
        fn the_norm_is_that_of_all_numbers((matrix, vector) in finite()) {
            let module = two();
            let gradients = filled(&module, &matrix, &vector);
            let norm = |values: &[f32]| values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
            let found = global_norm(&module, &gradients);
            let all = norm(&[matrix.clone(), vector.clone()].concat());
            prop_assert!((found - all).abs() <= 1e-14 * all, "{found} {all}");
            let part = norm_where(&module, &gradients, |name| name == "vector");
            prop_assert!((part - norm(&vector)).abs() <= 1e-14 * part);
            prop_assert_eq!(non_finite(&module, &gradients), Vec::<String>::new());
        }

        #[test]
        fn clipping_keeps_the_direction_and_bounds_the_norm((matrix, vector) in finite(), max in 1e-3..1e16f64) {
            let module = two();
            let (clipped, before) = clip_by_global_norm(&module, filled(&module, &matrix, &vector), max);
            let factor = clip_factor(before, max);
            prop_assert!(global_norm(&module, &clipped) <= max * (1.0 + 1e-6));
            let values = clipped.get::<Flex, 1>(module.vector.id).unwrap().into_data().to_vec::<f32>().unwrap();
            for (found, value) in values.iter().zip(&vector) {
                let expected = f64::from(*value) * factor;
                prop_assert!((f64::from(*found) - expected).abs() <= 1e-6 * expected.abs() + f64::from(f32::MIN_POSITIVE));
            }
        }
    }

    #[test]
    fn a_gradient_that_is_not_finite_shows_in_the_norm_and_is_named() {
        let module = two();
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut vector = [1.0; 19];
            vector[18] = bad;
            let gradients = filled(&module, &[1.0; 6], &vector);
            assert!(!global_norm(&module, &gradients).is_finite());
            assert_eq!(non_finite(&module, &gradients), ["vector"]);
        }
        // Squares that overflow f32 do not: they are taken in f64.
        assert!(global_norm(&module, &filled(&module, &[1e30; 6], &[0.0; 19])).is_finite());
    }

    #[test]
    fn sums_hold_what_either_side_has() {
        let module = two();
        let mut only_matrix = filled(&module, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[0.0; 19]);
        only_matrix.remove::<Flex, 1>(module.vector.id);
        let both = filled(&module, &[10.0; 6], &[1.0; 19]);
        let sum = accumulate(&module, GradientsParams::new(), only_matrix);
        let sum = accumulate(&module, sum, both);
        let matrix = sum.get::<Flex, 2>(module.matrix.id).unwrap().transpose().into_data().to_vec::<f32>().unwrap();
        assert_eq!(matrix, [11.0, 12.0, 13.0, 14.0, 15.0, 16.0]);
        assert_eq!(sum.get::<Flex, 1>(module.vector.id).unwrap().sum().into_scalar(), 19.0);
    }

    #[test]
    fn half_precision_gradients_have_a_norm() {
        let module = two();
        let small = Tensor::<Flex, 1>::full([19], 1e-5, &Default::default()).cast(DType::F16);
        let mut gradients = GradientsParams::new();
        gradients.register(module.vector.id, small);
        let norm = global_norm(&module, &gradients);
        assert!((norm / (19f64.sqrt() * 1e-5) - 1.0).abs() < 0.01, "{norm}");
    }
}
