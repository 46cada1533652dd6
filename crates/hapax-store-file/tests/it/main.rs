//! The file store: the suite that every store passes, and what only this one can do.

mod batch;
mod conformance;
mod damage;
mod fixture;
mod limits;
mod list;
mod open;
mod reopen;
mod stop;
mod sweep;
