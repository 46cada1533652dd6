//! The real `hapax serve` on a file store under load, killed with SIGKILL and started again, again and again.
//!
//! The service behind it is ours and keeps an account of its own of what it did ([`witness`](crate::witness)). In the
//! end every key is asked for once more, and every uncertain one is settled by that account. What the sidecar says about
//! itself is compared with the account and never taken for it.
//!
//! | file | what it owns |
//! |---|---|
//! | `kills.rs` | the sidecar's lives, one after the other |
//! | `bench.rs`, `nginx.rs` | what the sidecar costs beside nginx; no part of the proof |
//! | `footprint.rs`, `slow.rs`, `unread.rs` | its size, start and memory: idle, with many slow clients, and with answers that no client takes; no part of the proof |
//!
//! Nothing waits for a length of time except a client that was told to: kills come after so many answers, and when the
//! gate holds somebody.

pub mod bench;
pub mod footprint;
mod kills;
mod nginx;
pub mod slow;
pub mod unread;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use self::kills::Lives;
use crate::witness::audit::Audit;
use crate::witness::ledger::Ledger;
use crate::witness::load::{Load, Manners, Running};
use crate::witness::upstream::Upstream;
use crate::witness::{Lie, Report};

/// Requests of one key.
const DUPLICATES: u64 = 4;

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

/// Runs the proof.
///
/// # Errors
/// When the sidecar does not start, or the proof itself breaks. What the sidecar does wrong is in the report.
pub async fn run(plan: &Plan) -> Result<Report> {
    let folder = tempfile::tempdir()?;
    let upstream = Upstream::start(Ledger::new(plan.lie))?;
    let mut lives = Lives::begin(plan, folder.path(), &upstream).await?;
    let load = Load {
        requests: plan.requests,
        duplicates: DUPLICATES,
        patience: plan.patience,
        manners: Manners::Patient,
    };
    let running = Running::start(&load, &[lives.whereabouts()], &upstream.ledger);
    running.admit(plan.requests);
    lives.end_often(running.ended()).await?;
    let loaded = running.finish().await?;
    upstream.rest(plan.patience).await;
    upstream.ledger.falsify();
    let audit = Audit {
        sidecars: vec![lives.whereabouts()],
        admin: lives.admin(),
        ledger: upstream.ledger.clone(),
        patience: plan.patience,
    };
    audit.run(loaded).await
}
