//! What is put to the proof: the file store, or one of the benchmark's layouts under the same group commit.

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

use super::ledger::Seen;
use super::note::{Act, Step};
use super::seed::Seed;
use crate::bench_store::group::Group;
use crate::bench_store::layout::{Id, Kind, Write};

/// Long enough that no lease lapses in a round: only the death of the process makes a claim uncertain here.
const LEASE: Duration = Duration::from_secs(3600);
const RETENTION: Duration = Duration::from_secs(24 * 3600);

/// Which engine is under test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Engine {
    /// The file store.
    File,
    /// The file store with its syncing switched off, to show that the proof would notice.
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

/// Why an act was not acknowledged.
#[derive(Debug)]
pub enum Refusal {
    /// It was certainly not applied; the word says how it was refused.
    NotApplied(String),
    /// It may have been applied.
    Unknown,
    /// The store answered what it must not answer.
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

/// A file store whose index is written, and whose journal starts over, so soon that a short life has rounds of both.
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

    /// Asks for one act; it is durable when this returns `Ok`.
    pub async fn perform(&self, act: &Act) -> Result<(), Refusal> {
        match self {
            Self::File(store) => perform_on_store(&**store, act).await,
            Self::Layout(group) => group.apply(write(act)).await.map_err(|_| Refusal::Unknown),
        }
    }

    /// Lists a record or none, as somebody does who looks at a store in trouble.
    pub async fn list(&self) -> Result<()> {
        if let Self::File(store) = self {
            store.list(&Query { limit: 1, ..Query::default() }).await?;
        }
        Ok(())
    }

    /// What the engine holds for `key`.
    pub async fn look(&self, key: u64) -> Result<Seen> {
        match self {
            Self::File(store) => look_in_store(&**store, key).await,
            Self::Layout(group) => match group.read(id(key)).await {
                Ok(None) => Ok(Seen::Absent),
                Ok(Some(stored)) => Ok(seen(&stored.record, stored.outcome)),
                Err(error) => Ok(Seen::Unreadable(format!("{error:#}"))),
            },
        }
    }
}

/// The outcome of `key`: about 700 bytes, sometimes none, sometimes more than fits on a page.
pub fn payload(key: u64) -> Vec<u8> {
    let mut seed = Seed::new(key).part(1);
    let length = match seed.below(50) {
        0 => 0,
        1 => 20_000 + seed.below(20_000),
        _ => seed.below(1400),
    };
    let mut bytes = vec![0; length as usize];
    seed.fill(&mut bytes);
    bytes
}

fn id(key: u64) -> Id {
    Seed::new(key).part(2).bytes()
}

fn nonce(key: u64, attempt: u32) -> Nonce {
    Nonce::from_bytes(Seed::new(key).part(3 + u64::from(attempt)).bytes())
}

fn recorded(key: u64) -> Recorded {
    Recorded::new(Class::Success, Format::FUNCTION, payload(key))
}

fn ask(key: u64, nonce: Nonce) -> ClaimRequest {
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

async fn perform_on_store(store: &dyn Store, act: &Act) -> Result<(), Refusal> {
    let fence = Fence { nonce: nonce(act.key, act.attempt), attempt: act.attempt };
    let lease = Lease { id: RecordId::from_bytes(id(act.key)), fence, length: LEASE };
    let fenced = match act.step {
        Step::Claim => {
            return match store.claim(&ask(act.key, fence.nonce)).await.map_err(refusal)? {
                Claim::Acquired(got) if got == lease => Ok(()),
                other => Err(Refusal::Wrong(format!("{other:?}"))),
            };
        }
        Step::Renew => store.renew(&lease).await,
        Step::Complete => store.complete(&lease, &recorded(act.key), RETENTION).await,
        Step::Release => store.release(&lease, None).await,
    };
    match fenced.map_err(refusal)? {
        Fenced::Applied => Ok(()),
        Fenced::Lost => Err(Refusal::Wrong("the fence was lost".to_owned())),
    }
}

fn refusal(error: StoreError) -> Refusal {
    if error.is_unknown() { Refusal::Unknown } else { Refusal::NotApplied(error.kind().name().to_owned()) }
}

/// Reads the record, and asks for a claim as a retry would: both must tell the same.
async fn look_in_store(store: &dyn Store, key: u64) -> Result<Seen> {
    let record = match store.get(&RecordId::from_bytes(id(key))).await? {
        Lookup::Absent => return Ok(Seen::Absent),
        Lookup::Unreadable { why } => return Ok(Seen::Unreadable(why)),
        Lookup::Found { record, .. } => record,
    };
    let attempt = record.fence.attempt;
    if record.fence.nonce != nonce(key, attempt) || record.fingerprint != Fingerprint::from_parts(1, id(key))
    {
        return Ok(Seen::Unreadable("it holds somebody else's fence or fingerprint".to_owned()));
    }
    // A tombstone would let the retry run, so only the record is looked at.
    if matches!(record.status, Status::Released { .. }) {
        return Ok(Seen::Released { attempt });
    }
    let retry = store.claim(&ask(key, nonce(key, u32::MAX))).await?;
    Ok(match (record.status, retry) {
        (Status::Pinned { recorded: stored }, Claim::Replay { recorded, .. }) if stored == recorded => {
            if recorded.class != Class::Success
                || recorded.format != Format::FUNCTION
                || !recorded.meta.is_empty()
            {
                return Ok(Seen::Unreadable("its outcome changed class, format or metadata".to_owned()));
            }
            Seen::Pinned { attempt, payload: recorded.payload.to_vec() }
        }
        (Status::Uncertain { .. }, Claim::Uncertain { fence, .. }) if fence.attempt == attempt => {
            Seen::Open { attempt }
        }
        (status, retry) => {
            Seen::Unreadable(format!("it reads {status:?} and answers a retry with {retry:?}"))
        }
    })
}

/// A layout's record: state, attempt, and filling to the size of a real one.
fn write(act: &Act) -> Write {
    let state = match act.step {
        Step::Claim | Step::Renew => b'o',
        Step::Complete => b'p',
        Step::Release => b'r',
    };
    let mut record = vec![state];
    record.extend_from_slice(&act.attempt.to_le_bytes());
    record.extend_from_slice(&Seed::new(act.key).part(2).bytes::<115>());
    let outcome = (act.step == Step::Complete).then(|| Bytes::from(payload(act.key)));
    Write { id: id(act.key), record: record.into(), outcome }
}

fn seen(record: &[u8], outcome: Option<Vec<u8>>) -> Seen {
    match (record, outcome) {
        ([b'o', a, b, c, d, ..], None) => Seen::Open { attempt: u32::from_le_bytes([*a, *b, *c, *d]) },
        ([b'r', a, b, c, d, ..], None) => Seen::Released { attempt: u32::from_le_bytes([*a, *b, *c, *d]) },
        ([b'p', a, b, c, d, ..], Some(payload)) => {
            Seen::Pinned { attempt: u32::from_le_bytes([*a, *b, *c, *d]), payload }
        }
        _ => Seen::Unreadable("record and outcome do not belong together".to_owned()),
    }
}
