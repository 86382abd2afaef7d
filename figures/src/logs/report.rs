//! `report.json` of a comparison, whichever experiment wrote it.

use serde_json::Value;

/// A comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What arms are measured against.
    pub baseline: String,
    /// Optimizer steps of a run; not a number if the report does not say.
    pub steps: f64,
    /// All runs, arms in their order, seeds within.
    pub arms: Vec<Arm>,
}

/// One run of one arm.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// Its name, with its depth where depths are compared.
    pub name: String,
    /// The seed.
    pub seed: u64,
    fields: Value,
}

impl Report {
    /// A report of a comparison; none if the value is no such report.
    #[must_use]
    pub fn of(value: &Value) -> Option<Self> {
        let arms = value["arms"].as_array()?.iter().map(|fields| {
            Some(Arm {
                name: fields["name"].as_str()?.to_owned(),
                seed: fields["seed"].as_u64()?,
                fields: fields.clone(),
            })
        });
        let steps = value["steps"].as_f64().or_else(|| value["updates"].as_f64());
        Some(Self {
            baseline: value["baseline"].as_str().unwrap_or_default().to_owned(),
            steps: steps.unwrap_or(f64::NAN),
            arms: arms.collect::<Option<_>>()?,
        })
    }

    /// The names of the arms, in their order.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for arm in &self.arms {
            if !names.contains(&arm.name.as_str()) {
                names.push(arm.name.as_str());
            }
        }
        names
    }

    /// The runs of an arm.
    pub fn of_arm<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Arm> {
        self.arms.iter().filter(move |arm| arm.name == name)
    }

    /// The seeds of an arm.
    #[must_use]
    pub fn seeds(&self, name: &str) -> Vec<u64> {
        self.of_arm(name).map(|arm| arm.seed).collect()
    }

    /// A number of an arm for each of its seeds.
    #[must_use]
    pub fn values(&self, name: &str, field: &str) -> Vec<f64> {
        self.of_arm(name).map(|arm| arm.number(field)).collect()
    }

    /// The same number of two arms for the seeds that both have.
    #[must_use]
    pub fn pairs(&self, name: &str, other: &str, field: &str) -> (Vec<f64>, Vec<f64>) {
        let pairs = self.of_arm(name).filter_map(|arm| {
            let partner = self.of_arm(other).find(|partner| partner.seed == arm.seed)?;
            Some((arm.number(field), partner.number(field)))
        });
        pairs.unzip()
    }
}

impl Arm {
    /// A number; not a number where it is missing, as after a divergence.
    #[must_use]
    pub fn number(&self, field: &str) -> f64 {
        self.fields[field].as_f64().unwrap_or(f64::NAN)
    }

    /// A list of numbers; empty where it is missing.
    #[must_use]
    pub fn numbers(&self, field: &str) -> Vec<f64> {
        let list = self.fields[field].as_array();
        list.map_or_else(Vec::new, |list| list.iter().map(|value| value.as_f64().unwrap_or(f64::NAN)).collect())
    }

    /// Rows of numbers, such as coefficients or the points of a curve; empty where they are missing.
    #[must_use]
    pub fn rows(&self, field: &str) -> Vec<Vec<f64>> {
        let row = |row: &Value| row.as_array().map(|row| row.iter().map(|v| v.as_f64().unwrap_or(f64::NAN)).collect());
        let list = self.fields[field].as_array();
        list.map_or_else(Vec::new, |list| list.iter().filter_map(row).collect())
    }

    /// A curve that the report holds itself.
    #[must_use]
    pub fn curve(&self, field: &str) -> Vec<(f64, f64)> {
        self.rows(field).into_iter().filter_map(|row| Some((*row.first()?, *row.get(1)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arms_are_paired_by_seed_and_what_is_missing_is_not_known() {
        let report = Report::of(&json!({"baseline": "cascade", "steps": 600, "arms": [
            {"name": "cascade", "seed": 0, "loss": 2.0}, {"name": "cascade", "seed": 1, "loss": 3.0},
            {"name": "ancre", "seed": 1, "loss": null, "coefficients": [[1.0], [0.5, 0.5]]},
            {"name": "ancre", "seed": 0, "loss": 1.5, "curve": [[10.0, 4.0], [20.0, 3.0]]},
        ]}))
        .unwrap();
        let (ours, baseline) = report.pairs("ancre", "cascade", "loss");
        assert!(ours[0].is_nan() && ours[1] == 1.5 && baseline == [3.0, 2.0]);
        assert_eq!((report.names(), report.seeds("ancre")), (vec!["cascade", "ancre"], vec![1, 0]));
        assert_eq!(report.arms[3].curve("curve"), [(10.0, 4.0), (20.0, 3.0)]);
        assert_eq!((report.arms[2].rows("coefficients").len(), report.arms[0].numbers("none")), (2, vec![]));
        assert_eq!(Report::of(&json!({"groups": []})), None);
    }
}
