use serde_json::json;

use super::features;

#[test]
fn features_exclude_default() {
    let metadata = json!({ "packages": [
        { "name": "other", "features": { "engines": [] } },
        { "name": "hapax", "features": { "webhook": ["http"], "default": ["http"], "http": [] } },
    ] });
    assert_eq!(features(&metadata).unwrap(), ["http", "webhook"]);
}

#[test]
fn a_missing_package_is_an_error() {
    assert!(features(&json!({ "packages": [{ "name": "other", "features": {} }] })).is_err());
    assert!(features(&json!({})).is_err());
}
