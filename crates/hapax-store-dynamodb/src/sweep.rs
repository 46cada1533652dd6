//! Sweeping: removes expired records and orphaned parts of outcomes.
//!
//! DynamoDB removes expired items by their `ttl` at no charge, two days late or more. A sweep removes them earlier, and
//! counts the uncertain records that were not settled in time.

use std::sync::Arc;

use hapax_core::transition::{self, Decision, Due};
use hapax_core::{RecordId, StoreError, Swept};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::change::{Basis, Change};
use crate::chunks::{self, ORPHAN_AGE};
use crate::client::Client;
use crate::item::{StoredRecord, number};
use crate::scan::{Scan, name};

/// Removes at most `batch_max` records; the next sweep continues where this one ended.
pub(crate) async fn sweep(
    client: &Arc<Client>,
    sweep_position: &Mutex<Option<String>>,
    batch_max: usize,
) -> Result<Swept, StoreError> {
    let mut swept = Swept::default();
    let began = sweep_position.lock().clone();
    let now = client.time.now();
    let old = now.as_millis().saturating_sub(u64::try_from(ORPHAN_AGE.as_millis()).unwrap_or(u64::MAX));
    let values = json!({":now": number(now.as_millis()), ":old": number(old)});
    // From the end of the last sweep to the end of the table, then the part before that.
    let legs = match began {
        None => vec![None],
        Some(from) => vec![Some(from), None],
    };
    let mut removed = 0;
    for from in legs {
        let mut scan = Scan::due(client, "sweep", values.clone(), from);
        while let Some(items) = scan.next().await? {
            for item in items {
                if item.get("of").is_some() {
                    remove_orphan(client, &item).await?;
                    continue;
                }
                let Some(stored) = due(client, &item) else { continue };
                if removed == batch_max {
                    swept.more = true;
                    return Ok(swept);
                }
                if let Some(why) = remove(client, stored).await? {
                    removed += 1;
                    match why {
                        Due::Expired => swept.expired += 1,
                        Due::Dropped => swept.dropped += 1,
                    }
                    *sweep_position.lock() = Some(name(&item).to_owned());
                }
            }
        }
    }
    *sweep_position.lock() = None;
    Ok(swept)
}

/// The record of an item, if it can be read and is due as far as this process has observed.
fn due(client: &Client, item: &Value) -> Option<StoredRecord> {
    let id = RecordId::parse(name(item))?;
    let stored = StoredRecord::outline(&id, item).ok()?;
    let now = client.time.now();
    transition::due(&client.observed_record(&stored, now), now).is_some().then_some(stored)
}

/// Removes a record if it is still due; returns why it was.
async fn remove(client: &Arc<Client>, stored: StoredRecord) -> Result<Option<Due>, StoreError> {
    let id = stored.record.key.id;
    let decide = |stored: Option<&StoredRecord>, now| {
        let due = stored.and_then(|stored| transition::due(&client.observed_record(stored, now), now));
        let change = if due.is_some() { transition::Change::Remove } else { transition::Change::Keep };
        Decision { change, answer: due }
    };
    Ok(Change::new(client, "sweep", &id).make(Basis::Guess(Some(Box::new(stored))), decide).await?.0)
}

/// Removes a part of an outcome that its record does not refer to.
async fn remove_orphan(client: &Client, item: &Value) -> Result<(), StoreError> {
    let (part, of) = (name(item), item["of"]["S"].as_str().unwrap_or_default());
    let record = client.read_item("sweep", of, client.deadline()).await?;
    if record.is_some_and(|record| chunks::is_told_of(&record, part)) {
        return Ok(());
    }
    chunks::remove_item(client, "sweep", part).await
}
