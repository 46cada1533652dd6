//! A rule about the verification checklist: the page and its tests name each other.

use std::collections::BTreeSet;

use crate::tree::files;

const PAGE: &str = "docs/guide/checklist.md";
const TESTS: &str = "crates/hapax/tests/it/checklist.rs";

/// The names of the tests in a Rust text.
fn tests(text: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let mut is_test = false;
    for line in text.lines() {
        if line.starts_with("#[test") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if is_test && let Some((_, rest)) = line.split_once("fn ") {
            names.extend(rest.split('(').next());
            is_test = false;
        }
    }
    names
}

/// The tests to which a page links by their names, as in `` [`name`](../../crates/…/checklist.rs) ``.
fn listed(text: &str) -> BTreeSet<&str> {
    let link = format!("`](../../{TESTS})");
    let before = text.lines().filter_map(|line| line.split_once(&link));
    before.filter_map(|(cells, _)| cells.rsplit('`').next()).collect()
}

fn differences(page: &str, tests_text: &str) -> Vec<String> {
    let (listed, tests) = (listed(page), tests(tests_text));
    let unlisted = tests.difference(&listed).map(|name| format!("{PAGE}: `{name}` is not listed"));
    let unknown = listed.difference(&tests).map(|name| format!("{TESTS}: there is no test `{name}`"));
    unlisted.chain(unknown).collect()
}

#[test]
fn the_checklist_lists_every_test() {
    let files = files();
    let text = |path: &str| files.iter().find(|file| file.path == path).map_or("", |file| &file.text);
    assert!(tests(text(TESTS)).len() > 5, "{TESTS} has few tests");
    let differences = differences(text(PAGE), text(TESTS));
    assert!(differences.is_empty(), "\n{}\n", differences.join("\n"));
}

#[test]
fn differences_are_reported() {
    let page = format!("| Holds. | [`holds`](../../{TESTS}) |\n");
    let source = "#[tokio::test(start_paused = true)]\nasync fn holds() {\n    fn inner() {}\n}\n";
    assert!(differences(&page, source).is_empty());
    assert_eq!(differences("", source), [format!("{PAGE}: `holds` is not listed")]);
    assert_eq!(differences(&page, "async fn holds() {}"), [format!("{TESTS}: there is no test `holds`")]);
}
