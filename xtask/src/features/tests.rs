use serde_json::json;

use super::features;

#[test]
fn features_exclude_default() {
    let metadata = json!({ "packages": [
        { "name": "other", "features": { "engines": [] } },
        { "name": "hapax", "features": { "webhook": ["http"], "default": ["http"], "http": [] } },
    ] });
    assert_eq!(features(&metadata, "hapax").unwrap(), ["http", "webhook"]);
}

#[test]
fn a_missing_package_is_an_error() {
    assert!(features(&json!({ "packages": [{ "name": "other", "features": {} }] }), "hapax").is_err());
    assert!(features(&json!({}), "hapax").is_err());
}
