//! [`Hapax`]: the entry point of the library, and its [`Builder`].

mod global;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hapax_core::{
    Deleted, Lookup, Nonce, Record, RecordId, Scope, ScopedKey, Settled, Settlement, Store, StoreError,
    Verdict,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::global::GlobalAlreadySet;
use crate::engine::cache::Facts;
use crate::engine::calls::Calls;
use crate::engine::lease::Leases;
use crate::engine::wait::{Limits, Waiters};
use crate::engine::{Claimed, Engine, KeeperGuard, Operation, Refusal, sweep_for_ever};
use crate::function::{IntoKey, Once};
use crate::observe::Outage;
use crate::policy::{Policy, SPAN_MAX};

/// How often a settlement whose result was lost is sent again.
const SETTLE_TRIES: u32 = 3;

/// The default size of the cache of finished records.
const CACHE_BYTES: u64 = 32 << 20;

/// The minimum timeout of settling and deleting. A store without a clock of its own watches a claim that it has not
/// seen before for one lease, which may take a minute; the rest is for its calls.
const WATCH_MAX: Duration = Duration::from_secs(75);

/// Executes operations once. Clones share all state; make one per process and store.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use hapax::{Hapax, MemoryStore};
///
/// let hapax = Hapax::new(MemoryStore::new());
/// let charge = || hapax.once("charge", "order-123").run(|_cx| async { Ok::<_, std::io::Error>(42) });
///
/// assert_eq!(charge().await.unwrap().value, 42);
/// assert!(charge().await.unwrap().replayed);
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct Hapax {
    pub(crate) engine: Arc<Engine>,
    pub(crate) policy: Policy,
}

/// Where leases are renewed and sweeping is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Keeper {
    /// On a dedicated thread, which handlers that block the runtime do not delay.
    #[default]
    OwnThread,
    /// On the runtime in which [`Builder::build`] is called: for simulated time, and for environments without threads.
    SharedRuntime,
}

/// Sets up a [`Hapax`].
#[derive(Debug)]
#[must_use]
pub struct Builder {
    store: Arc<dyn Store>,
    policy: Policy,
    store_timeout: Duration,
    cache_bytes: u64,
    waiters: Limits,
    poll: Duration,
    sweep: Option<Duration>,
    keeper: Keeper,
}

/// How a drain ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drained {
    /// Executions that had not ended at the limit. Their records stay in progress and lapse.
    pub left: usize,
}

impl Hapax {
    /// Hapax on `store` with the defaults.
    pub fn new(store: impl Store) -> Self {
        Self::builder(store).build()
    }

    /// Sets up Hapax on `store`, which may be shared in an [`Arc`].
    pub fn builder(store: impl Store) -> Builder {
        Builder {
            store: Arc::new(store),
            policy: Policy::default(),
            store_timeout: Duration::from_secs(5),
            cache_bytes: CACHE_BYTES,
            waiters: Limits { per_key: 1000, in_all: 10_000 },
            poll: Duration::from_secs(1),
            sweep: Some(Duration::from_secs(3600)),
            keeper: Keeper::default(),
        }
    }

    /// One operation: `key` names it, `scope` is what the key is unique within.
    pub fn once(&self, scope: impl Into<Scope>, key: impl IntoKey) -> Once {
        Once::new(self.clone(), scope.into(), key.into_key())
    }

    /// Claims an operation for a custom surface: see [`engine`](crate::engine).
    ///
    /// A claim whose future is dropped before it is ready is cancelled: nothing ran for it.
    ///
    /// # Errors
    /// [`Refusal`]: why the operation does not run now.
    pub async fn claim(&self, operation: Operation) -> Result<Claimed, Refusal> {
        self.engine.claim(Box::new(operation)).await
    }

    /// The default policy of operations.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.engine.calls.store
    }

    /// The record of a key, for operators and reports, and to settle or delete it. Its absence is never a reason to run
    /// an operation.
    ///
    /// # Errors
    /// When the key is invalid or the store cannot answer.
    pub async fn get(&self, scope: impl Into<Scope>, key: impl IntoKey) -> Result<Lookup, GetError> {
        let id = ScopedKey::new(scope.into(), &key.into_key()?).id;
        let calls = &self.engine.calls;
        Ok(calls.once("get", calls.timeout, calls.store.get(&id)).await?)
    }

    /// Settles an uncertain record in the state in which it was read. If another attempt holds it meanwhile, or its
    /// owner has ended it, nothing changes.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn settle(&self, record: &Record, verdict: Verdict) -> Result<Settled, StoreError> {
        let settlement = Settlement::new(record.fence.nonce, verdict);
        let (calls, id) = (&self.engine.calls, record.key.id);
        let settle = || calls.store.settle(&id, &settlement);
        let settled = calls.insist("settle", calls.timeout.max(WATCH_MAX), SETTLE_TRIES, settle).await;
        // Also if it is unknown whether the settlement was applied.
        self.engine.facts.forget(&id);
        let settled = settled?;
        self.engine.waiters.wake(&id);
        Ok(settled)
    }

    /// Removes a finished or uncertain record in the state in which it was read; its key is fresh afterwards. Other
    /// processes on the same store may replay it from their caches for up to a minute more ([`Builder::cache`]).
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn delete(&self, record: &Record) -> Result<Deleted, StoreError> {
        self.delete_attempt(&record.key.id, record.fence.nonce).await
    }

    /// Removes the record if it holds this attempt.
    pub(crate) async fn delete_attempt(&self, id: &RecordId, nonce: Nonce) -> Result<Deleted, StoreError> {
        let calls = &self.engine.calls;
        let delete = calls.store.delete(id, nonce);
        let deleted = calls.once("delete", calls.timeout.max(WATCH_MAX), delete).await;
        // Also if it is unknown whether the deletion was applied.
        self.engine.facts.forget(id);
        deleted
    }

    /// Refuses new operations and waits up to `limit` until the running ones have ended and are recorded.
    pub async fn drain(&self, limit: Duration) -> Drained {
        self.engine.draining.store(true, Ordering::SeqCst);
        self.engine.tasks.close();
        let _ = tokio::time::timeout(limit, self.engine.tasks.wait()).await;
        Drained { left: self.engine.tasks.len() }
    }
}

impl Builder {
    /// The default policy of operations.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// The timeout of a store call; never more than a third of the lease. A claim whose result is lost is repeated
    /// within this time, and refused when it is over. Settling and deleting may always take 75 s: some stores watch a
    /// claim first. Default 5 s.
    pub fn store_timeout(mut self, store_timeout: Duration) -> Self {
        self.store_timeout = store_timeout.min(SPAN_MAX);
        self
    }

    /// The size of the cache of finished records, in bytes; 0 for none. Default 32 MiB.
    ///
    /// A record that is not in the cache is always looked up in the store. If the store has one owner, as the file
    /// store has, a record is replayed from the cache until its retention is over or it is deleted. If other processes
    /// use the store as well, it is replayed for a minute at most, so that a deletion by another process takes effect
    /// after a minute. A store in memory is not cached ([`Caching`](hapax_core::Caching)).
    pub fn cache(mut self, bytes: u64) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// How many duplicates may wait for one key, and in total. Default 1,000 and 10,000.
    pub fn waiters_max(mut self, per_key: usize, in_all: usize) -> Self {
        self.waiters = Limits { per_key, in_all };
        self
    }

    /// How often the store is polled for a key with waiting duplicates, in case no notification arrives. Default 1 s.
    pub fn poll(mut self, poll: Duration) -> Self {
        self.poll = poll.min(SPAN_MAX);
        self
    }

    /// How often to sweep; `None` if another job does. Default hourly.
    pub fn sweep(mut self, every: Option<Duration>) -> Self {
        self.sweep = every.map(|every| every.min(SPAN_MAX));
        self
    }

    /// Where leases are renewed. Default: on a dedicated thread.
    pub fn keeper(mut self, keeper: Keeper) -> Self {
        self.keeper = keeper;
        self
    }

    /// Builds the [`Hapax`] and starts its background tasks.
    ///
    /// # Panics
    /// When the operating system cannot create a thread, or with [`Keeper::SharedRuntime`] outside a Tokio runtime.
    #[must_use = "dropping it stops its background tasks"]
    pub fn build(self) -> Hapax {
        let facts = Facts::new(self.cache_bytes, self.store.caching());
        let calls = Calls { store: self.store, timeout: self.store_timeout };
        let stop = CancellationToken::new();
        let leases = Arc::new(Leases::new(self.policy.lease));
        let keep = {
            let (leases, calls, stop) = (leases.clone(), calls.clone(), stop.clone());
            async move {
                if let Some(every) = self.sweep {
                    tokio::spawn(sweep_for_ever(calls.clone(), every, stop.clone()));
                }
                leases.keep(calls, stop).await;
            }
        };
        let thread = match self.keeper {
            Keeper::SharedRuntime => {
                tokio::spawn(keep);
                None
            }
            Keeper::OwnThread => {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .expect("the operating system provides the resources of a runtime");
                let thread = std::thread::Builder::new().name("hapax-keeper".into());
                Some(
                    thread
                        .spawn(move || runtime.block_on(keep))
                        .expect("the operating system creates a thread"),
                )
            }
        };
        let waiters = Arc::new(Waiters::new(calls.clone(), self.poll, self.waiters));
        let engine = Engine {
            calls,
            leases,
            waiters,
            facts,
            tasks: TaskTracker::new(),
            draining: AtomicBool::new(false),
            outage: Outage::new("the store takes no claims", "the store takes claims again"),
            _keeper: KeeperGuard { stop, thread },
        };
        Hapax { engine: Arc::new(engine), policy: self.policy }
    }
}

/// Why a record cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GetError {
    /// The key is invalid.
    #[error("invalid key")]
    Key(#[from] hapax_core::KeyError),
    /// The store cannot answer.
    #[error("the store cannot answer")]
    Store(#[from] StoreError),
}
