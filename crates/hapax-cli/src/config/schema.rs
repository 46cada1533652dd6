//! The JSON Schema of the file, and the list of options derived from it. The readers of files, variables and flags take
//! the names and types of options from here.

use std::sync::LazyLock;

use hapax::http::HttpPolicy;
use hapax_core::ByteSize;
use serde_json::Value;

use super::options::FileOptions;

/// The prefix of variables.
pub(crate) const VARIABLE_PREFIX: &str = "HAPAX_";

/// The section that may occur several times.
pub(super) const ROUTE: &str = "route";

/// One option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OptionInfo {
    /// The section; empty at the top of the file.
    pub(crate) section: String,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Its description.
    pub(crate) description: String,
    /// The default, as it would be written; empty if there is none.
    pub(crate) default: String,
}

/// The type of a value, as far as parsing it from text needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Text,
    Number,
    /// A number of bytes, or text with a unit.
    Size,
    Fraction,
    Switch,
    /// A list of texts.
    List,
    Table,
}

impl OptionInfo {
    /// The name of its environment variable. Routes have none: there may be several.
    pub(crate) fn variable(&self) -> Option<String> {
        let name = self.name.to_ascii_uppercase();
        match self.section.as_str() {
            ROUTE => None,
            "" => Some(format!("{VARIABLE_PREFIX}{name}")),
            section => Some(format!("{VARIABLE_PREFIX}{}_{name}", section.to_ascii_uppercase())),
        }
    }
}

/// The JSON Schema of the file.
pub(crate) fn schema() -> Value {
    let mut schema = schemars::schema_for!(FileOptions).to_value();
    remove_unwritable_defaults(&mut schema);
    schema
}

/// Removes defaults that cannot be written in TOML, which has no null. The default of a section is that of its options.
fn remove_unwritable_defaults(part: &mut Value) {
    match part {
        Value::Object(members) => {
            let is_section = members.contains_key("$ref");
            let is_unwritable = |default: &Value| default.is_null() || (is_section && default.is_object());
            if members.get("default").is_some_and(is_unwritable) {
                members.remove("default");
            }
            members.values_mut().for_each(remove_unwritable_defaults);
        }
        Value::Array(parts) => parts.iter_mut().for_each(remove_unwritable_defaults),
        _ => {}
    }
}

/// All options: those at the top of the file, then section by section.
pub(crate) fn known() -> &'static [OptionInfo] {
    static KNOWN: LazyLock<Vec<OptionInfo>> = LazyLock::new(|| {
        let schema = schema();
        let options = FileOptions { defaults: HttpPolicy::default().settings(), ..FileOptions::default() };
        let defaults = serde_json::to_value(options).unwrap_or_default();
        let mut known = Vec::new();
        for (name, property) in properties(&schema) {
            let place = resolved(&schema, property);
            let inside = resolved(&schema, place.get("items").unwrap_or(place));
            match inside.get("properties") {
                None => known.push(option(&schema, "", name, property, &defaults[name])),
                Some(_) => known.extend(properties(inside).map(|(option_name, property)| {
                    option(&schema, name, option_name, property, &defaults[name][option_name])
                })),
            }
        }
        known.sort_by(|one: &OptionInfo, other| one.section.cmp(&other.section));
        known
    });
    &KNOWN
}

/// The names of all sections.
pub(super) fn sections() -> impl Iterator<Item = &'static str> {
    let named = known().iter().map(|known| known.section.as_str()).filter(|section| !section.is_empty());
    // The options are sorted by section.
    let mut last = "";
    named.filter(move |section| std::mem::replace(&mut last, section) != *section)
}

/// The section of this name.
pub(super) fn section(name: &str) -> Option<&'static str> {
    sections().find(|section| *section == name)
}

fn option(schema: &Value, section: &str, name: &str, property: &Value, default: &Value) -> OptionInfo {
    let kind = kind(schema, property);
    OptionInfo {
        section: section.to_owned(),
        name: name.to_owned(),
        kind,
        description: description(schema, property),
        default: match default {
            Value::Number(bytes) if kind == Kind::Size => size_default(bytes),
            Value::Null => String::new(),
            Value::Array(list) if list.is_empty() => String::new(),
            Value::Object(table) if table.is_empty() => String::new(),
            Value::String(text) if text.is_empty() => String::new(),
            other => other.to_string(),
        },
    }
}

/// A size as it would be written, with a unit if it has one.
fn size_default(bytes: &serde_json::Number) -> String {
    let text = bytes.as_u64().map_or_else(|| bytes.to_string(), |bytes| ByteSize(bytes).to_string());
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { text } else { Value::String(text).to_string() }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, property)| (name.as_str(), property))
}

/// Resolves a reference.
fn resolved<'a>(schema: &'a Value, part: &'a Value) -> &'a Value {
    let name = part.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/"));
    name.and_then(|name| schema.get("$defs")?.get(name)).unwrap_or(part)
}

/// The description of a property, or else of its type.
fn description(schema: &Value, property: &Value) -> String {
    let found = property.get("description").or_else(|| resolved(schema, property).get("description"));
    found.and_then(Value::as_str).unwrap_or_default().replace('\n', " ")
}

/// The type of a value. If there are alternatives, the richest one, which can be written as text, too.
fn kind(schema: &Value, property: &Value) -> Kind {
    let property = resolved(schema, property);
    let choices = ["anyOf", "oneOf"].into_iter().filter_map(|word| property.get(word)?.as_array());
    let of_choices = choices.flatten().map(|choice| kind(schema, choice));
    let of_types = match property.get("type") {
        Some(Value::Array(types)) if *types == ["integer", "string"] => vec![Kind::Size],
        Some(Value::Array(types)) => types.iter().map(kind_of_type).collect(),
        Some(one) => vec![kind_of_type(one)],
        None => Vec::new(),
    };
    of_choices.chain(of_types).max_by_key(|kind| *kind as u8).unwrap_or(Kind::Text)
}

fn kind_of_type(name: &Value) -> Kind {
    match name.as_str() {
        Some("integer") => Kind::Number,
        Some("number") => Kind::Fraction,
        Some("boolean") => Kind::Switch,
        Some("array") => Kind::List,
        Some("object") => Kind::Table,
        _ => Kind::Text,
    }
}
