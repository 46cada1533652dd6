//! Rules about words: the strongest promise is reserved for transactional mode, and no machine-specific paths.

use crate::tree::{File, check, files, sample};

/// Only transactional mode may be called this, in any text. Split, so that this file passes its own rule.
const PROMISE: [&str; 2] = [concat!("exactly", " once"), concat!("exactly", "-once")];

/// Files that may say it, and why.
const MAY_PROMISE: &[(&str, &str)] = &[
    ("Cargo.toml", "a keyword people search for, not a promise"),
    ("ARCHITECTURE.md", "says that it cannot be promised outside the store"),
    ("README.md", "says that it cannot be promised outside a transaction"),
    ("crates/hapax-store-dynamodb/src/lib.rs", "has the transactional mode"),
    ("crates/hapax-store-dynamodb/src/attempt_writes.rs", "is the transactional mode"),
    ("crates/hapax-store-dynamodb/src/transaction.rs", "is the transactional mode"),
    ("docs/guide/dynamodb.md", "has the transactional mode"),
    ("CHANGELOG.md", "describes the transactional mode"),
    ("crates/hapax-store-postgres/src/handler_tx.rs", "is the transactional mode of handlers"),
    ("crates/hapax-store-postgres/src/in_tx.rs", "is the transactional mode of handlers"),
    ("crates/hapax-store-postgres/src/lib.rs", "has the transactional mode"),
    ("crates/hapax-store-postgres/src/tx/native.rs", "is the transactional mode of functions"),
    ("docs/guide/modes.md", "compares the transactional mode with the others"),
    ("docs/guide/postgres.md", "has the transactional mode"),
    ("spec/protocol.md", "X-12 is the transactional mode"),
    ("crates/hapax-model/src/teeth.rs", "counts how often a text occurs"),
    ("crates/hapax-model/src/teeth/list.rs", "counts how often a text occurs"),
    ("crates/hapax-testkit/src/store_suite/list.rs", "counts how often a record is shown"),
];

/// Prefixes of machine-specific paths. Split, so that this file passes its own rule.
const MACHINE_PATHS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

fn promises(file: &File) -> Vec<String> {
    if MAY_PROMISE.iter().any(|(path, _)| *path == file.path) {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let line = line.to_lowercase();
        if PROMISE.iter().any(|promise| line.contains(promise)) {
            let complaint =
                "only transactional mode may promise this; list the file if it is about that mode";
            complaints.push(format!("{}:{number}: {complaint}", file.path));
        }
    }
    complaints
}

fn machine_paths(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        for path in MACHINE_PATHS {
            // Only at the start of a path: inside one, it is a folder of the tree.
            let begins = |at: usize| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || "._-*}$".contains(c))
            };
            if line.match_indices(path).any(|(at, _)| begins(at)) {
                complaints.push(format!("{}:{number}: `{path}` is a machine-specific path", file.path));
            }
        }
    }
    complaints
}

#[test]
fn only_transactional_mode_promises_exactly_one_effect() {
    check(promises);
}

#[test]
fn promises_are_reported() {
    for promise in PROMISE {
        let text = format!("Delivered\n{}.\n", promise.to_uppercase());
        let complaints = promises(&sample("docs/a.md", &text));
        assert!(complaints.len() == 1 && complaints[0].starts_with("docs/a.md:2: "), "{complaints:?}");
    }
    assert!(promises(&sample("docs/a.md", "Retry anything, it happens once.")).is_empty());
}

#[test]
fn no_exception_for_files_without_the_promise() {
    let files = files();
    for (path, reason) in MAY_PROMISE {
        let text = files.iter().find(|file| file.path == *path).map(|file| file.text.to_lowercase());
        let promises = text.is_some_and(|text| PROMISE.iter().any(|promise| text.contains(promise)));
        assert!(promises, "{path} ({reason}): remove it from the list");
    }
}

#[test]
fn no_machine_specific_paths() {
    check(machine_paths);
}

#[test]
fn machine_specific_paths_are_reported() {
    for path in MACHINE_PATHS {
        for text in [format!("{path}x"), format!("see `{path}x`"), format!("file:{path}x")] {
            assert_eq!(machine_paths(&sample("a.md", &text)).len(), 1, "{text}");
        }
        assert!(machine_paths(&sample("a.md", &format!("crates{path}x"))).is_empty());
    }
}
