//! [`ReferenceStore`]: the contract as code, one map behind one mutex.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hapax_core::transition::{self, Change, Decision, Due};
use hapax_core::{
    BoxFuture, Caching, Claim, ClaimRequest, Clock, Deleted, Deletions, Fenced, Health, Lease, Lookup, Nonce,
    Page, Promise, Query, Reason, Record, RecordId, Recorded, Settled, Settlement, Stats, Store, StoreError,
    StoreErrorKind, Swept, Timestamp, Verdict,
};
use parking_lot::Mutex;

/// The observable behaviour that every store must have; complete and not fast.
///
/// Read it next to your own store, or compare the two call by call. In production use
/// `hapax::MemoryStore`.
pub struct ReferenceStore {
    clock: Arc<dyn Clock>,
    records_max: usize,
    outcome_bytes_max: usize,
    shelf: Mutex<Shelf>,
    deletions: Arc<Deletions>,
}

#[derive(Default)]
struct Shelf {
    records: BTreeMap<RecordId, Record>,
    damaged: BTreeSet<RecordId>,
}

impl ReferenceStore {
    /// An empty store on `clock`.
    pub fn new(clock: impl Clock) -> Self {
        Self {
            clock: Arc::new(clock),
            records_max: usize::MAX,
            outcome_bytes_max: usize::MAX,
            shelf: Mutex::default(),
            deletions: Arc::default(),
        }
    }

    /// The number of records from which on new claims are refused.
    #[must_use]
    pub fn records_max(mut self, records_max: usize) -> Self {
        self.records_max = records_max;
        self
    }

    /// The bytes of an outcome from which on it is refused.
    #[must_use]
    pub fn outcome_bytes_max(mut self, bytes: usize) -> Self {
        self.outcome_bytes_max = bytes;
        self
    }

    /// Makes a record unreadable, as a flipped bit or a newer version would. False when there is none.
    pub fn damage(&self, id: &RecordId) -> bool {
        let mut shelf = self.shelf.lock();
        shelf.records.contains_key(id) && shelf.damaged.insert(*id)
    }

    /// One atomic step on one record; `unreadable` is the answer for a record that cannot be read.
    fn step<A>(
        &self,
        id: &RecordId,
        unreadable: Result<A, StoreError>,
        decide: impl FnOnce(Option<&Record>, Timestamp) -> Decision<A>,
    ) -> Result<A, StoreError> {
        let mut shelf = self.shelf.lock();
        if shelf.damaged.contains(id) {
            return unreadable;
        }
        let before = shelf.records.get(id);
        let Decision { change, answer } = decide(before, self.clock.now());
        match change {
            Change::Keep => {}
            Change::Put(_) if before.is_none() && shelf.records.len() >= self.records_max => {
                return Err(StoreError::new(StoreErrorKind::Full, "claim"));
            }
            Change::Put(record) => {
                shelf.records.insert(*id, *record);
            }
            Change::Remove => {
                shelf.records.remove(id);
            }
        }
        Ok(answer)
    }

    fn check(&self, op: &'static str, outcome: Option<&Recorded>) -> Result<(), StoreError> {
        match outcome {
            Some(outcome) if outcome.len() > self.outcome_bytes_max => {
                Err(StoreError::new(StoreErrorKind::TooLarge, op))
            }
            _ => Ok(()),
        }
    }

    fn fenced(
        &self,
        lease: &Lease,
        decide: impl FnOnce(Option<&Record>, Timestamp) -> Decision<Fenced>,
    ) -> Result<Fenced, StoreError> {
        // The owner of an unreadable record is unknown, so it is not the caller.
        self.step(&lease.id, Ok(Fenced::Lost), decide)
    }

    fn list_now(&self, query: &Query) -> Result<Page, StoreError> {
        let shelf = self.shelf.lock();
        let now = self.clock.now();
        let after = query.cursor.as_deref().map(parse_cursor).transpose()?;
        // Newest first; the id makes the order total, so that a cursor names one position in it.
        let position = |record: &Record| (Reverse(record.created_at), record.key.id);
        let mut found: Vec<&Record> = shelf
            .records
            .values()
            .filter(|record| shelf.damaged.contains(&record.key.id) || query.admits(record, now))
            .filter(|record| after.is_none_or(|after| position(record) > after))
            .collect();
        found.sort_by_key(|record| position(record));
        let more = found.len() > query.limit;
        found.truncate(query.limit);
        let next = found
            .last()
            .filter(|_| more)
            .map(|last| format!("{}-{}", last.created_at.as_millis(), last.key.id));
        let (damaged, readable): (Vec<&Record>, Vec<&Record>) =
            found.into_iter().partition(|record| shelf.damaged.contains(&record.key.id));
        let mut page = Page::new(now);
        page.records = readable.into_iter().cloned().collect();
        page.unreadable = damaged.into_iter().map(|record| record.key.id).collect();
        page.next = next;
        Ok(page)
    }

    fn sweep_now(&self, batch_max: usize) -> Swept {
        let mut shelf = self.shelf.lock();
        let now = self.clock.now();
        let due: Vec<(RecordId, Due)> = shelf
            .records
            .values()
            .filter(|record| !shelf.damaged.contains(&record.key.id))
            .filter_map(|record| Some((record.key.id, transition::due(record, now)?)))
            .collect();
        let mut swept = Swept { more: due.len() > batch_max, ..Swept::default() };
        for (id, why) in due.into_iter().take(batch_max) {
            shelf.records.remove(&id);
            match why {
                Due::Expired => swept.expired += 1,
                Due::Dropped => swept.dropped += 1,
            }
        }
        swept
    }

    fn stats_now(&self) -> Stats {
        let shelf = self.shelf.lock();
        let now = self.clock.now();
        let mut stats = Stats::default();
        for record in shelf.records.values() {
            stats.count(record.state_at(now));
            stats.bytes += (size_of::<Record>() + record.recorded().map_or(0, Recorded::len)) as u64;
        }
        stats
    }
}

fn parse_cursor(cursor: &str) -> Result<(Reverse<Timestamp>, RecordId), StoreError> {
    let parse = || {
        let (created_at, id) = cursor.split_once('-')?;
        Some((Reverse(Timestamp::from_millis(created_at.parse().ok()?)), RecordId::parse(id)?))
    };
    parse().ok_or_else(|| StoreError::new(StoreErrorKind::Invalid, "list").with_source("unknown cursor"))
}

impl fmt::Debug for ReferenceStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReferenceStore")
            .field("records", &self.shelf.lock().records.len())
            .finish_non_exhaustive()
    }
}

impl Store for ReferenceStore {
    fn claim<'a>(&'a self, ask: &'a ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>> {
        Box::pin(async move {
            self.step(&ask.key.id, Ok(Claim::Unreadable), |record, now| transition::claim(record, ask, now))
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(async move { self.fenced(lease, |record, now| transition::renew(record, lease, now)) })
    }

    fn complete<'a>(
        &'a self,
        lease: &'a Lease,
        done: &'a Recorded,
        retention: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(async move {
            self.check("complete", Some(done))?;
            self.fenced(lease, |record, now| transition::complete(record, lease, done, retention, now))
        })
    }

    fn release<'a>(
        &'a self,
        lease: &'a Lease,
        answered: Option<&'a Recorded>,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(async move {
            self.check("release", answered)?;
            self.fenced(lease, |record, now| transition::release(record, lease, answered, now))
        })
    }

    fn abandon<'a>(&'a self, lease: &'a Lease, reason: Reason) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(
            async move { self.fenced(lease, |record, now| transition::abandon(record, lease, reason, now)) },
        )
    }

    fn settle<'a>(
        &'a self,
        id: &'a RecordId,
        settlement: &'a Settlement,
    ) -> BoxFuture<'a, Result<Settled, StoreError>> {
        Box::pin(async move {
            if let Verdict::Applied { recorded, .. } = &settlement.verdict {
                self.check("settle", Some(recorded))?;
            }
            let unreadable = Err(StoreError::new(StoreErrorKind::Incompatible, "settle"));
            self.step(id, unreadable, |record, now| transition::settle(record, settlement, now))
        })
    }

    fn get<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<Lookup, StoreError>> {
        Box::pin(async move {
            let shelf = self.shelf.lock();
            Ok(match shelf.records.get(id) {
                Some(_) if shelf.damaged.contains(id) => Lookup::Unreadable { why: "damaged".to_owned() },
                Some(record) => Lookup::Found { record: Box::new(record.clone()), now: self.clock.now() },
                None => Lookup::Absent,
            })
        })
    }

    fn list<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(async move { self.list_now(query) })
    }

    fn delete<'a>(&'a self, id: &'a RecordId, nonce: Nonce) -> BoxFuture<'a, Result<Deleted, StoreError>> {
        Box::pin(async move {
            let unreadable = Err(StoreError::new(StoreErrorKind::Incompatible, "delete"));
            let deleted = self.step(id, unreadable, |record, now| transition::delete(record, nonce, now))?;
            if deleted == Deleted::Applied {
                self.deletions.count(id);
            }
            Ok(deleted)
        })
    }

    fn sweep(&self, batch_max: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        Box::pin(async move { Ok(self.sweep_now(batch_max)) })
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>> {
        Box::pin(async move { Ok(self.stats_now()) })
    }

    fn health(&self) -> BoxFuture<'_, Result<Health, StoreError>> {
        Box::pin(async move {
            let warnings = vec!["for tests only".to_owned()];
            Ok(Health::new("reference", Promise::OneProcess, warnings))
        })
    }

    fn caching(&self) -> Caching {
        Caching::Owned(Arc::clone(&self.deletions))
    }

    fn outcome_bytes_max(&self) -> usize {
        self.outcome_bytes_max
    }
}
