//! What is claimed outside the tables: iterations saved, overhead, depth against connections, early against late blocks.

use std::path::Path;

use anyhow::Result;
use plotting::{fixed, signed};
use serde_json::Value;
use statistics::{
    Alternative, TTest,
    curves::{Race, race},
    median, paired_difference,
};

use super::{Measured, at_scale, difference_text, over_seeds};
use crate::{
    logs::{Log, Report},
    paper::{Claim, Evidence, Resource},
    verdict::{Seen, Sign},
};

/// What a log says to a claim; none if there is no log, or it does not have what is asked for.
pub(super) fn measured(claim: &Claim, logs: &Path) -> Result<Option<Measured>> {
    let Some(log) = Log::find(logs, claim.evidence.log())? else { return Ok(None) };
    match &claim.evidence {
        Evidence::SavedSteps { arm, baseline, curve, .. } => {
            let percent = |race: &Race| race.saved().map(|share| 100.0 * share);
            raced(claim, &log, [arm, baseline, curve], 0.0, percent)
        }
        Evidence::SpeedUp { arm, baseline, curve, .. } => {
            raced(claim, &log, [arm, baseline, curve], 1.0, Race::speed_up)
        }
        Evidence::Overhead { arm, of, .. } => {
            Ok(log.json("overhead.json")?.and_then(|record| overhead(claim, &log, &record, arm, *of)))
        }
        Evidence::AtLeast { arm, baseline, metric, margin, .. } => {
            Ok(log.report()?.and_then(|report| at_least(claim, &log, &report, [arm, baseline, metric], *margin)))
        }
        Evidence::EarlyLate { group, .. } => {
            Ok(log.json("report.json")?.and_then(|report| early_late(claim, &log, &report, group)))
        }
    }
}

/// The races of an arm against the baseline with the same seed, over steps; a number of each against what it would be without
/// a difference.
fn raced(
    claim: &Claim,
    log: &Log,
    [arm, baseline, curve]: [&String; 3],
    without: f64,
    number: impl Fn(&Race) -> Option<f64>,
) -> Result<Option<Measured>> {
    let Some(report) = log.report()? else { return Ok(None) };
    let mut values = Vec::new();
    for run in report.of_arm(arm) {
        let Some(partner) = report.of_arm(baseline).find(|partner| partner.seed == run.seed) else { continue };
        let race = race(&log.curve(run, curve)?, &log.curve(partner, curve)?);
        // A run that does not get there saves nothing that could be averaged.
        values.extend(race.map(|race| number(&race).unwrap_or(f64::NAN)));
    }
    let Some(first) = report.of_arm(arm).next().filter(|_| !values.is_empty()) else { return Ok(None) };
    let difference = paired_difference(&values, &vec![without; values.len()]);
    let all = difference.pairs == values.len();
    let text = if difference.pairs == 0 { "not reached".to_owned() } else { over_seeds(&values, &claim.unit) };
    let p = difference.p_value.filter(|_| all);
    let at_scale = at_scale(claim.scale.as_ref(), &report, first);
    Ok(Some(Measured {
        text,
        difference: String::new(),
        p,
        seeds: difference.pairs,
        log: log.name.clone(),
        seen: Seen {
            number: claim.paper.map(|paper| (statistics::mean(&values), paper)),
            sign: Some(Sign::Difference { expected: 1.0, measured: difference.mean, p }),
            at_scale,
        },
    }))
}

/// The largest overhead over the shapes that count: the paper's models with their whole vocabulary; if there is none, its models
/// without, which are a smaller scale; if there is none either, all.
fn overhead(claim: &Claim, log: &Log, record: &Value, arm: &str, of: Resource) -> Option<Measured> {
    let shapes: Vec<(&str, &Value)> = record["shapes"]
        .as_array()?
        .iter()
        .filter_map(|shape| {
            let arm = shape["arms"].as_array()?.iter().find(|record| record["arm"] == arm)?;
            Some((shape["shape"].as_str()?, arm))
        })
        .collect();
    let named = |test: fn(&str) -> bool| shapes.iter().copied().filter(|(name, _)| test(name)).collect::<Vec<_>>();
    let whole = named(|name| name.ends_with("-head") || name.starts_with("dit-"));
    let models = named(|name| name.starts_with("llama-"));
    let (counted, at_scale) = match (whole.is_empty(), models.is_empty()) {
        (false, _) => (whole, true),
        (true, false) => (models, false),
        (true, true) => (shapes, false),
    };
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    let mut texts = Vec::new();
    // Of the worst shape at either end: one that is surely above the bound counts, and one that may be.
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for (name, arm) in &counted {
        let (value, ends, interval) = match of {
            // One update follows hundreds of sequences at the paper's batch, so it does not count.
            Resource::Time => {
                let interval = arm["gradient_ratio"]["interval"].as_array();
                let ends = interval.and_then(|ends| Some((ends.first()?.as_f64()?, ends.get(1)?.as_f64()?)));
                let text =
                    ends.map(|(low, high)| format!(" [{}, {}]", signed(percent(low), 2), signed(percent(high), 2)));
                (arm["gradient_ratio"]["value"].as_f64(), ends, text.unwrap_or_default())
            }
            Resource::Memory => {
                let ratio = arm["peak_ratio"].as_f64();
                (ratio, ratio.map(|ratio| (ratio, ratio)), String::new())
            }
        };
        let Some(value) = value else { continue };
        texts.push(format!("{name} {}{interval}", signed(percent(value), 2)));
        low = low.max(ends.map_or(f64::NEG_INFINITY, |(low, _)| percent(low)));
        high = high.max(ends.map_or(f64::INFINITY, |(_, high)| percent(high)));
    }
    let bound = claim.paper?;
    (!texts.is_empty()).then(|| Measured {
        text: format!("{}{}", texts.join("; "), claim.unit),
        difference: String::new(),
        p: None,
        seeds: 1,
        log: log.name.clone(),
        seen: Seen {
            number: None,
            sign: Some(Sign::Below { bound, interval: high.is_finite().then_some([low, high]) }),
            at_scale,
        },
    })
}

/// An arm that is not worse than another by more than a margin: the lower end of the 95% interval of the difference lies
/// above it.
fn at_least(
    claim: &Claim,
    log: &Log,
    report: &Report,
    [arm, baseline, metric]: [&String; 3],
    margin: f64,
) -> Option<Measured> {
    let (ours, other) = report.pairs(arm, baseline, metric);
    let first = report.of_arm(arm).next()?;
    let difference = paired_difference(&ours, &other);
    if difference.pairs == 0 {
        return None;
    }
    let test = TTest::paired(&ours, &other, Alternative::TwoSided).and_then(|test| test.interval(0.95));
    Some(Measured {
        text: format!("{} against {}", over_seeds(&ours, ""), over_seeds(&other, "")),
        difference: difference_text(&difference, ""),
        p: difference.p_value,
        seeds: difference.pairs,
        log: log.name.clone(),
        seen: Seen {
            number: None,
            sign: Some(Sign::Above {
                bound: -margin * statistics::mean(&other).abs(),
                low: test.ok().map(|interval| interval.low),
            }),
            at_scale: at_scale(claim.scale.as_ref(), report, first),
        },
    })
}

/// Of each model of a group, the median change of the hidden state when a block of the first half is left out, over that of the
/// second half.
fn early_late(claim: &Claim, log: &Log, report: &Value, group: &str) -> Option<Measured> {
    let group = report["groups"].as_array()?.iter().find(|record| record["name"] == group)?;
    let models = group["models"].as_array()?;
    let (mut early, mut late) = (Vec::new(), Vec::new());
    for model in models {
        let blocks: Vec<f64> =
            model["blocks"].as_array()?.iter().filter_map(|block| block["hidden"].as_f64()).collect();
        let half = blocks.len() / 2;
        if half > 0 {
            early.push(median(&blocks[..half]));
            late.push(median(&blocks[blocks.len() - half..]));
        }
    }
    let difference = paired_difference(&early, &late);
    let parameters = models.first()?["parameters"].as_f64().unwrap_or(f64::NAN);
    let wanted = claim.scale.and_then(|scale| scale.parameters);
    let text = |values: &[f64]| plotting::mean_sd(values, 3);
    (difference.pairs > 0).then(|| Measured {
        text: format!(
            "early {}, late {}: {} times",
            text(&early),
            text(&late),
            fixed(statistics::mean(&early) / statistics::mean(&late), 2)
        ),
        difference: difference_text(&difference, ""),
        p: difference.p_value,
        seeds: difference.pairs,
        log: log.name.clone(),
        seen: Seen {
            number: None,
            sign: Some(Sign::Difference { expected: 1.0, measured: difference.mean, p: difference.p_value }),
            at_scale: wanted.is_some_and(|wanted| (parameters / wanted - 1.0).abs() < 0.1),
        },
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;
    use crate::verdict::{Verdict, verdict};

    /// A claim with this evidence, and a folder of logs with one log `l` of these files.
    fn check(evidence: &str, paper: &str, files: &[(&str, String)]) -> (String, Verdict) {
        let logs = tempfile::tempdir().unwrap();
        let provenance = "what = \"w\"\ncommand = \"c\"\ncommit = \"d\"\n".to_owned();
        for (name, text) in files.iter().chain([&("log.toml", provenance)]) {
            let path = logs.path().join("l").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let claim = format!(
            "id = \"c\"\nwhat = \"w\"\nsource = \"s\"\ngap = \"g\"\nunit = \"%\"\n{paper}\nevidence = {evidence}"
        );
        let claim: Claim = toml::from_str(&claim).unwrap();
        let Some(measured) = measured(&claim, logs.path()).unwrap() else { return (String::new(), Verdict::NotRun) };
        (measured.text, verdict(Some(&measured.seen)))
    }

    /// Arm, seed and its curve.
    type Run<'a> = (&'a str, u64, &'a [(f64, f64)]);

    fn runs(curves: &[Run]) -> Vec<(&'static str, String)> {
        let arms: Vec<Value> = curves.iter().map(|(name, seed, _)| json!({"name": name, "seed": seed})).collect();
        let mut files = vec![("report.json", json!({"baseline": "cascade", "steps": 40, "arms": arms}).to_string())];
        for (name, seed, curve) in curves {
            let lines = curve.iter().map(|(x, y)| format!("{{\"step\":{x},\"kind\":\"evaluation\",\"loss\":{y}}}\n"));
            // Names live as long as the test.
            let path = |file: &str| -> &'static str { format!("arms/{name}-seed{seed}/{file}").leak() };
            files.push((path("metrics.jsonl"), lines.collect()));
            files.push((path("summary.json"), json!({"arm": name, "seed": seed}).to_string()));
        }
        files
    }

    const SAVED: &str =
        "{ kind = \"saved-steps\", log = \"l\", arm = \"ancre\", baseline = \"cascade\", curve = \"loss\" }";

    #[test]
    fn saved_steps_are_those_until_the_baselines_last_loss() {
        let slow = [(10.0, 3.0), (20.0, 2.0), (40.0, 1.0)];
        let fast = [(10.0, 2.0), (20.0, 1.0), (40.0, 0.5)];
        let faster = [(10.0, 1.5), (20.0, 0.5), (40.0, 0.4)];
        let both = runs(&[("cascade", 0, &slow), ("cascade", 1, &slow), ("ancre", 0, &fast), ("ancre", 1, &faster)]);
        assert_eq!(check(SAVED, "paper = 34.3", &both).0, "(56.25 ± 8.84)%");
        let third = [both, Vec::new()].concat();
        // Two seeds: t = 9, p = .07.
        assert_eq!(check(SAVED, "paper = 34.3", &third).1, Verdict::NotAtThisScale);
        let one =
            runs(&[("cascade", 0, &slow), ("cascade", 1, &slow), ("ancre", 0, &fast), ("ancre", 1, &[(40.0, 2.0)])]);
        assert_eq!(check(SAVED, "paper = 34.3", &one), ("50.00% (1 of 2 seeds)".to_owned(), Verdict::NotAtThisScale));
        assert_eq!(check(SAVED, "paper = 34.3", &[]).1, Verdict::NotRun);
    }

    #[test]
    fn overhead_counts_the_papers_shapes_before_others() {
        let shape = |name: &str, low: f64, high: f64| {
            json!({"shape": name, "arms": [{"arm": "ancre", "peak_ratio": high,
                "gradient_ratio": {"value": 0.5 * (low + high), "interval": [low, high], "count": 9}}]})
        };
        let evidence = |of: &str| format!("{{ kind = \"overhead\", log = \"l\", arm = \"ancre\", of = \"{of}\" }}");
        let with = |shapes: Vec<Value>| vec![("overhead.json", json!({"shapes": shapes}).to_string())];
        let small = shape("llm-cpu", 1.02, 1.04);
        let model = shape("llama-60m-head", 1.002, 1.006);
        let both = with(vec![small.clone(), model]);
        assert_eq!(
            check(&evidence("time"), "paper = 1", &both),
            ("llama-60m-head +0.40 [+0.20, +0.60]%".to_owned(), Verdict::Reproduced)
        );
        assert_eq!(check(&evidence("memory"), "paper = 1", &both).0, "llama-60m-head +0.60%");
        // Layers without their head, and an interval that holds the bound.
        let layers = with(vec![shape("llama-60m", 1.002, 1.006)]);
        assert_eq!(check(&evidence("time"), "paper = 1", &layers).1, Verdict::SignReproduced);
        let open = with(vec![shape("llama-60m-head", 0.99, 1.03)]);
        assert_eq!(check(&evidence("time"), "paper = 1", &open).1, Verdict::NotDecided);
        assert_eq!(check(&evidence("time"), "paper = 1", &with(vec![small])).1, Verdict::NotAtThisScale);
        assert_eq!(check(&evidence("time"), "paper = 1", &with(vec![])).1, Verdict::NotRun);
    }

    #[test]
    fn a_match_needs_an_interval_within_the_margin() {
        let evidence =
            "{ kind = \"at-least\", log = \"l\", arm = \"a\", baseline = \"b\", metric = \"m\", margin = 0.1 }";
        let report = |ours: [f64; 3]| {
            let run = |name: &str, seed: usize, value: f64| json!({"name": name, "seed": seed, "m": value});
            let arms: Vec<Value> = (0..3).flat_map(|i| [run("a", i, ours[i]), run("b", i, 100.0 + i as f64)]).collect();
            vec![("report.json", json!({"arms": arms}).to_string())]
        };
        assert_eq!(check(evidence, "", &report([99.5, 101.0, 101.5])).1, Verdict::SignReproduced);
        assert_eq!(check(evidence, "", &report([80.0, 101.0, 121.5])).1, Verdict::NotAtThisScale, "too uncertain");
    }

    #[test]
    fn early_and_late_blocks_are_compared_within_models() {
        let evidence = "{ kind = \"early-late\", log = \"l\", group = \"cascade\" }";
        let model = |blocks: [f64; 5]| {
            let blocks: Vec<Value> = blocks.iter().map(|hidden| json!({"hidden": hidden})).collect();
            json!({"parameters": 1e6, "blocks": blocks})
        };
        let group = json!({"name": "cascade", "models": [model([3.0, 2.0, 9.0, 1.0, 1.0]), model([3.2, 2.2, 9.0, 1.1, 1.0]),
            model([2.9, 2.0, 0.0, 1.0, 0.9])]});
        let report = json!({"format": 1, "groups": [group]}).to_string();
        let (text, verdict) = check(evidence, "", &[("report.json", report)]);
        assert_eq!(text, "early 2.550 ± 0.132, late 1.000 ± 0.050: 2.55 times");
        assert_eq!(verdict, Verdict::SignReproduced);
    }
}
