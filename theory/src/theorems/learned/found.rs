//! Which layout a softmax has settled on.

use std::fmt;

use connection_layout::{Coefficients, Layout};

use crate::network::LinearNet;

/// A share above this counts as settled.
pub const SETTLED: f64 = 0.9;

/// The layout that a softmax has found.
///
/// A node with a single choice has its share frozen at 1: node 1 of an incoming softmax takes 0:1 whatever is learned.
/// Such shortcuts are written in brackets: `[0:1]+1:2` learned 1:2 alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    coefficients: Coefficients,
    frozen: Layout,
    largest: Vec<f64>,
}

impl Found {
    pub(super) fn new(net: &LinearNet, coefficients: Coefficients) -> Self {
        let wiring = net.wiring();
        let groups = wiring.learned.iter().flat_map(|(_, groups)| groups);
        let (mut largest, mut lone) = (Vec::new(), Vec::new());
        for group in groups {
            let edges = group.iter().map(|&e| (wiring.edges[e].source, wiring.edges[e].target));
            if group.len() == 1 {
                lone.extend(edges);
            } else {
                largest.push(edges.filter_map(|(i, j)| coefficients.get(i, j)).fold(0.0, f64::max));
            }
        }
        // The edges of a network are distinct shortcuts of its depth.
        let frozen = Layout::new(net.depth(), lone).unwrap_or_else(|error| unreachable!("{error}"));
        Self { coefficients, frozen, largest }
    }

    /// The coefficients.
    pub fn coefficients(&self) -> &Coefficients {
        &self.coefficients
    }

    /// The shortcuts with a coefficient above 1/2, the frozen ones included.
    pub fn layout(&self) -> Layout {
        self.coefficients.layout_above(0.5)
    }

    /// The shortcuts that had no rival.
    pub fn frozen(&self) -> &Layout {
        &self.frozen
    }

    /// The smallest over nodes of a node's largest share: 1 where every choice is made. 1 where there is no choice.
    pub fn decision(&self) -> f64 {
        self.largest.iter().copied().fold(1.0, f64::min)
    }

    /// Whether some node still divides itself: its largest share is at most [`SETTLED`].
    pub fn is_mixed(&self) -> bool {
        self.decision() <= SETTLED
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for shortcut in self.layout().iter() {
            let lone = self.frozen.contains(shortcut.source(), shortcut.target());
            let (open, close) = if lone { ("[", "]") } else { ("", "") };
            write!(f, "{separator}{open}{shortcut}{close}")?;
            separator = "+";
        }
        if self.is_mixed() { write!(f, " (mixed)") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use connection_layout::Direction;

    use super::*;
    use crate::network::{Connections, Scope, Softmax};

    #[test]
    fn found_layouts_tell_frozen_from_learned() {
        let found = |direction, rows: [&[f64]; 3]| {
            let softmax = Softmax { direction, tau: 1.0, scope: Scope::WithOutput };
            let net = LinearNet::new(3, Connections::Learned(softmax)).unwrap();
            Found::new(&net, Coefficients::from_rows(rows).unwrap())
        };
        let incoming = found(Direction::Incoming, [&[1.0], &[0.05, 0.95], &[0.3, 0.6, 0.1]]);
        assert_eq!(incoming.to_string(), "[0:1]+1:2+1:3 (mixed)");
        assert_eq!((incoming.decision(), incoming.frozen().to_string()), (0.6, "0:1".into()));
        let outgoing = found(Direction::Outgoing, [&[0.95], &[0.0, 1.0], &[0.05, 0.0, 1.0]]);
        assert_eq!(outgoing.to_string(), "0:1+1:2+[2:3]");
    }
}
