//! Tables for terminals, Markdown and spreadsheets from one description.

use comfy_table::{CellAlignment, LineStyle, TableStyle, presets};

/// Side on which the cells of a column are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// A table of texts. Columns whose cells all begin like numbers are aligned right unless told otherwise.
///
/// ```
/// use plotting::{Table, mean_sd};
///
/// let table = Table::new(["arm", "loss"])
///     .units(["", "nats/byte"])
///     .row(["cascade", &mean_sd(&[1.831, 1.835], 3)])
///     .row(["ANCRe", "1.775"]);
/// assert_eq!(
///     table.to_text(),
///     "arm                loss
///               nats/byte
/// ───────────────────────
/// cascade   1.833 ± 0.003
/// ANCRe             1.775
/// "
/// );
/// ```
#[derive(Clone, Debug)]
pub struct Table {
    header: Vec<String>,
    units: Option<Vec<String>>,
    rows: Vec<Vec<String>>,
    aligns: Vec<Option<Align>>,
}

impl Table {
    /// A table with the given column names.
    pub fn new<C: ToString>(columns: impl IntoIterator<Item = C>) -> Self {
        let header: Vec<String> = columns.into_iter().map(|c| one_line(&c)).collect();
        let aligns = vec![None; header.len()];
        Self { header, units: None, rows: Vec::new(), aligns }
    }

    /// The unit of each column, shown under its name.
    #[must_use]
    pub fn units<C: ToString>(mut self, units: impl IntoIterator<Item = C>) -> Self {
        self.units = Some(self.fitted(units));
        self
    }

    /// Sets the alignment of column `index`; an index that does not exist is ignored.
    #[must_use]
    pub fn align(mut self, index: usize, align: Align) -> Self {
        if let Some(place) = self.aligns.get_mut(index) {
            *place = Some(align);
        }
        self
    }

    /// Adds a row. Cells that are missing stay empty; those beyond the last column are dropped, which a debug build
    /// reports as a mistake of the program.
    #[must_use]
    pub fn row<C: ToString>(mut self, cells: impl IntoIterator<Item = C>) -> Self {
        self.push(cells);
        self
    }

    /// Adds a row like [`Table::row`], in a loop.
    pub fn push<C: ToString>(&mut self, cells: impl IntoIterator<Item = C>) {
        let row = self.fitted(cells);
        self.rows.push(row);
    }

    fn fitted<C: ToString>(&self, cells: impl IntoIterator<Item = C>) -> Vec<String> {
        let mut cells: Vec<String> = cells.into_iter().map(|c| one_line(&c)).collect();
        debug_assert!(
            cells.len() <= self.header.len(),
            "a row has {} cells for {} columns",
            cells.len(),
            self.header.len()
        );
        cells.resize(self.header.len(), String::new());
        cells
    }

    /// Number of rows without the header.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the table has no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Aligned columns for a terminal, with a rule under the header and a line feed behind every line.
    #[must_use]
    pub fn to_text(&self) -> String {
        // The junction of the rule adds a column between cells.
        let rule = LineStyle::none().fill('─').junction('─');
        let header = match &self.units {
            None => self.header.clone(),
            Some(units) => self.header.iter().zip(units).map(|(name, unit)| format!("{name}\n{unit}")).collect(),
        };
        let lines = self.layout(&header, &self.rows, presets::NOTHING.header_separator(rule), (0, 2));
        lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// A Markdown table (GitHub's dialect), padded so that the source reads well too. Units stand in the header.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let escape = |cells: &[String]| -> Vec<String> {
            cells.iter().map(|cell| cell.replace('\\', "\\\\").replace('|', "\\|")).collect()
        };
        let rows: Vec<_> = self.rows.iter().map(|row| escape(row)).collect();
        let header = escape(&self.header_with_units());
        let mut lines = self.layout(&header, &rows, presets::ASCII_MARKDOWN, (1, 1));
        if let Some(rule) = lines.get_mut(1) {
            *rule = self.marked_rule(rule);
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// The rule of a Markdown table with the colons that align columns to the right.
    fn marked_rule(&self, rule: &str) -> String {
        let cells = rule.trim_matches('|').split('|').zip(self.resolved_aligns()).map(|(cell, align)| match align {
            Align::Right if cell.len() > 1 => format!("{}:", &cell[1..]),
            _ => cell.to_owned(),
        });
        format!("|{}|", cells.collect::<Vec<_>>().join("|"))
    }

    /// Comma-separated values (RFC 4180 quoting, line feeds); units stand in the header.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let quote = |cell: &String| {
            if cell.contains(['"', ',', '\n', '\r']) {
                format!("\"{}\"", cell.replace('"', "\"\""))
            } else {
                cell.clone()
            }
        };
        let mut text = String::new();
        for row in std::iter::once(&self.header_with_units()).chain(&self.rows) {
            text.push_str(&row.iter().map(quote).collect::<Vec<_>>().join(","));
            text.push('\n');
        }
        text
    }

    fn header_with_units(&self) -> Vec<String> {
        let Some(units) = &self.units else { return self.header.clone() };
        let with_unit = |(name, unit): (&String, &String)| match unit.as_str() {
            "" => name.clone(),
            unit => format!("{name} ({unit})"),
        };
        self.header.iter().zip(units).map(with_unit).collect()
    }

    fn resolved_aligns(&self) -> Vec<Align> {
        let is_number = |cell: &str| {
            let bare = cell.trim_start_matches(['+', '-', '−', '<', '>', '≤', '≥', '≈', '~']);
            bare.starts_with(|c: char| c.is_ascii_digit() || c == '.')
                || ["nan", "inf", "–", "-", "n/a", ""].contains(&bare)
        };
        let guess = |column: usize| {
            let mut cells = self.rows.iter().map(|row| row[column].as_str());
            let numeric = !self.rows.is_empty() && cells.all(is_number);
            if numeric { Align::Right } else { Align::Left }
        };
        self.aligns.iter().enumerate().map(|(i, align)| align.unwrap_or_else(|| guess(i))).collect()
    }

    /// The lines of the table with padded cells; comfy-table measures the width of Unicode text.
    fn layout(&self, header: &[String], rows: &[Vec<String>], style: TableStyle, padding: (u16, u16)) -> Vec<String> {
        if header.is_empty() {
            return Vec::new();
        }
        let mut table = comfy_table::Table::new();
        table.load_style(style).set_header(header).add_rows(rows);
        for (i, align) in self.resolved_aligns().into_iter().enumerate() {
            if let Some(column) = table.column_mut(i) {
                column.set_cell_alignment(match align {
                    Align::Left => CellAlignment::Left,
                    Align::Right => CellAlignment::Right,
                });
                let is_last = i + 1 == header.len();
                column.set_padding(if padding.0 == 0 && is_last { (0, 0) } else { padding });
            }
        }
        table.lines().collect()
    }
}

/// What a reader sees as one cell: no line breaks, no control characters.
fn one_line(cell: &impl ToString) -> String {
    let text: String = cell.to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> Table {
        Table::new(["arm", "loss", "note"]).units(["", "nats", ""]).row(["cascade", "1.833 ± 0.003", "a|b"]).row([
            "ANCRe 漢字",
            "-0.5",
            "says \"x, y\"\nand more",
        ])
    }

    #[test]
    fn text_is_aligned_by_width_on_screen() {
        assert_eq!(
            sample().to_text(),
            "\
arm                   loss   note
                      nats
─────────────────────────────────────────────────
cascade      1.833 ± 0.003   a|b
ANCRe 漢字            -0.5   says \"x, y\" and more
"
        );
    }

    #[test]
    fn markdown_marks_alignment_and_escapes_bars() {
        assert_eq!(
            sample().to_markdown(),
            "\
| arm        |   loss (nats) | note                 |
|------------|--------------:|----------------------|
| cascade    | 1.833 ± 0.003 | a\\|b                 |
| ANCRe 漢字 |          -0.5 | says \"x, y\" and more |
"
        );
    }

    #[test]
    fn csv_quotes_what_needs_it() {
        assert_eq!(
            sample().to_csv(),
            "arm,loss (nats),note\ncascade,1.833 ± 0.003,a|b\nANCRe 漢字,-0.5,\"says \"\"x, y\"\" and more\"\n"
        );
    }

    #[test]
    fn numbers_are_recognised_and_a_given_alignment_wins() {
        let table = Table::new(["a", "b", "c"]).row(["+1.5", "2 min 05 s", "1x"]).row(["–", "nan", "x"]);
        assert_eq!(table.resolved_aligns(), [Align::Right, Align::Right, Align::Left]);
        assert_eq!(table.align(0, Align::Left).align(9, Align::Left).resolved_aligns()[0], Align::Left);
    }

    #[test]
    fn empty_tables_and_short_rows_are_whole() {
        assert_eq!(Table::new([""; 0]).to_text(), "");
        assert_eq!(Table::new(["a", "b"]).to_markdown(), "| a | b |\n|---|---|\n");
        assert_eq!(Table::new(["a", "b"]).row(["1"]).to_csv(), "a,b\n1,\n");
    }

    proptest! {
        #[test]
        fn every_row_is_one_line(cells in prop::collection::vec("\\PC{0,12}|[\n\t|,\"]{0,4}", 0..12)) {
            let mut table = Table::new(["a", "b"]).units(["", "s"]);
            for pair in cells.chunks(2) {
                table.push(pair);
            }
            prop_assert_eq!(table.to_text().lines().count(), table.len() + 3);
            prop_assert_eq!(table.to_markdown().lines().count(), table.len() + 2);
            prop_assert_eq!(table.to_csv().lines().count(), table.len() + 1);
        }
    }
}
