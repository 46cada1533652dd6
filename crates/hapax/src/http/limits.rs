//! Limits per key and per caller: attempts, running operations and stored bytes.
//!
//! Limits are per process: several processes on one store allow a multiple, and a new one starts from zero. The tables
//! are bounded: when there are too many keys or callers, the least recently used are dropped, which resets their
//! counters and never refuses a request wrongly. Callers without a principal count as one.

mod pinned;
mod rate;
mod recent;

use std::sync::Arc;
use std::time::Duration;

use hapax_core::RecordId;
use hapax_core::key::PrincipalHash;
use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::time::Instant;

use pinned::StoredBytesByExpiry;
pub use rate::{Rate, RateError};
use recent::RecentMap;

/// The maximum number of keys whose attempts are tracked: about 5 MB when full.
const KEYS_MAX: usize = 1 << 16;

/// The maximum number of callers whose stored bytes are tracked: about 10 MB when full.
const CALLERS_MAX: usize = 1 << 14;

/// The default limit of running operations per caller: the number of connections that the sidecar opens to one address
/// of a service. A regular caller runs a handful at a time, and all callers without a credential, who count as one,
/// stay below the capacity of a service. A caller that reaches it resets requests or disconnects faster than its
/// operations end, or its service has stopped responding.
pub(crate) const OPEN_CLAIMS_MAX: u32 = 4096;

/// When to retry while too many claims are open. They end with their handlers, at an unknown time.
const OPEN_CLAIMS_RETRY_AFTER: Duration = Duration::from_secs(1);

/// The limits of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LimitRules {
    /// The rate for one key, replays included.
    pub(crate) attempts_per_key: Option<Rate>,
    /// How many operations of one caller may run at a time.
    pub(crate) open_claims_max: u32,
    /// How many bytes of outcomes may be stored for one caller. The outcome that exceeds the limit is still stored.
    pub(crate) stored_bytes_max: Option<u64>,
}

impl Default for LimitRules {
    fn default() -> Self {
        Self { attempts_per_key: None, open_claims_max: OPEN_CLAIMS_MAX, stored_bytes_max: None }
    }
}

/// A limit was exceeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LimitExceeded {
    pub(crate) by: Limit,
    pub(crate) retry_after: Duration,
}

/// The limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Limit {
    AttemptsPerKey,
    OpenClaims,
    StoredBytes,
}

impl Limit {
    /// The description for the sender of the request.
    pub(crate) fn detail(self) -> &'static str {
        match self {
            Self::AttemptsPerKey => "this key was sent too often; wait before sending it again",
            Self::OpenClaims => "too many of your operations are running; wait until some have ended",
            Self::StoredBytes => {
                "too many bytes are stored for your earlier responses; wait until some have expired"
            }
        }
    }
}

/// The counters of keys and callers, for all routes of a layer.
#[derive(Debug)]
pub(crate) struct LimitCounters {
    /// For each key, the theoretical arrival time of its next attempt (generic cell rate algorithm).
    paces: Mutex<RecentMap<RecordId, Option<Instant>>>,
    /// For each caller, the keys of its running operations with their number of requests. Only callers with running
    /// operations are present, so there are never more entries than requests.
    open: Mutex<HashMap<Caller, HashMap<RecordId, u32>>>,
    pinned: Mutex<RecentMap<Caller, StoredBytesByExpiry>>,
    started: Instant,
}

type Caller = Option<PrincipalHash>;

impl LimitCounters {
    pub(crate) fn new() -> Self {
        Self {
            paces: Mutex::new(RecentMap::new(KEYS_MAX)),
            open: Mutex::new(HashMap::new()),
            pinned: Mutex::new(RecentMap::new(CALLERS_MAX)),
            started: Instant::now(),
        }
    }

    /// Counts an attempt with a key, or refuses it. Refused attempts do not count.
    pub(crate) fn attempt(
        &self,
        rules: &LimitRules,
        id: &RecordId,
        now: Instant,
    ) -> Result<(), LimitExceeded> {
        let Some(rate) = &rules.attempts_per_key else {
            return Ok(());
        };
        let mut paces = self.paces.lock();
        let pace = paces.entry(*id);
        let next = pace.map_or(now, |pace| pace.max(now)) + rate.interval();
        let ahead = next.saturating_duration_since(now);
        if ahead > rate.per() {
            return Err(LimitExceeded { by: Limit::AttemptsPerKey, retry_after: ahead - rate.per() });
        }
        *pace = Some(next);
        Ok(())
    }

    /// Counts an operation that is about to run, until the guard is dropped. Several requests for one key are one
    /// operation: at most one of them runs.
    pub(crate) fn open(
        self: &Arc<Self>,
        rules: &LimitRules,
        principal: Option<PrincipalHash>,
        id: RecordId,
    ) -> Result<OpenClaim, LimitExceeded> {
        let open_claims_max = rules.open_claims_max;
        let mut open = self.open.lock();
        let is_full = open
            .get(&principal)
            .is_some_and(|keys| keys.len() >= open_claims_max as usize && !keys.contains_key(&id));
        if is_full || open_claims_max == 0 {
            return Err(LimitExceeded { by: Limit::OpenClaims, retry_after: OPEN_CLAIMS_RETRY_AFTER });
        }
        *open.entry(principal).or_default().entry(id).or_default() += 1;
        Ok(OpenClaim { limits: self.clone(), caller: principal, id })
    }

    /// Whether an outcome of this caller may be stored. Checked before its operation runs: afterwards the outcome is
    /// stored, whatever its size.
    pub(crate) fn may_store(
        &self,
        rules: &LimitRules,
        principal: Option<PrincipalHash>,
        now: Instant,
    ) -> Result<(), LimitExceeded> {
        let Some(stored_bytes_max) = rules.stored_bytes_max else {
            return Ok(());
        };
        let pinned = self.pinned.lock();
        match pinned.get(&principal).and_then(|pinned| pinned.room_after(stored_bytes_max, self.age(now))) {
            None => Ok(()),
            Some(retry_after) => Err(LimitExceeded { by: Limit::StoredBytes, retry_after }),
        }
    }

    /// Counts bytes that are stored for this caller for a while.
    pub(crate) fn stored(
        &self,
        rules: &LimitRules,
        principal: Option<PrincipalHash>,
        bytes: u64,
        keep_for: Duration,
        now: Instant,
    ) {
        if rules.stored_bytes_max.is_some() {
            self.pinned.lock().entry(principal).add(bytes, keep_for, self.age(now));
        }
    }

    fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }
}

/// Counts as a running operation until dropped. It belongs to the execution, not to the connection: a caller that
/// disconnects does not free its slot.
#[derive(Debug)]
#[must_use]
pub(crate) struct OpenClaim {
    limits: Arc<LimitCounters>,
    caller: Caller,
    id: RecordId,
}

impl Drop for OpenClaim {
    fn drop(&mut self) {
        let Self { limits, caller, id } = &*self;
        let mut open = limits.open.lock();
        let Some(keys) = open.get_mut(caller) else {
            return;
        };
        match keys.get_mut(id) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(keys.remove(id)),
        }
        if keys.is_empty() {
            open.remove(caller);
        }
    }
}

#[cfg(test)]
mod tests;
