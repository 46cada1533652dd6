//! Finds records by state and time, and removes those that are due. Reads only rows that the index names as due.

use hapax_core::transition::{self, Due};
use hapax_core::{Reason, State, Swept};
use rusqlite::Connection;

use crate::error::Failure;
use crate::row::{self, Row, StoredRow, millis, state_number};
use crate::transaction::WriteTransaction;

/// How many records one sweep removes at most: other operations wait for its transaction.
const BATCH_MAX: usize = 10_000;

const DUE: &str = "SELECT rowid FROM record INDEXED BY record_by_state WHERE state = ?1 AND due_ms <= ?2 \
                   ORDER BY due_ms";
const IN_STATE: &str = "SELECT rowid FROM record INDEXED BY record_by_state WHERE state = ?1";

/// Decides what a claim of an earlier process becomes, and logs it if that is uncertain.
pub(crate) fn restart(transaction: &mut WriteTransaction<'_>, row: Box<Row>) -> Result<bool, Failure> {
    let change = transition::restart(&row.record, transaction.now);
    let (key, attempt) = (row.record.key.clone(), row.record.fence.attempt);
    let is_changed = transaction.change_row(row, change)?;
    if is_changed {
        let (operation, reason) = (key.scope.operation(), Reason::Restarted);
        tracing::warn!(
            id = %key.id, attempt, operation, cause = reason.name(),
            "a record becomes uncertain: {}", reason.words()
        );
    }
    Ok(is_changed)
}

/// Removes at most `batch_max` records that are due by their heads.
///
/// A record with an unreadable head is left, because its worth is unknown. Outcomes are not read: other operations wait for
/// the transaction, and an outcome does not change when a record is due.
pub(crate) fn remove_due(
    transaction: &mut WriteTransaction<'_>,
    batch_max: usize,
) -> rusqlite::Result<Swept> {
    let batch_max = batch_max.min(BATCH_MAX);
    let mut swept = Swept::default();
    for (row, due) in find_due(transaction, batch_max + 1)? {
        if swept.expired + swept.dropped == batch_max as u64 {
            swept.more = true;
            break;
        }
        transaction.remove(&row)?;
        match due {
            Due::Expired => swept.expired += 1,
            Due::Dropped => swept.dropped += 1,
        }
    }
    Ok(swept)
}

/// The first `count_max` records that are due. All are found before the first is removed, because a removal changes the
/// index that is being searched.
fn find_due(transaction: &WriteTransaction<'_>, count_max: usize) -> rusqlite::Result<Vec<(Box<Row>, Due)>> {
    let mut found = Vec::new();
    let mut statement = transaction.statements.connection.prepare_cached(DUE)?;
    for state in State::ALL {
        let mut rowids = statement.query((state_number(state), millis(transaction.now)))?;
        while found.len() < count_max
            && let Some(entry) = rowids.next()?
        {
            if let StoredRow::Found(row) = row::head_at(transaction.statements.connection, entry.get(0)?)?
                && let Some(due) = transition::due(&row.record, transaction.now)
            {
                found.push((row, due));
            }
        }
    }
    Ok(found)
}

/// The rows of all records in progress.
pub(crate) fn in_progress(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    let mut statement = connection.prepare(IN_STATE)?;
    let rowids = statement.query_map([state_number(State::InProgress)], |row| row.get(0))?;
    rowids.collect()
}
