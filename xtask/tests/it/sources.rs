//! Rules about source files: how long, how they begin, what they are called, what may not be left in them.

use crate::tree::{File, check, files, sample};

/// A file longer than this is read by nobody in one go.
const LINES_MAX: usize = 600;

/// Files that may be longer, and why.
const LONG_FILES: &[(&str, &str)] = &[
    ("Cargo.lock", "written by cargo, not by people"),
    ("crates/hapax-cli/hapax.schema.json", "written by `hapax check --schema`, not by people"),
];

/// What may not be left in Rust code, and what to do instead. Split, so that this file passes its own rule.
const LEFTOVERS: &[(&str, &str)] = &[
    (concat!("todo", "!("), "write it or leave it out"),
    (concat!("unimplemented", "!("), "write it or leave it out"),
    (concat!("#[ig", "nore"), "a test that does not run proves nothing: mend it, or make it a long proof"),
];

/// File names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["utils.rs", "util.rs", "common.rs", "helpers.rs", "misc.rs"];

fn too_long(file: &File) -> Vec<String> {
    let lines = file.text.lines().count();
    let listed = LONG_FILES.iter().any(|(path, _)| *path == file.path);
    if lines <= LINES_MAX || listed {
        return Vec::new();
    }
    vec![format!("{}: {lines} lines; split it, or list it with its reason", file.path)]
}

fn leftovers(file: &File) -> Vec<String> {
    if !file.path.ends_with(".rs") {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        for (leftover, instead) in LEFTOVERS {
            if line.contains(leftover) {
                complaints.push(format!("{}:{number}: `{leftover}`: {instead}", file.path));
            }
        }
    }
    complaints
}

fn no_module_doc(file: &File) -> Vec<String> {
    let is_source = file.path.contains("/src/") && file.path.ends_with(".rs");
    let is_test = file.path.ends_with("/tests.rs") || file.path.contains("/tests/");
    let first = file.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if !is_source || is_test || first.starts_with("//!") || first.starts_with("#![doc") {
        return Vec::new();
    }
    vec![format!("{}: begins without `//!`: say what the file owns", file.path)]
}

fn empty_name(file: &File) -> Vec<String> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let complaint = || format!("{}: name it after what it holds", file.path);
    EMPTY_NAMES.contains(&name).then(complaint).into_iter().collect()
}

#[test]
fn no_file_is_too_long() {
    check(too_long);
}

#[test]
fn long_files_bite() {
    assert!(too_long(&sample("a.rs", &"\n".repeat(LINES_MAX))).is_empty());
    assert_eq!(too_long(&sample("a.rs", &"\n".repeat(LINES_MAX + 1))).len(), 1);
}

#[test]
fn every_listed_long_file_is_still_long() {
    let files = files();
    for (path, reason) in LONG_FILES {
        let lines = files.iter().find(|file| file.path == *path).map(|file| file.text.lines().count());
        assert!(lines.is_some_and(|lines| lines > LINES_MAX), "{path} ({reason}): take it off the list");
    }
}

#[test]
fn nothing_is_left_unfinished_or_switched_off() {
    check(leftovers);
}

#[test]
fn leftovers_bite() {
    for (leftover, _) in LEFTOVERS {
        let complaints = leftovers(&sample("a.rs", &format!("fn a() {{\n    {leftover}\n")));
        assert!(complaints.len() == 1 && complaints[0].starts_with("a.rs:2: "), "{complaints:?}");
        assert!(leftovers(&sample("a.md", leftover)).is_empty());
    }
}

#[test]
fn every_source_file_says_what_it_owns() {
    check(no_module_doc);
}

#[test]
fn missing_module_docs_bite() {
    assert_eq!(no_module_doc(&sample("crates/a/src/b.rs", "use std::fmt;\n")).len(), 1);
    assert_eq!(no_module_doc(&sample("crates/a/src/b.rs", "")).len(), 1);
    assert!(no_module_doc(&sample("crates/a/src/b.rs", "\n//! Owns b.\n")).is_empty());
    assert!(no_module_doc(&sample("crates/a/src/b/tests.rs", "use super::*;\n")).is_empty());
}

#[test]
fn every_file_is_named_after_what_it_holds() {
    check(empty_name);
}

#[test]
fn empty_names_bite() {
    assert_eq!(empty_name(&sample("crates/a/src/utils.rs", "")).len(), 1);
    assert!(empty_name(&sample("crates/a/src/lease.rs", "")).is_empty());
}
