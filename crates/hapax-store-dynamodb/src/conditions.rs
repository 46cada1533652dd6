//! The conditions of writes, one name for each. They are all that two processes ever agree by.

use serde_json::{Value, json};

use crate::item::Held;

/// There is no record: the key is fresh.
const ABSENT: &str = "attribute_not_exists(#id)";

/// The record is the one that was decided about: written by the same write, and not damaged since.
const UNCHANGED: &str = "#version = :version AND #head = :head";

/// Adds to a write that the record must be as it was when its change was decided, and that the service tells what is
/// there when it is not.
pub(crate) fn unchanged(write: &mut Value, before: Option<&Held>) {
    match before {
        None => {
            write["ConditionExpression"] = json!(ABSENT);
            write["ExpressionAttributeNames"] = json!({"#id": "id"});
        }
        Some(held) => {
            write["ConditionExpression"] = json!(UNCHANGED);
            write["ExpressionAttributeNames"] = json!({"#version": "version", "#head": "head"});
            write["ExpressionAttributeValues"] =
                json!({":version": held.version.value(), ":head": crate::item::binary(&held.head)});
        }
    }
    write["ReturnValuesOnConditionCheckFailure"] = json!("ALL_OLD");
}
