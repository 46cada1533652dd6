//! What the proofs of real sidecars share: a service that keeps an account of its own, callers that retry by the book,
//! and the audit that compares what callers were told with that account.
//!
//! | file | what it owns |
//! |---|---|
//! | `process.rs` | one run of a sidecar, from its start to its death |
//! | `ledger.rs` | what the service did, by key, and the lies that a proof must notice |
//! | `upstream.rs` | the service, and the gate that holds its handlers while something is done to a sidecar |
//! | `caller.rs` | a client that retries by the book, never with another key |
//! | `load.rs` | all the callers at once, and what they were told |
//! | `audit.rs` | every key once more, then the settlements |
//!
//! Nothing here knows which store is used or what is done to it meanwhile.

pub(crate) mod audit;
pub(crate) mod caller;
pub(crate) mod ledger;
pub(crate) mod load;
pub(crate) mod process;
pub(crate) mod upstream;

use std::ops::AddAssign;

pub use self::ledger::Lie;
pub use self::process::beside;

/// So many stuck keys end a proof: more tell nothing new, and each takes all the patience there is.
const STUCK_MAX: usize = 64;

/// What was seen.
#[derive(Clone, Default, Debug)]
pub struct Report {
    /// Requests that got a last answer.
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
    /// Keys that were uncertain in the end.
    pub uncertain: u64,
    /// Of those, settled as applied.
    pub applied: u64,
    /// Of those, settled as not applied.
    pub not_applied: u64,
    /// Keys whose operation happened more than once.
    pub doubles: Vec<String>,
    /// Answers that were given as recorded, and that later retries did not get.
    pub lost: Vec<String>,
    /// Answers that the service never gave for that key.
    pub wrong: Vec<String>,
    /// Keys that never come to an end.
    pub stuck: Vec<String>,
}

impl Report {
    /// Whether to go on is to wait in vain.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.stuck.len() >= STUCK_MAX
    }

    /// Adds what is wrong with a key to its kind.
    pub(crate) fn note(&mut self, key: u64, fault: Fault) {
        let (kind, fault) = match fault {
            Fault::Lost(fault) => (&mut self.lost, fault),
            Fault::Wrong(fault) => (&mut self.wrong, fault),
            Fault::Stuck(fault) => (&mut self.stuck, fault),
        };
        kind.push(format!("key {key}: {fault}"));
    }
}

impl AddAssign for Report {
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
        self.doubles.extend(more.doubles);
        self.lost.extend(more.lost);
        self.wrong.extend(more.wrong);
        self.stuck.extend(more.stuck);
    }
}

/// What can be wrong with what a key's callers are told.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    Lost(String),
    Wrong(String),
    Stuck(String),
}
