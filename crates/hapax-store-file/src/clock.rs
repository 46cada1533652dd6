//! [`StoreClock`]: one time that never goes back, over reopening too.

use std::sync::Arc;
use std::time::Duration;

use hapax_core::{Clock, SystemClock, Timestamp};
use rusqlite::Connection;

use crate::row::millis;

/// How far ahead of the time of a decision the stored mark is put. The mark is then written once a second
/// instead of with every commit, and after a crash the clock is at most this much ahead.
const MARK_AHEAD: Duration = Duration::from_secs(1);

/// The clock of a store, never before what the store has seen.
#[derive(Clone, Debug)]
pub(crate) struct StoreClock {
    clock: Arc<dyn Clock>,
    floor: Timestamp,
}

impl StoreClock {
    /// `chosen`, or the system's clock, but not before the mark in the database, nor before what was `seen` elsewhere.
    pub(crate) fn open(
        connection: &Connection,
        chosen: Option<Arc<dyn Clock>>,
        seen: Timestamp,
    ) -> rusqlite::Result<Self> {
        let floor = read_mark(connection)?.max(seen);
        let clock = chosen.unwrap_or_else(|| Arc::new(SystemClock::starting_after(floor)));
        Ok(Self { clock, floor })
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now().max(self.floor)
    }
}

/// The latest time at which a decision can have been written.
///
/// A decision *because* time has passed (a lease lapsed, a record expired) always writes, so a mark that covers
/// every write covers everything that a clock set back could undo.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark(Timestamp);

impl Mark {
    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        read_mark(connection).map(Self)
    }

    /// Makes sure that the database's mark is not before `now`. The result holds once the transaction does.
    pub(crate) fn cover(self, connection: &Connection, now: Timestamp) -> rusqlite::Result<Self> {
        if now <= self.0 {
            return Ok(self);
        }
        let ahead = now.after(MARK_AHEAD);
        write_mark(connection, ahead)?;
        Ok(Self(ahead))
    }

    /// Takes back what the mark is ahead of `now`, for an orderly end.
    pub(crate) fn settle(self, connection: &Connection, now: Timestamp) -> rusqlite::Result<()> {
        if now < self.0 { write_mark(connection, now) } else { Ok(()) }
    }
}

fn write_mark(connection: &Connection, at: Timestamp) -> rusqlite::Result<()> {
    connection.prepare_cached("UPDATE meta SET seen_ms = ?1")?.execute([millis(at)])?;
    Ok(())
}

fn read_mark(connection: &Connection) -> rusqlite::Result<Timestamp> {
    let ms: i64 = connection.query_row("SELECT seen_ms FROM meta", [], |row| row.get(0))?;
    Ok(Timestamp::from_millis(u64::try_from(ms).unwrap_or(0)))
}
