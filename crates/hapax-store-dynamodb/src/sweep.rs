//! Sweeping: records that are due, and parts of outcomes that no record tells of.
//!
//! DynamoDB removes expired items by their `ttl` at no charge, two days late or more. A sweep is for those who want them
//! gone earlier, and it is what counts records that nobody settled.

use std::sync::Arc;

use hapax_core::transition::{self, Decision, Due};
use hapax_core::{RecordId, StoreError, Swept};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::change::{Basis, Change};
use crate::chunks::{self, ORPHAN_AGE};
use crate::item::{Held, number};
use crate::link::Link;
use crate::scan::{Scan, name};

/// Removes at most `batch_max` records and goes on next time where it ended.
pub(crate) async fn sweep(
    link: &Arc<Link>,
    swept_to: &Mutex<Option<String>>,
    batch_max: usize,
) -> Result<Swept, StoreError> {
    let mut swept = Swept::default();
    let began = swept_to.lock().clone();
    let now = link.time.now();
    let old = now.as_millis().saturating_sub(u64::try_from(ORPHAN_AGE.as_millis()).unwrap_or(u64::MAX));
    let values = json!({":now": number(now.as_millis()), ":old": number(old)});
    // From where the last one ended to the table's end, and then what lies before that.
    let legs = match began {
        None => vec![None],
        Some(from) => vec![Some(from), None],
    };
    let mut removed = 0;
    for from in legs {
        let mut scan = Scan::due(link, "sweep", values.clone(), from);
        while let Some(items) = scan.next().await? {
            for item in items {
                if item.get("of").is_some() {
                    remove_orphan(link, &item).await?;
                    continue;
                }
                let Some(held) = due(link, &item) else { continue };
                if removed == batch_max {
                    swept.more = true;
                    return Ok(swept);
                }
                if let Some(why) = remove(link, held).await? {
                    removed += 1;
                    match why {
                        Due::Expired => swept.expired += 1,
                        Due::Dropped => swept.dropped += 1,
                    }
                    *swept_to.lock() = Some(name(&item).to_owned());
                }
            }
        }
    }
    *swept_to.lock() = None;
    Ok(swept)
}

/// The record of an item, if it can be read and is due as far as this process may judge.
fn due(link: &Link, item: &Value) -> Option<Held> {
    let id = RecordId::parse(name(item))?;
    let held = Held::outline(&id, item).ok()?;
    let now = link.time.now();
    transition::due(&link.judged(&held, now), now).is_some().then_some(held)
}

/// Removes a record if it is still due, and says why it was.
async fn remove(link: &Arc<Link>, held: Held) -> Result<Option<Due>, StoreError> {
    let id = held.record.key.id;
    let decide = |held: Option<&Held>, now| {
        let due = held.and_then(|held| transition::due(&link.judged(held, now), now));
        let change = if due.is_some() { transition::Change::Remove } else { transition::Change::Keep };
        Decision { change, answer: due }
    };
    Ok(Change::new(link, "sweep", &id).make(Basis::Guess(Some(Box::new(held))), decide).await?.0)
}

/// Removes a part of an outcome that its record does not tell of.
async fn remove_orphan(link: &Link, item: &Value) -> Result<(), StoreError> {
    let (part, of) = (name(item), item["of"]["S"].as_str().unwrap_or_default());
    let record = link.read_item("sweep", of, link.deadline()).await?;
    if record.is_some_and(|record| chunks::is_told_of(&record, part)) {
        return Ok(());
    }
    chunks::remove_item(link, "sweep", part).await
}
