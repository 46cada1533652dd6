//! The published policy as a fragment of OpenAPI 3.1.
//!
//! Routes with equal components share them; where two differ, the second gets a number. OpenAPI has one response for
//! each status and another syntax of path patterns, so the mapping of routes to responses is under `x-idempotency`.

use serde_json::{Map, Value, json};

use super::problems::ProblemDocument;
use super::{KeyDocument, RouteDocument};
use crate::http::layer::Route;
use crate::http::policy::{Classifier, KeyMode};

/// The version of the specification that the fragment is written in.
const OPENAPI: &str = "3.1.0";

pub(in crate::http) fn openapi(routes: &[Route]) -> Value {
    let mut components = Components::default();
    let routes: Vec<Value> =
        routes.iter().map(RouteDocument::of).map(|route| entry(&mut components, &route)).collect();
    json!({
        "openapi": OPENAPI,
        "info": {
            "title": "Idempotency keys",
            "description": "Which requests are safe to retry, and the responses to retries. To be merged into the description of the API.",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "components": components.sections,
        "x-idempotency": routes,
    })
}

/// The components that routes refer to.
#[derive(Default)]
struct Components {
    sections: Map<String, Value>,
}

impl Components {
    /// Adds a component under this name, with a number appended if a different one has it already. Returns a reference
    /// to it.
    fn put(&mut self, section: &str, name: &str, part: Value) -> Value {
        let parts = self.sections.entry(section).or_insert_with(|| json!({}));
        let mut free = name.to_owned();
        let mut number = 1;
        while parts.get(&free).is_some_and(|other| *other != part) {
            number += 1;
            free = format!("{name}{number}");
        }
        let reference = format!("#/components/{section}/{free}");
        parts[free] = part;
        json!({ "$ref": reference })
    }
}

fn entry(components: &mut Components, route: &RouteDocument) -> Value {
    let mut policy = json!(route);
    // These become components; the problems are referenced.
    if let Some(policy) = policy.as_object_mut() {
        policy.retain(|name, _| !["path", "methods", "problems"].contains(&name.as_str()));
    }
    let mut entry = json!({ "path": route.path, "methods": route.methods, "policy": policy });
    if route.key.mode == KeyMode::Off {
        return entry;
    }
    entry["parameters"] = parameters(components, &route.key);
    entry["headers"] = headers(components, route);
    if route.classifier != Classifier::Grpc {
        entry["responses"] = responses(components, route);
    }
    entry
}

fn parameters(components: &mut Components, key: &KeyDocument) -> Value {
    if key.webhook {
        return json!([]);
    }
    let places = key.places.iter().filter_map(|place| place.split_once(':'));
    let mut list: Vec<_> = places
        .filter(|(kind, _)| matches!(*kind, "header" | "query"))
        .map(|(kind, name)| components.put("parameters", &pascal(name), key_parameter(key, kind, name)))
        .collect();
    if let Some(header) = &key.first_sent {
        let parameter = json!({
            "name": header,
            "in": "header",
            "required": key.mode == KeyMode::Required,
            "description": "When the request was sent first, as in `Sun, 06 Nov 1994 08:49:37 GMT`. The same on every retry.",
            "schema": { "type": "string" },
        });
        list.push(components.put("parameters", &pascal(header), parameter));
    }
    json!(list)
}

fn key_parameter(key: &KeyDocument, kind: &str, name: &str) -> Value {
    let KeyDocument { length_min, length_max, format, .. } = key;
    let spelling = match key {
        KeyDocument { quoted: true, .. } => "in double quotes",
        KeyDocument { raw: true, .. } => "in double quotes or unchanged",
        _ => "in double quotes or bare",
    };
    let is_elsewhere = key.places.len() > 1 || !key.derived_from.is_empty();
    // Quotes and escapes are not part of the key, so the value has no maximum length.
    let mut schema =
        json!({ "type": "string", "minLength": if key.quoted { length_min + 2 } else { *length_min } });
    if key.quoted {
        schema["pattern"] = json!(r#"^\s*""#);
    }
    json!({
        "name": name,
        "in": kind,
        "required": key.mode == KeyMode::Required && !is_elsewhere,
        "description": format!(
            "Names one operation; the same on every retry. {length_min} to {length_max} printable ASCII characters, \
             {spelling}. Expected is {format}."
        ),
        "schema": schema,
        "example": "\"8e03978e-40d5-43e8-bc93-6894a57f9324\"",
    })
}

/// The headers that the layer adds to responses.
fn headers(components: &mut Components, route: &RouteDocument) -> Value {
    let mut headers = Map::new();
    let mut add = |name: &str, description: &str, schema: Value| {
        let header = json!({ "description": description, "schema": schema });
        headers.insert(name.to_owned(), components.put("headers", &pascal(name), header));
    };
    let truth = || json!({ "type": "boolean" });
    let only = |value: &str| json!({ "type": "string", "const": value });
    let marker = if route.replay.mark_first {
        "Whether the response is a replay."
    } else {
        "The response is a replay. Absent from first responses."
    };
    add(&route.replay.marker, marker, truth());
    add(
        "idempotency-recorded",
        "The operation ran, and its response could not be recorded yet. Retries are refused as in progress until it is.",
        only("false"),
    );
    if route.on_store_error == crate::http::OnStoreError::Pass {
        add("idempotency-protected", "The store was down, and the request ran unprotected.", only("false"));
    }
    if !route.key.derived_from.is_empty() {
        add(
            "idempotency-key-derived",
            "The request had no key; one was derived from its body.",
            only("true"),
        );
    }
    for hint in &route.replay.retry_hints {
        add(hint, "Whether the same request may succeed after a while.", truth());
    }
    if let Some(result) = &route.replay.result_header {
        let words = json!({ "type": "string", "enum": ["accepted", "rejected"] });
        add(result, "Whether the key was honoured.", words);
    }
    if route.replay.echo_key {
        let header = route.key.header.as_deref().unwrap_or("idempotency-key");
        add(header, "The key of the request.", json!({ "type": "string" }));
    }
    Value::Object(headers)
}

/// The refusals of each status.
fn responses(components: &mut Components, route: &RouteDocument) -> Value {
    let mut by_status = Map::new();
    for problem in &route.problems {
        let response = response(components, route, problem);
        let response = components.put("responses", &format!("Idempotency{}", pascal(problem.code)), response);
        for status in std::iter::once(&problem.status).chain(&problem.statuses_further) {
            let list = by_status.entry(status.to_string()).or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut() {
                list.push(response.clone());
            }
        }
    }
    Value::Object(by_status)
}

fn response(components: &mut Components, route: &RouteDocument, problem: &ProblemDocument) -> Value {
    let mut headers = Map::new();
    let mut add = |components: &mut Components, name: &str, description: &str, schema: Value| {
        let header = json!({ "description": description, "schema": schema });
        headers.insert(name.to_owned(), components.put("headers", &pascal(name), header));
    };
    add(components, "link", "The page about the problem.", json!({ "type": "string" }));
    if problem.retryable {
        let seconds = json!({ "type": "integer", "minimum": 1 });
        add(
            components,
            "retry-after",
            "The number of seconds after which to send the same request again.",
            seconds,
        );
    }
    for hint in &route.replay.retry_hints {
        let truth = json!({ "type": "boolean" });
        add(components, hint, "Whether the same request may succeed after a while.", truth);
    }
    let content = content(components, route, problem);
    json!({
        "description": problem.title,
        "headers": headers,
        "content": { route.refusals.media_type.as_str(): content },
    })
}

fn content(components: &mut Components, route: &RouteDocument, problem: &ProblemDocument) -> Value {
    let mut content = json!({});
    if route.refusals.problem_details {
        let details = components.put("schemas", "IdempotencyProblem", problem_schema());
        let type_uri = json!({ "properties": { "type": { "const": problem.type_uri } } });
        content["schema"] = json!({ "allOf": [details, type_uri] });
    } else if let Some(example) = &problem.example {
        content["example"] = example.clone();
    }
    content
}

/// Problem details (RFC 9457) with the extension members.
fn problem_schema() -> Value {
    json!({
        "type": "object",
        "required": [
            "type", "title", "status", "detail", "retryable", "retry_with_same_key", "safe_new_key",
        ],
        "properties": {
            "type": { "type": "string", "format": "uri" },
            "title": { "type": "string" },
            "status": { "type": "integer", "minimum": 400, "maximum": 599 },
            "detail": { "type": "string" },
            "instance": { "type": "string", "format": "uri" },
            "retryable": {
                "type": "boolean",
                "description": "Whether the same request may succeed after a while.",
            },
            "retry_with_same_key": {
                "type": "boolean",
                "description": "Whether a later attempt should carry the same key.",
            },
            "safe_new_key": {
                "type": "boolean",
                "description": "Whether it is certain that nothing was or will be executed under the key of this request, so that another key cannot repeat it.",
            },
            "operation": { "type": "string", "description": "The id of the caller's own record." },
        },
    })
}

/// `idempotency-key` as `IdempotencyKey`: names of components contain only letters and digits.
fn pascal(name: &str) -> String {
    let words = name.split(|character: char| !character.is_ascii_alphanumeric());
    words
        .map(|word| {
            let (first, rest) = word.split_at(word.len().min(1));
            first.to_ascii_uppercase() + rest
        })
        .collect()
}
