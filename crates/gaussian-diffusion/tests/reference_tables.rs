//! Tables and chosen steps against those of DiT's code.

use gaussian_diffusion::{Respacing, Tables};
use reference_vectors::{Tensors, assert_close};

/// `respace_250` and the like: all tables of the process with that choice of steps.
fn check_tables(name: &str, file: &Tensors) -> usize {
    let respacing = match name.trim_start_matches("respace_") {
        "none" => Respacing::All,
        text => text.replace('_', ",").parse().expect("a choice of steps"),
    };
    let tables = Tables::dit(&respacing).expect("steps that exist");
    let mut checked = 0;
    for (key, expected) in file.iter() {
        let (actual, tolerance) = match key {
            "timestep_map" => {
                assert_eq!(
                    tables.timestep_map.iter().map(|&s| s as i64).collect::<Vec<_>>(),
                    expected.i64s(),
                    "{name}"
                );
                checked += 1;
                continue;
            }
            "betas" => (&tables.betas, 1e-12),
            "alphas_cumprod" => (&tables.alphas_cumprod, 1e-12),
            "alphas_cumprod_prev" => (&tables.alphas_cumprod_prev, 1e-12),
            "alphas_cumprod_next" => (&tables.alphas_cumprod_next, 1e-12),
            "sqrt_alphas_cumprod" => (&tables.sqrt_alphas_cumprod, 1e-12),
            "sqrt_one_minus_alphas_cumprod" => (&tables.sqrt_one_minus_alphas_cumprod, 1e-12),
            "sqrt_recip_alphas_cumprod" => (&tables.sqrt_recip_alphas_cumprod, 1e-12),
            "posterior_variance" => (&tables.posterior_variance, 1e-12),
            "posterior_mean_coef1" => (&tables.posterior_mean_coef1, 1e-12),
            "posterior_mean_coef2" => (&tables.posterior_mean_coef2, 1e-12),
            "log_one_minus_alphas_cumprod" => (&tables.log_one_minus_alphas_cumprod, 1e-9),
            "sqrt_recipm1_alphas_cumprod" => (&tables.sqrt_recipm1_alphas_cumprod, 1e-9),
            "posterior_log_variance_clipped" => (&tables.posterior_log_variance_clipped, 1e-9),
            other => panic!("{name}: an unknown table `{other}`"),
        };
        assert_eq!(actual.len(), expected.values.len(), "{name}: {key}");
        // Relative for each entry: tables span many magnitudes.
        for (t, (a, e)) in actual.iter().zip(&expected.values).enumerate() {
            assert_close(&format!("{name}: {key} at {t}"), &[*a], &[*e], tolerance, 0.0, 0.0);
        }
        checked += 1;
    }
    assert_eq!(checked, 14, "{name}: tables");
    checked
}

/// `map_10_15_20`: the choice `10,15,20`, of as many steps as the manifest says.
fn check_choice(key: &str, expected: &[i64]) {
    let text = key.trim_start_matches("map_").replace('_', ",");
    let respacing: Respacing = text.parse().unwrap_or_else(|e| panic!("{e}"));
    let steps = match &respacing {
        Respacing::Sections(counts) if counts.len() == 3 => 300,
        Respacing::Sections(counts) if counts == &[50, 50] => 999,
        _ => 1000,
    };
    let kept: Vec<i64> = respacing.steps(steps).expect("steps that exist").into_iter().map(|s| s as i64).collect();
    assert_eq!(kept, expected, "{key}");
}

#[test]
fn reference_diffusion_tables() {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference");
    let folder = reference_vectors::family(default, "diffusion_tables");
    let (mut tables, mut choices) = (0, 0);
    for case in reference_vectors::cases(&folder) {
        for (name, file) in reference_vectors::files(&case) {
            if name.starts_with("respace_") {
                tables += check_tables(&name, &file);
            } else {
                for (key, expected) in file.iter() {
                    check_choice(key, &expected.i64s());
                    choices += 1;
                }
            }
        }
    }
    assert!(tables > 0 && choices > 0, "no reference case in {}", folder.display());
    println!("reference diffusion_tables: {tables} tables and {choices} choices of steps hold");
}
