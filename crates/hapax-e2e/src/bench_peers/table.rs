//! [`Table`]: a Markdown table.

use std::fmt::Write as _;

/// A Markdown table.
pub(super) struct Table {
    text: String,
    columns: usize,
}

impl Table {
    pub(super) fn new(heads: &[&str]) -> Self {
        let mut table = Self { text: String::new(), columns: heads.len() };
        table.row(heads);
        table.text.push_str(&"|---".repeat(heads.len()));
        table.text.push_str("|\n");
        table
    }

    /// A bar or a line end in a cell would end it.
    pub(super) fn row(&mut self, cells: &[&str]) {
        assert_eq!(cells.len(), self.columns, "a row has a cell for each column");
        for cell in cells {
            let _ = write!(self.text, "| {} ", cell.replace('|', "\\|").replace(['\n', '\r'], " "));
        }
        self.text.push_str("|\n");
    }

    pub(super) fn text(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests;
