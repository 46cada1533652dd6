//! An effect that is counted by the table that it writes to.

use hapax_store_dynamodb::Writes;
use hapax_testkit::servers::DynamoDbServer;
use serde_json::{Value, json};

/// Adds one to the number `name`, as an effect that must not happen twice.
pub(crate) fn one_more(name: &str) -> Writes {
    Writes::new().item(addition(name))
}

/// The same as an element of a transaction.
pub(crate) fn addition(name: &str) -> Value {
    json!({"Update": {
        "TableName": "effects",
        "Key": {"id": {"S": name}},
        "UpdateExpression": "ADD runs :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }})
}

/// How often [`one_more`] happened.
pub(crate) fn runs(server: &DynamoDbServer, name: &str) -> u64 {
    let found =
        server.call("GetItem", &format!(r#"{{"TableName": "effects", "Key": {{"id": {{"S": "{name}"}}}}}}"#));
    let found: Value = serde_json::from_str(&found).unwrap();
    found["Item"]["runs"]["N"].as_str().map_or(0, |runs| runs.parse().unwrap())
}
