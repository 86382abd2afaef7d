//! Softmax cross-entropy over rows of logits, with ignored targets.

use rayon::prelude::*;

use super::simd::{exp, maximum, simd_kernel, sum};

/// Probabilities below it add nothing to a gradient: on their way back through a network they would become subnormal numbers, for
/// which many CPUs take a hundred times as long.
const NEGLIGIBLE: f32 = 1e-25;

/// Mean of `logsumexp(logits[r]) - logits[r][target[r]]` over the rows whose target is not `ignore`; 0 if none is left.
/// Where `gradient` is given it receives the gradient of that mean with respect to the logits.
///
/// Targets must lie in `0..classes` or equal `ignore`; others panic, so callers check them when they make batches.
pub fn forward(logits: &[f32], targets: &[i64], classes: usize, ignore: i64, gradient: Option<&mut [f32]>) -> f32 {
    assert_eq!(logits.len(), targets.len() * classes, "cross_entropy: one target for each row");
    if let Some(gradient) = &gradient {
        assert_eq!(logits.len(), gradient.len(), "cross_entropy: the gradient has the shape of the logits");
    }
    let counted = targets.iter().filter(|&&t| t != ignore).count();
    if counted == 0 {
        if let Some(gradient) = gradient {
            gradient.fill(0.0);
        }
        return 0.0;
    }
    let scale = 1.0 / counted as f32;
    let rows = (super::CHUNK / classes.max(1)).max(1);
    let losses: Vec<f64> = match gradient {
        Some(gradient) => gradient
            .par_chunks_mut(rows * classes)
            .zip(logits.par_chunks(rows * classes))
            .zip(targets.par_chunks(rows))
            .map(|((g, l), t)| rows_with_gradient(l, t, classes, ignore, scale, g))
            .collect(),
        None => logits
            .par_chunks(rows * classes)
            .zip(targets.par_chunks(rows))
            .map(|(l, t)| rows_without_gradient(l, t, classes, ignore))
            .collect(),
    };
    (losses.iter().sum::<f64>() / counted as f64) as f32
}

simd_kernel! {
    fn rows_with_gradient(logits: &[f32], targets: &[i64], classes: usize, ignore: i64, scale: f32, gradient: &mut [f32]) -> f64 {
        let mut loss = 0.0;
        for ((l, g), &target) in logits.chunks_exact(classes).zip(gradient.chunks_exact_mut(classes)).zip(targets) {
            if target == ignore {
                g.fill(0.0);
                continue;
            }
            let largest = maximum(l);
            for (g, l) in g.iter_mut().zip(l) {
                *g = exp(l - largest);
            }
            let total = sum(g);
            loss += f64::from(total.ln() + largest - l[target as usize]);
            let factor = scale / total;
            for g in g.iter_mut() {
                *g = if *g < NEGLIGIBLE { 0.0 } else { *g * factor };
            }
            g[target as usize] -= scale;
        }
        loss
    }
}

simd_kernel! {
    fn rows_without_gradient(logits: &[f32], targets: &[i64], classes: usize, ignore: i64) -> f64 {
        let mut loss = 0.0;
        for (l, &target) in logits.chunks_exact(classes).zip(targets) {
            if target == ignore {
                continue;
            }
            let largest = maximum(l);
            let mut total = 0.0f32;
            for piece in l.chunks(256) {
                let mut powers = [0.0f32; 256];
                for (p, l) in powers.iter_mut().zip(piece) {
                    *p = exp(l - largest);
                }
                total += sum(&powers[..piece.len()]);
            }
            loss += f64::from(total.ln() + largest - l[target as usize]);
        }
        loss
    }
}
