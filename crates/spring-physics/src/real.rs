//! The types that physics is computed in.

use std::fmt::Debug;

use pulp::{Arch, Simd, WithSimd};

use crate::{
    lanes::{F32s, F64s},
    step::{Steps, run},
};

/// `f32` or `f64`: what a simulation is computed in.
pub trait Real: sealed::Sealed + Copy + Debug + Default + PartialEq + PartialOrd + Send + Sync + 'static {
    /// The nearest number of this type.
    fn from_f64(value: f64) -> Self;

    /// The same number in double precision.
    fn to_f64(self) -> f64;
}

impl Real for f32 {
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value as Self
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
}

mod sealed {
    use super::Steps;

    /// Runs steps with the instructions of a CPU; a part of [`Real`](super::Real) that others cannot call.
    pub trait Sealed: Sized {
        fn run(arch: pulp::Arch, steps: Steps<'_, Self>);
    }
}

pub(crate) use sealed::Sealed;

impl Sealed for f32 {
    fn run(arch: Arch, steps: Steps<'_, Self>) {
        arch.dispatch(steps);
    }
}

impl Sealed for f64 {
    fn run(arch: Arch, steps: Steps<'_, Self>) {
        arch.dispatch(steps);
    }
}

impl WithSimd for Steps<'_, f32> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        run::<F32s<S>>(simd, self);
    }
}

impl WithSimd for Steps<'_, f64> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        run::<F64s<S>>(simd, self);
    }
}
