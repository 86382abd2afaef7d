//! Which optimizer, and which parameters get what.

use serde::{Deserialize, Serialize};

use super::{
    OptimizerError,
    galore::{self, Galore},
    update,
};

/// The update rule, in PyTorch's conventions.
///
/// In settings files: `optimizer.rule = { kind = "adamw", beta2 = 0.95 }`; numbers left out take PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Rule {
    /// Adam with decoupled weight decay (Loshchilov and Hutter 2019): `p *= 1 - lr wd`, then Adam's update.
    #[serde(rename = "adamw")]
    AdamW {
        /// Decay of the first moment.
        #[serde(default = "beta1")]
        beta1: f64,
        /// Decay of the second moment.
        #[serde(default = "beta2")]
        beta2: f64,
        /// Added to the root of the bias-corrected second moment.
        #[serde(default = "eps")]
        eps: f64,
        /// Divides by the largest second moment so far (Reddi, Kale and Kumar 2018).
        #[serde(default)]
        amsgrad: bool,
    },
    /// The AdamW of early versions of `transformers`, on which GaLore builds. `eps` is added to the root of the second moment
    /// before that is corrected for its bias; decay comes after the update:
    /// `p -= lr wd p`.
    #[serde(rename = "transformers-adamw")]
    TransformersAdamW {
        /// Decay of the first moment.
        #[serde(default = "beta1")]
        beta1: f64,
        /// Decay of the second moment.
        #[serde(default = "beta2")]
        beta2: f64,
        /// Added to the root of the uncorrected second moment; 1e-6 if left out, as there.
        #[serde(default = "transformers_eps")]
        eps: f64,
    },
    /// Adam (Kingma and Ba 2015); weight decay is an L2 penalty, added to the gradient.
    Adam {
        /// Decay of the first moment.
        #[serde(default = "beta1")]
        beta1: f64,
        /// Decay of the second moment.
        #[serde(default = "beta2")]
        beta2: f64,
        /// Added to the root of the bias-corrected second moment.
        #[serde(default = "eps")]
        eps: f64,
    },
    /// Stochastic gradient descent; weight decay is an L2 penalty, added to the gradient.
    Sgd {
        /// How much of the last direction is kept. The first direction is the first gradient, undamped.
        #[serde(default)]
        momentum: f64,
        /// How much less than the whole gradient enters the direction.
        #[serde(default)]
        dampening: f64,
        /// Looks one step ahead: the gradient plus `momentum` times the direction.
        #[serde(default)]
        nesterov: bool,
    },
}

fn beta1() -> f64 {
    0.9
}

fn beta2() -> f64 {
    0.999
}

fn eps() -> f64 {
    1e-8
}

fn transformers_eps() -> f64 {
    1e-6
}

impl Rule {
    /// AdamW with PyTorch's defaults.
    pub fn adamw() -> Self {
        Self::AdamW { beta1: beta1(), beta2: beta2(), eps: eps(), amsgrad: false }
    }

    /// The AdamW of early `transformers` with its defaults.
    pub fn transformers_adamw() -> Self {
        Self::TransformersAdamW { beta1: beta1(), beta2: beta2(), eps: transformers_eps() }
    }

    /// Adam with PyTorch's defaults.
    pub fn adam() -> Self {
        Self::Adam { beta1: beta1(), beta2: beta2(), eps: eps() }
    }

    /// Plain gradient descent.
    pub fn sgd() -> Self {
        Self::Sgd { momentum: 0.0, dampening: 0.0, nesterov: false }
    }
}

/// Parameters that are treated unlike the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParameterGroup {
    /// Patterns of names, in which `*` stands for any run of characters: `["*.bias", "*norm.gamma"]`. A parameter is in
    /// the group if one of them matches its whole name.
    pub parameters: Vec<String>,
    /// Their weight decay, if not that of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_decay: Option<f64>,
    /// Their learning rate, as a multiple of that of the others.
    #[serde(default = "one")]
    pub lr_factor: f64,
}

fn one() -> f64 {
    1.0
}

impl ParameterGroup {
    /// A group without weight decay.
    pub fn without_decay(patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let parameters = patterns.into_iter().map(Into::into).collect();
        Self { parameters, weight_decay: Some(0.0), lr_factor: 1.0 }
    }

    /// Whether the group holds the parameter `name`.
    pub fn matches(&self, name: &str) -> bool {
        self.parameters.iter().any(|pattern| matches_pattern(pattern, name))
    }
}

/// An optimizer as settings describe it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptimizerSettings {
    /// The update rule.
    pub rule: Rule,
    /// The weight decay of parameters that are in no group of their own.
    #[serde(default)]
    pub weight_decay: f64,
    /// Which matrices are updated in a few directions of their gradient only; unset means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub galore: Option<Galore>,
    /// Parameters that are treated unlike the others. The first group that matches a parameter has it.
    #[serde(default)]
    pub groups: Vec<ParameterGroup>,
}

impl Default for OptimizerSettings {
    /// AdamW without weight decay, as in the paper's language models.
    fn default() -> Self {
        Self { rule: Rule::adamw(), weight_decay: 0.0, galore: None, groups: Vec::new() }
    }
}

impl OptimizerSettings {
    /// Weight decay and learning-rate factor of a parameter.
    pub fn of(&self, name: &str) -> (f64, f64) {
        match self.groups.iter().find(|group| group.matches(name)) {
            Some(group) => (group.weight_decay.unwrap_or(self.weight_decay), group.lr_factor),
            None => (self.weight_decay, 1.0),
        }
    }

    /// The patterns that match none of the names: a misspelled one, or one for a part that this model lacks.
    pub fn unmatched_patterns<'a>(&self, names: impl IntoIterator<Item = &'a str> + Clone) -> Vec<String> {
        let projected = self.galore.iter().flat_map(|galore| &galore.parameters);
        let patterns = self.groups.iter().flat_map(|group| &group.parameters).chain(projected);
        patterns
            .filter(|pattern| !names.clone().into_iter().any(|name| matches_pattern(pattern, name)))
            .cloned()
            .collect()
    }

    /// How many numbers the optimizer keeps for a parameter of this name and these sizes.
    pub fn state_elements(&self, name: &str, dims: &[usize]) -> usize {
        self.state_shapes(name, dims).iter().map(|(_, shape)| shape.iter().product::<usize>()).sum()
    }

    /// The tensors that the optimizer keeps for a parameter, with their names and shapes.
    pub(super) fn state_shapes(&self, name: &str, dims: &[usize]) -> Vec<(&'static str, Vec<usize>)> {
        let slots = update::slots(self.rule).iter();
        match (self.galore.as_ref().and_then(|galore| galore.projection(name, dims)), dims) {
            (Some(projection), &[inputs, outputs]) => {
                let moments = projection.moments([inputs, outputs]).to_vec();
                let basis = (galore::BASIS, projection.basis([inputs, outputs]).to_vec());
                slots.map(|slot| (*slot, moments.clone())).chain([basis]).collect()
            }
            _ => slots.map(|slot| (*slot, dims.to_vec())).collect(),
        }
    }

    /// # Errors
    /// If a number is out of range.
    pub fn validate(&self) -> Result<(), OptimizerError> {
        let fraction = |name: &'static str, value: f64| match (0.0..1.0).contains(&value) {
            true => Ok(()),
            false => Err(OptimizerError::Setting { name, value, range: "at least 0 and below 1" }),
        };
        // Tensors are of single precision as a rule, and a larger number would be infinite there.
        let not_negative = |name: &'static str, value: f64| match (0.0..=f64::from(f32::MAX)).contains(&value) {
            true => Ok(()),
            false => Err(OptimizerError::Setting { name, value, range: "a finite number of at least 0" }),
        };
        match self.rule {
            Rule::AdamW { beta1, beta2, eps, .. }
            | Rule::TransformersAdamW { beta1, beta2, eps }
            | Rule::Adam { beta1, beta2, eps } => {
                fraction("beta1", beta1)?;
                fraction("beta2", beta2)?;
                not_negative("eps", eps)?;
            }
            Rule::Sgd { momentum, dampening, nesterov } => {
                not_negative("momentum", momentum)?;
                not_negative("dampening", dampening)?;
                if nesterov && momentum == 0.0 {
                    return Err(OptimizerError::Setting {
                        name: "momentum",
                        value: 0.0,
                        range: "above 0 with nesterov",
                    });
                }
                if nesterov && dampening != 0.0 {
                    return Err(OptimizerError::Setting {
                        name: "dampening",
                        value: dampening,
                        range: "0 with nesterov",
                    });
                }
            }
        }
        if let Some(galore) = &self.galore {
            galore.validate()?;
            if !matches!(self.rule, Rule::TransformersAdamW { .. }) {
                return Err(OptimizerError::GaloreRule);
            }
        }
        not_negative("weight_decay", self.weight_decay)?;
        for group in &self.groups {
            not_negative("weight_decay of a group", group.weight_decay.unwrap_or(0.0))?;
            not_negative("lr_factor of a group", group.lr_factor)?;
        }
        Ok(())
    }
}

/// # Errors
/// If the number is 0.
pub(super) fn positive(name: &'static str, value: usize) -> Result<(), OptimizerError> {
    match value {
        0 => Err(OptimizerError::Setting { name, value: 0.0, range: "at least 1" }),
        _ => Ok(()),
    }
}

/// Whether `name` matches `pattern` as a whole, where `*` stands for any run of characters.
pub(super) fn matches_pattern(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut pieces = rest.split('*');
    // `rest` has at least one piece; the last one must end the name.
    let Some(last) = pieces.next_back() else { return true };
    for piece in pieces {
        match name.find(piece) {
            Some(at) => name = &name[at + piece.len()..],
            None => return false,
        }
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("layers.0.weight", "layers.0.weight", true),
            ("layers.0.weight", "layers.0.weights", false),
            ("*", "", true),
            ("*.bias", "layers.0.bias", true),
            ("*.bias", "bias", false),
            ("*bias", "bias", true),
            ("layers.*.weight", "layers.10.attention.weight", true),
            ("layers.*.weight", "layers.weight", false),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("a*a", "a", false),
            ("*ab*b", "ab", false),
        ] {
            assert_eq!(matches_pattern(pattern, name), expected, "{pattern} {name}");
        }
    }

    proptest! {
        #[test]
        fn patterns_agree_with_the_definition(pattern in "[ab*]{0,7}", name in "[ab]{0,9}") {
            fn matches(pattern: &[u8], name: &[u8]) -> bool {
                match pattern {
                    [] => name.is_empty(),
                    [b'*', rest @ ..] => (0..=name.len()).any(|skipped| matches(rest, &name[skipped..])),
                    [first, rest @ ..] => name.first() == Some(first) && matches(rest, &name[1..]),
                }
            }
            prop_assert_eq!(matches_pattern(&pattern, &name), matches(pattern.as_bytes(), name.as_bytes()));
        }
    }

    #[test]
    fn the_first_group_that_matches_decides() {
        let groups = vec![
            ParameterGroup::without_decay(["*.bias", "*.gamma"]),
            ParameterGroup { parameters: vec!["head.*".into()], weight_decay: None, lr_factor: 0.5 },
        ];
        let settings = OptimizerSettings { weight_decay: 0.1, groups, ..Default::default() };
        assert_eq!(settings.of("layers.0.weight"), (0.1, 1.0));
        assert_eq!(settings.of("head.bias"), (0.0, 1.0));
        assert_eq!(settings.of("head.weight"), (0.1, 0.5));
        assert_eq!(settings.unmatched_patterns(["head.bias", "head.weight"]), ["*.gamma"]);
    }

    #[test]
    fn settings_files_need_only_what_differs_from_pytorch() {
        let text = "rule = { kind = \"adamw\", beta2 = 0.95 }\nweight_decay = 0.1\n\
                    [[groups]]\nparameters = [\"*.bias\"]\nweight_decay = 0";
        let settings: OptimizerSettings = toml::from_str(text).unwrap();
        assert_eq!(settings.rule, Rule::AdamW { beta1: 0.9, beta2: 0.95, eps: 1e-8, amsgrad: false });
        assert_eq!(settings.groups, [ParameterGroup::without_decay(["*.bias"])]);
        let again: OptimizerSettings = toml::from_str(&toml::to_string(&settings).unwrap()).unwrap();
        assert_eq!(again, settings);
        let text = "rule = { kind = \"transformers-adamw\" }\n[galore]\nparameters = [\"*attn*\"]\nrank = 8";
        let settings: OptimizerSettings = toml::from_str(text).unwrap();
        let galore = Some(Galore { parameters: vec!["*attn*".into()], rank: 8, refresh_every: 200, scale: 0.25 });
        assert_eq!((settings.rule, &settings.galore), (Rule::transformers_adamw(), &galore));
        let again: OptimizerSettings = toml::from_str(&toml::to_string(&settings).unwrap()).unwrap();
        assert_eq!(again, settings);
        assert!(toml::from_str::<OptimizerSettings>("rule = { kind = \"adamw\", beta3 = 1 }").is_err());
    }

    #[test]
    fn numbers_out_of_range_are_named() {
        let rule = |rule| OptimizerSettings { rule, ..Default::default() };
        let galore = |galore| OptimizerSettings { galore: Some(galore), ..rule(Rule::transformers_adamw()) };
        let group = |weight_decay, lr_factor| {
            let group = ParameterGroup { parameters: vec!["*".into()], weight_decay, lr_factor };
            OptimizerSettings { groups: vec![group], ..Default::default() }
        };
        for (settings, name) in [
            (rule(Rule::Adam { beta1: 1.0, beta2: 0.9, eps: 1e-8 }), "beta1"),
            (rule(Rule::Adam { beta1: 0.0, beta2: f64::NAN, eps: 1e-8 }), "beta2"),
            (rule(Rule::Adam { beta1: 0.0, beta2: 0.0, eps: -1.0 }), "eps"),
            (rule(Rule::TransformersAdamW { beta1: 0.9, beta2: 0.9, eps: f64::NAN }), "eps"),
            (galore(Galore { rank: 0, ..Galore::new(["*"], 1) }), "galore.rank"),
            (galore(Galore { refresh_every: 0, ..Galore::new(["*"], 1) }), "galore.refresh_every"),
            (galore(Galore { scale: f64::NAN, ..Galore::new(["*"], 1) }), "galore.scale"),
            (galore(Galore { scale: 0.0, ..Galore::new(["*"], 1) }), "galore.scale"),
            (OptimizerSettings { rule: Rule::adamw(), ..galore(Galore::new(["*"], 1)) }, "`transformers-adamw`"),
            (rule(Rule::Sgd { momentum: 0.0, dampening: 0.0, nesterov: true }), "momentum"),
            (rule(Rule::Sgd { momentum: 0.9, dampening: 0.1, nesterov: true }), "dampening"),
            (rule(Rule::AdamW { beta1: 0.0, beta2: 0.0, eps: f64::INFINITY, amsgrad: false }), "eps"),
            (rule(Rule::Sgd { momentum: f64::NAN, dampening: 0.0, nesterov: false }), "momentum"),
            (rule(Rule::Sgd { momentum: 0.9, dampening: f64::NAN, nesterov: false }), "dampening"),
            (OptimizerSettings { weight_decay: -0.1, ..Default::default() }, "weight_decay"),
            (OptimizerSettings { weight_decay: f64::NAN, ..Default::default() }, "weight_decay"),
            (OptimizerSettings { weight_decay: 1e39, ..Default::default() }, "weight_decay"),
            (group(Some(f64::NAN), 1.0), "weight_decay of a group"),
            (group(None, f64::NAN), "lr_factor"),
            (group(None, f64::INFINITY), "lr_factor"),
            (group(None, -1.0), "lr_factor"),
        ] {
            let message = settings.validate().unwrap_err().to_string();
            assert!(message.contains(name), "{message}");
        }
        OptimizerSettings::default().validate().unwrap();
    }
}
