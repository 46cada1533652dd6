//! The effective configuration as a page: one section for each table, one line for each option.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use serde_json::Value;

use super::render;
use crate::api::config;
use crate::failure::Failure;
use crate::listener::Shared;

#[derive(Template)]
#[template(path = "console/config.html")]
struct ConfigPage {
    sections: Vec<Section>,
}

impl ConfigPage {
    fn here(&self) -> &'static str {
        "/config"
    }
}

#[derive(PartialEq, Eq, Debug)]
struct Section {
    name: String,
    settings: Vec<(String, String)>,
}

pub(super) async fn page(State(shared): State<Arc<Shared>>) -> Result<Response, Failure> {
    Ok(render(&ConfigPage { sections: sections(&config(&shared)) }))
}

fn sections(config: &Value) -> Vec<Section> {
    let mut top = Section { name: "general".to_owned(), settings: Vec::new() };
    let mut sections = Vec::new();
    let Value::Object(members) = config else { return vec![section("general", config)] };
    for (name, value) in members {
        match value {
            Value::Object(_) => sections.push(section(name, value)),
            Value::Array(items) if items.iter().any(Value::is_object) => {
                let numbered = items.iter().enumerate();
                sections.extend(numbered.map(|(at, item)| section(&format!("{name} {}", at + 1), item)));
            }
            _ => top.settings.push((name.clone(), plain(value))),
        }
    }
    if !top.settings.is_empty() {
        sections.insert(0, top);
    }
    sections
}

fn section(name: &str, value: &Value) -> Section {
    let mut settings = Vec::new();
    flatten("", value, &mut settings);
    Section { name: name.to_owned(), settings }
}

fn flatten(path: &str, value: &Value, settings: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(&path, value, settings);
            }
        }
        _ => settings.push((path.to_owned(), plain(value))),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "not set".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tables_are_sections_and_options_are_lines() {
        let config = json!({ "listen": "a", "store": { "url": "b", "deep": { "x": 1 } },
            "route": [{ "path": "/**", "methods": ["PUT", "POST"] }], "none": null });
        let lines: Vec<String> = sections(&config)
            .into_iter()
            .flat_map(|section| {
                section
                    .settings
                    .into_iter()
                    .map(move |(name, value)| format!("{}|{name}={value}", section.name))
            })
            .collect();
        assert_eq!(
            lines,
            [
                "general|listen=a",
                "general|none=not set",
                "route 1|methods=PUT, POST",
                "route 1|path=/**",
                "store|deep.x=1",
                "store|url=b",
            ]
        );
    }
}
