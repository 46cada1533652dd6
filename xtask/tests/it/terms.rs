//! Rules about terms: comments and documents use the standard term instead of an indefinite paraphrase.

use crate::tree::{File, files, sample};

/// Paraphrases, and what to write instead.
const TERMS: &[(&str, &str)] = &[
    ("nobody", "name the component, or use the passive: unknown, unused, without an owner"),
    ("somebody", "name the caller, client, operator, process or task"),
    ("whoever", "name the caller, client, operator, process or task"),
    ("anybody", "name the caller, client, operator, process or task"),
    ("everybody", "all callers, all clients, every user"),
    ("nowhere", "none, missing, discarded, a dead link"),
    ("one's own", "custom, user-defined"),
    ("knows nothing", "is independent of, has no dependency on"),
    ("gives up", "times out, stops retrying, closes, returns an error"),
    ("looks at", "reads, checks, inspects, compares"),
    ("is told", "receives, is notified, is refused"),
];

/// The limit per 1,000 lines.
const PER_THOUSAND_MAX: usize = 3;

/// Documents outside `docs/` and `spec/`.
const ROOT_DOCUMENTS: [&str; 3] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];

/// The lines in scope and the terms found in them.
#[derive(Default)]
struct Count {
    lines: usize,
    found: Vec<String>,
}

impl Count {
    fn add(&mut self, path: &str, lines: impl Iterator<Item = (usize, impl AsRef<str>)>) {
        for (number, line) in lines {
            self.lines += 1;
            let terms = terms_in(line.as_ref()).into_iter();
            self.found.extend(terms.map(|(term, instead)| format!("{path}:{number}: `{term}`: {instead}")));
        }
    }

    /// The report, if there are more terms than the limit allows.
    fn excess(&self) -> Option<String> {
        let (found, lines) = (self.found.len(), self.lines);
        let per_thousand = 1000.0 * found as f64 / lines.max(1) as f64;
        let summary = format!(
            "{found} terms in {lines} lines: {per_thousand:.1} per 1,000, {PER_THOUSAND_MAX} allowed"
        );
        (found * 1000 > lines * PER_THOUSAND_MAX).then(|| format!("\n{}\n{summary}\n", self.found.join("\n")))
    }
}

/// The terms in a line, as whole words in any case.
fn terms_in(line: &str) -> Vec<(&'static str, &'static str)> {
    let line = line.to_lowercase();
    let is_part_of_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut found = Vec::new();
    for (term, instead) in TERMS {
        let is_whole = |at: &usize| {
            !line[..*at].ends_with(is_part_of_word) && !line[at + term.len()..].starts_with(is_part_of_word)
        };
        let count = line.match_indices(term).filter(|(at, _)| is_whole(at)).count();
        found.extend(std::iter::repeat_n((*term, *instead), count));
    }
    found
}

/// The comment lines of a source file, numbered. A comment behind code is not counted.
fn comment_lines(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let marker = match file.path.rsplit('.').next() {
        Some("rs") => Some("//"),
        Some("sql" | "lua") => Some("--"),
        _ => None,
    };
    let lines = (1..).zip(file.text.lines());
    lines.filter(move |(_, line)| marker.is_some_and(|marker| line.trim_start().starts_with(marker)))
}

fn is_document(file: &File) -> bool {
    let is_text = file.path.ends_with(".md") || file.path.ends_with(".toml");
    let is_in_folder = file.path.starts_with("docs/") || file.path.starts_with("spec/");
    (is_text && is_in_folder) || ROOT_DOCUMENTS.contains(&file.path.as_str())
}

fn in_comments(files: &[File]) -> Count {
    let mut count = Count::default();
    files.iter().for_each(|file| count.add(&file.path, comment_lines(file)));
    count
}

fn in_documents(files: &[File]) -> Count {
    let mut count = Count::default();
    for file in files.iter().filter(|file| is_document(file)) {
        count.add(&file.path, (1..).zip(file.text.lines()));
    }
    count
}

#[test]
fn comments_use_standard_terms() {
    let excess = in_comments(&files()).excess();
    assert!(excess.is_none(), "{}", excess.unwrap_or_default());
}

#[test]
fn documents_use_standard_terms() {
    let excess = in_documents(&files()).excess();
    assert!(excess.is_none(), "{}", excess.unwrap_or_default());
}

#[test]
fn terms_are_counted_as_whole_words_in_comments() {
    let rust =
        "//! Nobody knows, and nobody's asked.\nlet nobody = 1; // nobody\n    /// anybody_else, somebodys\n";
    let count = in_comments(&[
        sample("a.rs", rust),
        sample("a.lua", "-- Whoever\nwhoever()\n"),
        sample("a.md", "nobody"),
    ]);
    let expected = [("a.rs:1", "nobody"), ("a.rs:1", "nobody"), ("a.lua:1", "whoever")];
    assert_eq!((count.lines, count.found.len()), (3, expected.len()), "{:?}", count.found);
    for (found, (place, term)) in count.found.iter().zip(expected) {
        assert!(found.starts_with(&format!("{place}: `{term}`: ")), "{found}");
    }
}

#[test]
fn terms_are_counted_in_all_lines_of_documents() {
    let text = "# Somebody\n\nA caller is told\n";
    let paths = ["docs/a.md", "spec/cases/a.toml", "README.md", "CHANGELOG.md", "crates/a/Cargo.toml"];
    let count = in_documents(&paths.map(|path| sample(path, text)));
    assert_eq!((count.lines, count.found.len()), (9, 6), "{:?}", count.found);
}

#[test]
fn the_limit_is_per_thousand_lines() {
    let text = |plain: usize, terms: usize| "// plain\n".repeat(plain) + &"// nobody\n".repeat(terms);
    let excess = |plain, terms| in_comments(&[sample("a.rs", &text(plain, terms))]).excess();
    assert_eq!(excess(997, 3), None);
    assert_eq!(excess(0, 0), None);
    let report = excess(996, 4).unwrap();
    assert!(report.contains("a.rs:1000: `nobody`: "), "{report}");
    assert!(report.contains("4 terms in 1000 lines: 4.0 per 1,000, 3 allowed"), "{report}");
}
