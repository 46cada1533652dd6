//! [`Scan`]: a walk through all items of the table, a page at a time.

use hapax_core::StoreError;
use serde_json::{Value, json};

use crate::error::Effect;
use crate::item;
use crate::link::{Call, Link};

/// What is read of every item: all but outcomes and chunks.
const OUTLINE: &str = "#id, #layout, #version, #head, #chunks, #lease_ms, #outcome_bytes, #of";

/// Heads of records only.
pub(crate) const RECORDS: &str = "attribute_not_exists(#of)";

/// Records whose time is over, and parts of outcomes that are old enough to be orphans.
pub(crate) const DUE: &str =
    "(attribute_not_exists(#of) AND #expires_at_ms <= :now) OR #written_at_ms <= :old";

/// A walk through the items that a filter lets pass. The service reads and charges for all of them.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    link: &'a Link,
    op: &'static str,
    filter: &'static str,
    values: Option<Value>,
    /// Where to go on; none when it has been everywhere.
    from: Option<Option<String>>,
}

impl<'a> Scan<'a> {
    /// Of all records.
    pub(crate) fn records(link: &'a Link, op: &'static str) -> Self {
        Self { link, op, filter: RECORDS, values: None, from: Some(None) }
    }

    /// Of what is due, after the item `from`. The values are `:now` and `:old`.
    pub(crate) fn due(link: &'a Link, op: &'static str, values: Value, from: Option<String>) -> Self {
        Self { link, op, filter: DUE, values: Some(values), from: Some(from) }
    }

    /// The next items, perhaps none of them; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Value>>, StoreError> {
        let Some(from) = self.from.take() else { return Ok(None) };
        let mut names = json!({
            "#id": "id", "#layout": "layout", "#version": "version", "#head": "head", "#chunks": "chunks",
            "#lease_ms": "lease_ms", "#outcome_bytes": "outcome_bytes", "#of": "of",
        });
        // The service refuses names that no expression uses.
        if self.filter == DUE {
            names["#expires_at_ms"] = json!("expires_at_ms");
            names["#written_at_ms"] = json!("written_at_ms");
        }
        let mut body = json!({
            "TableName": self.link.options.table,
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
        let deadline = self.link.deadline();
        let call = Call { op: self.op, effect: Effect::Read, deadline, action: "Scan" };
        let mut page = self.link.call(call, &body).await?;
        self.from = page["LastEvaluatedKey"]["id"]["S"].as_str().map(|id| Some(id.to_owned()));
        let items = page["Items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        Ok(Some(items))
    }
}

/// The name of an item.
pub(crate) fn name(item: &Value) -> &str {
    item["id"]["S"].as_str().unwrap_or_default()
}
