//! The text form of a layout, `0:2+2:3`, and its parser.
//!
//! ```text
//! layout   = "none" | shortcut *("+" shortcut)
//! shortcut = node ":" node            ; source:target, source < target
//! node     = 1*DIGIT                  ; 0 is the input, the depth K is the output
//! ```
//!
//! Blanks may stand between the parts, and the order of the shortcuts does not matter.
//! [`Layout::parse`] also reads the [names](NamedLayout).

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::layout::{Layout, LayoutError, MAX_DEPTH};
use crate::named::NamedLayout;
use crate::shortcut::Shortcut;

/// Why a text is not a layout.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseLayoutError {
    /// The text breaks the notation at one place.
    #[error("layout `{}`: column {column}: {problem}", shown(text))]
    Notation {
        /// The whole text.
        text: String,
        /// The place, in characters from 1; one past the end when something is missing there.
        column: usize,
        /// What is wrong there.
        problem: NotationProblem,
    },
    /// The depth is illegal, or the named layout does not exist at it.
    #[error("layout `{}`: {source}", shown(text))]
    Depth {
        /// The whole text.
        text: String,
        /// The reason.
        source: LayoutError,
    },
}

/// What is wrong at one place of a layout's text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotationProblem {
    /// Neither a number nor a name where a layout should begin.
    #[error("expected a layout such as `0:2+2:3`, or a name such as `none`{}", but_found(.found))]
    ExpectedLayout {
        /// The character there, or none at the end of the text.
        found: Option<char>,
    },
    /// A word that is not the name of a layout.
    #[error("`{}` is not the name of a layout: the names are {}", shown(.name), names())]
    UnknownName {
        /// The word.
        name: String,
    },
    /// A name where the depth is not known.
    #[error("`{name}` stands for another layout at each depth: give the depth, or write the shortcuts")]
    NameWithoutDepth {
        /// The name.
        name: &'static str,
    },
    /// No number after a `+`.
    #[error("expected a shortcut such as `0:2` after the `+`{}", but_found(.found))]
    ExpectedShortcut {
        /// The character there, or none at the end of the text.
        found: Option<char>,
    },
    /// No colon after the first number of a shortcut.
    #[error("expected `:` after the source `{source_node}`{}", but_found(.found))]
    ExpectedColon {
        /// The number before.
        source_node: usize,
        /// The character there, or none at the end of the text.
        found: Option<char>,
    },
    /// No number after the colon of a shortcut.
    #[error("expected a target node after `{source_node}:`{}", but_found(.found))]
    ExpectedTarget {
        /// The number before the colon.
        source_node: usize,
        /// The character there, or none at the end of the text.
        found: Option<char>,
    },
    /// Something else than a plus sign after a shortcut.
    #[error("expected `+` or the end after `{after}`{}", but_found(&Some(*.found)))]
    ExpectedPlus {
        /// The shortcut before.
        after: Shortcut,
        /// The character there.
        found: char,
    },
    /// A node that the stack does not have.
    #[error("node {} lies beyond the output: at depth {depth} the nodes are 0 to {depth}", shown(.node))]
    NoSuchNode {
        /// The number as it was written.
        node: String,
        /// The depth, or [`MAX_DEPTH`] where it is to be inferred.
        depth: usize,
    },
    /// A shortcut whose source does not lie before its target.
    #[error("`{source_node}:{target}` does not point forward: the source must be smaller than the target")]
    NotForward {
        /// The number before the colon.
        source_node: usize,
        /// The number after the colon.
        target: usize,
    },
    /// A shortcut that has been there before.
    #[error("`{shortcut}` is given twice, the first time at column {first}")]
    Duplicate {
        /// The shortcut.
        shortcut: Shortcut,
        /// Where it first stands, in characters from 1.
        first: usize,
    },
}

impl Layout {
    /// Reads a layout for a stack of `depth` layers: the notation, or the name of a
    /// [`NamedLayout`].
    ///
    /// ```
    /// use connection_layout::Layout;
    ///
    /// assert_eq!(Layout::parse("2:3 + 0:2", 4)?, Layout::new(4, [(0, 2), (2, 3)]).unwrap());
    /// assert_eq!(Layout::parse("hidden-cascade", 4)?.to_string(), "0:1+1:2+2:3");
    /// let error = Layout::parse("0:2+3", 4).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "layout `0:2+3`: column 6: expected `:` after the source `3`",
    /// );
    /// # Ok::<(), connection_layout::ParseLayoutError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ParseLayoutError`], which names the column and what was expected there.
    pub fn parse(text: &str, depth: usize) -> Result<Self, ParseLayoutError> {
        let refused = |source| ParseLayoutError::Depth { text: text.to_owned(), source };
        // The depth is checked first: the notation is judged against it.
        let mut layout = Self::none(depth).map_err(refused)?;
        if let Some(named) = NamedLayout::from_name(text.trim()) {
            return named.at_depth(depth).map_err(refused);
        }
        for shortcut in Parser::new(text, depth).shortcuts()? {
            layout.insert(shortcut).map_err(refused)?;
        }
        Ok(layout)
    }
}

/// Reads the notation alone and takes the smallest depth that fits: the largest target, or 1 for
/// `none`.
///
/// Since the largest target then is the output node, give the depth ([`Layout::parse`]) where it is
/// known.
impl FromStr for Layout {
    type Err = ParseLayoutError;

    fn from_str(text: &str) -> Result<Self, ParseLayoutError> {
        let refused = |source| ParseLayoutError::Depth { text: text.to_owned(), source };
        let parser = Parser::new(text, MAX_DEPTH);
        let shortcuts = match NamedLayout::from_name(text.trim()) {
            None => parser.shortcuts()?,
            Some(NamedLayout::None) => Vec::new(),
            Some(named) => {
                let problem = NotationProblem::NameWithoutDepth { name: named.name() };
                let column = 1 + parser.chars.iter().take_while(|c| c.is_whitespace()).count();
                return Err(parser.error(column, problem));
            }
        };
        let depth = shortcuts.iter().map(|s| s.target()).max().unwrap_or(1);
        let mut layout = Self::none(depth).map_err(refused)?;
        for shortcut in shortcuts {
            layout.insert(shortcut).map_err(refused)?;
        }
        Ok(layout)
    }
}

/// Writes the notation: shortcuts by target, then by source, or `none`.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.pad(NamedLayout::None.name());
        }
        let shortcuts: Vec<String> = self.iter().map(|shortcut| shortcut.to_string()).collect();
        f.pad(&shortcuts.join("+"))
    }
}

/// A reader of the notation that knows where it stands.
struct Parser<'a> {
    text: &'a str,
    chars: Vec<char>,
    /// How many characters have been read; the next one is at column `read + 1`.
    read: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, depth: usize) -> Self {
        Self { text, chars: text.chars().collect(), read: 0, depth }
    }

    /// The distinct shortcuts of the text, in the order of the text.
    fn shortcuts(mut self) -> Result<Vec<Shortcut>, ParseLayoutError> {
        self.refuse_a_word()?;
        let mut seen: Vec<(Shortcut, usize)> = Vec::new();
        loop {
            let (shortcut, column) = self.shortcut(seen.is_empty())?;
            if let Some(&(_, first)) = seen.iter().find(|(other, _)| *other == shortcut) {
                return Err(self.error(column, NotationProblem::Duplicate { shortcut, first }));
            }
            seen.push((shortcut, column));
            match self.peek() {
                None => return Ok(seen.into_iter().map(|(shortcut, _)| shortcut).collect()),
                Some('+') => self.read += 1,
                Some(found) => {
                    return Err(self.error_here(NotationProblem::ExpectedPlus { after: shortcut, found }));
                }
            }
        }
    }

    /// Reads `source:target` and gives the column at which it starts.
    fn shortcut(&mut self, is_first: bool) -> Result<(Shortcut, usize), ParseLayoutError> {
        let Some((source_node, column)) = self.node()? else {
            let found = self.peek();
            return Err(self.error_here(if is_first {
                NotationProblem::ExpectedLayout { found }
            } else {
                NotationProblem::ExpectedShortcut { found }
            }));
        };
        match self.peek() {
            Some(':') => self.read += 1,
            found => {
                return Err(self.error_here(NotationProblem::ExpectedColon { source_node, found }));
            }
        }
        let Some((target, _)) = self.node()? else {
            let found = self.peek();
            return Err(self.error_here(NotationProblem::ExpectedTarget { source_node, found }));
        };
        // Both nodes exist, so that pointing backwards is all that can be wrong.
        Shortcut::new(source_node, target)
            .map(|shortcut| (shortcut, column))
            .map_err(|_| self.error(column, NotationProblem::NotForward { source_node, target }))
    }

    /// Reads a number that is a node of the stack, with its column; `None` where no digit stands.
    fn node(&mut self) -> Result<Option<(usize, usize)>, ParseLayoutError> {
        self.peek();
        let column = self.read + 1;
        let digits: String = self.chars[self.read..].iter().take_while(|c| c.is_ascii_digit()).collect();
        if digits.is_empty() {
            return Ok(None);
        }
        self.read += digits.len();
        match digits.parse() {
            Ok(node) if node <= self.depth => Ok(Some((node, column))),
            // Too many digits for a `usize` are also too many for a node.
            _ => Err(self.error(column, NotationProblem::NoSuchNode { node: digits, depth: self.depth })),
        }
    }

    /// A text that begins like a word was meant as a name, and no name that exists comes here.
    fn refuse_a_word(&mut self) -> Result<(), ParseLayoutError> {
        if !self.peek().is_some_and(char::is_alphabetic) {
            return Ok(());
        }
        let name = self.chars[self.read..].iter().collect::<String>().trim().to_owned();
        Err(self.error_here(NotationProblem::UnknownName { name }))
    }

    /// Passes over blanks and gives the next character without reading it.
    fn peek(&mut self) -> Option<char> {
        self.read += self.chars[self.read..].iter().take_while(|c| c.is_whitespace()).count();
        self.chars.get(self.read).copied()
    }

    fn error_here(&self, problem: NotationProblem) -> ParseLayoutError {
        self.error(self.read + 1, problem)
    }

    fn error(&self, column: usize, problem: NotationProblem) -> ParseLayoutError {
        ParseLayoutError::Notation { text: self.text.to_owned(), column, problem }
    }
}

/// A text as a message shows it: on one line, and cut where it would fill the screen.
fn shown(text: &str) -> String {
    const LIMIT: usize = 60;
    let mut shown: String = text.chars().take(LIMIT).flat_map(char::escape_debug).collect();
    if text.chars().nth(LIMIT).is_some() {
        shown.push('…');
    }
    shown
}

fn but_found(found: &Option<char>) -> String {
    found.map_or_else(String::new, |c| format!(", found `{}`", c.escape_debug()))
}

fn names() -> String {
    NamedLayout::ALL.map(|named| format!("`{named}`")).join(", ")
}

#[cfg(test)]
mod tests;
