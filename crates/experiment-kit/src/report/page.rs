//! A report as text, for a terminal and as Markdown.

use std::path::PathBuf;

use plotting::Table;

use super::Drawn;
use crate::{RunSettings, compare::Comparison};

/// The text of a report: a line on what was compared, tables with their titles, and sentences on how to read them.
#[derive(Clone, Debug)]
pub struct Page {
    /// What was compared.
    pub heading: String,
    /// The tables with their titles.
    pub tables: Vec<(&'static str, Table)>,
    /// How to read them, a sentence or two each.
    pub notes: Vec<String>,
}

impl Page {
    /// The page for a terminal.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n", self.heading);
        for (title, table) in &self.tables {
            text += &format!("\n{title}\n{}", table.to_text());
        }
        text + "\n" + &self.notes.join("\n") + "\n"
    }

    /// The page as Markdown, with the figures that were drawn.
    pub fn to_markdown(&self, figures: &Drawn) -> String {
        let mut text = format!("# Comparison\n\n{}\n", self.heading);
        for (title, table) in &self.tables {
            text += &format!("\n## {title}\n\n{}", table.to_markdown());
        }
        for note in &self.notes {
            text += &format!("\n{note}\n");
        }
        text + &figures.markdown()
    }
}

/// The seeds of a comparison, as a heading says them.
pub fn seeds<S: RunSettings>(comparison: &Comparison<S>) -> String {
    match comparison.seeds {
        1 => format!("seed {}", comparison.run.seed()),
        several => format!("{several} seeds, mean ± standard deviation"),
    }
}

/// A report that has been written: what is left to say, and its figures.
#[derive(Clone, Debug)]
pub struct Written {
    /// The tables, for a terminal.
    pub text: String,
    /// What the figures could not show.
    pub warnings: Vec<String>,
    /// The figures that were drawn.
    pub figures: Vec<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_parts_in_order() {
        let mut table = Table::new(["arm", "loss"]);
        table.push(["ancre", "1.5"]);
        let page = Page { heading: "4 steps".into(), tables: vec![("Loss", table)], notes: vec!["In nats.".into()] };
        let in_order = |text: &str, parts: &[&str]| {
            let found: Vec<_> =
                parts.iter().map(|part| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"))).collect();
            assert!(found.is_sorted(), "{text}");
        };
        in_order(&page.to_text(), &["4 steps\n", "\nLoss\n", "1.5", "\nIn nats.\n"]);
        let figures = Drawn { paths: vec!["x/loss.png".into(), "x/loss.svg".into()], warnings: Vec::new() };
        in_order(
            &page.to_markdown(&figures),
            &["# Comparison\n\n4 steps\n", "\n## Loss\n\n", "1.5", "\nIn nats.\n", "\n![loss.png](figures/loss.png)\n"],
        );
    }
}
