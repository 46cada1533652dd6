//! Reads case files; every error names the file and the field.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::case::Case;
use super::structured_fields;

/// A case file that is malformed.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", .path.display())]
pub struct LoadError {
    path: PathBuf,
    reason: String,
}

impl LoadError {
    pub(super) fn new(path: &Path, reason: impl fmt::Display) -> Self {
        Self { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// All cases below `dir`, by path, and those of its table of structured fields.
///
/// # Errors
/// [`LoadError`] for the first file that is malformed, has another id than its name, or cannot be read.
pub fn load(dir: &Path) -> Result<Vec<Case>, LoadError> {
    let mut cases = Vec::new();
    for path in files(dir)? {
        let text = fs::read_to_string(&path).map_err(|error| LoadError::new(&path, error))?;
        if path.file_name().is_some_and(|name| name == structured_fields::FILE) {
            cases.extend(structured_fields::cases(&path, &text)?);
        } else {
            cases.push(parse(&path, &text)?);
        }
    }
    Ok(cases)
}

/// Every TOML file in `dir` and below, sorted.
fn files(dir: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let mut found = Vec::new();
    let entries = fs::read_dir(dir).map_err(|error| LoadError::new(dir, error))?;
    for entry in entries {
        let path = entry.map_err(|error| LoadError::new(dir, error))?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "toml") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

pub(super) fn parse(path: &Path, text: &str) -> Result<Case, LoadError> {
    let case: Case = toml::from_str(text).map_err(|error| LoadError::new(path, error))?;
    if path.file_stem().is_none_or(|stem| *stem != *case.id) {
        return Err(LoadError::new(path, format!("`id`: `{}` is not the file's name", case.id)));
    }
    if !case.id.starts_with(&case.rule.to_ascii_lowercase()) {
        return Err(LoadError::new(path, format!("`rule`: the id does not begin with `{}`", case.rule)));
    }
    case.check().map_err(|reason| LoadError::new(path, reason))?;
    Ok(case)
}
