//! How much one key and one caller may ask for. Off unless set.
//!
//! Limits are per process: several in front of one store allow as many times as much, and a new one starts from
//! nothing. What is remembered is bounded: when too many keys or callers are known, those not heard of for longest
//! are forgotten, which gives them a fresh start and nobody a wrong refusal. Callers without a principal count as
//! one.

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

use pinned::Pinned;
pub use rate::{Rate, RateError};
use recent::Recent;

/// How many keys' attempts are remembered: about 5 MB when full.
const KEYS_MAX: usize = 1 << 16;

/// How many callers' stored bytes are remembered: about 10 MB when full.
const CALLERS_MAX: usize = 1 << 14;

/// How many operations of one caller run at a time unless the route says otherwise: as many as the connections that the sidecar
/// opens to one address of a service. An honest caller has a handful for each thing that it does at once, and all callers
/// without a credential, who count as one, stay below what a service takes. Whoever reaches it resets requests or hangs
/// up faster than their operations end, or its service has stopped answering.
pub(crate) const OPEN_CLAIMS_MAX: u32 = 4096;

/// When to try again while too many claims are open: they end when their handlers do, and nobody knows when.
const OPEN_CLAIMS_RETRY_AFTER: Duration = Duration::from_secs(1);

/// What a route allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LimitRules {
    /// How often one key may be sent, replays included.
    pub(crate) attempts_per_key: Option<Rate>,
    /// How many operations of one caller may run at a time.
    pub(crate) open_claims_max: u32,
    /// How many bytes of outcomes may be kept for one caller. The one that goes beyond it is still kept.
    pub(crate) stored_bytes_max: Option<u64>,
}

impl Default for LimitRules {
    fn default() -> Self {
        Self { attempts_per_key: None, open_claims_max: OPEN_CLAIMS_MAX, stored_bytes_max: None }
    }
}

/// Somebody asked for too much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limited {
    pub(crate) by: Limit,
    pub(crate) retry_after: Duration,
}

/// Of what there was too much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Limit {
    AttemptsPerKey,
    OpenClaims,
    StoredBytes,
}

impl Limit {
    /// What there was too much of, for whoever sent the request.
    pub(crate) fn detail(self) -> &'static str {
        match self {
            Self::AttemptsPerKey => "this key was sent too often; wait before sending it again",
            Self::OpenClaims => "too many of your operations are running; wait until some have ended",
            Self::StoredBytes => {
                "too many bytes are kept of your earlier answers; wait until some have expired"
            }
        }
    }
}

/// Counts what keys and callers ask for, for all routes of a layer.
#[derive(Debug)]
pub(crate) struct Limits {
    /// For each key, when the attempts it has made would have been made at the allowed pace.
    paces: Mutex<Recent<RecordId, Option<Instant>>>,
    /// Who asks for which keys now, and how many requests do for each. Only callers who do, so there are never more
    /// than requests.
    open: Mutex<HashMap<Caller, HashMap<RecordId, u32>>>,
    pinned: Mutex<Recent<Caller, Pinned>>,
    started: Instant,
}

type Caller = Option<PrincipalHash>;

impl Limits {
    pub(crate) fn new() -> Self {
        Self {
            paces: Mutex::new(Recent::new(KEYS_MAX)),
            open: Mutex::new(HashMap::new()),
            pinned: Mutex::new(Recent::new(CALLERS_MAX)),
            started: Instant::now(),
        }
    }

    /// Counts an attempt with a key, unless it is one too many. Those that are refused do not count.
    pub(crate) fn attempt(&self, rules: &LimitRules, id: &RecordId, now: Instant) -> Result<(), Limited> {
        let Some(rate) = &rules.attempts_per_key else {
            return Ok(());
        };
        let mut paces = self.paces.lock();
        let pace = paces.entry(*id);
        let next = pace.map_or(now, |pace| pace.max(now)) + rate.interval();
        let ahead = next.saturating_duration_since(now);
        if ahead > rate.per() {
            return Err(Limited { by: Limit::AttemptsPerKey, retry_after: ahead - rate.per() });
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
    ) -> Result<OpenClaim, Limited> {
        let open_claims_max = rules.open_claims_max;
        let mut open = self.open.lock();
        let is_full = open
            .get(&principal)
            .is_some_and(|keys| keys.len() >= open_claims_max as usize && !keys.contains_key(&id));
        if is_full || open_claims_max == 0 {
            return Err(Limited { by: Limit::OpenClaims, retry_after: OPEN_CLAIMS_RETRY_AFTER });
        }
        *open.entry(principal).or_default().entry(id).or_default() += 1;
        Ok(OpenClaim { limits: self.clone(), caller: principal, id })
    }

    /// Whether there is room for an outcome of this caller. To be asked before its operation runs: afterwards the
    /// outcome is kept, whatever its size.
    pub(crate) fn may_store(
        &self,
        rules: &LimitRules,
        principal: Option<PrincipalHash>,
        now: Instant,
    ) -> Result<(), Limited> {
        let Some(stored_bytes_max) = rules.stored_bytes_max else {
            return Ok(());
        };
        let pinned = self.pinned.lock();
        match pinned.get(&principal).and_then(|pinned| pinned.room_after(stored_bytes_max, self.age(now))) {
            None => Ok(()),
            Some(retry_after) => Err(Limited { by: Limit::StoredBytes, retry_after }),
        }
    }

    /// Counts bytes that are kept for this caller for a while.
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

/// An operation that counts as running for as long as this lives. It belongs to the execution, not to the
/// connection: a caller that hangs up frees nothing.
#[derive(Debug)]
#[must_use]
pub(crate) struct OpenClaim {
    limits: Arc<Limits>,
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
