//! [`Work`]: a transaction at work. Finds records, decides what becomes of them, and writes it down.

use std::collections::{HashMap, HashSet};

use hapax_core::codec::{self, Encoded};
use hapax_core::transition::{self, Answer, Change, Command};
use hapax_core::{Claim, Record, RecordId, State, Timestamp};
use rusqlite::{Connection, ffi};

use crate::error::{Failure, Phase, Refusal};
use crate::index::Index;
use crate::journal::{Entry, Frames, Journal, ReadError};
use crate::row::{self, Row, Stored};

/// How many bytes may be answered for before they are written to the database: they are held in memory until then.
pub(crate) const AHEAD_BYTES_MAX: u64 = 1 << 20;

/// How many claims are kept at hand.
const CLAIMS_MAX: usize = 65_536;

/// Claims in progress as they are stored, so that finishing one need not read it back. This thread alone writes, so
/// they are what a look would find; they are forgotten whenever a transaction fails.
pub(crate) type Claims = HashMap<RecordId, Box<Row>>;

/// What was decided and is not in the database yet: the record, as it is stored, in the place of its row.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    changes: Vec<(Option<Box<Row>>, Record, Encoded)>,
    ids: HashSet<RecordId>,
}

impl Decided {
    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
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
#[derive(Debug)]
pub(crate) struct Work<'a> {
    pub(crate) connection: &'a Connection,
    /// The time of every decision in it.
    pub(crate) now: Timestamp,
    pub(crate) wrote: bool,
    pub(crate) decided: &'a mut Decided,
    pub(crate) claims: &'a mut Claims,
    pub(crate) index: &'a mut Index,
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
        let row = match self.find(command.id())? {
            Stored::Absent => None,
            Stored::Found(row) => Some(row),
            // Present: no claim may pass, and no write can tell whether the record still holds its attempt.
            Stored::Unreadable(_) => {
                return Ok(match command {
                    Command::Claim(_) => Ok(Answer::Claim(Claim::Unreadable)),
                    _ => Err(Refusal::Unreadable),
                });
            }
        };
        let decision = transition::decide(row.as_deref().map(|row| &row.record), command, self.now);
        if room == Room::Missing && row.is_none() && matches!(decision.change, Change::Put(_)) {
            return Ok(Err(Refusal::NoRoom));
        }
        self.apply(row, decision.change)?;
        Ok(Ok(decision.answer))
    }

    fn find(&mut self, id: &RecordId) -> Result<Stored, Failure> {
        if self.decided.ids.contains(id) {
            self.carry_out()?;
        }
        if let Some(row) = self.claims.remove(id) {
            return Ok(Stored::Found(row));
        }
        let recent = self.index.recent().rows_of(&row::hash_of(id));
        Ok(row::find(self.connection, Some(recent), id)?)
    }

    /// Does again what a journal says.
    pub(crate) fn replay(&mut self, journal: &mut Frames) -> Result<(), Failure> {
        while let Some(frame) = journal.next().map_err(unreadable)? {
            for entry in frame.entries {
                let (id, change) = match entry {
                    Entry::Put(record) => (record.key.id, Change::Put(record)),
                    Entry::Remove(id) => (id, Change::Remove),
                };
                let row = match self.find(&id)? {
                    Stored::Absent => None,
                    Stored::Found(row) => Some(row),
                    Stored::Unreadable(damage) => return Err(unreadable(ReadError::Damaged(damage.why))),
                };
                self.apply(row, change)?;
            }
        }
        Ok(())
    }

    /// Writes a change down; whether there was one.
    pub(crate) fn apply(&mut self, row: Option<Box<Row>>, change: Change) -> Result<bool, Failure> {
        match (change, row) {
            (Change::Keep | Change::Remove, None) => return Ok(false),
            (Change::Keep, Some(row)) => {
                self.remember(row);
                return Ok(false);
            }
            (Change::Put(record), row) => self.put(row, *record)?,
            (Change::Remove, Some(row)) => {
                // In the order of the journal: what is removed may make room for what comes later, not the other way.
                self.carry_out()?;
                self.remove(&row)?;
                if let Some(journal) = &mut self.journal {
                    journal.remove(&row.record.key.id)?;
                }
            }
        }
        Ok(true)
    }

    fn put(&mut self, row: Option<Box<Row>>, record: Record) -> Result<(), Failure> {
        self.wrote = true;
        let encoded = codec::encode(&record);
        match &mut self.journal {
            Some(journal) => {
                journal.put(&record.key.id, &encoded)?;
                self.decided.ids.insert(record.key.id);
                self.decided.changes.push((row, record, encoded));
                if journal.batch_length() > AHEAD_BYTES_MAX { self.carry_out() } else { Ok(()) }
            }
            None => self.write(row, record, &encoded),
        }
    }

    /// Writes what was decided to the database.
    pub(crate) fn carry_out(&mut self) -> Result<(), Failure> {
        self.decided.ids.clear();
        for (row, record, encoded) in std::mem::take(&mut self.decided.changes) {
            self.write(row, record, &encoded)?;
        }
        Ok(())
    }

    fn write(&mut self, row: Option<Box<Row>>, record: Record, encoded: &Encoded) -> Result<(), Failure> {
        let place = match row {
            None => row::insert(self.connection, self.index, &record, encoded)?,
            Some(row) => row::replace(self.connection, self.index, &row, &record, encoded)?,
        };
        self.remember(Box::new(Row { place, record }));
        Ok(())
    }

    /// Keeps a claim at hand. Other records are rarely asked for again by somebody who writes.
    fn remember(&mut self, row: Box<Row>) {
        if row.record.state() == State::InProgress && self.claims.len() < CLAIMS_MAX {
            self.claims.insert(row.record.key.id, row);
        }
    }

    pub(crate) fn remove(&mut self, row: &Row) -> rusqlite::Result<()> {
        self.wrote = true;
        // One of them may be what is removed.
        self.claims.clear();
        row::remove(self.connection, self.index, row)
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
