//! Lines whose reader may have gone.

use std::{
    fmt::Display,
    io::{self, Write},
};

/// A line on the standard output. Whoever reads it may have gone (`| head`); that is no fault.
pub fn say(text: impl Display) {
    let _ = writeln!(io::stdout(), "{text}");
}

/// A line on the standard error output, likewise.
pub fn note(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}
