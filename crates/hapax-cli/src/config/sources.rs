//! Where options are said: the environment and flags here, the file in `config/file.rs`. Each is read into the same
//! list, with the place that an error names. What the options mean together is not known here.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use toml::{Table, Value};

use super::schema::{self, Kind, Known, VARIABLE_PREFIX};
use super::service_links::is_service_link;
use crate::admin::token;
use crate::failure::{Code, Failure};
use crate::nearest::nearest;
use crate::output::quoted;
use crate::stores::without_passwords;

/// Variables that are no option of the file.
const OTHER_VARIABLES: [&str; 2] = ["HAPAX_CONFIG", token::VARIABLE];
/// What variables begin with that are for the builds and tests of this project: whoever works on it may have them set.
const OF_THE_WORKSHOP: [&str; 3] = ["HAPAX_TARGET_DIR", "HAPAX_CASE", "HAPAX_SUITE_"];

/// One option as somebody said it. It has no `Debug`: the value may be a secret.
#[derive(Clone)]
pub(super) struct Said {
    pub(super) target: Target,
    pub(super) value: Value,
    pub(super) place: Place,
}

/// Which option was said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Target {
    /// Empty at the top of the file.
    pub(super) section: &'static str,
    /// Which of the sections of that name, where there may be several.
    pub(super) index: Option<usize>,
    pub(super) name: &'static str,
}

impl From<&'static Known> for Target {
    fn from(known: &'static Known) -> Self {
        Self { section: &known.section, index: None, name: &known.name }
    }
}

/// Where it was said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Place {
    File { path: PathBuf, line: usize, column: usize },
    Variable(String),
    Flag(&'static str),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

impl Place {
    /// What is wrong there.
    pub(super) fn wrong(&self, what: impl fmt::Display) -> Failure {
        Failure::new(Code::ConfigInvalid, format!("{self}: {what}"))
    }
}

/// What was typed, for `hapax serve` and whoever else reads the configuration.
#[derive(Clone, Default)]
pub(crate) struct Flags {
    /// The file, where one is named.
    pub(crate) file: Option<PathBuf>,
    said: Vec<Said>,
}

impl Flags {
    pub(crate) fn new(file: Option<PathBuf>) -> Self {
        Self { file, said: Vec::new() }
    }

    /// The flag `flag` says this about the option `name` of `section`.
    #[must_use]
    pub(crate) fn with(
        mut self,
        flag: &'static str,
        (section, name): (&'static str, &'static str),
        value: Option<impl Into<Value>>,
    ) -> Self {
        let target = Target { section, index: None, name };
        let said = value.map(|value| Said { target, value: value.into(), place: Place::Flag(flag) });
        self.said.extend(said);
        self
    }

    /// Whether a flag says something about the option.
    pub(super) fn says(&self, section: &str, name: &str) -> bool {
        self.said.iter().any(|said| (said.target.section, said.target.name) == (section, name))
    }

    /// The options that another command needs to find the same store: those that were typed, without passwords. What
    /// the environment says need not be typed.
    pub(crate) fn naming(&self) -> String {
        let file = self.file.as_ref().map(|file| ("--config", "HAPAX_CONFIG", file.display().to_string()));
        let of_store = [("--store", "url", "HAPAX_STORE_URL"), ("--fast", "fast", "HAPAX_STORE_FAST")];
        let of_store = of_store.into_iter().filter_map(|(flag, name, variable)| {
            let said =
                self.said.iter().find(|said| said.place == Place::Flag(flag) && said.target.name == name)?;
            Some((flag, variable, said.value.as_str()?.to_owned()))
        });
        let is_typed = |(_, variable, value): &(&str, &str, String)| {
            std::env::var_os(variable).is_none_or(|said| said != value.as_str())
        };
        let typed = file.into_iter().chain(of_store).filter(is_typed);
        typed.map(|(flag, _, value)| format!(" {flag} {}", quoted(&without_passwords(&value)))).collect()
    }

    pub(super) fn said(&self) -> impl Iterator<Item = Said> {
        self.said.iter().cloned()
    }
}

/// Variables that every program which traces reads, with the section and name of the option that they stand for.
const OF_OPEN_TELEMETRY: [(&str, &str, &str); 2] =
    [("OTEL_EXPORTER_OTLP_ENDPOINT", "trace", "endpoint"), ("OTEL_SERVICE_NAME", "trace", "service_name")];

/// What the environment says.
#[derive(Default)]
pub(super) struct Variables {
    /// By names that other programs read too.
    pub(super) to_all: Vec<Said>,
    pub(super) to_us: Vec<Said>,
}

/// What the environment says. A variable with our prefix that is neither an option nor a service link is an error: an
/// option that is misspelled would be ignored.
pub(super) fn variables(all: impl IntoIterator<Item = (OsString, OsString)>) -> Result<Variables, Failure> {
    let mut found = Variables::default();
    for (name, value) in all {
        let Some(name) = name.to_str() else { continue };
        if let Some((_, section, option)) = OF_OPEN_TELEMETRY.iter().find(|(known, ..)| *known == name) {
            let target = Target { section, index: None, name: option };
            let place = Place::Variable(name.to_owned());
            // An empty one counts as none, by the standard.
            if let Some(text) = value.to_str().filter(|text| !text.is_empty()) {
                found.to_all.push(Said { target, value: text.into(), place });
            }
            continue;
        }
        if !name.starts_with(VARIABLE_PREFIX) {
            continue;
        }
        if OTHER_VARIABLES.contains(&name) || OF_THE_WORKSHOP.iter().any(|start| name.starts_with(start)) {
            continue;
        }
        let place = Place::Variable(name.to_owned());
        let known = schema::known().iter().find(|known| known.variable().as_deref() == Some(name));
        let Some(known) = known else {
            if value.to_str().is_some_and(|value| is_service_link(name, value)) {
                continue;
            }
            return Err(unknown_variable(name));
        };
        let Some(text) = value.to_str() else { return Err(place.wrong("the value is not UTF-8")) };
        let value = value_of(known.kind, text).map_err(|why| place.wrong(why))?;
        found.to_us.push(Said { target: known.into(), value, place });
    }
    Ok(found)
}

fn unknown_variable(name: &str) -> Failure {
    let names: Vec<String> = schema::known().iter().filter_map(Known::variable).collect();
    let all = names.iter().map(String::as_str).chain(OTHER_VARIABLES);
    let failure =
        Failure::new(Code::ConfigInvalid, format!("there is no option for the environment variable {name}"));
    failure.hint(match nearest(name, all) {
        Some(near) => format!("did you mean {near}?"),
        None => format!(
            "unset it; what begins with {VARIABLE_PREFIX} is an option of hapax, or a variable that Kubernetes sets"
        ),
    })
}

/// A value that was written without its type.
fn value_of(kind: Kind, text: &str) -> Result<Value, String> {
    let written = || {
        let table: Table = toml::from_str(&format!("value = {text}")).map_err(|_| "that is no TOML value")?;
        table.get("value").cloned().ok_or_else(|| "that is no TOML value".to_owned())
    };
    match kind {
        Kind::Text => Ok(Value::String(text.to_owned())),
        Kind::Number => {
            text.trim().parse().map(Value::Integer).map_err(|_| "a whole number was expected".to_owned())
        }
        // A plain number stays one; what else it may be, the option says.
        Kind::Size => Ok(text.trim().parse().map_or_else(|_| Value::String(text.to_owned()), Value::Integer)),
        Kind::Fraction => {
            text.trim().parse().map(Value::Float).map_err(|_| "a number was expected".to_owned())
        }
        Kind::Switch => {
            text.trim().parse().map(Value::Boolean).map_err(|_| "true or false was expected".to_owned())
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
