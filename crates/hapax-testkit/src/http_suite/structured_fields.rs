//! The table of structured-field values as cases: each value is a key, or is refused, in both spellings.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::case::{Action, Case, Expect, Kind, Send, Step};
use super::load::LoadError;
use super::surface::{Feature, Settings};

/// The table's file name.
pub(super) const FILE: &str = "structured-fields.toml";

/// The whole table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Every value.
    #[serde(rename = "value")]
    pub values: Vec<Value>,
}

/// One value of the key's header field.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Value {
    /// Its name: letters, digits and hyphens.
    pub name: String,
    /// The field lines as they are sent.
    pub lines: Vec<String>,
    /// The structured-field string that the joined lines represent; none when they are no string.
    pub string: Option<String>,
    /// Whether it is a bare key, which only the default spelling accepts.
    #[serde(default)]
    pub bare: bool,
    /// Whether it is refused although it is a string: it is no valid key, or it is more than one line.
    #[serde(default)]
    pub refused: bool,
    /// Whether an HTTP parser may refuse it first, so that only the status is certain.
    #[serde(default)]
    pub malformed: bool,
}

impl Value {
    /// The key where quotes are required.
    pub fn strict(&self) -> Option<&str> {
        self.string.as_deref().filter(|_| !self.refused)
    }

    /// The key in the default spelling.
    pub fn default(&self) -> Option<&str> {
        self.strict()
            .or_else(|| self.bare.then(|| self.lines.first().map(|line| line.trim_matches(' '))).flatten())
    }
}

/// The table in `text`.
///
/// # Errors
/// When it is no such table.
pub fn table(text: &str) -> Result<Table, toml::de::Error> {
    toml::from_str(text)
}

pub(super) fn cases(path: &Path, text: &str) -> Result<Vec<Case>, LoadError> {
    let Table { values } = table(text).map_err(|error| LoadError::new(path, error))?;
    let spelled = |value: &Value| {
        [case(value, "strict", "quoted", value.strict()), case(value, "default", "any", value.default())]
    };
    Ok(values.iter().flat_map(spelled).collect())
}

fn case(value: &Value, mode: &str, spelling: &str, key: Option<&str>) -> Case {
    let lines = value.lines.iter().map(|line| ("Idempotency-Key".to_owned(), line.clone()));
    let first = Send { headers: lines.collect(), ..Send::default() };
    let ran = Expect { status: Some(201), runs: Some(1), replayed: Some(false), ..Expect::default() };
    let replayed = Expect { replayed: Some(true), same_as: Some("first".into()), ..ran.clone() };
    let again = |key| Send { key: Some(quoted(key)), ..Send::default() };
    let (kind, steps) = match key {
        Some(key) => (Kind::Admits, vec![step(Some("first"), first, ran), step(None, again(key), replayed)]),
        None => {
            let problem = (!value.malformed).then(|| "key-invalid".to_owned());
            let refused = Expect { status: Some(400), problem, runs: Some(0), ..Expect::default() };
            let steps = [
                step(None, first, refused),
                step(Some("first"), again("corrected"), ran),
                step(None, again("corrected"), replayed),
            ];
            (Kind::Refuses, steps.into())
        }
    };
    let settings: Settings = [("key_spelling".to_owned(), Json::from(spelling))].into_iter().collect();
    Case {
        id: format!("structured-fields/{}/{mode}", value.name),
        rule: if value.lines.len() > 1 { "K-06" } else { "K-01" }.into(),
        kind,
        about: format!("The lines {} in {mode} spelling.", json!(value.lines)),
        needs: vec![Feature::Raw],
        settings,
        answers: Vec::new(),
        steps,
    }
}

fn step(name: Option<&str>, send: Send, expect: Expect) -> Step {
    Step { name: name.map(str::to_owned), action: Action::Send(Box::new(send)), expect }
}

/// The one quoted spelling of a key.
fn quoted(key: &str) -> String {
    format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\""))
}
