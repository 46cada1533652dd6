//! Conversion between a row and a [`Record`].

use std::time::Duration;

use hapax_core::key::PrincipalHash;
use hapax_core::{
    Fence, Fingerprint, Nonce, Reason, Record, RecordId, Recorded, Scope, ScopedKey, State, Status,
    Timestamp, codec,
};

use crate::executor::RowFields;

/// The version of the row layout that this crate writes; the column `version`.
const ROW_VERSION: i16 = 1;

/// The longest span that is stored, some 35 000 years: sums of times and spans stay far from the integer limit.
const SPAN_MS_MAX: u64 = 1 << 50;

/// A record as read from its row.
#[derive(Debug)]
pub(crate) struct FetchedRow {
    /// The server's time when it was read.
    pub(crate) now: Timestamp,
    pub(crate) seen: RowVersion,
    /// If it cannot be read, the reason. It names columns, never content.
    pub(crate) record: Result<Record, String>,
}

/// The columns of a row that change with every write, for optimistic concurrency control.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RowVersion {
    pub(crate) nonce: Vec<u8>,
    pub(crate) state: i16,
    pub(crate) lease_until: i64,
    pub(crate) updated_at: i64,
    pub(crate) expires_at: i64,
}

/// Reads the columns that `fetch.sql` returns; `None` if the id has the wrong length.
pub(crate) fn read<R: RowFields>(row: &R) -> Result<Option<(RecordId, FetchedRow)>, R::Error> {
    let Ok(id) = <[u8; 32]>::try_from(row.field::<&[u8]>("id")?) else { return Ok(None) };
    let id = RecordId::from_bytes(id);
    let seen = RowVersion {
        nonce: row.field("nonce")?,
        state: row.field("state")?,
        lease_until: row.field("lease_until")?,
        updated_at: row.field("updated_at")?,
        expires_at: row.field("expires_at")?,
    };
    let now = moment(row.field("now")?).unwrap_or_default();
    let record = record(row, id, &seen)?;
    Ok(Some((id, FetchedRow { now, seen, record })))
}

fn record<R: RowFields>(
    row: &R,
    id: RecordId,
    seen: &RowVersion,
) -> Result<Result<Record, String>, R::Error> {
    let version: i16 = row.field("version")?;
    if version != ROW_VERSION {
        return Ok(Err(format!(
            "the row has version {version} and this program reads version {ROW_VERSION}"
        )));
    }
    if !row.field::<bool>("is_whole")? {
        return Ok(Err("the row's seal is wrong: it was damaged or edited".to_owned()));
    }
    let columns = Columns {
        seen,
        reason: row.field("reason")?,
        attempt: row.field("attempt")?,
        takeovers: row.field("takeovers")?,
        created_at: row.field("created_at")?,
        algorithm: row.field("algorithm")?,
        fingerprint: row.field("fingerprint")?,
        namespace: row.field("namespace")?,
        principal: row.field("principal")?,
        operation: row.field("operation")?,
        outcome: row.field("outcome")?,
    };
    Ok(columns.record(id))
}

/// The raw columns, before validation.
struct Columns<'a> {
    seen: &'a RowVersion,
    reason: i16,
    attempt: i64,
    takeovers: i64,
    created_at: i64,
    algorithm: i16,
    fingerprint: &'a [u8],
    namespace: &'a [u8],
    principal: Option<&'a [u8]>,
    operation: &'a [u8],
    outcome: Option<&'a [u8]>,
}

impl Columns<'_> {
    fn record(&self, id: RecordId) -> Result<Record, String> {
        let wrong = |name: &str| format!("the column {name} holds an unknown value");
        let text = |name, bytes| std::str::from_utf8(bytes).map_err(|_| wrong(name));
        let time = |name, ms| moment(ms).ok_or_else(|| wrong(name));
        let nonce = self.seen.nonce.as_slice().try_into().map_err(|_| wrong("nonce"))?;
        let nonce = Nonce::from_bytes(nonce);
        let principal = match self.principal {
            Some(bytes) => Some(PrincipalHash::from_bytes(bytes.try_into().map_err(|_| wrong("principal"))?)),
            None => None,
        };
        let scope = Scope::from_parts(
            text("namespace", self.namespace)?,
            principal,
            text("operation", self.operation)?,
        );
        let recorded = match self.outcome {
            Some(bytes) => Some(codec::decode_outcome(&id, nonce, bytes).map_err(|why| why.to_string())?),
            None => None,
        };
        Ok(Record {
            key: ScopedKey { scope, id },
            fingerprint: Fingerprint::from_parts(
                u8::try_from(self.algorithm).map_err(|_| wrong("algorithm"))?,
                self.fingerprint.try_into().map_err(|_| wrong("fingerprint"))?,
            ),
            fence: Fence { nonce, attempt: u32::try_from(self.attempt).map_err(|_| wrong("attempt"))? },
            takeovers: u32::try_from(self.takeovers).map_err(|_| wrong("takeovers"))?,
            status: self.status(recorded).ok_or_else(|| wrong("state, reason or outcome"))?,
            created_at: time("created_at", self.created_at)?,
            updated_at: time("updated_at", self.seen.updated_at)?,
            expires_at: time("expires_at", self.seen.expires_at)?,
        })
    }

    /// An outcome of the wrong class for the state would answer a retry with a wrong result.
    fn status(&self, recorded: Option<Recorded>) -> Option<Status> {
        match (state(self.seen.state)?, recorded) {
            (State::InProgress, None) => {
                Some(Status::InProgress { lease_until: moment(self.seen.lease_until)? })
            }
            (known @ (State::Completed | State::Failed), Some(recorded)) => {
                (pinned(&recorded) == known).then_some(Status::Pinned { recorded })
            }
            (State::Uncertain, None) => Some(Status::Uncertain { reason: reason(self.reason)? }),
            (State::Released, answered) => Some(Status::Released { answered }),
            _ => None,
        }
    }
}

/// The state of a record that is pinned with this outcome.
pub(crate) fn pinned(recorded: &Recorded) -> State {
    match recorded.class {
        hapax_core::Class::Success => State::Completed,
        hapax_core::Class::Error => State::Failed,
    }
}

/// The code of a state; statements use the same codes.
pub(crate) const fn state_number(state: State) -> i16 {
    match state {
        State::InProgress => 1,
        State::Completed => 2,
        State::Failed => 3,
        State::Uncertain => 4,
        State::Released => 5,
    }
}

/// The state with this code.
pub(crate) fn state(number: i16) -> Option<State> {
    State::ALL.into_iter().find(|state| state_number(*state) == number)
}

/// The code of a reason.
pub(crate) const fn reason_number(reason: Reason) -> i16 {
    match reason {
        Reason::Lapsed => 1,
        Reason::Panicked => 2,
        Reason::Restarted => 3,
        Reason::Declared => 4,
        Reason::Reset => 5,
        Reason::TimedOut => 6,
        Reason::Truncated => 7,
        Reason::Answered => 8,
        Reason::NoAnswer => 9,
    }
}

fn reason(number: i16) -> Option<Reason> {
    Reason::ALL.into_iter().find(|reason| reason_number(*reason) == number)
}

/// A span in milliseconds, as rows store it.
pub(crate) fn span_ms(span: Duration) -> i64 {
    let ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX).min(SPAN_MS_MAX);
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// A time in milliseconds, as rows store it.
pub(crate) fn moment_ms(moment: Timestamp) -> i64 {
    i64::try_from(moment.as_millis()).unwrap_or(i64::MAX)
}

fn moment(ms: i64) -> Option<Timestamp> {
    u64::try_from(ms).ok().map(Timestamp::from_millis)
}
