//! Outcomes that do not fit in one item: written in parts before the record refers to them, and removed afterwards.
//!
//! The parts are named after the one write that refers to them, so that no other write can mix with them. A process that
//! ends in between leaves orphans; a sweep removes them once no call can be in flight that would still refer to them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use hapax_core::{RecordId, StoreError};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::{Call, Client};
use crate::error::{CallFailure, Effect};
use crate::item::{self, CHUNK_BYTES, StoredOutcome, StoredRecord, Version};

/// How many parts of one outcome are in flight at once.
const AT_ONCE: usize = 4;

/// A part without a referring record is an orphan when it is older than this.
pub(crate) const ORPHAN_AGE: Duration = Duration::from_secs(3600);

/// Writes the parts of an outcome. The record does not change, whether this succeeds or not.
pub(crate) async fn write(
    client: &Client,
    op: &'static str,
    stored: &StoredRecord,
    outcome: &[u8],
) -> Result<(), StoreError> {
    let started = Instant::now();
    let parts: Vec<(usize, &[u8])> = outcome.chunks(CHUNK_BYTES).enumerate().collect();
    for group in parts.chunks(AT_ONCE) {
        let mut writes = Vec::with_capacity(AT_ONCE);
        for (number, part) in group {
            writes.push(write_part(client, op, stored, *number, part));
        }
        try_join_all(writes).await?;
    }
    // After that, a sweep may take them for orphans.
    if started.elapsed() > ORPHAN_AGE / 2 {
        return Err(CallFailure::TimedOut.error(op, Effect::Read));
    }
    Ok(())
}

async fn write_part(
    client: &Client,
    op: &'static str,
    stored: &StoredRecord,
    number: usize,
    part: &[u8],
) -> Result<(), StoreError> {
    let id = stored.record.key.id;
    let body = json!({
        "TableName": client.options.table,
        "Item": {
            "id": {"S": name(&id, stored.version, number)},
            "chunk": item::binary(part),
            "of": {"S": id.to_string()},
            "written_at_ms": item::number(client.time.now().as_millis()),
            "ttl": item::ttl(stored.record.expires_at),
        },
    });
    let call = Call { op, effect: Effect::Read, deadline: client.deadline(), action: "PutItem" };
    client.call(call, &body).await.map(drop)
}

/// Reads the bytes of an outcome; none if a part is gone.
pub(crate) async fn read(
    client: &Client,
    op: &'static str,
    stored: &StoredRecord,
) -> Result<Option<Vec<u8>>, StoreError> {
    let chunks = match &stored.outcome {
        StoredOutcome::None => return Ok(None),
        StoredOutcome::Inline(bytes) => return Ok(Some(bytes.to_vec())),
        StoredOutcome::Chunks(chunks) => *chunks as usize,
    };
    let mut outcome = Vec::new();
    for first in (0..chunks).step_by(AT_ONCE) {
        let mut reads = Vec::with_capacity(AT_ONCE);
        for number in first..chunks.min(first + AT_ONCE) {
            reads.push(read_part(client, op, stored, number));
        }
        for part in try_join_all(reads).await? {
            match part {
                Some(part) => outcome.extend(part),
                None => return Ok(None),
            }
        }
    }
    Ok(Some(outcome))
}

async fn read_part(
    client: &Client,
    op: &'static str,
    stored: &StoredRecord,
    number: usize,
) -> Result<Option<Vec<u8>>, StoreError> {
    let name = name(&stored.record.key.id, stored.version, number);
    let found = client.read_item(op, &name, client.deadline()).await?;
    Ok(found.and_then(|item| item::bytes(&item, "chunk")))
}

/// Removes the parts of an outcome in the background, after the record has ceased to refer to them. Parts that cannot be
/// removed now are left to a sweep.
pub(crate) fn remove(client: &Arc<Client>, stored: &StoredRecord) {
    let StoredOutcome::Chunks(chunks) = stored.outcome else { return };
    let (client, id, version) = (Arc::clone(client), stored.record.key.id, stored.version);
    tokio::spawn(async move {
        for number in 0..chunks as usize {
            let removed = remove_item(&client, "sweep", &name(&id, version, number)).await;
            if removed.is_err() {
                return;
            }
        }
    });
}

/// Removes one part.
pub(crate) async fn remove_item(client: &Client, op: &'static str, name: &str) -> Result<(), StoreError> {
    let body = json!({"TableName": client.options.table, "Key": item::key(name)});
    let call = Call { op, effect: Effect::Read, deadline: client.deadline(), action: "DeleteItem" };
    client.call(call, &body).await.map(drop)
}

/// Whether the record in this item refers to the part with this name.
pub(crate) fn is_told_of(record: &Value, name: &str) -> bool {
    let version = item::bytes(record, "version").map(|version| item::hex(&version));
    let named = name.split('/').nth(1);
    record.get("chunks").is_some() && version.is_some() && version.as_deref() == named
}

fn name(id: &RecordId, version: Version, number: usize) -> String {
    format!("{id}/{}/{number}", version.text())
}
