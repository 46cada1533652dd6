//! Stdout: JSON documents, tables on a terminal, aligned plain text otherwise.

use std::io::{self, IsTerminal, Write};

use comfy_table::{Table, presets};
use serde::Serialize;

use crate::failure::{self, Code, Failure};

/// The format of the output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
    pub(crate) terminal: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json, terminal: io::stdout().is_terminal() }
    }

    /// Refuses `--json` for output that has no JSON form.
    pub(crate) fn never_json(&self, what: &str) -> Result<(), Failure> {
        if !self.json {
            return Ok(());
        }
        Err(Failure::new(Code::InputInvalid, format!("{what} cannot be printed as JSON"))
            .hint("leave --json out"))
    }

    /// Prints one JSON document.
    pub(crate) fn document(&self, document: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(document).map_err(|error| failure::output(error.into()))?;
        self.text(&text)
    }

    /// Prints one or several lines.
    pub(crate) fn text(&self, text: &str) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(failure::output)
    }

    /// Prints rows in columns, under a header if one is given.
    pub(crate) fn table(&self, header: Option<&[&str]>, rows: Vec<Vec<String>>) -> Result<(), Failure> {
        let mut table = Table::new();
        table.load_style(if self.terminal { presets::UTF8_FULL_CONDENSED } else { presets::NOTHING });
        if let Some(header) = header {
            table.set_header(header.to_vec());
        }
        table.add_rows(rows);
        self.text(&if self.terminal { table.to_string() } else { without_padding(&table.to_string()) })
    }
}

/// Writes to stderr; errors are ignored.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// `text` quoted as one word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=".contains(c);
    let is_word = !text.is_empty() && text.chars().all(is_plain);
    if is_word { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// The lines of a table without the padding for a frame.
fn without_padding(table: &str) -> String {
    let lines = table.lines().map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end());
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_word_is_one_word_of_a_shell() {
        for (text, word) in [
            ("file:./hapax-data", "file:./hapax-data"),
            ("", "''"),
            ("it's here", r"'it'\''s here'"),
            ("postgres://h/d?a=b&c=d", "'postgres://h/d?a=b&c=d'"),
        ] {
            assert_eq!(quoted(text), word);
        }
    }
}
