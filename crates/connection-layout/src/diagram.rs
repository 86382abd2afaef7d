//! Arc diagrams: the nodes of a stack on a line, the layers between them, the shortcuts as arcs
//! above.

mod frame;
mod svg;

use frame::{CROWD, Frame, INK, MARGIN, MUTED};
use svg::{Decimals, Escaped, Px};

use crate::coefficients::Coefficients;
use crate::layout::Layout;
use crate::shortcut::Shortcut;

/// A drawing of a layout, or of coefficients, as an SVG document.
///
/// The stack runs from left to right. Blue arcs end in hidden nodes and orange ones in the output;
/// an arc is the higher the more layers it passes. For coefficients, width and opacity follow the
/// absolute value, and arcs below zero are dashed. The same input gives the same bytes.
///
/// ```
/// use connection_layout::{ArcDiagram, Layout};
///
/// let layout = Layout::parse("0:2+2:3", 4)?;
/// let svg = ArcDiagram::of_layout(&layout).title("0:2+2:3 at K = 4").to_svg();
/// assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
/// # Ok::<(), connection_layout::ParseLayoutError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ArcDiagram {
    coefficients: Coefficients,
    weighted: bool,
    title: Option<String>,
}

/// Shortcuts into a hidden node.
const HIDDEN: Kind = Kind { id: "hidden", color: "#2563a8", legend: "into a hidden node" };
/// Shortcuts into the output node, which many questions turn on.
const OUTPUT: Kind = Kind { id: "output", color: "#d9661f", legend: "into the output" };

/// Weighted arcs that carry less than this share of the largest coefficient are left out.
const FAINTEST: f64 = 0.005;
/// Up to this many weighted arcs are labelled with their coefficient.
const LABELLED_ARCS: usize = 15;

struct Kind {
    id: &'static str,
    color: &'static str,
    legend: &'static str,
}

impl ArcDiagram {
    /// A drawing of a layout, with all arcs alike.
    pub fn of_layout(layout: &Layout) -> Self {
        Self { coefficients: Coefficients::from_layout(layout), weighted: false, title: None }
    }

    /// A drawing of coefficients, with the larger ones wider and darker. Those below half a percent
    /// of the largest are left out.
    pub fn of_coefficients(coefficients: &Coefficients) -> Self {
        Self { coefficients: coefficients.clone(), weighted: true, title: None }
    }

    /// Puts a line of text above the drawing.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// The drawing as an SVG document of its own.
    pub fn to_svg(&self) -> String {
        let drawn = self.coefficients.layout_above(FAINTEST * self.largest());
        let arcs = self.arcs(&drawn);
        let frame = Frame::new(&drawn, self.title.as_deref());
        let mut svg = frame.open();
        if let Some(title) = &self.title {
            svg += &format!(
                "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"16\" font-weight=\"600\" \
                 fill=\"{INK}\">{}</text>\n",
                Px(frame.width / 2.0),
                Px(MARGIN + 12.0),
                Escaped(title)
            );
        }
        svg += &frame.chain();
        svg += &self.curves(&frame, &arcs);
        svg += &frame.nodes();
        svg += &self.legend(&frame, &arcs);
        svg + "</svg>\n"
    }

    /// The largest coefficient in absolute value.
    fn largest(&self) -> f64 {
        self.coefficients.iter().map(|(_, value)| value.abs()).fold(0.0, f64::max)
    }

    /// The arcs of the shortcuts that are drawn, the strongest last so that it lies on top.
    fn arcs(&self, drawn: &Layout) -> Vec<Arc> {
        let largest = self.largest();
        let mut arcs: Vec<Arc> = self
            .coefficients
            .iter()
            .filter(|(shortcut, _)| drawn.contains(shortcut.source(), shortcut.target()))
            .map(|(shortcut, value)| Arc {
                shortcut,
                value,
                strength: value.abs() / largest,
                leaves: spread(shortcut.target(), drawn.targets(shortcut.source()).rev()),
                enters: spread(shortcut.source(), drawn.sources(shortcut.target())),
            })
            .collect();
        // A stable sort: equal arcs stay in the order of shortcuts.
        arcs.sort_by(|a, b| a.strength.total_cmp(&b.strength));
        arcs
    }

    fn curves(&self, frame: &Frame, arcs: &[Arc]) -> String {
        let mut curves = String::from("<g fill=\"none\" stroke-linecap=\"round\">\n");
        let mut labels = String::new();
        let largest = self.largest();
        // Many equal arcs would merge into a solid shape.
        let crowding = if arcs.len() > CROWD { 0.6 } else { 1.0 };
        for arc in arcs {
            let (shortcut, kind) = (arc.shortcut, frame.kind(arc.shortcut));
            let (from_x, from_y) = frame.rim(shortcut.source(), 1.0, arc.leaves);
            let (to_x, to_y) = frame.rim(shortcut.target(), -1.0, arc.enters);
            let rise = frame.arc_height(shortcut.span());
            // The top of a cubic with vertical ends lies at 3/4 of the height of its handles.
            let handle = Px(frame.baseline - frame.radius - rise * 4.0 / 3.0);
            curves += &format!(
                "<path d=\"M{0} {1}C{0} {handle} {2} {handle} {2} {3}\" stroke=\"{4}\" stroke-width=\"{5}\"",
                Px(from_x),
                Px(from_y),
                Px(to_x),
                Px(to_y),
                kind.color,
                Px(if self.weighted { 0.8 + 4.4 * arc.strength } else { frame.line }),
            );
            let opacity = if self.weighted { 0.15 + 0.85 * arc.strength.sqrt() } else { crowding };
            if opacity < 1.0 {
                curves += &format!(" opacity=\"{}\"", Decimals(opacity, 2));
            }
            if arc.value < 0.0 {
                curves += " stroke-dasharray=\"5 4\"";
            }
            if frame.has_arrowheads && !self.weighted {
                curves += &format!(" marker-end=\"url(#into-{})\"", kind.id);
            }
            curves += "/>\n";
            if self.weighted && frame.is_roomy() && arcs.len() <= LABELLED_ARCS {
                labels += &label(
                    (from_x + to_x) / 2.0,
                    frame.baseline - frame.radius - rise,
                    &short_number(arc.value, largest),
                    kind.color,
                );
            }
        }
        curves + "</g>\n" + &labels
    }

    fn legend(&self, frame: &Frame, arcs: &[Arc]) -> String {
        let y = frame.height - MARGIN + 6.0;
        let text = |x: f64, text: &str| {
            let (x, y) = (Px(x), Px(y));
            format!("<text x=\"{x}\" y=\"{y}\" font-size=\"11\" fill=\"{MUTED}\">{text}</text>\n")
        };
        let mut legend = String::new();
        let mut x = MARGIN;
        for kind in [HIDDEN, OUTPUT] {
            if arcs.iter().any(|arc| frame.kind(arc.shortcut).id == kind.id) {
                let (from, to, line) = (Px(x), Px(x + 18.0), Px(y - 4.0));
                legend += &format!(
                    "<path d=\"M{from} {line}H{to}\" stroke=\"{}\" stroke-width=\"2.5\" stroke-linecap=\"round\"/>\n",
                    kind.color
                );
                legend += &text(x + 24.0, kind.legend);
                x += 38.0 + 5.6 * kind.legend.len() as f64;
            }
        }
        if let (true, Some(strongest)) = (self.weighted, arcs.last()) {
            let largest = short_number(strongest.value, strongest.value.abs());
            legend += &text(x, &format!("widest arc: {largest}"));
        }
        legend
    }
}

/// One arc of a diagram.
struct Arc {
    shortcut: Shortcut,
    value: f64,
    /// The absolute value relative to the largest one, in (0, 1].
    strength: f64,
    /// Where the arc leaves its source, from 0 at the top of the node to 1 at its right.
    leaves: f64,
    /// Where the arc enters its target, from 0 at the top of the node to 1 at its left.
    enters: f64,
}

/// The place of an arc on the rim of a node, from the other ends of all arcs on that side of the
/// node, the farthest first.
///
/// The longest arc is the outermost one and ends nearest to the top, so that the arcs of one node
/// do not cross there.
fn spread(other_end: usize, ends: impl Iterator<Item = usize>) -> f64 {
    let ends: Vec<usize> = ends.collect();
    let longer = ends.iter().take_while(|&&end| end != other_end).count();
    0.92 * (longer as f64 + 0.5) / ends.len() as f64
}

/// A coefficient in few characters, given the largest one of the diagram.
fn short_number(value: f64, largest: f64) -> String {
    if (0.1..1000.0).contains(&largest) { format!("{value:.2}") } else { format!("{value:.1e}") }
}

/// A number on a white plate, centred on a point.
fn label(x: f64, y: f64, text: &str, color: &str) -> String {
    let width = 6.4 * text.len() as f64 + 6.0;
    format!(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"15\" rx=\"3\" fill=\"#ffffff\"/>\n\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"11\" fill=\"{color}\">{text}</text>\n",
        Px(x - width / 2.0),
        Px(y - 7.5),
        Px(width),
        Px(x),
        Px(y + 4.0),
    )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;
    use crate::normalize::Direction;
    use crate::strategies::{any_layout, coefficients};
    use crate::{MAX_DEPTH, NamedLayout};

    fn svg(depth: usize, text: &str) -> String {
        ArcDiagram::of_layout(&Layout::parse(text, depth).unwrap()).to_svg()
    }

    /// How many arcs a drawing has: they are the only curves.
    fn curves(svg: &str) -> usize {
        svg.lines().filter(|line| line.starts_with("<path") && line.contains('C')).count()
    }

    #[test]
    fn a_small_diagram_in_full() {
        expect![[r##"
            <svg xmlns="http://www.w3.org/2000/svg" width="348" height="232.8" viewBox="0 0 348 232.8" role="img" font-family="Helvetica, Arial, 'DejaVu Sans', sans-serif">
            <desc>Nodes from the input on the left to the output on the right, with shortcuts as arcs.</desc>
            <defs>
            <marker id="along" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0.8L8 4L0 7.2z" fill="#6b7380"/></marker>
            <marker id="into-hidden" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0.8L8 4L0 7.2z" fill="#2563a8"/></marker>
            <marker id="into-output" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0.8L8 4L0 7.2z" fill="#d9661f"/></marker>
            </defs>
            <rect width="100%" height="100%" fill="#ffffff"/>
            <path d="M62 132.8H160" stroke="#6b7380" stroke-width="1.2" marker-end="url(#along)"/>
            <rect x="90.6" y="119.8" width="54.9" height="26" rx="4" fill="#eef1f5" stroke="#a9b2bf"/>
            <text x="118" y="137.3" text-anchor="middle" font-family="'STIX Two Text', 'Times New Roman', 'DejaVu Serif', serif" font-style="italic" font-size="14" fill="#1f2430">B₁</text>
            <path d="M174 132.8H272" stroke="#6b7380" stroke-width="1.2" marker-end="url(#along)"/>
            <rect x="202.6" y="119.8" width="54.9" height="26" rx="4" fill="#eef1f5" stroke="#a9b2bf"/>
            <text x="230" y="137.3" text-anchor="middle" font-family="'STIX Two Text', 'Times New Roman', 'DejaVu Serif', serif" font-style="italic" font-size="14" fill="#1f2430">B₂</text>
            <g fill="none" stroke-linecap="round">
            <path d="M71.7 122.6C71.7 59 167.6 59 167.6 120.3" stroke="#2563a8" stroke-width="2" marker-end="url(#into-hidden)"/>
            <path d="M65.2 119.1C65.2 5.7 279.6 5.7 279.6 120.3" stroke="#d9661f" stroke-width="2" marker-end="url(#into-output)"/>
            </g>
            <circle cx="62" cy="132.8" r="14" fill="#dfe4ea" stroke="#1f2430" stroke-width="1.4"/>
            <text x="62" y="166.8" text-anchor="middle" font-family="'STIX Two Text', 'Times New Roman', 'DejaVu Serif', serif" font-style="italic" font-size="15" fill="#1f2430">h₀</text>
            <text x="62" y="182.8" text-anchor="middle" font-size="11" fill="#6b7380">input</text>
            <circle cx="174" cy="132.8" r="14" fill="#ffffff" stroke="#1f2430" stroke-width="1.4"/>
            <text x="174" y="166.8" text-anchor="middle" font-family="'STIX Two Text', 'Times New Roman', 'DejaVu Serif', serif" font-style="italic" font-size="15" fill="#1f2430">h₁</text>
            <circle cx="286" cy="132.8" r="14" fill="#dfe4ea" stroke="#1f2430" stroke-width="1.4"/>
            <text x="286" y="166.8" text-anchor="middle" font-family="'STIX Two Text', 'Times New Roman', 'DejaVu Serif', serif" font-style="italic" font-size="15" fill="#1f2430">h₂</text>
            <text x="286" y="182.8" text-anchor="middle" font-size="11" fill="#6b7380">output</text>
            <path d="M24 210.8H42" stroke="#2563a8" stroke-width="2.5" stroke-linecap="round"/>
            <text x="48" y="214.8" font-size="11" fill="#6b7380">into a hidden node</text>
            <path d="M162.8 210.8H180.8" stroke="#d9661f" stroke-width="2.5" stroke-linecap="round"/>
            <text x="186.8" y="214.8" font-size="11" fill="#6b7380">into the output</text>
            </svg>
        "##]].assert_eq(&svg(2, "0:1+0:2"));
    }

    #[test]
    fn weighted_arcs_carry_width_opacity_sign_and_number() {
        let rows = [vec![1.0], vec![-0.25, 0.004], vec![0.5, 0.0, 0.0]];
        let svg = ArcDiagram::of_coefficients(&Coefficients::from_rows(rows).unwrap()).to_svg();
        let arcs: Vec<&str> = svg.lines().filter(|l| l.starts_with("<path") && l.contains('C')).collect();
        expect![[r##"
            <path d="M56.4 158.7C56.4 44.1 267.6 44.1 267.6 158.7" stroke="#2563a8" stroke-width="1.9" opacity="0.57" stroke-dasharray="5 4"/>
            <path d="M52.1 157.3C52.1 -7 379.6 -7 379.6 158.7" stroke="#d9661f" stroke-width="3" opacity="0.75"/>
            <path d="M60.7 162.1C60.7 97.4 155.6 97.4 155.6 158.7" stroke="#2563a8" stroke-width="5.2"/>"##]].assert_eq(&arcs.join("\n"));
        assert!(svg.contains(">-0.25</text>") && svg.contains(">widest arc: 1.00</text>"));
        assert!(!svg.contains(">0.00</text>"));
    }

    #[test]
    fn titles_are_escaped() {
        let layout = Layout::none(2).unwrap();
        let svg = ArcDiagram::of_layout(&layout).title("a < b & \"c\"\u{0}</svg>").to_svg();
        assert!(svg.contains("a &lt; b &amp; &quot;c&quot;\u{fffd}&lt;/svg&gt;</text>"));
        assert_eq!(svg.matches("</svg>").count(), 1);
    }

    #[test]
    fn an_empty_diagram_has_no_arcs_and_no_legend() {
        let svg = svg(4, "none");
        assert_eq!(curves(&svg), 0);
        assert!(!svg.contains("into a") && !svg.contains("into the"));
        let zeros = Coefficients::from_layout(&Layout::none(4).unwrap());
        assert_eq!(curves(&ArcDiagram::of_coefficients(&zeros).to_svg()), 0);
    }

    #[test]
    fn the_deepest_diagram_is_drawn_in_full() {
        let svg = ArcDiagram::of_layout(&NamedLayout::Dense.at_depth(MAX_DEPTH).unwrap()).to_svg();
        assert_eq!(curves(&svg), MAX_DEPTH * (MAX_DEPTH + 1) / 2);
        assert!(svg.contains(">h₂₅₆</text>") && !svg.contains(">h₂₅₅</text>"));
    }

    #[test]
    fn tiny_and_huge_coefficients_are_written_briefly() {
        assert_eq!(short_number(0.5, 1.0), "0.50");
        assert_eq!(short_number(2e-5, 3e-5), "2.0e-5");
        assert_eq!(short_number(-2e7, 3e7), "-2.0e7");
    }

    proptest! {
        #[test]
        fn every_shortcut_is_one_arc_and_all_numbers_are_finite(layout in any_layout()) {
            let svg = ArcDiagram::of_layout(&layout).to_svg();
            prop_assert_eq!(curves(&svg), layout.len());
            prop_assert!(!svg.contains("NaN") && !svg.contains("inf"));
        }

        #[test]
        fn softmax_coefficients_are_drawn_from_weak_to_strong(logits in coefficients(9, -9.0..9.0)) {
            let mixed = logits.softmax(Direction::Incoming, 1.0).unwrap();
            let svg = ArcDiagram::of_coefficients(&mixed).to_svg();
            let widths: Vec<f64> = svg
                .lines()
                .filter(|line| line.starts_with("<path") && line.contains('C'))
                .map(|line| line.split("stroke-width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
                .collect();
            prop_assert!(widths.is_sorted());
            prop_assert_eq!(widths.len(), mixed.layout_above(0.005).len());
        }
    }
}
