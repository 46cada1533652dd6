//! The OpenAPI description matches the code.

use std::collections::BTreeSet;
use std::process::Command;

use utoipa::OpenApi as _;

use super::*;
use crate::openapi::Description;
use crate::router;

const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "options", "trace"];

fn description() -> Value {
    serde_json::to_value(Description::openapi()).unwrap()
}

#[test]
fn the_description_has_exactly_the_routed_paths() {
    let described: BTreeSet<String> = description()["paths"].as_object().unwrap().keys().cloned().collect();
    let routed: BTreeSet<String> = router::described().into_iter().map(str::to_owned).collect();
    assert_eq!(described, routed);
}

#[tokio::test]
async fn paths_accept_exactly_the_described_methods() {
    let listener = TestListener::start().await;
    let description = description();
    for (path, item) in description["paths"].as_object().unwrap() {
        let path = path.replace("{id}", &"0".repeat(64));
        for method in METHODS {
            let answer = listener.api(&method.to_uppercase(), &path).send().await;
            let is_described = item.get(method).is_some();
            assert_eq!(answer.status != 405, is_described, "{method} {path}: {answer:?}");
        }
    }
    listener.stop().await;
}

#[tokio::test]
async fn the_description_is_openapi_3_1_with_security_schemes() {
    let listener = TestListener::start().await;
    let document = listener.ask("GET", "/openapi.json").send().await.ok();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"), "{}", document["openapi"]);
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    for (path, item) in document["paths"].as_object().unwrap() {
        let method = item.as_object().unwrap().values().next().unwrap();
        assert!(!method["summary"].as_str().unwrap_or_default().is_empty(), "{path} says nothing");
        assert_eq!(method.get("security").is_none(), path.starts_with("/api/"), "{path}");
    }
    listener.stop().await;
}

/// Schemathesis sends valid and invalid requests according to the description.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_finds_nothing() {
    let program = tools::schemathesis();
    let listener = TestListener::start().await;
    listener.fill().await;
    let folder = tempfile::tempdir().unwrap();
    let settings = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schemathesis.toml");
    let url = listener.url.clone();
    let tried = tokio::task::spawn_blocking(move || {
        let mut command = Command::new(program);
        command.args(["--config-file", settings, "run", &format!("{url}/openapi.json"), "--no-color"]);
        command.args(["--header", &format!("Authorization: Bearer {TOKEN}")]);
        command.current_dir(folder.path()).output().unwrap()
    });
    let tried = tried.await.unwrap();
    let output = String::from_utf8_lossy(&tried.stdout);
    println!("{output}");
    assert!(tried.status.success(), "{output}\n{}", String::from_utf8_lossy(&tried.stderr));
    listener.stop().await;
}
