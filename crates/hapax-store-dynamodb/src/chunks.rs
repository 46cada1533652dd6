//! Outcomes that do not fit in one item: written in parts before the record tells of them, removed after it does not.
//!
//! The parts are named after the one write that tells of them, so that no other write can mix with them. What is left
//! behind by a process that ended in between is an orphan, and a sweep removes it once no call can be under way any more
//! that would still tell of it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use hapax_core::{RecordId, StoreError};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::error::{Effect, Refusal};
use crate::item::{self, CHUNK_BYTES, Held, Outcome, Version};
use crate::link::{Call, Link};

/// How many parts of one outcome are under way at once.
const AT_ONCE: usize = 4;

/// A part that no record tells of is an orphan when it is older than this.
pub(crate) const ORPHAN_AGE: Duration = Duration::from_secs(3600);

/// Writes the parts of an outcome. The record is not changed by that, whatever becomes of it.
pub(crate) async fn write(
    link: &Link,
    op: &'static str,
    held: &Held,
    outcome: &[u8],
) -> Result<(), StoreError> {
    let started = Instant::now();
    let parts: Vec<(usize, &[u8])> = outcome.chunks(CHUNK_BYTES).enumerate().collect();
    for group in parts.chunks(AT_ONCE) {
        let mut writes = Vec::with_capacity(AT_ONCE);
        for (number, part) in group {
            writes.push(write_part(link, op, held, *number, part));
        }
        try_join_all(writes).await?;
    }
    // A sweep may take them for orphans from then on.
    if started.elapsed() > ORPHAN_AGE / 2 {
        return Err(Refusal::TimedOut.error(op, Effect::Read));
    }
    Ok(())
}

async fn write_part(
    link: &Link,
    op: &'static str,
    held: &Held,
    number: usize,
    part: &[u8],
) -> Result<(), StoreError> {
    let id = held.record.key.id;
    let body = json!({
        "TableName": link.options.table,
        "Item": {
            "id": {"S": name(&id, held.version, number)},
            "chunk": item::binary(part),
            "of": {"S": id.to_string()},
            "written_at_ms": item::number(link.time.now().as_millis()),
            "ttl": item::ttl(held.record.expires_at),
        },
    });
    let call = Call { op, effect: Effect::Read, deadline: link.deadline(), action: "PutItem" };
    link.call(call, &body).await.map(drop)
}

/// The bytes of an outcome; none when a part of it is gone.
pub(crate) async fn read(link: &Link, op: &'static str, held: &Held) -> Result<Option<Vec<u8>>, StoreError> {
    let chunks = match &held.outcome {
        Outcome::None => return Ok(None),
        Outcome::Here(bytes) => return Ok(Some(bytes.to_vec())),
        Outcome::Chunks(chunks) => *chunks as usize,
    };
    let mut outcome = Vec::new();
    for first in (0..chunks).step_by(AT_ONCE) {
        let mut reads = Vec::with_capacity(AT_ONCE);
        for number in first..chunks.min(first + AT_ONCE) {
            reads.push(read_part(link, op, held, number));
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
    link: &Link,
    op: &'static str,
    held: &Held,
    number: usize,
) -> Result<Option<Vec<u8>>, StoreError> {
    let name = name(&held.record.key.id, held.version, number);
    let found = link.read_item(op, &name, link.deadline()).await?;
    Ok(found.and_then(|item| item::bytes(&item, "chunk")))
}

/// Removes the parts of an outcome that no record tells of any more, behind the caller's back. What cannot be removed now
/// is left to a sweep.
pub(crate) fn remove(link: &Arc<Link>, held: &Held) {
    let Outcome::Chunks(chunks) = held.outcome else { return };
    let (link, id, version) = (Arc::clone(link), held.record.key.id, held.version);
    tokio::spawn(async move {
        for number in 0..chunks as usize {
            let removed = remove_item(&link, "sweep", &name(&id, version, number)).await;
            if removed.is_err() {
                return;
            }
        }
    });
}

/// Removes one part.
pub(crate) async fn remove_item(link: &Link, op: &'static str, name: &str) -> Result<(), StoreError> {
    let body = json!({"TableName": link.options.table, "Key": item::key(name)});
    let call = Call { op, effect: Effect::Read, deadline: link.deadline(), action: "DeleteItem" };
    link.call(call, &body).await.map(drop)
}

/// Whether the record with this item tells of the part with this name.
pub(crate) fn is_told_of(record: &Value, name: &str) -> bool {
    let version = item::bytes(record, "version").map(|version| crate::sign::hex(&version));
    let named = name.split('/').nth(1);
    record.get("chunks").is_some() && version.is_some() && version.as_deref() == named
}

fn name(id: &RecordId, version: Version, number: usize) -> String {
    format!("{id}/{}/{number}", version.text())
}
