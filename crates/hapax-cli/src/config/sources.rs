//! The sources of options: the environment and flags here, the file in `config/file.rs`. Each is read into the same list
//! of entries, with their locations for error messages.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use hapax_admin::TOKEN_VARIABLE;
use toml::{Table, Value};

use super::schema::{self, Kind, OptionInfo, VARIABLE_PREFIX};
use super::service_links::is_service_link;
use crate::failure::{Code, Failure};
use crate::nearest::nearest;
use crate::output::quoted;
use crate::stores::without_passwords;

/// Variables that are not options of the file.
const OTHER_VARIABLES: [&str; 2] = ["HAPAX_CONFIG", TOKEN_VARIABLE];
/// Prefixes of variables that the builds and tests of this project use.
const DEVELOPMENT_PREFIXES: [&str; 3] = ["HAPAX_TARGET_DIR", "HAPAX_CASE", "HAPAX_SUITE_"];

/// A value set for an option. It has no `Debug`: the value may be a secret.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) option: OptionKey,
    pub(super) value: Value,
    pub(super) location: Location,
}

/// The option that is set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct OptionKey {
    /// Empty at the top of the file.
    pub(super) section: &'static str,
    /// The index of a section that may occur several times.
    pub(super) index: Option<usize>,
    pub(super) name: &'static str,
}

impl From<&'static OptionInfo> for OptionKey {
    fn from(known: &'static OptionInfo) -> Self {
        Self { section: &known.section, index: None, name: &known.name }
    }
}

/// Where an option is set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Location {
    File { path: PathBuf, line: usize, column: usize },
    Variable(String),
    Flag(&'static str),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

impl Location {
    /// An error at this location.
    pub(super) fn invalid(&self, what: impl fmt::Display) -> Failure {
        Failure::new(Code::ConfigInvalid, format!("{self}: {what}"))
    }
}

/// The flags that set options.
#[derive(Clone, Default)]
pub(crate) struct Flags {
    /// The file, if one is named.
    pub(crate) file: Option<PathBuf>,
    entries: Vec<Entry>,
}

impl Flags {
    pub(crate) fn new(file: Option<PathBuf>) -> Self {
        Self { file, entries: Vec::new() }
    }

    /// Adds a flag that sets the option `name` of `section`.
    #[must_use]
    pub(crate) fn with(
        mut self,
        flag: &'static str,
        (section, name): (&'static str, &'static str),
        value: Option<impl Into<Value>>,
    ) -> Self {
        let option = OptionKey { section, index: None, name };
        let entry = value.map(|value| Entry { option, value: value.into(), location: Location::Flag(flag) });
        self.entries.extend(entry);
        self
    }

    /// Whether a flag sets the option.
    pub(super) fn sets(&self, section: &str, name: &str) -> bool {
        self.entries.iter().any(|entry| (entry.option.section, entry.option.name) == (section, name))
    }

    /// The flags by which another command finds the same store, without passwords. Values from the environment are left
    /// out.
    pub(crate) fn store_flags(&self) -> String {
        let file = self.file.as_ref().map(|file| ("--config", "HAPAX_CONFIG", file.display().to_string()));
        let of_store = [("--store", "url", "HAPAX_STORE_URL"), ("--fast", "fast", "HAPAX_STORE_FAST")];
        let of_store = of_store.into_iter().filter_map(|(flag, name, variable)| {
            let entry = self
                .entries
                .iter()
                .find(|entry| entry.location == Location::Flag(flag) && entry.option.name == name)?;
            Some((flag, variable, entry.value.as_str()?.to_owned()))
        });
        let is_typed = |(_, variable, value): &(&str, &str, String)| {
            std::env::var_os(variable).is_none_or(|entry| entry != value.as_str())
        };
        let typed = file.into_iter().chain(of_store).filter(is_typed);
        typed.map(|(flag, _, value)| format!(" {flag} {}", quoted(&without_passwords(&value)))).collect()
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.entries.iter().cloned()
    }
}

/// Standard variables of OpenTelemetry, with the section and name of the option that they set.
const OPEN_TELEMETRY_VARIABLES: [(&str, &str, &str); 2] =
    [("OTEL_EXPORTER_OTLP_ENDPOINT", "trace", "endpoint"), ("OTEL_SERVICE_NAME", "trace", "service_name")];

/// The entries from the environment.
#[derive(Default)]
pub(super) struct Variables {
    /// Standard variables, which other programs read, too.
    pub(super) standard: Vec<Entry>,
    pub(super) own: Vec<Entry>,
}

/// Reads the environment. An unknown variable with the prefix is an error unless it is a service link: a misspelled option
/// would be ignored otherwise.
pub(super) fn variables(all: impl IntoIterator<Item = (OsString, OsString)>) -> Result<Variables, Failure> {
    let mut found = Variables::default();
    for (name, value) in all {
        let Some(name) = name.to_str() else { continue };
        if let Some((_, section, option)) = OPEN_TELEMETRY_VARIABLES.iter().find(|(known, ..)| *known == name)
        {
            let option = OptionKey { section, index: None, name: option };
            let location = Location::Variable(name.to_owned());
            // An empty one counts as unset, by the standard.
            if let Some(text) = value.to_str().filter(|text| !text.is_empty()) {
                found.standard.push(Entry { option, value: text.into(), location });
            }
            continue;
        }
        if !name.starts_with(VARIABLE_PREFIX) {
            continue;
        }
        if OTHER_VARIABLES.contains(&name) || DEVELOPMENT_PREFIXES.iter().any(|start| name.starts_with(start))
        {
            continue;
        }
        let location = Location::Variable(name.to_owned());
        let known = schema::known().iter().find(|known| known.variable().as_deref() == Some(name));
        let Some(known) = known else {
            if value.to_str().is_some_and(|value| is_service_link(name, value)) {
                continue;
            }
            return Err(unknown_variable(name));
        };
        let Some(text) = value.to_str() else { return Err(location.invalid("the value is not UTF-8")) };
        let value = value_of(known.kind, text).map_err(|why| location.invalid(why))?;
        found.own.push(Entry { option: known.into(), value, location });
    }
    Ok(found)
}

fn unknown_variable(name: &str) -> Failure {
    let names: Vec<String> = schema::known().iter().filter_map(OptionInfo::variable).collect();
    let all = names.iter().map(String::as_str).chain(OTHER_VARIABLES);
    let failure = Failure::new(Code::ConfigInvalid, format!("unknown environment variable {name}"));
    failure.hint(match nearest(name, all) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("unset it: variables with the prefix {VARIABLE_PREFIX} are options"),
    })
}

/// Parses a value from text.
fn value_of(kind: Kind, text: &str) -> Result<Value, String> {
    let written = || {
        let table: Table = toml::from_str(&format!("value = {text}")).map_err(|_| "not a TOML value")?;
        table.get("value").cloned().ok_or_else(|| "not a TOML value".to_owned())
    };
    match kind {
        Kind::Text => Ok(Value::String(text.to_owned())),
        Kind::Number => {
            text.trim().parse().map(Value::Integer).map_err(|_| "expected a whole number".to_owned())
        }
        // Text that is not a plain number is parsed by the option itself.
        Kind::Size => Ok(text.trim().parse().map_or_else(|_| Value::String(text.to_owned()), Value::Integer)),
        Kind::Fraction => text.trim().parse().map(Value::Float).map_err(|_| "expected a number".to_owned()),
        Kind::Switch => {
            text.trim().parse().map(Value::Boolean).map_err(|_| "expected true or false".to_owned())
        }
        Kind::List if text.trim_start().starts_with('[') => written(),
        Kind::List => {
            Ok(text.split(',').map(|item| Value::String(item.trim().to_owned())).collect::<Vec<_>>().into())
        }
        Kind::Table if text.trim_start().starts_with('{') => written(),
        // Some options take a name instead of a table.
        Kind::Table => Ok(Value::String(text.to_owned())),
    }
}
