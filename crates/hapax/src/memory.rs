//! [`MemoryStore`]: the reference store, a sharded map over [`hapax_core::transition`].
//!
//! It owns the records of one process and loses them with it. It refuses claims when it is full and never evicts: an
//! evicted record would let its operation run again.

mod records;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hapax_core::transition::{self, Change, Decision, Due};
use hapax_core::{
    BoxFuture, Caching, Claim, ClaimRequest, Clock, Deleted, Fenced, Fingerprint, Health, Lease, Lookup,
    Newest, Nonce, Page, Promise, Query, Reason, Record, RecordId, Recorded, Settled, Settlement, State,
    Stats, Store, StoreError, StoreErrorKind, Swept, SystemClock, Timestamp,
};
use hashbrown::HashSet;
use parking_lot::Mutex;

use self::records::{IdState, RecordTable};

/// Enough that a handful of cores rarely contend for the same one.
const SHARDS: usize = 64;

/// The size of a record without its outcome: the record, its map entry and its queue entry.
const RECORD_BYTES: u64 = (size_of::<Record>() + size_of::<RecordId>() + 64) as u64;

/// How many finished records a claim removes before it is refused for lack of space.
const MAKE_ROOM_BATCH: usize = 64;

/// Keeps records in this process's memory.
///
/// *Promise*: de-duplication within one process; a restart loses all records.
///
/// ```
/// use hapax::MemoryStore;
///
/// let store = MemoryStore::new().records_max(10_000);
/// ```
pub struct MemoryStore {
    shards: Box<[Mutex<Shard>]>,
    clock: Arc<dyn Clock>,
    records_max: u64,
    bytes_max: u64,
    records: AtomicU64,
    bytes: AtomicU64,
}

#[derive(Default)]
struct Shard {
    records: RecordTable,
    /// Pinned and released records by expiry. An entry may be outdated: the record decides.
    ends: BinaryHeap<Reverse<(Timestamp, RecordId)>>,
    /// Records in progress or uncertain; few, and rarely old enough to be dropped.
    open: HashSet<RecordId, IdState>,
}

impl MemoryStore {
    /// An empty store on the system's clock, for a million records and 512 MiB.
    pub fn new() -> Self {
        Self::with_clock(SystemClock::new())
    }

    /// An empty store on `clock`.
    pub fn with_clock(clock: impl Clock) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            clock: Arc::new(clock),
            records_max: 1_000_000,
            bytes_max: 512 << 20,
            records: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// The maximum number of records; new claims are refused beyond it.
    #[must_use]
    pub fn records_max(mut self, records_max: u64) -> Self {
        self.records_max = records_max;
        self
    }

    /// The maximum number of bytes; new claims are refused beyond it. Outcomes of accepted claims are always stored.
    #[must_use]
    pub fn bytes_max(mut self, bytes_max: u64) -> Self {
        self.bytes_max = bytes_max;
        self
    }

    fn shard(&self, id: &RecordId) -> &Mutex<Shard> {
        // The ninth byte is the first of the scoped hash: the first eight are the same for one key in all scopes.
        &self.shards[usize::from(id.as_bytes()[8]) % SHARDS]
    }

    /// One atomic step on one record: decide, then write.
    fn step<A>(&self, id: &RecordId, decide: impl FnOnce(Option<&Record>, Timestamp) -> Decision<A>) -> A {
        let mut shard = self.shard(id).lock();
        let Decision { change, answer } = decide(shard.records.get(id), self.clock.now());
        self.apply(&mut shard, id, change);
        answer
    }

    fn apply(&self, shard: &mut Shard, id: &RecordId, change: Change) {
        let before = match change {
            Change::Keep => return,
            Change::Put(record) => {
                if matches!(record.state(), State::InProgress | State::Uncertain) {
                    shard.open.insert(*id);
                } else {
                    shard.open.remove(id);
                    shard.ends.push(Reverse((record.expires_at, *id)));
                }
                self.records.fetch_add(1, Ordering::Relaxed);
                self.bytes.fetch_add(bytes_of(&record), Ordering::Relaxed);
                shard.records.insert(record)
            }
            Change::Remove => {
                shard.open.remove(id);
                shard.records.remove(id)
            }
        };
        if let Some(before) = before {
            self.records.fetch_sub(1, Ordering::Relaxed);
            self.bytes.fetch_sub(bytes_of(&before), Ordering::Relaxed);
        }
    }

    fn is_full(&self) -> bool {
        self.records.load(Ordering::Relaxed) >= self.records_max
            || self.bytes.load(Ordering::Relaxed) >= self.bytes_max
    }

    fn claim_now(&self, ask: &ClaimRequest) -> Result<Claim, StoreError> {
        let id = &ask.key.id;
        let mut shard = self.shard(id).lock();
        let now = self.clock.now();
        let decision = transition::claim(shard.records.get(id), ask, now);
        let grows = matches!(decision.change, Change::Put(_)) && shard.records.get(id).is_none();
        if grows && self.is_full() {
            // Only expired records: unsettled ones are dropped by a sweep, which reports them.
            self.sweep_ended(&mut shard, now, MAKE_ROOM_BATCH, &mut Swept::default());
            if self.is_full() {
                return Err(StoreError::new(StoreErrorKind::Full, "claim"));
            }
        }
        self.apply(&mut shard, id, decision.change);
        Ok(decision.answer)
    }

    /// Removes at most `batch_max` ended records of one shard and reads no others; returns how many more fit.
    fn sweep_ended(&self, shard: &mut Shard, now: Timestamp, batch_max: usize, swept: &mut Swept) -> usize {
        let mut left = batch_max;
        while let Some(&Reverse((ends_at, id))) = shard.ends.peek() {
            if ends_at > now {
                break;
            }
            if left == 0 {
                swept.more = true;
                break;
            }
            shard.ends.pop();
            let due = shard.records.get(&id).and_then(|record| transition::due(record, now));
            if due == Some(Due::Expired) {
                self.apply(shard, &id, Change::Remove);
                swept.expired += 1;
                left -= 1;
            }
        }
        left
    }

    /// Removes at most `batch_max` unfinished records of one shard that were not settled in time.
    fn sweep_open(&self, shard: &mut Shard, now: Timestamp, batch_max: usize, swept: &mut Swept) {
        let mut left = batch_max;
        let dropped: Vec<RecordId> = shard
            .open
            .iter()
            .filter(|id| shard.records.get(id).is_some_and(|record| transition::due(record, now).is_some()))
            .take(left + 1)
            .copied()
            .collect();
        for id in dropped {
            if left == 0 {
                swept.more = true;
                return;
            }
            self.apply(shard, &id, Change::Remove);
            swept.dropped += 1;
            left -= 1;
        }
    }

    fn sweep_now(&self, batch_max: usize) -> Swept {
        let mut swept = Swept::default();
        for shard in &self.shards {
            let done = usize::try_from(swept.expired + swept.dropped).unwrap_or(usize::MAX);
            let (mut shard, now) = (shard.lock(), self.clock.now());
            let left = self.sweep_ended(&mut shard, now, batch_max.saturating_sub(done), &mut swept);
            if !swept.more {
                self.sweep_open(&mut shard, now, left, &mut swept);
            }
            if swept.more {
                break;
            }
        }
        swept
    }

    fn list_now(&self, query: &Query) -> Result<Page, StoreError> {
        let now = self.clock.now();
        let unknown = || StoreError::new(StoreErrorKind::Invalid, "list").with_source("unknown cursor");
        let mut newest = Newest::of(query).ok_or_else(unknown)?;
        for shard in &self.shards {
            for record in shard.lock().records.iter().filter(|record| query.admits(record, now)) {
                newest.offer(record.key.id, Some(record.created_at));
            }
        }
        let (ids, next) = newest.page();
        let found = |id| self.shard(&id).lock().records.get(&id).cloned();
        let mut page = Page::new(now);
        page.records = ids.into_iter().filter_map(found).collect();
        page.next = next;
        Ok(page)
    }

    fn stats_now(&self) -> Stats {
        let now = self.clock.now();
        let mut stats = Stats::default();
        stats.bytes = self.bytes.load(Ordering::Relaxed);
        for shard in &self.shards {
            shard.lock().records.iter().for_each(|record| stats.count(record.state_at(now)));
        }
        stats
    }
}

/// A long path is kept as long as its record, and its length is the client's choice.
fn bytes_of(record: &Record) -> u64 {
    let scope = &record.key.scope;
    let outcome = record.recorded().map_or(0, Recorded::len);
    RECORD_BYTES + (scope.namespace().len() + scope.operation().len() + outcome) as u64
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("records", &self.records)
            .field("records_max", &self.records_max)
            .field("bytes", &self.bytes)
            .field("bytes_max", &self.bytes_max)
            .finish_non_exhaustive()
    }
}

impl Store for MemoryStore {
    fn claim<'a>(&'a self, ask: &'a ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>> {
        Box::pin(async move { self.claim_now(ask) })
    }

    fn recall(&self, id: &RecordId, fingerprint: &Fingerprint) -> Option<Recorded> {
        let shard = self.shard(id).lock();
        transition::recall(shard.records.get(id)?, fingerprint, self.clock.now()).cloned()
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(async move { Ok(self.step(&lease.id, |record, now| transition::renew(record, lease, now))) })
    }

    fn complete<'a>(
        &'a self,
        lease: &'a Lease,
        done: &'a Recorded,
        retention: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(async move {
            Ok(self.step(&lease.id, |record, now| transition::complete(record, lease, done, retention, now)))
        })
    }

    fn release<'a>(
        &'a self,
        lease: &'a Lease,
        answered: Option<&'a Recorded>,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(async move {
            Ok(self.step(&lease.id, |record, now| transition::release(record, lease, answered, now)))
        })
    }

    fn abandon<'a>(&'a self, lease: &'a Lease, reason: Reason) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(async move {
            Ok(self.step(&lease.id, |record, now| transition::abandon(record, lease, reason, now)))
        })
    }

    fn settle<'a>(
        &'a self,
        id: &'a RecordId,
        settlement: &'a Settlement,
    ) -> BoxFuture<'a, Result<Settled, StoreError>> {
        Box::pin(async move { Ok(self.step(id, |record, now| transition::settle(record, settlement, now))) })
    }

    fn get<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<Lookup, StoreError>> {
        Box::pin(async move {
            let shard = self.shard(id).lock();
            Ok(match shard.records.get(id) {
                Some(record) => Lookup::Found { record: Box::new(record.clone()), now: self.clock.now() },
                None => Lookup::Absent,
            })
        })
    }

    fn list<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(async move { self.list_now(query) })
    }

    fn delete<'a>(&'a self, id: &'a RecordId, nonce: Nonce) -> BoxFuture<'a, Result<Deleted, StoreError>> {
        Box::pin(async move { Ok(self.step(id, |record, now| transition::delete(record, nonce, now))) })
    }

    fn sweep(&self, batch_max: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        Box::pin(async move { Ok(self.sweep_now(batch_max)) })
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>> {
        Box::pin(async move { Ok(self.stats_now()) })
    }

    fn health(&self) -> BoxFuture<'_, Result<Health, StoreError>> {
        Box::pin(async move {
            let mut warnings = vec![
                "one process only: records are lost on restart and not shared with other processes"
                    .to_owned(),
            ];
            if self.is_full() {
                warnings.push("full: new claims are refused".to_owned());
            }
            Ok(Health::new("memory", Promise::OneProcess, warnings))
        })
    }

    fn caching(&self) -> Caching {
        Caching::Needless
    }
}
