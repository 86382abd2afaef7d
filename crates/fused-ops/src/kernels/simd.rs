//! Choice of the SIMD level at run time, and the small functions that every kernel shares.

use std::sync::atomic::{AtomicU8, Ordering};

/// A set of CPU instructions that the kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum SimdLevel {
    /// What every CPU of the target architecture has.
    Baseline = 1,
    /// x86-64 with AVX2 and FMA.
    Avx2 = 2,
    /// x86-64 with AVX-512 F, VL, BW and DQ.
    Avx512 = 3,
}

static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The level that kernels run at: the best this CPU has, unless [`limit_simd`] lowered it.
#[inline]
pub fn simd_level() -> SimdLevel {
    match LEVEL.load(Ordering::Relaxed) {
        1 => SimdLevel::Baseline,
        2 => SimdLevel::Avx2,
        3 => SimdLevel::Avx512,
        _ => {
            let level = detect();
            LEVEL.store(level as u8, Ordering::Relaxed);
            level
        }
    }
}

/// Lets kernels use at most `limit` from now on, in the whole process; for tests and for comparing machines.
/// A level that the CPU lacks is never chosen.
pub fn limit_simd(limit: SimdLevel) {
    LEVEL.store(detect().min(limit) as u8, Ordering::Relaxed);
}

fn detect() -> SimdLevel {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
        {
            return SimdLevel::Avx512;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return SimdLevel::Avx2;
        }
    }
    SimdLevel::Baseline
}

/// Defines a function whose body is compiled once per [`SimdLevel`] and chosen at run time. The body must be written
/// so that the compiler vectorises it; everything it calls must be `#[inline(always)]`.
macro_rules! simd_kernel {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            fn body($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
                #[allow(clippy::too_many_arguments)]
                fn avx512($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }
                #[target_feature(enable = "avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn avx2($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }
                match $crate::kernels::simd::simd_level() {
                    // SAFETY: `simd_level` returns a level only if the CPU was found to have its features.
                    $crate::kernels::simd::SimdLevel::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::kernels::simd::SimdLevel::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::kernels::simd::SimdLevel::Baseline => {}
                }
            }
            body($($arg),*)
        }
    };
}
pub(crate) use simd_kernel;

/// Lanes that [`dot`], [`sum`] and [`maximum`] keep apart before they fold them, whatever the width of the registers.
pub(crate) const LANES: usize = 32;

/// `e^x` to about 1 unit in the last place for `-87 <= x <= 88`, clamped outside; a form that compilers vectorise.
///
/// Range reduction `x = n ln 2 + r` with a two-part `ln 2`, then the Taylor polynomial of degree 7 on `|r| <= ln 2 / 2`.
/// A NaN stays NaN, so that a diverged run is noticed.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23: adding and subtracting it rounds to the nearest integer
    const LN2_HIGH: f32 = 0.693_145_75;
    const LN2_LOW: f32 = 1.428_606_8e-6;
    // Written as two comparisons, not `clamp`, so that NaN passes through.
    let clamped = if x > 88.0 { 88.0 } else { x };
    let clamped = if clamped < -87.0 { -87.0 } else { clamped };
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = clamped - n * LN2_HIGH - n * LN2_LOW;
    let polynomial = 1.0
        + r * (1.0
            + r * (0.5
                + r * (0.166_666_67
                    + r * (0.041_666_668 + r * (0.008_333_334 + r * (0.001_388_888_9 + r * 1.984_127e-4))))));
    polynomial * f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23))
}

/// Inner product of two slices of equal length, summed in [`LANES`] partial sums.
#[inline(always)]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let tail: f32 = a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a_chunks.zip(b_chunks) {
        for lane in 0..LANES {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    fold(lanes) + tail
}

/// Inner product of two slices of equal length in double precision: products of floats are exact there, so nothing is lost
/// where large terms cancel.
#[inline(always)]
pub(crate) fn dot_f64(a: &[f32], b: &[f32]) -> f64 {
    let mut lanes = [0.0f64; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let tail: f64 =
        a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum();
    for (x, y) in a_chunks.zip(b_chunks) {
        for lane in 0..LANES {
            lanes[lane] += f64::from(x[lane]) * f64::from(y[lane]);
        }
    }
    lanes.iter().sum::<f64>() + tail
}

/// Sum of a slice in [`LANES`] partial sums.
#[inline(always)]
pub(crate) fn sum(a: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let chunks = a.chunks_exact(LANES);
    let tail: f32 = chunks.remainder().iter().sum();
    for x in chunks {
        for lane in 0..LANES {
            lanes[lane] += x[lane];
        }
    }
    fold(lanes) + tail
}

/// Largest element (minus infinity for an empty slice; NaNs are passed over).
#[inline(always)]
pub(crate) fn maximum(a: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = a.chunks_exact(LANES);
    let mut largest = f32::NEG_INFINITY;
    for &x in chunks.remainder() {
        largest = if x > largest { x } else { largest };
    }
    for x in chunks {
        for lane in 0..LANES {
            lanes[lane] = if x[lane] > lanes[lane] { x[lane] } else { lanes[lane] };
        }
    }
    for lane in lanes {
        largest = if lane > largest { lane } else { largest };
    }
    largest
}

#[inline(always)]
fn fold(mut lanes: [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_accurate_over_its_range() {
        let mut worst = 0.0f64;
        for i in 0..200_000 {
            let x = -87.0 + 175.0 * (i as f32 / 200_000.0);
            let exact = f64::from(x).exp();
            worst = worst.max((f64::from(exp(x)) - exact).abs() / exact);
        }
        assert!(worst < 2.0e-7, "worst relative error {worst:e}");
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(f32::NEG_INFINITY) < 1e-37);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn sums_are_right_at_odd_lengths() {
        for n in [0, 1, 31, 32, 33, 64, 100] {
            let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let expected: f32 = a.iter().sum();
            assert_eq!(sum(&a), expected);
            assert_eq!(dot(&a, &vec![1.0; n]), expected);
            assert_eq!(maximum(&a), if n == 0 { f32::NEG_INFINITY } else { n as f32 - 1.0 });
        }
    }
}
