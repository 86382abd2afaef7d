//! The kit with an experiment that is a toy.

mod comparison;
mod state_dict;
mod toy;
