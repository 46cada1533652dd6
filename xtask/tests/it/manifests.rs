//! Rules about manifests: every crate has a description and the workspace lints, and can be published in the order of
//! RELEASING.md.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::tree::root;

/// The packages of the workspace, from `cargo metadata`.
fn packages() -> Vec<Value> {
    let cargo = std::env::var_os("CARGO").unwrap();
    let answer = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(answer.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&answer.stderr));
    let metadata: Value = serde_json::from_slice(&answer.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn name(package: &Value) -> &str {
    package["name"].as_str().unwrap()
}

/// Cargo writes `publish = false` as an empty list of registries.
fn is_published(package: &Value) -> bool {
    !package["publish"].as_array().is_some_and(Vec::is_empty)
}

fn undescribed(package: &Value) -> Vec<String> {
    let fields = ["description", "license"];
    let missing = fields.iter().filter(|field| package[**field].as_str().is_none_or(str::is_empty));
    missing.map(|field| format!("{}: no {field}", name(package))).collect()
}

/// docs.rs builds only the default features unless the manifest enables all.
fn undocumented_features(package: &Value) -> Vec<String> {
    let has_features = package["features"].as_object().is_some_and(|features| !features.is_empty());
    let documents_all = package["metadata"]["docs"]["rs"]["all-features"] == true;
    let is_wrong = is_published(package) && has_features && !documents_all;
    let complaint =
        || format!("{}: no `all-features = true` under [package.metadata.docs.rs]", name(package));
    is_wrong.then(complaint).into_iter().collect()
}

/// A version on an internal dev-dependency makes publishing cyclic: the testkit is published after the crates that it
/// tests.
fn versioned_dev_dependencies(package: &Value) -> Vec<String> {
    let dependencies = package["dependencies"].as_array().unwrap();
    let internal = dependencies.iter().filter(|dependency| dependency["path"].is_string());
    let versioned = internal.filter(|dependency| dependency["kind"] == "dev" && dependency["req"] != "*");
    let complain =
        |dependency| format!("{}: dev-dependency {} has a version", name(package), name(dependency));
    versioned.map(complain).collect()
}

/// The crates of a numbered list in Markdown: ``1. `hapax-core` …``.
fn listed_order(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| {
            let (number, rest) = line.split_once(". `")?;
            number.parse::<u32>().ok()?;
            rest.split('`').next()
        })
        .collect()
}

fn unpublishable(packages: &[Value], order: &[&str]) -> Vec<String> {
    let published: Vec<&Value> = packages.iter().filter(|package| is_published(package)).collect();
    let internal: BTreeSet<&str> = published.iter().map(|package| name(package)).collect();
    let mut complaints = Vec::new();
    for package in published {
        let Some(position) = order.iter().position(|listed| *listed == name(package)) else {
            complaints.push(format!("{} is published but not in the release order", name(package)));
            continue;
        };
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let needed = dependencies.filter(|dependency| dependency["kind"] != "dev").map(name);
        for dependency in needed.filter(|dependency| internal.contains(dependency)) {
            if !order[..position].contains(&dependency) {
                complaints.push(format!("{} needs {dependency} to be published first", name(package)));
            }
        }
    }
    let unknown = order.iter().filter(|listed| !internal.contains(*listed));
    complaints.extend(unknown.map(|listed| format!("{listed} is in the release order but not published")));
    complaints
}

fn check(rule: impl Fn(&Value) -> Vec<String>) {
    let complaints: Vec<String> = packages().iter().flat_map(rule).collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn every_crate_has_description_and_license() {
    check(undescribed);
}

#[test]
fn crates_without_description_are_reported() {
    let bare = json!({ "name": "a", "description": null, "license": "" });
    assert_eq!(undescribed(&bare), ["a: no description", "a: no license"]);
}

#[test]
fn docs_rs_builds_every_feature() {
    check(undocumented_features);
}

#[test]
fn undocumented_features_are_reported() {
    let package = |features: Value, metadata: Value, publish: Value| {
        let package = json!({ "name": "a", "features": features, "metadata": metadata, "publish": publish });
        undocumented_features(&package).len()
    };
    let (axum, all) = (json!({ "axum": [] }), json!({ "docs": { "rs": { "all-features": true } } }));
    assert_eq!(package(axum.clone(), Value::Null, Value::Null), 1);
    assert_eq!(package(axum.clone(), json!({ "docs": { "rs": {} } }), Value::Null), 1);
    assert_eq!(package(axum.clone(), all, Value::Null), 0);
    assert_eq!(package(axum, Value::Null, json!([])), 0);
    assert_eq!(package(json!({}), Value::Null, Value::Null), 0);
}

#[test]
fn internal_dev_dependencies_carry_no_version() {
    check(versioned_dev_dependencies);
}

#[test]
fn versioned_dev_dependencies_are_reported() {
    let package = |kind: Value, req: &str, path: Value| json!({ "name": "a", "dependencies": [{ "name": "b", "kind": kind, "req": req, "path": path }] });
    assert_eq!(versioned_dev_dependencies(&package(json!("dev"), "^1", json!("b"))).len(), 1);
    assert!(versioned_dev_dependencies(&package(json!("dev"), "*", json!("b"))).is_empty());
    assert!(versioned_dev_dependencies(&package(json!("dev"), "^1", Value::Null)).is_empty());
    assert!(versioned_dev_dependencies(&package(Value::Null, "^1", json!("b"))).is_empty());
}

#[test]
fn every_crate_inherits_the_workspace_lints() {
    check(|package| {
        let manifest = fs::read_to_string(package["manifest_path"].as_str().unwrap()).unwrap();
        let takes = manifest.contains("[lints]\nworkspace = true");
        (!takes).then(|| format!("{}: no `[lints] workspace = true`", name(package))).into_iter().collect()
    });
}

#[test]
fn release_order_satisfies_dependencies() {
    let text = fs::read_to_string(root().join("RELEASING.md")).unwrap();
    let complaints = unpublishable(&packages(), &listed_order(&text));
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn wrong_release_orders_are_reported() {
    let dependency = json!({ "name": "core", "kind": null });
    let packages = [
        json!({ "name": "core", "publish": null, "dependencies": [] }),
        json!({ "name": "top", "publish": null, "dependencies": [dependency] }),
        json!({ "name": "own", "publish": [], "dependencies": [dependency] }),
    ];
    let order = |text| unpublishable(&packages, &listed_order(text));
    assert!(order("1. `core`: first\n2. `top`\nNot `this`.").is_empty());
    assert_eq!(order("1. `top`\n2. `core`"), ["top needs core to be published first"]);
    assert_eq!(order("1. `core`"), ["top is published but not in the release order"]);
    assert_eq!(order("1. `core`\n2. `top`\n3. `own`"), ["own is in the release order but not published"]);
}
