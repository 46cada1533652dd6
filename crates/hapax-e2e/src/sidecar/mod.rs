//! The real `hapax serve` on a file store under load, killed with SIGKILL and started again, again and again.
//!
//! The service behind it is ours and keeps an account of its own of what it did. In the end every key is asked for
//! once more, and every uncertain one is settled by that account. What the sidecar says about itself is compared with
//! the account and never taken for it.
//!
//! | file | what it owns |
//! |---|---|
//! | `process.rs` | one run of the sidecar, from its start to its death |
//! | `ledger.rs` | what the service did, by key, and the lies that the proof must notice |
//! | `upstream.rs` | the service, and the gate that holds its handlers while the sidecar is killed |
//! | `caller.rs` | a client that retries by the book, never with another key |
//! | `load.rs` | all the callers, and the kills among them |
//! | `audit.rs` | every key once more, then the settlements |
//! | `bench.rs`, `nginx.rs` | what the sidecar costs beside nginx; no part of the proof |
//! | `footprint.rs`, `slow.rs` | its size, start and memory, idle and with many slow clients; no part of the proof |
//!
//! Nothing waits for a length of time except a client that was told to: kills come after so many answers, and when the
//! gate holds somebody.

mod audit;
pub mod bench;
mod caller;
pub mod footprint;
mod ledger;
mod load;
mod nginx;
mod process;
pub mod slow;
mod upstream;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

pub use self::ledger::Lie;
pub use self::process::beside;

use self::ledger::Ledger;
use self::upstream::Upstream;

/// How far the proof goes.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `hapax` to kill.
    pub program: PathBuf,
    /// Requests that callers send, not counting their retries.
    pub requests: u64,
    /// How often the sidecar is killed.
    pub kills: u64,
    /// A key without an answer for this long is stuck.
    pub patience: Duration,
    /// What the service does wrong.
    pub lie: Option<Lie>,
}

/// What was seen.
#[derive(Clone, Default, Debug)]
pub struct Report {
    /// Requests that got a last answer.
    pub requests: u64,
    /// Different keys.
    pub keys: u64,
    /// Attempts that were sent again: after a broken connection, a 409 in progress or a 5xx.
    pub retries: u64,
    /// Kills.
    pub kills: u64,
    /// Answers that were replays, before the audit.
    pub replays: u64,
    /// Keys that were uncertain in the end.
    pub uncertain: u64,
    /// Of those, settled as applied.
    pub applied: u64,
    /// Of those, settled as not applied.
    pub not_applied: u64,
    /// Keys whose operation happened more than once.
    pub doubles: Vec<String>,
    /// Answers and records that are gone or not what they were.
    pub lost: Vec<String>,
    /// Keys that never come to an end.
    pub stuck: Vec<String>,
}

/// Runs the proof.
///
/// # Errors
/// When the sidecar does not start, or the proof itself breaks. What the sidecar does wrong is in the report.
pub async fn run(plan: &Plan) -> Result<Report> {
    let folder = tempfile::tempdir()?;
    let upstream = Upstream::start(Ledger::new(plan.lie))?;
    let (loaded, mut report) = load::run(plan, folder.path(), &upstream).await?;
    upstream.rest(plan.patience).await;
    upstream.ledger.falsify();
    audit::run(plan, loaded, &upstream, &mut report).await?;
    report.doubles = upstream.ledger.doubles();
    Ok(report)
}
