//! [`Work`]: a transaction at work. Finds records, decides what becomes of them, and writes it down.

use hapax_core::codec;
use hapax_core::transition::{self, Answer, Change, Command};
use hapax_core::{Claim, Record, RecordId, Timestamp};
use rusqlite::ffi;

use crate::error::{Failure, Phase, Refusal};
use crate::journal::{Entry, Frames, Journal, ReadError};
use crate::memtable::{AHEAD_BYTES_MAX, Memtable, Probe, Records, Unwritten};
use crate::row::{self, Damage, Prepared, Row, Stored};

/// What is known of an id.
#[derive(Debug)]
enum Held {
    Nothing,
    Stored(Box<Row>),
    Unwritten(Box<Unwritten>),
}

impl Held {
    fn record(&self) -> Option<&Record> {
        match self {
            Self::Nothing => None,
            Self::Stored(row) => Some(&row.record),
            Self::Unwritten(unwritten) => Some(&unwritten.record),
        }
    }
}

/// What came of one step.
pub(crate) type Done = Result<Answer, Refusal>;

/// What is known about the room for new records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Room {
    /// Nothing.
    Untried,
    /// A moment ago there was none for all of a batch. Its new records are refused together: to find out which
    /// of them fits would take a transaction for each.
    Missing,
}

/// A transaction at work.
pub(crate) struct Work<'a> {
    pub(crate) prepared: Prepared<'a>,
    /// The time of every decision in it.
    pub(crate) now: Timestamp,
    pub(crate) wrote: bool,
    pub(crate) memtable: &'a mut Memtable,
    /// Where decisions are noted, unless they are there already.
    pub(crate) journal: Option<&'a mut Journal>,
}

impl Work<'_> {
    pub(crate) fn steps<'a>(
        &mut self,
        commands: impl Iterator<Item = &'a Command>,
        room: Room,
    ) -> Result<Vec<Done>, Failure> {
        commands.map(|command| self.step(command, room)).collect()
    }

    /// Decides one command and writes what was decided. The inner error is about this command alone.
    pub(crate) fn step(&mut self, command: &Command, room: Room) -> Result<Done, Failure> {
        let held = match self.find(command.id())? {
            Ok(held) => held,
            // Present: no claim may pass, and no write can tell whether the record still holds its attempt.
            Err(_damage) => {
                return Ok(match command {
                    Command::Claim(_) => Ok(Answer::Claim(Claim::Unreadable)),
                    _ => Err(Refusal::Unreadable),
                });
            }
        };
        let decision = transition::decide(held.record(), command, self.now);
        if room == Room::Missing && matches!((&held, &decision.change), (Held::Nothing, Change::Put(_))) {
            return Ok(Err(Refusal::NoRoom));
        }
        self.apply(held, decision.change)?;
        Ok(Ok(decision.answer))
    }

    fn find(&mut self, id: &RecordId) -> Result<Result<Held, Damage>, Failure> {
        let rows = match self.memtable.probe(id) {
            Probe::Unwritten(unwritten) => return Ok(Ok(Held::Unwritten(unwritten))),
            Probe::Rows(rows) => rows,
        };
        Ok(match self.prepared.find(rows, id)? {
            Stored::Absent => Ok(Held::Nothing),
            Stored::Found(row) => Ok(Held::Stored(row)),
            Stored::Unreadable(damage) => Err(damage),
        })
    }

    fn find_readable(&mut self, id: &RecordId) -> Result<Held, Failure> {
        self.find(id)?.map_err(|damage| unreadable(ReadError::Damaged(damage.why)))
    }

    /// Does again what a journal says.
    pub(crate) fn replay(&mut self, journal: &mut Frames) -> Result<(), Failure> {
        while let Some(frame) = journal.next().map_err(unreadable)? {
            for entry in frame.entries {
                let (id, change) = match entry {
                    Entry::Put(record) => (record.key.id, Change::Put(record)),
                    Entry::Remove(id) => (id, Change::Remove),
                };
                let held = self.find_readable(&id)?;
                self.apply(held, change)?;
            }
        }
        Ok(())
    }

    /// Writes down a change of a stored record; whether there was one.
    pub(crate) fn change(&mut self, row: Box<Row>, change: Change) -> Result<bool, Failure> {
        self.apply(Held::Stored(row), change)
    }

    fn apply(&mut self, held: Held, change: Change) -> Result<bool, Failure> {
        match (change, held) {
            (Change::Keep | Change::Remove, Held::Nothing) | (Change::Keep, Held::Stored(_)) => {
                return Ok(false);
            }
            (Change::Keep, Held::Unwritten(unwritten)) => {
                self.memtable.hold(unwritten);
                return Ok(false);
            }
            (Change::Put(record), held) => self.put(held, *record)?,
            (Change::Remove, Held::Stored(row)) => {
                // In the order of the journal: what is removed may make room for what comes later, not the other way.
                self.write_records(Records::All)?;
                self.remove(&row)?;
                if let Some(journal) = &mut self.journal {
                    journal.remove(&row.record.key.id)?;
                }
            }
            (Change::Remove, Held::Unwritten(unwritten)) => {
                let id = unwritten.record.key.id;
                self.memtable.hold(unwritten);
                self.write_records(Records::All)?;
                let stored = self.find_readable(&id)?;
                return self.apply(stored, Change::Remove);
            }
        }
        Ok(true)
    }

    fn put(&mut self, held: Held, record: Record) -> Result<(), Failure> {
        self.wrote = true;
        let encoded = codec::encode(&record);
        if let Some(journal) = &mut self.journal {
            journal.put(&record.key.id, &encoded)?;
        }
        let hash = row::hash_of(&record.key.id);
        let (rowid, replaces) = match held {
            Held::Nothing => (self.memtable.add(hash), None),
            Held::Stored(row) => (row.place.rowid(), Some(row)),
            Held::Unwritten(before)
                if before.replaces.is_none() && before.record.created_at != record.created_at =>
            {
                // A new life. A new row keeps the rows in the order of creation.
                self.memtable.remove(self.prepared.connection, hash, before.rowid)?;
                (self.memtable.add(hash), None)
            }
            Held::Unwritten(before) => (before.rowid, before.replaces),
        };
        let unwritten = Box::new(Unwritten { rowid, replaces, record, encoded });
        match &self.journal {
            None => self.write(*unwritten),
            Some(journal) => {
                let is_long = journal.batch_length() > AHEAD_BYTES_MAX;
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
            None => self.prepared.insert(rowid, &record, &encoded)?,
            Some(row) => self.prepared.replace(self.memtable, &row, &record, &encoded)?,
        }
        Ok(())
    }

    pub(crate) fn remove(&mut self, row: &Row) -> rusqlite::Result<()> {
        self.wrote = true;
        row::remove(self.prepared.connection, self.memtable, row)
    }
}

/// A journal that cannot be read, as a failure of whoever needs it.
pub(crate) fn unreadable(error: ReadError) -> Failure {
    let (code, why) = match error {
        ReadError::Io(error) => (ffi::SQLITE_IOERR_READ, error.to_string()),
        ReadError::Damaged(why) => (ffi::SQLITE_CORRUPT, why),
    };
    Failure::at(Phase::Work)(rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some(why)))
}
