//! The file store: the suite that every store passes, and what only this one can do.

mod conformance;
mod fixture;
mod reopen;
