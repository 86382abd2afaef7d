//! Everything against scipy 1.17, over the samples of the family `stats`.

use std::{fs, path::Path};

use reference_vectors::{Tensors, family};
use serde_json::Value;
use statistics::{
    Alternative, Interval, Method, Replicates, Resamples, TTest, Zeros, mean, median, quantile, signed_ranks,
};

/// Relative, as the manifest says.
const VALUES: f64 = 1e-10;
const P_VALUES: f64 = 1e-9;
const BOOTSTRAP: f64 = 1e-12;

#[test]
fn reference_every_test_and_interval() {
    let folder = family(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference"), "stats");
    let inputs = Tensors::read(&folder.join("inputs.safetensors"));
    let expected = read(&folder.join("expected.json"));
    let (mut samples, mut held) = (0, 0);
    for (sample, tests) in expected.as_object().unwrap() {
        let data = Data::read(&inputs, sample);
        for (name, value) in tests.as_object().unwrap() {
            held += usize::from(data.check(name, value));
        }
        samples += 1;
    }
    println!("{held} tests and intervals on {samples} samples");
    assert!(held >= 80, "{held}");
}

fn read(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A sample with its pairs, an independent sample, and the resamples.
struct Data<'a> {
    inputs: &'a Tensors,
    sample: &'a str,
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
    /// Rounded, so that decimal differences tie.
    differences: Vec<f64>,
}

impl<'a> Data<'a> {
    fn read(inputs: &'a Tensors, sample: &'a str) -> Self {
        let get = |name: &str| inputs.get(&format!("{sample}/{name}")).values.clone();
        let (a, b, c) = (get("a"), get("b"), get("c"));
        let differences = a.iter().zip(&b).map(|(a, b)| ((a - b) * 1e9).round() / 1e9).collect();
        Self { inputs, sample, a, b, c, differences }
    }

    /// Holds one entry; false for one that is no test.
    fn check(&self, name: &str, expected: &Value) -> bool {
        let what = format!("{}/{name}", self.sample);
        let number = |field: &str| expected[field].as_f64().unwrap_or_else(|| panic!("{what}: no {field}"));
        let mut parts = name.split('/');
        match parts.next().unwrap() {
            "paired_t" | "welch_t" => {
                let side = side(parts.next().unwrap());
                let test = match name.starts_with("paired") {
                    true => TTest::paired(&self.a, &self.b, side),
                    false => TTest::welch(&self.a, &self.c, side),
                };
                let test = test.unwrap();
                close(&what, test.statistic, number("statistic"), VALUES);
                close(&what, test.df, number("df"), VALUES);
                close(&what, test.p_value, number("pvalue"), P_VALUES);
                let Interval { low, high } = test.interval(0.95).unwrap();
                for (ours, theirs) in [low, high].into_iter().zip(expected["ci95_of_mean_diff"].as_array().unwrap()) {
                    close(&what, ours, end(theirs), VALUES);
                }
            }
            "wilcoxon_asymptotic" => {
                let zeros = match parts.next().unwrap() {
                    "wilcox" => Zeros::Drop,
                    "pratt" => Zeros::Rank,
                    "zsplit" => Zeros::Split,
                    other => panic!("{other}"),
                };
                let side = side(parts.next().unwrap());
                let correction = parts.next().unwrap() == "correction1";
                let test = signed_ranks(&self.differences, zeros, Method::Normal { correction }, side).unwrap();
                close(&what, test.statistic, number("statistic"), VALUES);
                close(&what, test.p_value, number("pvalue"), P_VALUES);
                let z = (test.z.unwrap() - number("zstatistic")).abs();
                assert!(z <= 1e-10, "{what}: z is off by {z:e}");
            }
            family @ ("wilcoxon_auto" | "wilcoxon_exact" | "wilcoxon_sign_enumeration_zeros_dropped") => {
                let (method, field) = match family {
                    "wilcoxon_auto" => (Method::Auto, "statistic"),
                    "wilcoxon_exact" => (Method::Exact, "statistic"),
                    _ => (Method::SignPatterns, "r_plus"),
                };
                let test = signed_ranks(&self.differences, Zeros::Drop, method, side(parts.next().unwrap())).unwrap();
                let ours = if field == "r_plus" { test.positive } else { test.statistic };
                close(&what, ours, number(field), VALUES);
                close(&what, test.p_value, number("pvalue"), P_VALUES);
            }
            "bootstrap" => {
                let (statistic, level) = (parts.next().unwrap(), parts.next().unwrap());
                let level: f64 = level.strip_prefix("level").unwrap().parse().unwrap();
                let replicates = self.replicates(statistic);
                let Interval { low, high } = replicates.interval(level).unwrap();
                close(&what, replicates.estimate, number("estimate"), BOOTSTRAP);
                close(&what, low, number("low"), BOOTSTRAP);
                close(&what, high, number("high"), BOOTSTRAP);
                if let Some(error) = expected["standard_error"].as_f64() {
                    close(&what, replicates.standard_error(), error, BOOTSTRAP);
                }
            }
            "differences_have_ties_or_zeros" => {
                let exact = signed_ranks(&self.differences, Zeros::Drop, Method::Exact, Alternative::TwoSided);
                assert_eq!(exact.is_err(), expected.as_bool().unwrap() || self.differences.len() > 50, "{what}");
                return false;
            }
            other => panic!("no test is called {other}"),
        }
        true
    }

    fn replicates(&self, statistic: &str) -> Replicates {
        let differences: Vec<f64> = self.a.iter().zip(&self.b).map(|(a, b)| a - b).collect();
        let resamples = self.resamples("boot_idx", self.a.len());
        let (replicates, stored) = match statistic {
            "mean_of_diff" => (resamples.of(&differences, mean), Some("boot_rep_mean_of_diff")),
            "median_of_a" => (resamples.of(&self.a, median), None),
            "mean_a_minus_mean_c" => {
                let others = self.resamples("boot_idx_c", self.c.len());
                let apart = |a: &[f64], c: &[f64]| mean(a) - mean(c);
                (resamples.of_two(&self.a, &others, &self.c, apart), Some("boot_rep_a_minus_c"))
            }
            other => panic!("no statistic is called {other}"),
        };
        let replicates = replicates.unwrap();
        if let Some(stored) = stored {
            let stored = &self.inputs.get(&format!("{}/{stored}", self.sample)).values;
            reference_vectors::assert_close(statistic, &replicates.values, stored, BOOTSTRAP, 0.0, 1e-15);
        }
        assert_eq!(quantile(&replicates.values, 1.0), replicates.values.iter().copied().fold(f64::MIN, f64::max));
        replicates
    }

    fn resamples(&self, name: &str, values: usize) -> Resamples {
        let rows = self.inputs.get(&format!("{}/{name}", self.sample)).i64s();
        let rows = rows.chunks(values).map(|row| row.iter().map(|&i| usize::try_from(i).unwrap()).collect());
        Resamples::from_rows(values, rows.collect()).unwrap()
    }
}

fn side(name: &str) -> Alternative {
    match name {
        "two-sided" => Alternative::TwoSided,
        "greater" => Alternative::Greater,
        "less" => Alternative::Less,
        other => panic!("no alternative is called {other}"),
    }
}

fn end(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
}

fn close(what: &str, ours: f64, theirs: f64, tolerance: f64) {
    // Infinite ends are equal; sums of differences may cancel to nearly 0.
    let holds = ours == theirs || (ours - theirs).abs() <= tolerance * theirs.abs() + 1e-15;
    assert!(holds, "{what}: {ours:?}, expected {theirs:?}");
}
