//! [`WriteTransaction`]: looks records up, applies commands to them, and writes the results to the write-ahead log, the
//! memtable and the tables.

use hapax_core::codec;
use hapax_core::transition::{self, Answer, Change, Command};
use hapax_core::{Claim, Record, RecordId, Timestamp};
use rusqlite::ffi;

use crate::error::{Failure, Phase, RefuseReason};
use crate::memtable::{AHEAD_BYTES_MAX, Memtable, Probe, Records, Unwritten};
use crate::row::{self, Row, RowDamage, RowStatements, StoredRow};
use crate::wal::{FrameReader, Wal, WalEntry, WalReadError};

/// The current record of an id.
#[derive(Debug)]
enum CurrentRecord {
    Absent,
    Stored(Box<Row>),
    Unwritten(Box<Unwritten>),
}

impl CurrentRecord {
    fn record(&self) -> Option<&Record> {
        match self {
            Self::Absent => None,
            Self::Stored(row) => Some(&row.record),
            Self::Unwritten(unwritten) => Some(&unwritten.record),
        }
    }
}

/// The result of one command.
pub(crate) type CommandResult = Result<Answer, RefuseReason>;

/// Whether a batch may add records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NewRecords {
    Accepted,
    /// The batch did not fit. Its new records are refused together: to find out which of them fits would take a
    /// transaction for each.
    Refused,
}

/// The open transaction, for the operations of one batch.
pub(crate) struct WriteTransaction<'a> {
    pub(crate) statements: RowStatements<'a>,
    /// The time of every decision in it.
    pub(crate) now: Timestamp,
    pub(crate) wrote: bool,
    pub(crate) memtable: &'a mut Memtable,
    /// Where changes are logged; none for changes that are in the log already or count only once they are committed.
    pub(crate) wal: Option<&'a mut Wal>,
}

impl WriteTransaction<'_> {
    pub(crate) fn apply_commands<'a>(
        &mut self,
        commands: impl Iterator<Item = &'a Command>,
        new_records: NewRecords,
    ) -> Result<Vec<CommandResult>, Failure> {
        commands.map(|command| self.apply_command(command, new_records)).collect()
    }

    /// Decides one command and applies the decision. The inner error is about this command alone.
    pub(crate) fn apply_command(
        &mut self,
        command: &Command,
        new_records: NewRecords,
    ) -> Result<CommandResult, Failure> {
        let current = match self.find(command.id())? {
            Ok(current) => current,
            // Present: no claim may pass, and no write can compare its fence with the record's.
            Err(_damage) => {
                return Ok(match command {
                    Command::Claim(_) => Ok(Answer::Claim(Claim::Unreadable)),
                    _ => Err(RefuseReason::Unreadable),
                });
            }
        };
        let decision = transition::decide(current.record(), command, self.now);
        if new_records == NewRecords::Refused
            && matches!((&current, &decision.change), (CurrentRecord::Absent, Change::Put(_)))
        {
            return Ok(Err(RefuseReason::NoRoom));
        }
        self.apply_change(current, decision.change)?;
        Ok(Ok(decision.answer))
    }

    fn find(&mut self, id: &RecordId) -> Result<Result<CurrentRecord, RowDamage>, Failure> {
        let rows = match self.memtable.probe(id) {
            Probe::Unwritten(unwritten) => return Ok(Ok(CurrentRecord::Unwritten(unwritten))),
            Probe::Rows(rows) => rows,
        };
        Ok(match self.statements.find(rows, id)? {
            StoredRow::Absent => Ok(CurrentRecord::Absent),
            StoredRow::Found(row) => Ok(CurrentRecord::Stored(row)),
            StoredRow::Unreadable(damage) => Err(damage),
        })
    }

    fn find_readable(&mut self, id: &RecordId) -> Result<CurrentRecord, Failure> {
        self.find(id)?.map_err(|damage| wal_failure(WalReadError::Damaged(damage.why)))
    }

    /// Applies the changes of a write-ahead log again.
    pub(crate) fn replay(&mut self, frames: &mut FrameReader) -> Result<(), Failure> {
        while let Some(frame) = frames.next().map_err(wal_failure)? {
            for entry in frame.entries {
                let (id, change) = match entry {
                    WalEntry::Put(record) => (record.key.id, Change::Put(record)),
                    WalEntry::Remove(id) => (id, Change::Remove),
                };
                let current = self.find_readable(&id)?;
                self.apply_change(current, change)?;
            }
        }
        Ok(())
    }

    /// Applies a change to a stored record; whether there was one.
    pub(crate) fn change_row(&mut self, row: Box<Row>, change: Change) -> Result<bool, Failure> {
        self.apply_change(CurrentRecord::Stored(row), change)
    }

    fn apply_change(&mut self, current: CurrentRecord, change: Change) -> Result<bool, Failure> {
        match (change, current) {
            (Change::Keep | Change::Remove, CurrentRecord::Absent)
            | (Change::Keep, CurrentRecord::Stored(_)) => {
                return Ok(false);
            }
            (Change::Keep, CurrentRecord::Unwritten(unwritten)) => {
                self.memtable.hold(unwritten);
                return Ok(false);
            }
            (Change::Put(record), current) => self.put(current, *record)?,
            (Change::Remove, CurrentRecord::Stored(row)) => {
                // In the order of the write-ahead log: a removal makes room for later records, not for earlier ones.
                self.write_records(Records::All)?;
                self.remove(&row)?;
                if let Some(wal) = &mut self.wal {
                    wal.remove(&row.record.key.id)?;
                }
            }
            (Change::Remove, CurrentRecord::Unwritten(unwritten)) => {
                let id = unwritten.record.key.id;
                self.memtable.hold(unwritten);
                self.write_records(Records::All)?;
                let stored = self.find_readable(&id)?;
                return self.apply_change(stored, Change::Remove);
            }
        }
        Ok(true)
    }

    fn put(&mut self, current: CurrentRecord, record: Record) -> Result<(), Failure> {
        self.wrote = true;
        let encoded = codec::encode(&record);
        if let Some(wal) = &mut self.wal {
            wal.put(&record.key.id, &encoded)?;
        }
        let hash = row::hash_of(&record.key.id);
        let (rowid, replaces) = match current {
            CurrentRecord::Absent => (self.memtable.add(hash), None),
            CurrentRecord::Stored(row) => (row.location.rowid(), Some(row)),
            CurrentRecord::Unwritten(before)
                if before.replaces.is_none() && before.record.created_at != record.created_at =>
            {
                // A new record for an expired one. A new row keeps the rows in the order of creation.
                self.memtable.remove(self.statements.connection, hash, before.rowid)?;
                (self.memtable.add(hash), None)
            }
            CurrentRecord::Unwritten(before) => (before.rowid, before.replaces),
        };
        let unwritten = Box::new(Unwritten { rowid, replaces, record, encoded });
        match &self.wal {
            None => self.write(*unwritten),
            Some(wal) => {
                let is_long = wal.batch_length() > AHEAD_BYTES_MAX;
                self.memtable.hold(unwritten);
                if is_long { self.write_records(Records::All) } else { Ok(()) }
            }
        }
    }

    /// Writes records that are in the memtable to the database.
    pub(crate) fn write_records(&mut self, records: Records) -> Result<(), Failure> {
        let taken = self.memtable.take(records);
        taken.into_iter().try_for_each(|unwritten| self.write(*unwritten))
    }

    fn write(&mut self, unwritten: Unwritten) -> Result<(), Failure> {
        let Unwritten { rowid, replaces, record, encoded } = unwritten;
        match replaces {
            None => self.statements.insert(rowid, &record, &encoded)?,
            Some(row) => self.statements.replace(self.memtable, &row, &record, &encoded)?,
        }
        Ok(())
    }

    pub(crate) fn remove(&mut self, row: &Row) -> rusqlite::Result<()> {
        self.wrote = true;
        row::remove(self.statements.connection, self.memtable, row)
    }
}

/// A write-ahead log that cannot be read, as a failure of the transaction.
pub(crate) fn wal_failure(error: WalReadError) -> Failure {
    let (code, why) = match error {
        WalReadError::Io(error) => (ffi::SQLITE_IOERR_READ, error.to_string()),
        WalReadError::Damaged(why) => (ffi::SQLITE_CORRUPT, why),
    };
    Failure::at(Phase::Work)(rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some(why)))
}
