use hapax::{Hapax, MemoryStore};

use super::*;
use crate::config::{Config, Flags};

/// The layer of a file's routes, and the routes.
fn routing(file: &str) -> (IdempotencyLayer, Vec<Route>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hapax.toml");
    std::fs::write(&path, file).unwrap();
    let config = Config::load(&Flags::new(Some(path)), []).unwrap();
    let hapax = Hapax::builder(MemoryStore::new()).sweep(None).build();
    (config.layer(&hapax, |route| route.policy.clone()), config.routes)
}

fn removed_between(before: &str, after: &str) -> Vec<String> {
    let (before, after) = (routing(before), routing(after));
    removed(&Routing { layer: &before.0, routes: &before.1 }, &Routing { layer: &after.0, routes: &after.1 })
}

const PAYMENTS: &str = "[[route]]\npath = \"/v1/payments/**\"\nkey = \"required\"\nmethods = [\"POST\"]\n";

#[tokio::test]
async fn unchanged_and_added_protection_is_no_loss() {
    for (before, after) in [
        ("", ""),
        ("", PAYMENTS),
        (PAYMENTS, PAYMENTS),
        (
            PAYMENTS,
            "[[route]]\npath_regex = \"/a/[0-9]+\"\n[[route]]\npath = \"/v1/payments/**\"\nkey = \"required\"\n",
        ),
        ("[defaults]\nretention = \"1h\"", "[defaults]\nretention = \"2h\""),
    ] {
        let removed = removed_between(before, after);
        // A route that covers one method may leave other methods on its path uncovered: that loss is expected.
        let others = |line: &String| !line.contains("no longer covered: PUT,PATCH /v1/payments/**");
        assert_eq!(removed.into_iter().filter(others).collect::<Vec<_>>(), [""; 0], "{before:?} {after:?}");
    }
}

#[tokio::test]
async fn a_removed_route_is_reported_with_its_losses() {
    let removed = removed_between(PAYMENTS, "");
    assert_eq!(
        removed,
        [
            "the route was removed, its requests are matched by the routes after it: POST /v1/payments/**",
            "key = \"required\" was removed, requests without a key run unprotected: POST /v1/payments/**",
        ]
    );
}

#[tokio::test]
async fn a_removed_route_with_a_regular_expression_is_reported() {
    let regex = "[[route]]\npath_regex = \"/v1/[a-z]+\"\nkey = \"required\"\n";
    let removed = removed_between(regex, "");
    assert_eq!(removed.len(), 2, "{removed:?}");
    assert!(removed.iter().all(|line| line.ends_with("POST,PUT,PATCH ~/v1/[a-z]+")), "{removed:?}");
}

#[tokio::test]
async fn every_loss_is_reported_once_with_all_routes() {
    let one = |option: &str| {
        format!("[[route]]\npath = \"/a\"\n{option}\n[[route]]\npath = \"/b/{{id}}\"\n{option}\n")
    };
    for (had, has, message) in [
        ("key = \"required\"", "", "key = \"required\" was removed"),
        ("", "key = \"off\"", "no longer covered"),
        ("key = \"required\"", "key = \"required\"\nmethods = [\"DELETE\"]", "POST,PUT,PATCH"),
        ("key_from = [\"header:idempotency-key\", \"query:key\"]", "", "`key_from` was removed"),
        ("header = \"x-key\"", "header = \"y-key\"", "`header` or `key_from`"),
        ("key_derive = [\"/id\"]", "key_derive = [\"/other\"]", "`key_derive` was removed or changed"),
        (
            "key_derive = [\"/id\"]\nkey_derive_window = \"2h\"",
            "key_derive = [\"/id\"]\nkey_derive_window = \"1h\"",
            "`key_derive_window` was shortened",
        ),
        ("authorise = \"http://127.0.0.1:1/a\"", "", "`authorise` was removed"),
        ("webhook = \"stripe\"\nwebhook_secrets = [\"whsec_c2VjcmV0\"]", "", "`webhook` was removed"),
        ("anonymous = \"refuse\"", "", "anonymous = \"refuse\" was removed"),
        ("namespace = \"a\"", "namespace = \"b\"", "run again"),
        ("credential_headers = [\"x-own-key\"]", "", "run again"),
        ("path_case = \"ignore\"", "", "run again"),
        ("retention = \"2h\"", "retention = \"1h\"", "shorter time"),
        ("release = [\"5xx\"]", "release = [\"404\", \"5xx\"]", "release their key"),
        ("expired_keys = \"refuse\"", "", "expired_keys = \"refuse\" was removed"),
    ] {
        let removed = removed_between(&one(had), &one(has));
        let line = removed.iter().find(|line| line.contains(message));
        let line = line.unwrap_or_else(|| panic!("{had:?} to {has:?}: {removed:?}"));
        assert!(line.contains(" /a; ") && line.ends_with(" /b/{id}"), "{line}");
    }
}

#[tokio::test]
async fn a_shadowed_route_is_reported() {
    // A route that certainly shadows another one is refused by the configuration.
    let hidden = format!("[[route]]\npath_regex = \"/v1/.*\"\n{PAYMENTS}");
    let removed = removed_between(PAYMENTS, &hidden);
    assert_eq!(
        removed,
        ["key = \"required\" was removed, requests without a key run unprotected: POST /v1/payments/**"]
    );
}

#[tokio::test]
async fn a_line_lists_some_routes_and_counts_the_rest() {
    let routes = |key: &str| {
        (0..NAMED_MAX + 2)
            .map(|n| format!("[[route]]\npath = \"/{n}\"\nkey = \"{key}\"\n"))
            .collect::<String>()
    };
    let removed = removed_between(&routes("required"), &routes("optional"));
    assert_eq!(removed.len(), 1);
    assert!(removed[0].ends_with("; and 2 more"), "{removed:?}");
}
