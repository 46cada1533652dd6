//! Tidy: rules about the tree that no compiler checks. Each rule is a pure function over a path and a text; one
//! test runs it over the tree, another shows that it bites.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the report")]

mod documents;
mod manifests;
mod sources;
mod tree;
mod words;
