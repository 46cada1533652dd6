//! Tests of the HTTP suite: its files are well formed and complete, and it finds defects of a surface.

mod files;
mod naive;
mod structured_fields;
mod teeth;

use std::path::PathBuf;

/// The cases of the specification.
fn cases() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../spec/cases/http")
}
