//! The sizes of an arc diagram, and what is the same for all layouts of a depth: nodes and layers.

use super::svg::Px;
use super::{HIDDEN, Kind, OUTPUT};
use crate::layout::Layout;
use crate::shortcut::Shortcut;

/// The colour of lines and names.
pub(super) const INK: &str = "#1f2430";
/// The colour of what explains.
pub(super) const MUTED: &str = "#6b7380";
/// The blank margin around the drawing.
pub(super) const MARGIN: f64 = 24.0;
/// More arcs than this are drawn thinner and paler.
pub(super) const CROWD: usize = 36;
/// Up to this many arrowheads fit on top of a node.
const ARROWS_PER_NODE: usize = 4;
/// The distance between nodes from which there is room for lettering.
const ROOMY: f64 = 60.0;

/// The sizes of a diagram, all in pixels; y grows downwards.
pub(super) struct Frame {
    depth: usize,
    /// The distance between neighbouring nodes.
    step: f64,
    /// The radius of a node.
    pub(super) radius: f64,
    /// The width of an arc of full strength in a drawing without weights.
    pub(super) line: f64,
    /// Whether arrowheads fit on top of the nodes.
    pub(super) has_arrowheads: bool,
    /// The power of the span by which the height of arcs grows.
    growth: f64,
    /// The x of node 0.
    left: f64,
    /// The y of the nodes.
    pub(super) baseline: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Frame {
    /// A frame for the shortcuts that are drawn and for the title.
    pub(super) fn new(drawn: &Layout, title: Option<&str>) -> Self {
        let depth = drawn.depth();
        let step: f64 = match depth {
            0..=4 => 112.0,
            5..=8 => 88.0,
            9..=16 => 64.0,
            17..=32 => 40.0,
            _ => 24.0,
        };
        // Arcs grow nearly like their span, and more slowly where the longest would exceed 300
        // pixels.
        let tallest = (300.0 / (0.4 * step)).ln() / (depth.max(2) as f64).ln();
        let radius = (step * 0.15).clamp(4.0, 14.0);
        let busiest = (1..=depth).map(|node| drawn.sources(node).count()).max().unwrap_or(0);
        let mut frame = Self {
            depth,
            step,
            radius,
            line: if step >= ROOMY && drawn.len() <= CROWD { 2.0 } else { 1.2 },
            has_arrowheads: step >= ROOMY && busiest <= ARROWS_PER_NODE,
            growth: tallest.min(0.92),
            left: 0.0,
            baseline: 0.0,
            width: 0.0,
            height: 0.0,
        };
        let chain = step * depth as f64;
        // A title of wide letters and the legend must fit too.
        let title_width = title.map_or(0.0, |title| 9.5 * title.chars().count() as f64);
        let content = (chain + 2.0 * radius + 24.0).max(title_width).max(300.0);
        let highest = drawn.iter().map(|shortcut| frame.arc_height(shortcut.span())).fold(10.0, f64::max);
        frame.width = content + 2.0 * MARGIN;
        frame.left = (frame.width - chain) / 2.0;
        frame.baseline = MARGIN + if title.is_some() { 32.0 } else { 0.0 } + highest + 10.0 + radius;
        frame.height = frame.baseline + radius + if drawn.is_empty() { 36.0 } else { 62.0 } + MARGIN;
        frame
    }

    fn x(&self, node: usize) -> f64 {
        self.left + self.step * node as f64
    }

    pub(super) fn arc_height(&self, span: usize) -> f64 {
        0.4 * self.step * (span as f64).powf(self.growth)
    }

    /// The point on the upper rim of a node, `side` being 1 on the right and -1 on the left.
    pub(super) fn rim(&self, node: usize, side: f64, spread: f64) -> (f64, f64) {
        let height = self.radius * (1.0 - spread * spread).sqrt();
        (self.x(node) + side * spread * self.radius, self.baseline - height)
    }

    pub(super) fn kind(&self, shortcut: Shortcut) -> Kind {
        if shortcut.target() == self.depth { OUTPUT } else { HIDDEN }
    }

    /// Whether there is room for names on the layers and for numbers on the arcs.
    pub(super) fn is_roomy(&self) -> bool {
        self.step >= ROOMY
    }

    /// The head of the document: size, description, arrowheads, background.
    pub(super) fn open(&self) -> String {
        let (width, height) = (Px(self.width), Px(self.height));
        let mut head = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" \
             font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n\
             <desc>Nodes from the input on the left to the output on the right, with shortcuts as arcs.</desc>\n\
             <defs>\n"
        );
        for (id, color) in [("along", MUTED), ("into-hidden", HIDDEN.color), ("into-output", OUTPUT.color)] {
            head += &format!(
                "<marker id=\"{id}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
                 markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0.8L8 4L0 7.2z\" fill=\"{color}\"/></marker>\n"
            );
        }
        head + "</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    }

    /// The layers between the nodes.
    pub(super) fn chain(&self) -> String {
        let gap = self.radius + 0.13 * self.step;
        let (box_width, box_height) = (self.step - 2.0 * gap, (self.step * 0.28).clamp(9.0, 26.0));
        let mut chain = String::new();
        for layer in 1..=self.depth {
            let (from, to) = (self.x(layer - 1), self.x(layer));
            let marker = if self.is_roomy() { " marker-end=\"url(#along)\"" } else { "" };
            chain += &format!(
                "<path d=\"M{} {y}H{}\" stroke=\"{MUTED}\" stroke-width=\"1.2\"{marker}/>\n\
                 <rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\" fill=\"#eef1f5\" stroke=\"#a9b2bf\"/>\n",
                Px(from),
                Px(to - self.radius),
                Px(from + gap),
                Px(self.baseline - box_height / 2.0),
                Px(box_width),
                Px(box_height),
                Px((box_height * 0.2).min(4.0)),
                y = Px(self.baseline),
            );
            if self.is_roomy() {
                chain += &indexed((from + to) / 2.0, self.baseline + 4.5, 14.0, 'B', layer);
            }
        }
        chain
    }

    /// The nodes with their names below.
    pub(super) fn nodes(&self) -> String {
        let mut nodes = String::new();
        let every = (34.0 / self.step).ceil() as usize;
        for node in 0..=self.depth {
            let is_end = node == 0 || node == self.depth;
            let fill = if is_end { "#dfe4ea" } else { "#ffffff" };
            nodes += &format!(
                "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{fill}\" stroke=\"{INK}\" stroke-width=\"1.4\"/>\n",
                Px(self.x(node)),
                Px(self.baseline),
                Px(self.radius),
            );
            let below = self.baseline + self.radius + 20.0;
            // Where names would touch, only some are written: the last one and those far enough
            // from it.
            if is_end || (node % every == 0 && self.depth - node >= every) {
                nodes += &indexed(self.x(node), below, 15.0, 'h', node);
            }
            if is_end {
                nodes += &format!(
                    "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"11\" fill=\"{MUTED}\">{}</text>\n",
                    Px(self.x(node)),
                    Px(below + 16.0),
                    if node == 0 { "input" } else { "output" },
                );
            }
        }
        nodes
    }
}

/// A letter with an index, as mathematics sets it.
fn indexed(x: f64, y: f64, size: f64, letter: char, index: usize) -> String {
    // Digits that are subscripts by themselves: renderers disagree on how to centre shifted spans.
    let digits = index.to_string().chars().filter_map(|c| char::from_u32(0x2080 + c.to_digit(10)?)).collect::<String>();
    format!(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-family=\"'STIX Two Text', 'Times New Roman', 'DejaVu Serif', \
         serif\" font-style=\"italic\" font-size=\"{}\" fill=\"{INK}\">{letter}{digits}</text>\n",
        Px(x),
        Px(y),
        Px(size),
    )
}
