//! [`Scan`]: a scan over all items of the table, a page at a time.

use hapax_core::StoreError;
use serde_json::{Value, json};

use crate::client::{Call, Client};
use crate::error::Effect;
use crate::item;

/// The attributes to read: all but outcomes and chunks.
const OUTLINE: &str = "#id, #layout, #version, #head, #chunks, #lease_ms, #outcome_bytes, #of";

/// Matches heads of records only.
pub(crate) const RECORDS: &str = "attribute_not_exists(#of)";

/// Matches expired records, and parts of outcomes that are old enough to be orphans.
pub(crate) const DUE: &str =
    "(attribute_not_exists(#of) AND #expires_at_ms <= :now) OR #written_at_ms <= :old";

/// A scan over the items that match a filter. The service reads and bills all of them.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    client: &'a Client,
    op: &'static str,
    filter: &'static str,
    values: Option<Value>,
    /// The start of the next page; none at the end.
    from: Option<Option<String>>,
}

impl<'a> Scan<'a> {
    /// Scans all records.
    pub(crate) fn records(client: &'a Client, op: &'static str) -> Self {
        Self { client, op, filter: RECORDS, values: None, from: Some(None) }
    }

    /// Scans expired items, after the item `from`. The values are `:now` and `:old`.
    pub(crate) fn due(client: &'a Client, op: &'static str, values: Value, from: Option<String>) -> Self {
        Self { client, op, filter: DUE, values: Some(values), from: Some(from) }
    }

    /// The next items, perhaps none; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Value>>, StoreError> {
        let Some(from) = self.from.take() else { return Ok(None) };
        let mut names = json!({
            "#id": "id", "#layout": "layout", "#version": "version", "#head": "head", "#chunks": "chunks",
            "#lease_ms": "lease_ms", "#outcome_bytes": "outcome_bytes", "#of": "of",
        });
        // The service rejects names that no expression uses.
        if self.filter == DUE {
            names["#expires_at_ms"] = json!("expires_at_ms");
            names["#written_at_ms"] = json!("written_at_ms");
        }
        let mut body = json!({
            "TableName": self.client.options.table,
            "ConsistentRead": true,
            "ProjectionExpression": OUTLINE,
            "FilterExpression": self.filter,
            "ExpressionAttributeNames": names,
        });
        if let Some(values) = &self.values {
            body["ExpressionAttributeValues"] = values.clone();
        }
        if let Some(from) = from {
            body["ExclusiveStartKey"] = item::key(&from);
        }
        let deadline = self.client.deadline();
        let call = Call { op: self.op, effect: Effect::Read, deadline, action: "Scan" };
        let mut page = self.client.call(call, &body).await?;
        self.from = page["LastEvaluatedKey"]["id"]["S"].as_str().map(|id| Some(id.to_owned()));
        let items = page["Items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        Ok(Some(items))
    }
}

/// The id of an item.
pub(crate) fn name(item: &Value) -> &str {
    item["id"]["S"].as_str().unwrap_or_default()
}
