//! Numbers of several environments side by side: one register of the CPU, with the operators of a number.
//!
//! The token of [`pulp`] that proves which instructions the CPU has travels inside every value, so that arithmetic
//! reads like arithmetic. Everything here is inlined into the one function that is compiled for each set of
//! instructions. Nothing is fused, so that results have the same bits with all of them.

use std::ops::{Add, Div, Mul, Neg, Sub};

use pulp::Simd;

use crate::real::Real;

/// One number of each environment in a register.
pub(crate) trait Lanes:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + Mul<Self::Real, Output = Self>
{
    type Real: Real;
    type Token: Copy;
    type Mask: Copy;
    /// Environments in a register.
    const WIDTH: usize;

    fn splat(token: Self::Token, value: Self::Real) -> Self;
    fn load(token: Self::Token, from: &[Self::Real]) -> Self;
    fn store(self, to: &mut [Self::Real]);
    fn token(self) -> Self::Token;
    fn sqrt(self) -> Self;
    fn abs(self) -> Self;
    fn min(self, other: Self) -> Self;
    fn max(self, other: Self) -> Self;
    fn less(self, other: Self) -> Self::Mask;
    fn and(token: Self::Token, a: Self::Mask, b: Self::Mask) -> Self::Mask;
    fn select(mask: Self::Mask, if_true: Self, if_false: Self) -> Self;
    fn any(token: Self::Token, mask: Self::Mask) -> bool;
    /// The angle of the point `(x, self)`.
    fn atan2(self, x: Self) -> Self;

    /// The same value in every lane, with the token of `self`.
    #[inline(always)]
    fn like(self, value: Self::Real) -> Self {
        Self::splat(self.token(), value)
    }

    /// A constant in every lane, with the token of `self`.
    #[inline(always)]
    fn constant(self, value: f64) -> Self {
        self.like(Self::Real::from_f64(value))
    }

    /// `self` where the mask holds, else zero.
    #[inline(always)]
    fn only(self, mask: Self::Mask) -> Self {
        Self::select(mask, self, self.constant(0.0))
    }
}

macro_rules! lanes {
    ($name:ident, $real:ty, $vector:ident, $mask:ident, $lanes:ident, $splat:ident, $as_simd:ident, $as_mut_simd:ident,
     $add:ident, $sub:ident, $mul:ident, $div:ident, $neg:ident, $sqrt:ident, $abs:ident, $min:ident, $max:ident,
     $less:ident, $and:ident, $select:ident, $first:ident, $atan2:path) => {
        #[derive(Clone, Copy)]
        pub(crate) struct $name<S: Simd> {
            simd: S,
            value: S::$vector,
        }

        impl<S: Simd> Add for $name<S> {
            type Output = Self;
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Self { simd: self.simd, value: self.simd.$add(self.value, other.value) }
            }
        }

        impl<S: Simd> Sub for $name<S> {
            type Output = Self;
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                Self { simd: self.simd, value: self.simd.$sub(self.value, other.value) }
            }
        }

        impl<S: Simd> Mul for $name<S> {
            type Output = Self;
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                Self { simd: self.simd, value: self.simd.$mul(self.value, other.value) }
            }
        }

        impl<S: Simd> Mul<$real> for $name<S> {
            type Output = Self;
            #[inline(always)]
            fn mul(self, other: $real) -> Self {
                Self { simd: self.simd, value: self.simd.$mul(self.value, self.simd.$splat(other)) }
            }
        }

        impl<S: Simd> Div for $name<S> {
            type Output = Self;
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                Self { simd: self.simd, value: self.simd.$div(self.value, other.value) }
            }
        }

        impl<S: Simd> Neg for $name<S> {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                Self { simd: self.simd, value: self.simd.$neg(self.value) }
            }
        }

        impl<S: Simd> Lanes for $name<S> {
            type Real = $real;
            type Token = S;
            type Mask = (S, S::$mask);
            const WIDTH: usize = S::$lanes;

            #[inline(always)]
            fn splat(simd: S, value: $real) -> Self {
                Self { simd, value: simd.$splat(value) }
            }

            #[inline(always)]
            fn load(simd: S, from: &[$real]) -> Self {
                Self { simd, value: S::$as_simd(from).0[0] }
            }

            #[inline(always)]
            fn store(self, to: &mut [$real]) {
                S::$as_mut_simd(to).0[0] = self.value;
            }

            #[inline(always)]
            fn token(self) -> S {
                self.simd
            }

            #[inline(always)]
            fn sqrt(self) -> Self {
                Self { simd: self.simd, value: self.simd.$sqrt(self.value) }
            }

            #[inline(always)]
            fn abs(self) -> Self {
                Self { simd: self.simd, value: self.simd.$abs(self.value) }
            }

            #[inline(always)]
            fn min(self, other: Self) -> Self {
                Self { simd: self.simd, value: self.simd.$min(self.value, other.value) }
            }

            #[inline(always)]
            fn max(self, other: Self) -> Self {
                Self { simd: self.simd, value: self.simd.$max(self.value, other.value) }
            }

            #[inline(always)]
            fn less(self, other: Self) -> Self::Mask {
                (self.simd, self.simd.$less(self.value, other.value))
            }

            #[inline(always)]
            fn and(simd: S, a: Self::Mask, b: Self::Mask) -> Self::Mask {
                (simd, simd.$and(a.1, b.1))
            }

            #[inline(always)]
            fn select((simd, mask): Self::Mask, if_true: Self, if_false: Self) -> Self {
                Self { simd, value: simd.$select(mask, if_true.value, if_false.value) }
            }

            #[inline(always)]
            fn any(simd: S, mask: Self::Mask) -> bool {
                simd.$first(mask.1) < S::$lanes
            }

            #[inline(always)]
            fn atan2(self, x: Self) -> Self {
                $atan2(self, x)
            }
        }
    };
}

lanes!(
    F32s,
    f32,
    f32s,
    m32s,
    F32_LANES,
    splat_f32s,
    as_simd_f32s,
    as_mut_simd_f32s,
    add_f32s,
    sub_f32s,
    mul_f32s,
    div_f32s,
    neg_f32s,
    sqrt_f32s,
    abs_f32s,
    min_f32s,
    max_f32s,
    less_than_f32s,
    and_m32s,
    select_f32s,
    first_true_m32s,
    atan2_by_polynomial
);
lanes!(
    F64s,
    f64,
    f64s,
    m64s,
    F64_LANES,
    splat_f64s,
    as_simd_f64s,
    as_mut_simd_f64s,
    add_f64s,
    sub_f64s,
    mul_f64s,
    div_f64s,
    neg_f64s,
    sqrt_f64s,
    abs_f64s,
    min_f64s,
    max_f64s,
    less_than_f64s,
    and_m64s,
    select_f64s,
    first_true_m64s,
    atan2_by_lane
);

/// `atan(x) / x` on `0..=1` as a polynomial in `x^2`, fitted for the smallest largest relative error (4e-10 before
/// rounding to single precision, 1.2e-7 after).
const ATAN: [f32; 11] = [
    1.0,
    -0.333_333_25,
    0.199_996_04,
    -0.142_791_57,
    0.110_544_88,
    -0.087_987_24,
    0.067_159_99,
    -0.044_355_97,
    0.022_273_064,
    -0.007_198_777_5,
    0.001_090_989_7,
];

#[inline(always)]
fn atan2_by_polynomial<S: Simd>(y: F32s<S>, x: F32s<S>) -> F32s<S> {
    use std::f32::consts::{FRAC_PI_2, PI};
    let zero = y.like(0.0);
    let (steep, flat) = (y.abs(), x.abs());
    let largest = steep.max(flat);
    // At the origin any ratio will do; it is zero there.
    let ratio = steep.min(flat) / largest.max(y.like(f32::MIN_POSITIVE));
    let square = ratio * ratio;
    let mut sum = y.like(ATAN[10]);
    let mut i = 10;
    while i > 0 {
        i -= 1;
        sum = sum * square + y.like(ATAN[i]);
    }
    let angle = sum * ratio;
    let angle = F32s::select(flat.less(steep), y.like(FRAC_PI_2) - angle, angle);
    let angle = F32s::select(x.less(zero), y.like(PI) - angle, angle);
    F32s::select(y.less(zero), -angle, angle)
}

#[inline(always)]
fn atan2_by_lane<S: Simd>(y: F64s<S>, x: F64s<S>) -> F64s<S> {
    let (mut ys, mut xs) = ([0.0; 16], [0.0; 16]);
    y.store(&mut ys);
    x.store(&mut xs);
    for lane in 0..F64s::<S>::WIDTH {
        ys[lane] = ys[lane].atan2(xs[lane]);
    }
    F64s::load(y.simd, &ys)
}

#[cfg(test)]
mod tests {
    use pulp::Scalar;

    use super::*;

    #[test]
    fn angles_are_accurate_in_all_quadrants() {
        let lane = |value| F32s::splat(Scalar::new(), value);
        let mut worst = 0.0f64;
        for i in 0..100_000 {
            let angle = (f64::from(i) / 50_000.0 - 1.0) * std::f64::consts::PI * 0.999_999;
            let (y, x) = ((3.0 * angle.sin()) as f32, (3.0 * angle.cos()) as f32);
            let mut actual = [0.0];
            lane(y).atan2(lane(x)).store(&mut actual);
            worst = worst.max((f64::from(actual[0]) - f64::from(y).atan2(f64::from(x))).abs());
        }
        assert!(worst < 4e-7, "off by {worst:e}");
        let mut actual = [1.0];
        lane(0.0).atan2(lane(0.0)).store(&mut actual);
        assert_eq!(actual, [0.0]);
    }
}
