//! The kit of the rigs. A rig runs a subject under load, injects faults, and compares what callers were answered with
//! what the service did.
//!
//! | file | what it owns |
//! |---|---|
//! | `admin.rs` | a client of the admin API |
//! | `args.rs` | command-line arguments and exit codes of the rigs' programs |
//! | `child.rs` | a child process that is killed on drop |
//! | `sidecar.rs` | one run of `hapax serve`, and a slot in which runs follow each other |
//! | `serve.rs` | a router that is served on a thread |
//! | `service.rs` | the service behind a sidecar, its planted defects, and the gate that holds its handlers |
//! | `effects.rs` | the effect log: what the service did and answered, by key |
//! | `flaws.rs` | refusals, lost, late and cut off answers of the service |
//! | `http.rs` | an HTTP/1 connection with one exchange at a time |
//! | `caller.rs` | a client that retries with the same key |
//! | `load.rs` | all callers, concurrently |
//! | `ledger.rs` | the keys that were sent, and what callers were answered |
//! | `audit.rs` | the ledger against the effect log; for sidecars, every key once more and the settlements |
//! | `damage.rs` | what an audit finds, as lines and as goals |
//!
//! Nothing here knows which store is used or which faults are injected.

pub(crate) mod admin;
pub mod args;
pub(crate) mod audit;
pub(crate) mod caller;
pub(crate) mod child;
mod damage;
pub(crate) mod effects;
pub(crate) mod flaws;
pub(crate) mod http;
pub(crate) mod ledger;
pub(crate) mod load;
pub(crate) mod serve;
pub(crate) mod service;
pub(crate) mod sidecar;

use std::ops::AddAssign;

pub use self::damage::Damage;
pub use self::service::ServiceDefect;
pub use self::sidecar::program_beside;

/// Stuck keys after which a run stops. Each takes the whole patience, and more of them say nothing new.
const STUCK_MAX: usize = 64;

/// What a run on sidecars measured and found.
#[derive(Clone, Default, Debug)]
pub struct LoadReport {
    /// Requests that got a final answer.
    pub requests: u64,
    /// Different keys.
    pub keys: u64,
    /// Attempts that were sent again: after a broken connection, a 409 in progress or a 5xx.
    pub retries: u64,
    /// Attempts whose caller hung up before the answer.
    pub hang_ups: u64,
    /// Answers that were replays, before the audit.
    pub replays: u64,
    /// Answers that were marked as not recorded, before the audit.
    pub unrecorded: u64,
    /// Keys that were uncertain at the audit.
    pub uncertain: u64,
    /// Of those, settled as applied.
    pub applied: u64,
    /// Of those, settled as not applied.
    pub not_applied: u64,
    /// Broken promises.
    pub damage: Damage,
}

impl LoadReport {
    /// Whether so many keys are stuck that the run stops.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.damage.stuck.len() >= STUCK_MAX
    }

    /// The figures of the load, in one line.
    pub fn load_line(&self) -> String {
        let Self { requests, keys, retries, hang_ups, replays, unrecorded, .. } = self;
        format!(
            "{requests} requests with {keys} keys, {retries} retries, {hang_ups} hang-ups, {replays} replays, \
             {unrecorded} answers not recorded"
        )
    }

    /// The figures of the settlements, in one line.
    pub fn settlement_line(&self) -> String {
        let Self { uncertain, applied, not_applied, .. } = self;
        format!("{uncertain} keys were uncertain: {applied} settled as applied, {not_applied} as not applied")
    }
}

impl AddAssign for LoadReport {
    fn add_assign(&mut self, more: Self) {
        self.requests += more.requests;
        self.keys += more.keys;
        self.retries += more.retries;
        self.hang_ups += more.hang_ups;
        self.replays += more.replays;
        self.unrecorded += more.unrecorded;
        self.uncertain += more.uncertain;
        self.applied += more.applied;
        self.not_applied += more.not_applied;
        self.damage += more.damage;
    }
}
