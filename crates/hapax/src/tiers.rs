//! [`Tiers`]: a fast tier for finished records in front of the authoritative store.
//!
//! Only finished records are written to the fast tier, and only after the store has acknowledged them. Misses are
//! looked up in the store. So losing the fast tier or its contents costs speed and nothing else.

use std::sync::Arc;
use std::time::Duration;

use hapax_core::{
    BoxFuture, Claim, ClaimRequest, Deleted, Fact, FactStore, Fenced, Fingerprint, Health, Lease, Lookup,
    Nonce, Page, Query, Reason, RecordId, Recorded, Settled, Settlement, Stats, Store, StoreError, Swept,
};
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// How long the fast tier is bypassed after a failure: while it is down, it slows down one call per interval.
const BYPASS: Duration = Duration::from_secs(1);

/// The maximum number of concurrent writes to the fast tier. Further facts are discarded, which costs speed later and
/// bounds memory.
const WRITES_MAX: u32 = 256;

/// The maximum number of claims whose fingerprint is remembered until completion.
const CLAIMS_MAX: usize = 16_384;

/// A store with a fast tier for finished records in front of it.
///
/// It keeps the promise of the store and returns the same results. The price: a record that was deleted by another
/// component, without the fast tier, may be replayed until its retention is over.
#[derive(Debug)]
pub struct Tiers {
    store: Arc<dyn Store>,
    fast: Arc<FastTier>,
    /// The fingerprints of claims made here: a completion does not contain them.
    claims: Cache<RecordId, (Nonce, Fingerprint)>,
}

/// The fast tier, and whether it is in use.
#[derive(Debug)]
struct FastTier {
    facts: Arc<dyn FactStore>,
    /// Until when it is bypassed; `Some` from a failure until the next success.
    bypassed_until: Mutex<Option<Instant>>,
    writes: Arc<Semaphore>,
}

impl Tiers {
    /// `store` is authoritative; `fast` holds finished records.
    pub fn new(fast: Arc<dyn FactStore>, store: Arc<dyn Store>) -> Self {
        let fast = FastTier {
            facts: fast,
            bypassed_until: Mutex::new(None),
            writes: Arc::new(Semaphore::new(WRITES_MAX as usize)),
        };
        Self { store, fast: Arc::new(fast), claims: Cache::new(CLAIMS_MAX) }
    }

    /// Waits until all writes to the fast tier are done.
    pub async fn flush(&self) {
        // The semaphore is never closed, so this acquires all permits.
        drop(self.fast.writes.acquire_many(WRITES_MAX).await);
    }

    async fn claim(&self, ask: &ClaimRequest) -> Result<Claim, StoreError> {
        let id = ask.key.id;
        if let Some(fact) = self.fast.find(&id).await {
            match fact.fingerprint.matches(&ask.fingerprint) {
                Some(true) => {
                    return Ok(Claim::Replay { recorded: fact.recorded, remaining: fact.remaining });
                }
                Some(false) => return Ok(Claim::Mismatch),
                // Made by another algorithm: the store handles that.
                None => {}
            }
        }
        let asked_at = Instant::now();
        let claim = self.store.claim(ask).await?;
        match &claim {
            Claim::Acquired(lease) => self.claims.insert(id, (lease.fence.nonce, ask.fingerprint)),
            Claim::Replay { recorded, remaining } => {
                let fact = Fact::new(ask.fingerprint, recorded.clone(), *remaining);
                FastTier::write(&self.fast, id, fact, asked_at);
            }
            _ => {}
        }
        Ok(claim)
    }

    async fn complete(
        &self,
        lease: &Lease,
        done: &Recorded,
        retention: Duration,
    ) -> Result<Fenced, StoreError> {
        // Removed now: if the result of this call is unknown, the fact is not written, and a repeated call may come too
        // late to know how much of the retention is left.
        let claim = self.claims.remove(&lease.id);
        let asked_at = Instant::now();
        let fenced = self.store.complete(lease, done, retention).await?;
        if let Some((_, (nonce, fingerprint))) = claim
            && nonce == lease.fence.nonce
            && fenced == Fenced::Applied
        {
            let fact = Fact::new(fingerprint, done.clone(), retention);
            FastTier::write(&self.fast, lease.id, fact, asked_at);
        }
        Ok(fenced)
    }

    async fn delete(&self, id: &RecordId, nonce: Nonce) -> Result<Deleted, StoreError> {
        // Before the store, so that no request is replayed from a deleted record. Facts do not change, so it cannot be
        // too early.
        self.fast.facts.withhold(id).await?;
        self.store.delete(id, nonce).await
    }

    async fn health(&self) -> Result<Health, StoreError> {
        let mut health = self.store.health().await?;
        if let Err(error) = self.fast.facts.health().await {
            health.warnings.push(format!("the fast tier is unavailable, which costs speed: {error}"));
        }
        Ok(health)
    }
}

impl FastTier {
    /// The fact about a record; `None` also if the fast tier fails.
    async fn find(&self, id: &RecordId) -> Option<Fact> {
        if self.is_bypassed() {
            return None;
        }
        let found = self.facts.find(id).await;
        self.observe_result(found).flatten()
    }

    /// Writes a fact from a store call that began at `asked_at`, in the background.
    fn write(this: &Arc<Self>, id: RecordId, fact: Fact, asked_at: Instant) {
        if this.is_bypassed() {
            return;
        }
        let Ok(permit) = Arc::clone(&this.writes).try_acquire_owned() else { return };
        let this = Arc::clone(this);
        tokio::spawn(async move {
            let _permit = permit;
            // The store's retention began at some moment after the call began.
            let remaining = fact.remaining.saturating_sub(asked_at.elapsed());
            if remaining.is_zero() {
                return;
            }
            let fact = Fact::new(fact.fingerprint, fact.recorded, remaining);
            let written = this.facts.keep(&id, &fact).await;
            this.observe_result(written);
        });
    }

    fn is_bypassed(&self) -> bool {
        self.bypassed_until.lock().is_some_and(|until| Instant::now() < until)
    }

    /// Bypasses the fast tier for a while after a failure.
    fn observe_result<T>(&self, result: Result<T, StoreError>) -> Option<T> {
        match result {
            Ok(value) => {
                if self.bypassed_until.lock().take().is_some() {
                    tracing::info!("the fast tier is available again");
                }
                Some(value)
            }
            Err(error) => {
                if self.bypassed_until.lock().replace(Instant::now() + BYPASS).is_none() {
                    tracing::warn!(%error, "the fast tier failed; all lookups go to the store");
                }
                None
            }
        }
    }
}

impl Store for Tiers {
    fn claim<'a>(&'a self, ask: &'a ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>> {
        Box::pin(self.claim(ask))
    }

    fn recall(&self, id: &RecordId, fingerprint: &Fingerprint) -> Option<Recorded> {
        self.store.recall(id, fingerprint)
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        self.store.renew(lease)
    }

    fn complete<'a>(
        &'a self,
        lease: &'a Lease,
        done: &'a Recorded,
        retention: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(self.complete(lease, done, retention))
    }

    fn release<'a>(
        &'a self,
        lease: &'a Lease,
        answered: Option<&'a Recorded>,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        self.store.release(lease, answered)
    }

    fn abandon<'a>(&'a self, lease: &'a Lease, reason: Reason) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        self.store.abandon(lease, reason)
    }

    fn settle<'a>(
        &'a self,
        id: &'a RecordId,
        settlement: &'a Settlement,
    ) -> BoxFuture<'a, Result<Settled, StoreError>> {
        self.store.settle(id, settlement)
    }

    fn get<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<Lookup, StoreError>> {
        self.store.get(id)
    }

    fn list<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Page, StoreError>> {
        self.store.list(query)
    }

    fn delete<'a>(&'a self, id: &'a RecordId, nonce: Nonce) -> BoxFuture<'a, Result<Deleted, StoreError>> {
        Box::pin(self.delete(id, nonce))
    }

    fn sweep(&self, batch_max: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        self.store.sweep(batch_max)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>> {
        self.store.stats()
    }

    fn health(&self) -> BoxFuture<'_, Result<Health, StoreError>> {
        Box::pin(self.health())
    }

    fn outcome_bytes_max(&self) -> usize {
        self.store.outcome_bytes_max()
    }

    fn watch(&self, id: &RecordId) -> Option<BoxFuture<'static, ()>> {
        self.store.watch(id)
    }
}
