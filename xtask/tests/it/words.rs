//! Rules about words: what may be promised, and what must not be told about anybody's machine.

use crate::tree::{File, check, files, sample};

/// Only transactional mode may be called this, in any text. Split, so that this file passes its own rule.
const PROMISE: [&str; 2] = [concat!("exactly", " once"), concat!("exactly", "-once")];

/// Files that may say it, and why.
const MAY_PROMISE: &[(&str, &str)] = &[
    ("Cargo.toml", "a keyword people search for, not a promise"),
    ("ARCHITECTURE.md", "says that nobody can promise it outside the store"),
    ("README.md", "says that nobody can promise it outside a transaction"),
    ("crates/hapax-store-dynamodb/src/lib.rs", "has the transactional mode"),
    ("crates/hapax-store-dynamodb/src/transaction.rs", "is the transactional mode"),
    ("docs/guide/dynamodb.md", "has the transactional mode"),
    ("CHANGELOG.md", "tells of the transactional mode"),
    ("crates/hapax-store-postgres/src/joined.rs", "is the transactional mode of handlers"),
    ("crates/hapax-store-postgres/src/lib.rs", "has the transactional mode"),
    ("crates/hapax-store-postgres/src/tx/native.rs", "is the transactional mode of functions"),
    ("docs/guide/postgres.md", "has the transactional mode"),
    ("spec/protocol.md", "X-12 is the transactional mode"),
    ("crates/hapax-model/src/teeth.rs", "counts how often a text occurs"),
    ("crates/hapax-model/src/teeth/list.rs", "counts how often a text occurs"),
    ("crates/hapax-testkit/src/store_suite/list.rs", "counts how often a record is shown"),
];

/// Folders that exist on one machine only. Split, so that this file passes its own rule.
const MACHINE_PATHS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

fn promises(file: &File) -> Vec<String> {
    if MAY_PROMISE.iter().any(|(path, _)| *path == file.path) {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let line = line.to_lowercase();
        if PROMISE.iter().any(|promise| line.contains(promise)) {
            let complaint = "only transactional mode promises this; list the file if it is about that mode";
            complaints.push(format!("{}:{number}: {complaint}", file.path));
        }
    }
    complaints
}

fn machine_paths(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        for path in MACHINE_PATHS {
            // Only where a path begins: inside of one, it is a folder of ours.
            let begins = |at: usize| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || "._-*}$".contains(c))
            };
            if line.match_indices(path).any(|(at, _)| begins(at)) {
                complaints.push(format!("{}:{number}: `{path}` exists on one machine only", file.path));
            }
        }
    }
    complaints
}

#[test]
fn nothing_promises_more_than_it_keeps() {
    check(promises);
}

#[test]
fn promises_bite() {
    for promise in PROMISE {
        let text = format!("Delivered\n{}.\n", promise.to_uppercase());
        let complaints = promises(&sample("docs/a.md", &text));
        assert!(complaints.len() == 1 && complaints[0].starts_with("docs/a.md:2: "), "{complaints:?}");
    }
    assert!(promises(&sample("docs/a.md", "Retry anything, it happens once.")).is_empty());
}

#[test]
fn every_file_that_may_promise_still_does() {
    let files = files();
    for (path, reason) in MAY_PROMISE {
        let text = files.iter().find(|file| file.path == *path).map(|file| file.text.to_lowercase());
        let promises = text.is_some_and(|text| PROMISE.iter().any(|promise| text.contains(promise)));
        assert!(promises, "{path} ({reason}): take it off the list");
    }
}

#[test]
fn no_file_knows_anybodys_machine() {
    check(machine_paths);
}

#[test]
fn machine_paths_bite() {
    for path in MACHINE_PATHS {
        for text in [format!("{path}x"), format!("see `{path}x`"), format!("file:{path}x")] {
            assert_eq!(machine_paths(&sample("a.md", &text)).len(), 1, "{text}");
        }
        assert!(machine_paths(&sample("a.md", &format!("crates{path}x"))).is_empty());
    }
}
