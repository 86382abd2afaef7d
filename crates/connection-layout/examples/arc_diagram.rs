//! Draws a layout: `cargo run -p connection-layout --example arc_diagram -- 4 0:2+2:3 > layout.svg`
//!
//! The first argument is the depth, the second one a layout or its name.

use std::process::ExitCode;

use connection_layout::{ArcDiagram, Layout};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [depth, text] = arguments.as_slice() else {
        eprintln!("usage: arc_diagram DEPTH LAYOUT, for example: arc_diagram 4 0:2+2:3");
        return ExitCode::from(2);
    };
    let Ok(depth) = depth.parse() else {
        eprintln!("the depth `{depth}` is not a number of layers");
        return ExitCode::from(2);
    };
    match Layout::parse(text, depth) {
        Ok(layout) => {
            let title = format!("{text} at depth {depth}");
            print!("{}", ArcDiagram::of_layout(&layout).title(title).to_svg());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(1)
        }
    }
}
