//! What can be measured: models of the paper and of the CPU presets.

use std::{fmt, str::FromStr};

use anyhow::anyhow;
use experiments_diffusion::presets::{Preset as Diffusion, Size};
use experiments_llm::presets::Preset as Language;

/// A model, and how much of it takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A preset of the language model, with its whole vocabulary or with the layers nearly alone.
    Language(Language, Head),
    /// A preset of the diffusion model.
    Diffusion(Diffusion),
    /// The networks of contrastive reinforcement learning, small or with the paper's width and depth.
    Resnet(ResnetSize),
}

/// How many words embedding and head have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// As many as the preset.
    Whole,
    /// 256, so that the layers are nearly all.
    Small,
}

/// Which network of reinforcement learning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResnetSize {
    /// The smoke preset.
    Smoke,
    /// The CPU preset: 16 layers of width 32.
    Cpu,
    /// The paper's 16 layers of width 256.
    Depth16,
    /// The paper's 64.
    Depth64,
}

use Head::{Small, Whole};

/// Every shape with its name and what it is.
const NAMED: [(&str, Shape, &str); 17] = [
    ("llm-smoke", Shape::Language(Language::Smoke, Whole), "the smoke preset of the language model"),
    ("diffusion-smoke", Shape::Diffusion(Diffusion::Smoke), "the smoke preset of the diffusion model"),
    ("resnet-smoke", Shape::Resnet(ResnetSize::Smoke), "the smoke preset of reinforcement learning"),
    ("llm-cpu", Shape::Language(Language::Cpu, Whole), "the cpu preset: 12 layers of width 64"),
    ("diffusion-cpu", Shape::Diffusion(Diffusion::Cpu), "the cpu preset: 12 blocks of width 64"),
    ("resnet-cpu", Shape::Resnet(ResnetSize::Cpu), "the cpu preset: three networks of 4 blocks, width 32"),
    ("llama-60m", Shape::Language(Language::Llama60M, Small), "the paper's 8 layers of width 512, with 256 words"),
    ("llama-60m-head", Shape::Language(Language::Llama60M, Whole), "the same with 32,000 words"),
    ("llama-130m", Shape::Language(Language::Llama130M, Small), "the paper's 12 layers of width 768, with 256 words"),
    ("llama-130m-head", Shape::Language(Language::Llama130M, Whole), "the same with 32,000 words"),
    ("llama-350m", Shape::Language(Language::Llama350M, Small), "the paper's 24 layers of width 1024, with 256 words"),
    ("llama-350m-head", Shape::Language(Language::Llama350M, Whole), "the same with 32,000 words"),
    ("llama-1b", Shape::Language(Language::Llama1B, Small), "the paper's 24 layers of width 2048, with 256 words"),
    ("dit-s-2", Shape::Diffusion(Diffusion::Dit(Size::S, 2)), "DiT-S/2 on latents of 4 x 32 x 32"),
    ("dit-b-2", Shape::Diffusion(Diffusion::Dit(Size::B, 2)), "DiT-B/2 on latents of 4 x 32 x 32"),
    ("resnet-16", Shape::Resnet(ResnetSize::Depth16), "the paper's networks of 4 blocks, width 256"),
    ("resnet-64", Shape::Resnet(ResnetSize::Depth64), "the paper's networks of 16 blocks, width 256"),
];

impl Shape {
    /// All shapes with what they are, small ones first.
    pub fn all() -> impl Iterator<Item = (Self, &'static str)> {
        NAMED.into_iter().map(|(_, shape, purpose)| (shape, purpose))
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMED.iter().find(|(_, shape, _)| shape == self) {
            Some((name, ..)) => f.pad(name),
            // Another preset of the experiments.
            None => f.pad(&format!("{self:?}")),
        }
    }
}

impl FromStr for Shape {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = NAMED.iter().find(|(name, ..)| name.eq_ignore_ascii_case(text.trim()));
        found.map(|&(_, shape, _)| shape).ok_or_else(|| {
            let names: Vec<&str> = NAMED.iter().map(|&(name, ..)| name).collect();
            anyhow!("`{text}` is not a shape: give some of {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for (shape, _) in Shape::all() {
            assert_eq!(shape.to_string().parse::<Shape>().unwrap(), shape);
        }
        let message = "llama-7b".parse::<Shape>().unwrap_err().to_string();
        assert!(message.contains("llama-7b") && message.contains("llama-60m"), "{message}");
    }
}
