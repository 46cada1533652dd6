//! [`Work`]: a transaction at work. Finds records, decides what becomes of them, and writes it down.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use hapax_core::codec::{self, Encoded};
use hapax_core::transition::{self, Answer, Change, Command};
use hapax_core::{Claim, Record, RecordId, State, Timestamp};
use rusqlite::ffi;

use crate::error::{Failure, Phase, Refusal};
use crate::index::Index;
use crate::journal::{Entry, Frames, Journal, ReadError};
use crate::row::{self, Damage, Prepared, Row, Stored};

/// How many bytes may be answered for before they are written to the database: they are held in memory until then.
pub(crate) const AHEAD_BYTES_MAX: u64 = 1 << 20;

/// How many records that have ended are written to the database together, if their bytes are not too many: one after
/// the other they take less time than one now and then.
pub(crate) const ENDED_MIN: usize = 64;

/// How many claims are kept at hand.
const CLAIMS_MAX: usize = 65_536;

/// By id, which is a digest already: the hasher's own secret is all that it needs.
type ById<T> = HashMap<RecordId, Box<T>, RandomState>;

/// Claims in progress as they are stored, so that finishing one need not read it back. This thread alone writes, so
/// they are what a look would find; they are forgotten whenever a transaction fails.
pub(crate) type Claims = ById<Row>;

/// What was decided and is not in the database yet. A claim stays here until it ends or everything is committed: most
/// end first, and are written once.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    records: ById<Decision>,
    /// Those of them that are no claims any more, and how many bytes they have.
    ended: Vec<RecordId>,
    ended_bytes: u64,
}

/// A record as it is to be stored.
#[derive(Debug)]
pub(crate) struct Decision {
    place: Destination,
    record: Record,
    encoded: Encoded,
}

/// Where a record goes.
#[derive(Debug)]
enum Destination {
    /// Into this row, which no other will have.
    New(i64),
    /// In the place of what is stored.
    Over(Box<Row>),
}

impl Decided {
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Whether those that have ended are worth writing.
    pub(crate) fn have_many_ended(&self) -> bool {
        self.ended.len() >= ENDED_MIN || self.ended_bytes >= AHEAD_BYTES_MAX
    }

    fn insert(&mut self, decision: Box<Decision>) {
        let id = decision.record.key.id;
        if decision.record.state() != State::InProgress {
            self.ended.push(id);
            self.ended_bytes += decision.bytes();
        }
        self.records.insert(id, decision);
    }

    #[expect(clippy::vec_box, reason = "they are large, and sorted")]
    fn take_all(&mut self) -> Vec<Box<Decision>> {
        self.ended.clear();
        self.ended_bytes = 0;
        in_order(self.records.drain().map(|(_, decision)| decision))
    }

    /// The same of those that have ended.
    #[expect(clippy::vec_box, reason = "they are large, and sorted")]
    fn take_ended(&mut self) -> Vec<Box<Decision>> {
        self.ended_bytes = 0;
        in_order(self.ended.drain(..).filter_map(|id| self.records.remove(&id)))
    }
}

/// By row: neighbours share a page.
#[expect(clippy::vec_box, reason = "they are large, and sorted")]
fn in_order(decisions: impl Iterator<Item = Box<Decision>>) -> Vec<Box<Decision>> {
    let mut all: Vec<_> = decisions.collect();
    all.sort_unstable_by_key(|decision| decision.rowid());
    all
}

impl Decision {
    fn rowid(&self) -> i64 {
        match &self.place {
            Destination::New(rowid) => *rowid,
            Destination::Over(row) => row.place.rowid(),
        }
    }

    fn bytes(&self) -> u64 {
        (self.encoded.head.len() + self.encoded.outcome.as_ref().map_or(0, Vec::len)) as u64
    }
}

/// What is known of an id.
#[derive(Debug)]
enum Held {
    Nothing,
    Stored(Box<Row>),
    Decided(Box<Decision>),
}

impl Held {
    fn record(&self) -> Option<&Record> {
        match self {
            Self::Nothing => None,
            Self::Stored(row) => Some(&row.record),
            Self::Decided(decision) => Some(&decision.record),
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
        if let Some(decision) = self.decided.records.remove(id) {
            return Ok(Ok(Held::Decided(decision)));
        }
        if let Some(row) = self.claims.remove(id) {
            return Ok(Ok(Held::Stored(row)));
        }
        let hash = row::hash_of(id);
        let recent = self.index.recent().rows_of(&hash);
        Ok(match self.prepared.find(recent, id)? {
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
            (Change::Keep | Change::Remove, Held::Nothing) => return Ok(false),
            (Change::Keep, Held::Stored(row)) => {
                self.remember(row);
                return Ok(false);
            }
            (Change::Keep, Held::Decided(decision)) => {
                self.decided.insert(decision);
                return Ok(false);
            }
            (Change::Put(record), held) => self.put(held, *record)?,
            (Change::Remove, Held::Stored(row)) => {
                // In the order of the journal: what is removed may make room for what comes later, not the other way.
                self.carry_out()?;
                self.remove(&row)?;
                if let Some(journal) = &mut self.journal {
                    journal.remove(&row.record.key.id)?;
                }
            }
            (Change::Remove, Held::Decided(decision)) => {
                let id = decision.record.key.id;
                self.decided.insert(decision);
                self.carry_out()?;
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
        let place = match held {
            Held::Nothing => Destination::New(self.index.add(hash)),
            Held::Stored(row) => Destination::Over(row),
            Held::Decided(before) => match before.place {
                Destination::New(rowid) if before.record.created_at != record.created_at => {
                    // A new life. A new row keeps the rows in the order of creation.
                    self.index.remove(self.prepared.connection, hash, rowid)?;
                    Destination::New(self.index.add(hash))
                }
                place => place,
            },
        };
        let decision = Box::new(Decision { place, record, encoded });
        match &self.journal {
            None => self.write(decision),
            Some(journal) => {
                let is_long = journal.batch_length() > AHEAD_BYTES_MAX;
                self.decided.insert(decision);
                if is_long { self.carry_out() } else { Ok(()) }
            }
        }
    }

    /// Writes what was decided to the database.
    pub(crate) fn carry_out(&mut self) -> Result<(), Failure> {
        let all = self.decided.take_all();
        all.into_iter().try_for_each(|decision| self.write(decision))
    }

    /// The same of what is no claim any more.
    pub(crate) fn carry_out_ended(&mut self) -> Result<(), Failure> {
        let ended = self.decided.take_ended();
        ended.into_iter().try_for_each(|decision| self.write(decision))
    }

    fn write(&mut self, decision: Box<Decision>) -> Result<(), Failure> {
        let Decision { place, record, encoded } = *decision;
        let place = match place {
            Destination::New(rowid) => self.prepared.insert(rowid, &record, &encoded)?,
            Destination::Over(row) => self.prepared.replace(self.index, &row, &record, &encoded)?,
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
        row::remove(self.prepared.connection, self.index, row)
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
