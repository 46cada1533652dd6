//! [`Subject`]: the engine under test: the file store, or one of the benchmark's layouts under the same group commit.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use hapax_core::{
    Claim, ClaimRequest, Class, Fence, Fenced, Fingerprint, Format, Lease, Lookup, Nonce, OnLapse, Query,
    RecordId, Recorded, Scope, ScopedKey, Status, Store, StoreError,
};
use hapax_store_file::{FileStore, Options};
use hapax_testkit::Random;

use super::event::{Operation, OperationKind};
use super::expected::StoredState;
use crate::bench_store::group::Group;
use crate::bench_store::layout::{Id, Kind, Write};

/// Longer than a round, so that a claim becomes uncertain only by the death of its process.
const LEASE: Duration = Duration::from_secs(3600);
const RETENTION: Duration = Duration::from_secs(24 * 3600);

/// Which engine is under test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Engine {
    /// The file store.
    File,
    /// The file store without syncs: a planted defect that the proof must find.
    FileWithoutSync,
    /// One of the benchmark's layouts.
    Layout(Kind),
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "file",
            Self::FileWithoutSync => "file-without-sync",
            Self::Layout(kind) => kind.name(),
        })
    }
}

impl FromStr for Engine {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        let layouts = Kind::ALL.iter().copied().map(Self::Layout);
        [Self::File, Self::FileWithoutSync]
            .into_iter()
            .chain(layouts)
            .find(|engine| engine.to_string() == name)
            .with_context(|| format!("no engine is called {name}; redb and fjall need the feature `engines`"))
    }
}

/// Why an operation was not acknowledged.
#[derive(Debug)]
pub enum OperationError {
    /// It was not applied. The word is the kind of error.
    NotApplied(String),
    /// It may have been applied.
    Unknown,
    /// The store broke its contract.
    Wrong(String),
}

/// An open engine.
#[derive(Debug)]
pub enum Subject {
    /// The file store.
    File(Box<dyn Store>),
    /// A layout behind its writer thread.
    Layout(Group),
}

/// A file store that writes its index, and restarts its journal, so often that a short run has rounds of both.
fn file() -> Options {
    FileStore::options().index_after(100).commit_after(20_000)
}

impl Subject {
    /// Opens the engine in `dir`.
    pub fn open(engine: Engine, dir: &Path) -> Result<Self> {
        Ok(match engine {
            Engine::File => Self::File(Box::new(file().open(dir)?)),
            Engine::FileWithoutSync => Self::File(Box::new(file().danger_no_sync().open(dir)?)),
            Engine::Layout(kind) => Self::Layout(Group::start(kind.open(dir)?)),
        })
    }

    /// Runs one operation; it is durable when this returns `Ok`.
    pub async fn perform(&self, operation: &Operation) -> Result<(), OperationError> {
        match self {
            Self::File(store) => perform_on_store(&**store, operation).await,
            Self::Layout(group) => group.apply(write(operation)).await.map_err(|_| OperationError::Unknown),
        }
    }

    /// Lists one record at most, as an operator does on a failing store.
    pub async fn list(&self) -> Result<()> {
        if let Self::File(store) = self {
            store.list(&Query { limit: 1, ..Query::default() }).await?;
        }
        Ok(())
    }

    /// The stored state of `key`.
    pub async fn read_state(&self, key: u64) -> Result<StoredState> {
        match self {
            Self::File(store) => read_state_of_store(&**store, key).await,
            Self::Layout(group) => match group.read(id(key)).await {
                Ok(None) => Ok(StoredState::Absent),
                Ok(Some(stored)) => Ok(stored_state(&stored.record, stored.outcome)),
                Err(error) => Ok(StoredState::Unreadable(format!("{error:#}"))),
            },
        }
    }
}

/// The outcome of `key`: about 700 bytes, sometimes none, sometimes more than fits on a page.
pub fn payload(key: u64) -> Vec<u8> {
    let mut random = Random::seeded(key).fork(1);
    let length = match random.below(50) {
        0 => 0,
        1 => 20_000 + random.below(20_000),
        _ => random.below(1400),
    };
    let mut bytes = vec![0; length as usize];
    random.fill(&mut bytes);
    bytes
}

fn id(key: u64) -> Id {
    Random::seeded(key).fork(2).bytes()
}

fn nonce(key: u64, attempt: u32) -> Nonce {
    Nonce::from_bytes(Random::seeded(key).fork(3 + u64::from(attempt)).bytes())
}

fn recorded(key: u64) -> Recorded {
    Recorded::new(Class::Success, Format::FUNCTION, payload(key))
}

fn claim_request(key: u64, nonce: Nonce) -> ClaimRequest {
    ClaimRequest {
        key: ScopedKey { scope: Scope::new("POST /orders"), id: RecordId::from_bytes(id(key)) },
        fingerprint: Fingerprint::from_parts(1, id(key)),
        nonce,
        lease: LEASE,
        on_lapse: OnLapse::Uncertain,
        attempts_max: 1,
        uncertain_retention: RETENTION,
    }
}

async fn perform_on_store(store: &dyn Store, operation: &Operation) -> Result<(), OperationError> {
    let fence = Fence { nonce: nonce(operation.key, operation.attempt), attempt: operation.attempt };
    let lease = Lease { id: RecordId::from_bytes(id(operation.key)), fence, length: LEASE };
    let fenced = match operation.kind {
        OperationKind::Claim => {
            return match store
                .claim(&claim_request(operation.key, fence.nonce))
                .await
                .map_err(operation_error)?
            {
                Claim::Acquired(got) if got == lease => Ok(()),
                other => Err(OperationError::Wrong(format!("{other:?}"))),
            };
        }
        OperationKind::Renew => store.renew(&lease).await,
        OperationKind::Complete => store.complete(&lease, &recorded(operation.key), RETENTION).await,
        OperationKind::Release => store.release(&lease, None).await,
    };
    match fenced.map_err(operation_error)? {
        Fenced::Applied => Ok(()),
        Fenced::Lost => Err(OperationError::Wrong("the fence was lost".to_owned())),
    }
}

fn operation_error(error: StoreError) -> OperationError {
    if error.is_unknown() {
        OperationError::Unknown
    } else {
        OperationError::NotApplied(error.kind().name().to_owned())
    }
}

/// Reads the record, and claims the key as a retry would: both must agree.
async fn read_state_of_store(store: &dyn Store, key: u64) -> Result<StoredState> {
    let record = match store.get(&RecordId::from_bytes(id(key))).await? {
        Lookup::Absent => return Ok(StoredState::Absent),
        Lookup::Unreadable { why } => return Ok(StoredState::Unreadable(why)),
        Lookup::Found { record, .. } => record,
    };
    let attempt = record.fence.attempt;
    if record.fence.nonce != nonce(key, attempt) || record.fingerprint != Fingerprint::from_parts(1, id(key))
    {
        return Ok(StoredState::Unreadable("it holds another fence or fingerprint".to_owned()));
    }
    // A retry of a released key would acquire it, so only the record is read.
    if matches!(record.status, Status::Released { .. }) {
        return Ok(StoredState::Released { attempt });
    }
    let retry = store.claim(&claim_request(key, nonce(key, u32::MAX))).await?;
    Ok(match (record.status, retry) {
        (Status::Pinned { recorded: stored }, Claim::Replay { recorded, .. }) if stored == recorded => {
            if recorded.class != Class::Success
                || recorded.format != Format::FUNCTION
                || !recorded.meta.is_empty()
            {
                return Ok(StoredState::Unreadable(
                    "its outcome changed class, format or metadata".to_owned(),
                ));
            }
            StoredState::Pinned { attempt, payload: recorded.payload.to_vec() }
        }
        (Status::Uncertain { .. }, Claim::Uncertain { fence, .. }) if fence.attempt == attempt => {
            StoredState::Open { attempt }
        }
        (status, retry) => {
            StoredState::Unreadable(format!("it reads {status:?} and answers a retry with {retry:?}"))
        }
    })
}

/// A layout's record: state, attempt, and padding to the size of a real one.
fn write(operation: &Operation) -> Write {
    let state = match operation.kind {
        OperationKind::Claim | OperationKind::Renew => b'o',
        OperationKind::Complete => b'p',
        OperationKind::Release => b'r',
    };
    let mut record = vec![state];
    record.extend_from_slice(&operation.attempt.to_le_bytes());
    record.extend_from_slice(&Random::seeded(operation.key).fork(2).bytes::<115>());
    let outcome = (operation.kind == OperationKind::Complete).then(|| Bytes::from(payload(operation.key)));
    Write { id: id(operation.key), record: record.into(), outcome }
}

fn stored_state(record: &[u8], outcome: Option<Vec<u8>>) -> StoredState {
    match (record, outcome) {
        ([b'o', a, b, c, d, ..], None) => StoredState::Open { attempt: u32::from_le_bytes([*a, *b, *c, *d]) },
        ([b'r', a, b, c, d, ..], None) => {
            StoredState::Released { attempt: u32::from_le_bytes([*a, *b, *c, *d]) }
        }
        ([b'p', a, b, c, d, ..], Some(payload)) => {
            StoredState::Pinned { attempt: u32::from_le_bytes([*a, *b, *c, *d]), payload }
        }
        _ => StoredState::Unreadable("record and outcome do not match".to_owned()),
    }
}
