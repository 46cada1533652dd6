//! Finding records by state and time, and removing those that are due. Touches only what the index says is due.

use hapax_core::transition::{self, Due};
use hapax_core::{Reason, State, Swept};
use rusqlite::Connection;

use crate::error::Failure;
use crate::row::{self, Row, Stored, millis, state_number};
use crate::work::Work;

/// How many records one sweep removes at most, whatever it is asked for: others wait for its transaction.
const BATCH_MAX: usize = 10_000;

const DUE: &str = "SELECT rowid FROM record INDEXED BY record_by_state WHERE state = ?1 AND due_ms <= ?2 \
                   ORDER BY due_ms";
const IN_STATE: &str = "SELECT rowid FROM record INDEXED BY record_by_state WHERE state = ?1";

/// Decides a claim of an earlier process anew, and says so if it becomes uncertain.
pub(crate) fn restart(work: &mut Work<'_>, row: Box<Row>) -> Result<bool, Failure> {
    let change = transition::restart(&row.record, work.now);
    let (key, attempt) = (row.record.key.clone(), row.record.fence.attempt);
    let is_changed = work.change(row, change)?;
    if is_changed {
        let (operation, reason) = (key.scope.operation(), Reason::Restarted);
        tracing::warn!(
            id = %key.id, attempt, operation, cause = reason.name(),
            "a record becomes uncertain: {}", reason.words()
        );
    }
    Ok(is_changed)
}

/// Removes at most `batch_max` records that are due, each decided anew from what its row says now.
///
/// A record whose head cannot be read is left: nobody can say what it was worth. Its outcome is not looked at:
/// others wait for the transaction, and an outcome changes nothing about being due.
pub(crate) fn remove_due(work: &mut Work<'_>, batch_max: usize) -> rusqlite::Result<Swept> {
    let batch_max = batch_max.min(BATCH_MAX);
    let mut swept = Swept::default();
    for (row, due) in find_due(work, batch_max + 1)? {
        if swept.expired + swept.dropped == batch_max as u64 {
            swept.more = true;
            break;
        }
        work.remove(&row)?;
        match due {
            Due::Expired => swept.expired += 1,
            Due::Dropped => swept.dropped += 1,
        }
    }
    Ok(swept)
}

/// The first `count_max` records that are due. They are all found before the first is removed, because removing
/// would pull the index from under the search.
fn find_due(work: &Work<'_>, count_max: usize) -> rusqlite::Result<Vec<(Box<Row>, Due)>> {
    let mut found = Vec::new();
    let mut statement = work.prepared.connection.prepare_cached(DUE)?;
    for state in State::ALL {
        let mut rowids = statement.query((state_number(state), millis(work.now)))?;
        while found.len() < count_max
            && let Some(entry) = rowids.next()?
        {
            if let Stored::Found(row) = row::head_at(work.prepared.connection, entry.get(0)?)?
                && let Some(due) = transition::due(&row.record, work.now)
            {
                found.push((row, due));
            }
        }
    }
    Ok(found)
}

/// Every claim that is written down as being worked on.
pub(crate) fn in_progress(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    let mut statement = connection.prepare(IN_STATE)?;
    let rowids = statement.query_map([state_number(State::InProgress)], |row| row.get(0))?;
    rowids.collect()
}
