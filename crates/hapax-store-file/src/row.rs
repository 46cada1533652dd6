//! One record as rows: reads, validates and writes them. The only file with these SQL statements.

use hapax_core::codec::{self, Encoded};
use hapax_core::{Record, RecordId, State, Status, Timestamp};
use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, Rows, params};

use crate::error::Cause;
use crate::leaf::{Hash, IndexLookup};
use crate::memtable::Memtable;

/// The columns that [`read_head`] expects, in its order.
macro_rules! head_columns {
    () => {
        "SELECT r.rowid, r.hash, r.tail, r.state, r.lease_ms, r.due_ms, r.updated_ms, r.head, r.outcome_row"
    };
}

/// The columns that [`read`] expects, in its order.
macro_rules! columns {
    () => {
        concat!(head_columns!(), ", o.outcome FROM record r LEFT JOIN outcome o ON o.rowid = r.outcome_row ")
    };
}

const NOT_INDEXED: &str =
    concat!(columns!(), "WHERE r.rowid > (SELECT indexed_row FROM meta) AND r.hash = ?1");
const BY_ROWID: &str = concat!(columns!(), "WHERE r.rowid = ?1");
const HEAD_BY_ROWID: &str = concat!(head_columns!(), " FROM record r WHERE r.rowid = ?1");

const INSERT: &str = "INSERT INTO record \
                      (rowid, hash, tail, state, lease_ms, due_ms, updated_ms, head, outcome_row) \
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
const UPDATE: &str = "UPDATE record SET state = ?2, lease_ms = ?3, due_ms = ?4, updated_ms = ?5, head = ?6, \
                      outcome_row = ?7 WHERE rowid = ?1";
const DELETE: &str = "DELETE FROM record WHERE rowid = ?1";
const INSERT_OUTCOME: &str = "INSERT INTO outcome (outcome) VALUES (?1)";
const DELETE_OUTCOME: &str = "DELETE FROM outcome WHERE rowid = ?1";

/// How many bytes of an id the index has.
const HASH_LENGTH: usize = size_of::<Hash>();

/// A record and its location.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) location: RowLocation,
    pub(crate) record: Record,
}

/// The rows of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RowLocation {
    rowid: i64,
    outcome_row: Option<i64>,
}

impl RowLocation {
    pub(crate) fn rowid(&self) -> i64 {
        self.rowid
    }
}

/// The result of reading a row.
#[derive(Debug)]
pub(crate) enum StoredRow {
    Absent,
    Found(Box<Row>),
    Unreadable(RowDamage),
}

/// A row that cannot be read.
#[derive(Debug)]
pub(crate) struct RowDamage {
    /// The id in its columns; zeros if they are damaged.
    pub(crate) id: RecordId,
    /// What is wrong, without any content.
    pub(crate) why: String,
}

/// The part of an id that the index has.
pub(crate) fn hash_of(id: &RecordId) -> Hash {
    let (hash, _) = halves(id);
    *hash
}

fn halves(id: &RecordId) -> (&Hash, &[u8]) {
    id.as_bytes().split_first_chunk().expect("an id is longer than its half")
}

/// The record of `id`.
///
/// `memtable_rows` are the rows that the memtable names, in the process that owns the store; other processes search the rows
/// above those in the index. All reads must be in one transaction: a new record for an expired one has another row. A
/// damaged page may hold the record, so the result is unreadable, never absent.
pub(crate) fn find(
    connection: &Connection,
    memtable_rows: Option<Vec<i64>>,
    id: &RecordId,
) -> rusqlite::Result<StoredRow> {
    find_with(&mut IndexLookup::new(connection), connection, memtable_rows, id)
}

fn find_with(
    index: &mut IndexLookup<'_>,
    connection: &Connection,
    memtable_rows: Option<Vec<i64>>,
    id: &RecordId,
) -> rusqlite::Result<StoredRow> {
    // Usually there is one row. Rows of other ids share half of the id; an unreadable row may be the one.
    let mut found = StoredRow::Absent;
    match memtable_rows {
        Some(rows) => {
            for rowid in rows {
                found = found.or(at(connection, rowid)?, id);
            }
        }
        None => found = find_not_indexed(connection, id)?,
    }
    if let StoredRow::Found(row) = found {
        return Ok(StoredRow::Found(row));
    }
    let rows = match index.rows_of(&hash_of(id)) {
        Err(error) if Cause::of(&error) == Cause::Corrupt => {
            return Ok(found.or(StoredRow::Unreadable(damage_of(&error)), id));
        }
        rows => rows?,
    };
    for rowid in rows {
        let stored = match at(connection, rowid)? {
            StoredRow::Absent => {
                let why = "the index leads to a record that is not there".to_owned();
                StoredRow::Unreadable(RowDamage { id: *id, why })
            }
            stored => stored,
        };
        found = found.or(stored, id);
    }
    Ok(found)
}

/// The statements for nearly every record, each taken from the connection's cache once per batch.
pub(crate) struct RowStatements<'c> {
    pub(crate) connection: &'c Connection,
    index: IndexLookup<'c>,
    insert: Option<CachedStatement<'c>>,
    insert_outcome: Option<CachedStatement<'c>>,
}

impl<'c> RowStatements<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        Self { connection, index: IndexLookup::new(connection), insert: None, insert_outcome: None }
    }

    /// [`find`], in the process that owns the store.
    pub(crate) fn find(&mut self, memtable_rows: Vec<i64>, id: &RecordId) -> rusqlite::Result<StoredRow> {
        find_with(&mut self.index, self.connection, Some(memtable_rows), id)
    }

    /// Writes a record to a row that the memtable has added.
    pub(crate) fn insert(&mut self, rowid: i64, record: &Record, encoded: &Encoded) -> rusqlite::Result<()> {
        let outcome_row = self.insert_outcome(encoded)?;
        let (hash, tail) = halves(&record.key.id);
        let columns = Columns::of(record);
        prepared(&mut self.insert, self.connection, INSERT)?.insert(params![
            rowid,
            hash,
            tail,
            columns.state,
            columns.lease_ms,
            columns.due_ms,
            columns.updated_ms,
            encoded.head,
            outcome_row
        ])?;
        Ok(())
    }

    /// Writes a record over `row`.
    pub(crate) fn replace(
        &mut self,
        memtable: &mut Memtable,
        row: &Row,
        record: &Record,
        encoded: &Encoded,
    ) -> rusqlite::Result<()> {
        if record.created_at != row.record.created_at {
            // A new record for an expired one. A new row keeps the rows in the order of creation.
            remove(self.connection, memtable, row)?;
            return self.insert(memtable.add(hash_of(&record.key.id)), record, encoded);
        }
        remove_outcome(self.connection, row.location)?;
        let outcome_row = self.insert_outcome(encoded)?;
        let columns = Columns::of(record);
        self.connection.prepare_cached(UPDATE)?.execute(params![
            row.location.rowid,
            columns.state,
            columns.lease_ms,
            columns.due_ms,
            columns.updated_ms,
            encoded.head,
            outcome_row
        ])?;
        Ok(())
    }

    fn insert_outcome(&mut self, encoded: &Encoded) -> rusqlite::Result<Option<i64>> {
        let Some(outcome) = &encoded.outcome else {
            return Ok(None);
        };
        prepared(&mut self.insert_outcome, self.connection, INSERT_OUTCOME)?.insert([outcome]).map(Some)
    }
}

/// The statement, prepared when it is first needed.
fn prepared<'s, 'c>(
    statement: &'s mut Option<CachedStatement<'c>>,
    connection: &'c Connection,
    text: &str,
) -> rusqlite::Result<&'s mut CachedStatement<'c>> {
    match statement {
        Some(statement) => Ok(statement),
        none => Ok(none.insert(connection.prepare_cached(text)?)),
    }
}

/// The record of `id` in the rows that may be missing from the index.
fn find_not_indexed(connection: &Connection, id: &RecordId) -> rusqlite::Result<StoredRow> {
    let mut statement = connection.prepare_cached(NOT_INDEXED)?;
    let mut rows = statement.query([hash_of(id)])?;
    let mut found = StoredRow::Absent;
    while let Some(row) = next(&mut rows, read)? {
        found = found.or(stored(Some(row)), id);
    }
    Ok(found)
}

/// An unreadable page may hold any record.
fn damage_of(error: &rusqlite::Error) -> RowDamage {
    RowDamage { id: RecordId::from_bytes([0; 32]), why: format!("the database is damaged: {error}") }
}

impl StoredRow {
    /// This, or the result for another row of the same hash, if that says more about `id`.
    fn or(self, other: Self, id: &RecordId) -> Self {
        match (self, other) {
            (Self::Found(row), _) => Self::Found(row),
            (_, Self::Found(row)) if row.record.key.id == *id => Self::Found(row),
            (found, Self::Found(row)) if hash_of(&row.record.key.id) == hash_of(id) => found,
            (_, Self::Found(_)) => {
                let why = "the index leads to a record of another id".to_owned();
                Self::Unreadable(RowDamage { id: *id, why })
            }
            (_, Self::Unreadable(damage)) => Self::Unreadable(damage),
            (found, Self::Absent) => found,
        }
    }
}

/// The record in row `rowid`.
pub(crate) fn at(connection: &Connection, rowid: i64) -> rusqlite::Result<StoredRow> {
    let mut statement = connection.prepare_cached(BY_ROWID)?;
    let mut rows = statement.query([rowid])?;
    next(&mut rows, read).map(stored)
}

/// The record in row `rowid`, with an empty outcome: its own may be large.
pub(crate) fn head_at(connection: &Connection, rowid: i64) -> rusqlite::Result<StoredRow> {
    let mut statement = connection.prepare_cached(HEAD_BY_ROWID)?;
    let mut rows = statement.query([rowid])?;
    next(&mut rows, |row| read_head(row, codec::decode_head)).map(stored)
}

fn stored(row: Option<Result<Row, RowDamage>>) -> StoredRow {
    match row {
        None => StoredRow::Absent,
        Some(Ok(row)) => StoredRow::Found(Box::new(row)),
        Some(Err(damage)) => StoredRow::Unreadable(damage),
    }
}

/// The next row, or the damage in it.
fn next(
    rows: &mut Rows<'_>,
    read: impl FnOnce(&rusqlite::Row<'_>) -> rusqlite::Result<Result<Row, RowDamage>>,
) -> rusqlite::Result<Option<Result<Row, RowDamage>>> {
    match rows.next() {
        Ok(None) => Ok(None),
        Ok(Some(row)) => read(row).map(Some),
        Err(error) if Cause::of(&error) == Cause::Corrupt => Ok(Some(Err(damage_of(&error)))),
        Err(error) => Err(error),
    }
}

/// Reads one row of [`columns`].
fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Result<Row, RowDamage>> {
    let outcome = match row.get_ref(9)? {
        ValueRef::Null => None,
        ValueRef::Blob(bytes) => Some(bytes),
        _ => {
            let id = whole_id(row.get_ref(1)?, row.get_ref(2)?);
            return Ok(Err(RowDamage { id, why: "the record's outcome is damaged".to_owned() }));
        }
    };
    read_head(row, |id, head| codec::decode(id, head, outcome))
}

/// Reads one row of [`head_columns`].
fn read_head(
    row: &rusqlite::Row<'_>,
    decode: impl FnOnce(&RecordId, &[u8]) -> Result<Record, codec::Unreadable>,
) -> rusqlite::Result<Result<Row, RowDamage>> {
    let id = whole_id(row.get_ref(1)?, row.get_ref(2)?);
    let damage = |why: &str| RowDamage { id, why: why.to_owned() };
    let Ok(head) = row.get_ref(7)?.as_blob() else {
        return Ok(Err(damage("the record's head is damaged")));
    };
    let outcome_row = match row.get_ref(8)? {
        ValueRef::Null => None,
        ValueRef::Integer(rowid) => Some(rowid),
        _ => return Ok(Err(damage("the reference to the record's outcome is damaged"))),
    };
    let record = match decode(&id, head) {
        Ok(record) => record,
        Err(unreadable) => return Ok(Err(damage(&unreadable.to_string()))),
    };
    if record.recorded().is_some() != outcome_row.is_some() {
        return Ok(Err(damage("the reference to the record's outcome contradicts its head")));
    }
    let columns = Columns::of(&record);
    let agrees = row.get_ref(3)? == ValueRef::Integer(columns.state)
        && row.get_ref(4)? == columns.lease_ms.map_or(ValueRef::Null, ValueRef::Integer)
        && row.get_ref(5)? == ValueRef::Integer(columns.due_ms)
        && row.get_ref(6)? == ValueRef::Integer(columns.updated_ms);
    if !agrees {
        return Ok(Err(damage("the record's columns contradict its head")));
    }
    Ok(Ok(Row { location: RowLocation { rowid: row.get(0)?, outcome_row }, record }))
}

/// The id from its halves. A half of the wrong length gives an id that fails the checksum.
fn whole_id(hash: ValueRef<'_>, tail: ValueRef<'_>) -> RecordId {
    let mut id = [0; 32];
    for (half, stored) in id.chunks_exact_mut(HASH_LENGTH).zip([hash, tail]) {
        if let Ok(bytes) = stored.as_blob()
            && bytes.len() == half.len()
        {
            half.copy_from_slice(bytes);
        }
    }
    RecordId::from_bytes(id)
}

/// Removes a record with its outcome and its index entry.
pub(crate) fn remove(connection: &Connection, memtable: &mut Memtable, row: &Row) -> rusqlite::Result<()> {
    remove_outcome(connection, row.location)?;
    memtable.remove(connection, hash_of(&row.record.key.id), row.location.rowid)?;
    connection.prepare_cached(DELETE)?.execute([row.location.rowid])?;
    Ok(())
}

fn remove_outcome(connection: &Connection, location: RowLocation) -> rusqlite::Result<()> {
    if let Some(outcome_row) = location.outcome_row {
        connection.prepare_cached(DELETE_OUTCOME)?.execute([outcome_row])?;
    }
    Ok(())
}

/// The columns beside the head, for indexes and for people. The head decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Columns {
    state: i64,
    lease_ms: Option<i64>,
    due_ms: i64,
    updated_ms: i64,
}

impl Columns {
    fn of(record: &Record) -> Self {
        let lease_ms = match record.status {
            Status::InProgress { lease_until } => Some(millis(lease_until)),
            _ => None,
        };
        Self {
            state: state_number(record.state()),
            lease_ms,
            due_ms: millis(record.expires_at),
            updated_ms: millis(record.updated_at),
        }
    }
}

/// The number of a state in the column `state`.
pub(crate) const fn state_number(state: State) -> i64 {
    match state {
        State::InProgress => 1,
        State::Completed => 2,
        State::Failed => 3,
        State::Uncertain => 4,
        State::Released => 5,
    }
}

/// A time as SQLite stores it. Later ones are in the far future either way.
pub(crate) fn millis(at: Timestamp) -> i64 {
    i64::try_from(at.as_millis()).unwrap_or(i64::MAX)
}
