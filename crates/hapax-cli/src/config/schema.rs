//! The schema of the file, and the list of every option that is read from it.
//!
//! Who reads a file, an environment or a flag asks here which names there are and what kind of value each takes.

use std::sync::LazyLock;

use hapax::http::HttpPolicy;
use hapax_core::ByteSize;
use serde_json::Value;

use super::shape::Shape;

/// What the name of every variable begins with.
pub(crate) const VARIABLE_PREFIX: &str = "HAPAX_";

/// The section whose options repeat.
pub(super) const ROUTE: &str = "route";

/// One option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Known {
    /// The section; empty at the top of the file.
    pub(crate) section: String,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// What it is for.
    pub(crate) words: String,
    /// What holds when nobody says anything, as it would be written; empty for nothing.
    pub(crate) default: String,
}

/// What an option's value is, as far as one must know to read it from text.
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

impl Known {
    /// The name of its environment variable. Routes have none: there may be many.
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
    let mut schema = schemars::schema_for!(Shape).to_value();
    drop_defaults_of_nothing(&mut schema);
    schema
}

/// Takes away defaults that no file could say: TOML has no null, and a section's default is that of its options.
fn drop_defaults_of_nothing(part: &mut Value) {
    match part {
        Value::Object(members) => {
            let is_section = members.contains_key("$ref");
            let is_nothing = |said: &Value| said.is_null() || (is_section && said.is_object());
            if members.get("default").is_some_and(is_nothing) {
                members.remove("default");
            }
            members.values_mut().for_each(drop_defaults_of_nothing);
        }
        Value::Array(parts) => parts.iter_mut().for_each(drop_defaults_of_nothing),
        _ => {}
    }
}

/// Every option: first those at the top of the file, then section by section.
pub(crate) fn known() -> &'static [Known] {
    static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
        let schema = schema();
        let usual = Shape { defaults: HttpPolicy::default().settings(), ..Shape::default() };
        let defaults = serde_json::to_value(usual).unwrap_or_default();
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
        known.sort_by(|one: &Known, other| one.section.cmp(&other.section));
        known
    });
    &KNOWN
}

/// The names of all sections.
pub(super) fn sections() -> impl Iterator<Item = &'static str> {
    let named = known().iter().map(|known| known.section.as_str()).filter(|section| !section.is_empty());
    // Options of one section stand together.
    let mut last = "";
    named.filter(move |section| std::mem::replace(&mut last, section) != *section)
}

/// The section of this name.
pub(super) fn section(name: &str) -> Option<&'static str> {
    sections().find(|section| *section == name)
}

fn option(schema: &Value, section: &str, name: &str, property: &Value, default: &Value) -> Known {
    let kind = kind(schema, property);
    Known {
        section: section.to_owned(),
        name: name.to_owned(),
        kind,
        words: words(schema, property),
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

/// A size as it would be written: with a unit where it has one.
fn size_default(bytes: &serde_json::Number) -> String {
    let text = bytes.as_u64().map_or_else(|| bytes.to_string(), |bytes| ByteSize(bytes).to_string());
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { text } else { Value::String(text).to_string() }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, property)| (name.as_str(), property))
}

/// What a reference refers to.
fn resolved<'a>(schema: &'a Value, part: &'a Value) -> &'a Value {
    let name = part.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/"));
    name.and_then(|name| schema.get("$defs")?.get(name)).unwrap_or(part)
}

/// What the property is for; where it does not say, what its type is for.
fn words(schema: &Value, property: &Value) -> String {
    let said = property.get("description").or_else(|| resolved(schema, property).get("description"));
    said.and_then(Value::as_str).unwrap_or_default().replace('\n', " ")
}

/// The kind of value. Of one that may be several things the richest, which text can say too.
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
