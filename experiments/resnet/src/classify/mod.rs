//! Image classification with deep residual networks: how deep a network with and without ANCRe is still quick to train.

mod program;
mod report;
mod settings;
mod task;

pub use program::{ClassifyArgs, ClassifyProgram};
pub use settings::{DataSettings, EvaluationSettings, Settings, SettingsError};
pub use task::{Classification, Classifiers, Images, metric};
