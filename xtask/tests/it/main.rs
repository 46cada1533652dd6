//! Tidy: lints for the whole tree that no compiler has. Each rule is a pure function over a path and a text; one test
//! applies it to the tree, another checks that it reports a violation.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the report")]

mod checklist;
mod documents;
mod manifests;
mod sources;
mod terms;
mod tree;
mod words;
