//! Residual-connection layouts as data.
//!
//! A stack of K layers passes its state along a chain of nodes: `h_0` is the input and `h_l` the
//! output of layer l. A *shortcut* `i:j` adds the state of node i to the state of node j, and a
//! *layout* is the set of shortcuts that a network has. Which layout is best is an empirical and a
//! mathematical question; this crate is the common ground for both. It reads and writes layouts
//! (`0:2+2:3`), goes through all of them, counts the paths that decide how training starts, finds
//! which layouts amount to the same network, holds the coefficients that a learned layout is made
//! of, and draws all this. It knows no tensor library and depends on nothing that trains.
//!
//! ```
//! use connection_layout::{ArcDiagram, Coefficients, Direction, Layout};
//!
//! // A layout is read in the notation of the field, or by name.
//! let layout = Layout::parse("0:2+2:3", 4)?;
//! assert_eq!(Layout::parse("hidden-cascade", 4)?.to_string(), "0:1+1:2+2:3");
//!
//! // A path of shortcuts leads from the input to the last hidden node: training starts fast.
//! assert!(layout.is_fast());
//! assert_eq!(layout.pure_paths().kappa0(), 1.0);
//! assert_eq!(Layout::all_hidden_only(4)?.filter(Layout::is_fast).count(), 47);
//!
//! // Learned layouts are softmax-mixed; at temperature 0.01 small logits already decide.
//! let logits = Coefficients::from_rows([vec![0.0], vec![0.02, 0.0], vec![0.0, 0.0, 0.05]])?;
//! let mixed = logits.softmax(Direction::Incoming, 0.01)?;
//! assert_eq!(mixed.layout_above(0.5).to_string(), "0:1+0:2+2:3");
//!
//! let svg = ArcDiagram::of_coefficients(&mixed).title("after training").to_svg();
//! # assert!(svg.contains("after training"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Conventions
//!
//! * Nodes are numbered from 0, the input, to K, the output. Layers and blocks are numbered from 1,
//!   and layer l leads from node l-1 to node l.
//! * Lists are ordered by target, then by source: 0:1, 0:2, 1:2, 0:3, ... ([`Shortcut`]).
//! * A layout is *hidden-only* when no shortcut ends in the output. The two conventions behave
//!   differently in training, so that every count here says which one it is about.
//! * Bad input is an error with a message for people ([`LayoutError`], [`ParseLayoutError`],
//!   [`CoefficientsError`]), never a panic.

mod bits;
mod coefficients;
mod diagram;
mod enumerate;
mod layout;
mod named;
mod normalize;
mod notation;
mod paths;
mod reduced;
mod shortcut;
#[cfg(test)]
mod strategies;

pub use coefficients::{Coefficients, CoefficientsError};
pub use diagram::ArcDiagram;
pub use enumerate::{Layouts, MAX_ENUMERATED_DEPTH, hidden_only_count, layout_count};
pub use layout::{Layout, LayoutError, MAX_DEPTH};
pub use named::NamedLayout;
pub use normalize::Direction;
pub use notation::{NotationProblem, ParseLayoutError};
pub use paths::PurePaths;
pub use reduced::ReducedNet;
pub use shortcut::Shortcut;
