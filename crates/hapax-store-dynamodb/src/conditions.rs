//! The conditions of writes, one name for each. Processes coordinate only through these.

use serde_json::{Value, json};

use crate::item::StoredRecord;

/// There is no record: the key is fresh.
const ABSENT: &str = "attribute_not_exists(#id)";

/// The record is the expected one: written by the same write, and not damaged since.
const UNCHANGED: &str = "#version = :version AND #head = :head";

/// Adds the condition that the record is unchanged since it was read, and requests the current item if it fails.
pub(crate) fn unchanged(write: &mut Value, before: Option<&StoredRecord>) {
    match before {
        None => {
            write["ConditionExpression"] = json!(ABSENT);
            write["ExpressionAttributeNames"] = json!({"#id": "id"});
        }
        Some(stored) => {
            write["ConditionExpression"] = json!(UNCHANGED);
            write["ExpressionAttributeNames"] = json!({"#version": "version", "#head": "head"});
            write["ExpressionAttributeValues"] =
                json!({":version": stored.version.value(), ":head": crate::item::binary(&stored.head)});
        }
    }
    write["ReturnValuesOnConditionCheckFailure"] = json!("ALL_OLD");
}
