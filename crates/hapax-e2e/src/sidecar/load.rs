//! All the callers at once, and the kills among them.

use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::caller::{Caller, Said};
use super::ledger::Ledger;
use super::process::Sidecar;
use super::upstream::{Gate, Upstream, WAIT};
use super::{Plan, Report};

/// Callers at a time, each with a connection of its own.
const CALLERS: usize = 64;
/// Requests of one key.
const DUPLICATES: u64 = 4;
/// Keys that are sent before the first of them comes again, where duplicates do not come together.
const BLOCK: u64 = 64;

/// The sidecar that is alive in the end, and what callers were told until then.
pub(super) struct Loaded {
    pub(super) sidecar: Sidecar,
    /// Where it is, for callers.
    pub(super) address: watch::Sender<Option<SocketAddr>>,
    /// The keys that somebody got an answer for.
    pub(super) answered: HashSet<u64>,
}

/// What the callers share.
struct Shared {
    plan: Plan,
    ledger: Arc<Ledger>,
    next: AtomicU64,
    ended: watch::Sender<u64>,
    answered: Mutex<HashSet<u64>>,
    report: Mutex<Report>,
}

/// Sends all requests, and kills the sidecar among them.
pub(super) async fn run(plan: &Plan, folder: &Path, upstream: &Upstream) -> Result<(Loaded, Report)> {
    let sidecar = start(plan, folder, upstream.address).await?;
    let address = watch::Sender::new(Some(sidecar.address));
    let shared = Arc::new(Shared {
        plan: plan.clone(),
        ledger: upstream.ledger.clone(),
        next: AtomicU64::new(0),
        ended: watch::Sender::new(0),
        answered: Mutex::default(),
        report: Mutex::default(),
    });
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        callers.spawn(call(Caller::new(address.subscribe()), shared.clone()));
    }
    let sidecar = kill(sidecar, folder, upstream, &shared, &address).await?;
    while let Some(ended) = callers.join_next().await {
        ended?;
    }
    let report = std::mem::take(&mut *shared.report.lock());
    let report = Report { keys: keys(plan.requests), kills: plan.kills, ..report };
    let answered = std::mem::take(&mut *shared.answered.lock());
    Ok((Loaded { sidecar, address, answered }, report))
}

/// Kills the sidecar after every so many answers: at any moment, before something happens, or after it has.
async fn kill(
    mut sidecar: Sidecar,
    folder: &Path,
    upstream: &Upstream,
    shared: &Shared,
    address: &watch::Sender<Option<SocketAddr>>,
) -> Result<Sidecar> {
    let Plan { requests, kills, .. } = shared.plan;
    let gates = [Gate::Before, Gate::After, Gate::Open].into_iter().cycle();
    for (kill, gate) in (1..=kills).zip(gates) {
        let mut ended = shared.ended.subscribe();
        ended.wait_for(|ended| *ended >= kill * requests / (kills + 1)).await?;
        upstream.set(gate);
        if gate != Gate::Open {
            tokio::select! {
                () = upstream.holds() => {}
                // Nobody is left whom the gate could hold.
                over = ended.wait_for(|ended| *ended >= requests) => { over?; }
            }
        }
        address.send_replace(None);
        spawn_blocking(move || sidecar.kill()).await??;
        upstream.set(Gate::Open);
        sidecar = start(&shared.plan, folder, upstream.address).await?;
        address.send_replace(Some(sidecar.address));
    }
    Ok(sidecar)
}

async fn start(plan: &Plan, folder: &Path, upstream: SocketAddr) -> Result<Sidecar> {
    let (program, folder) = (plan.program.clone(), folder.to_owned());
    spawn_blocking(move || Sidecar::start(&program, &folder, &settings(upstream))).await?
}

/// The lease is short, so that nobody waits long for a claim that nobody holds.
fn settings(upstream: SocketAddr) -> String {
    format!(
        "upstream = \"http://{upstream}\"\n\
         [log]\nlevel = \"error\"\n\
         [defaults]\nkey = \"required\"\nlease = \"1s\"\n\
         [[route]]\npath = \"{WAIT}\"\nwait = \"30s\"\n"
    )
}

/// One caller: a request after the other, and in between those that it was told to send again later.
async fn call(mut caller: Caller, shared: Arc<Shared>) {
    let mut later = VecDeque::new();
    while let Some(order) = next(&mut later, &shared).await {
        let said = timeout_at(order.until, caller.attempt(order.key)).await;
        match said {
            Ok(Said::InProgress(wait)) => later.push_back((Instant::now() + wait, order)),
            Ok(Said::Again) => later.push_front((Instant::now(), order)),
            Ok(said) => {
                shared.end(order.key, Some(said));
                continue;
            }
            Err(_too_late) => {
                shared.end(order.key, None);
                continue;
            }
        }
        shared.report.lock().retries += 1;
    }
}

/// What a caller sends next: what is due, something new, or what will be due.
async fn next(later: &mut VecDeque<(Instant, Order)>, shared: &Shared) -> Option<Order> {
    let is_due = later.front().is_some_and(|(due, _)| *due <= Instant::now());
    if !is_due && let Some(order) = shared.fresh() {
        return Some(order);
    }
    let (due, order) = later.pop_front()?;
    sleep_until(due).await;
    Some(order)
}

/// One request on its way to a last answer.
#[derive(Clone, Copy, Debug)]
struct Order {
    key: u64,
    /// When there is no more patience.
    until: Instant,
}

impl Shared {
    fn fresh(&self) -> Option<Order> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let order = Order { key: key_of(number), until: Instant::now() + self.plan.patience };
        (number < self.plan.requests).then_some(order)
    }

    /// A request has its last answer, or none.
    fn end(&self, key: u64, said: Option<Said>) {
        let mut report = self.report.lock();
        match said {
            Some(Said::Answer { answer, is_replay }) => {
                report.replays += u64::from(is_replay);
                self.answered.lock().insert(key);
                let given = self.ledger.entry(key).answer;
                if given.as_ref() != Some(&answer) {
                    report.lost.push(format!("key {key} was answered {answer:?} and not {given:?}"));
                }
            }
            Some(Said::Uncertain(_)) => {}
            None => report.stuck.push(format!("key {key} got no last answer")),
            Some(other) => report.lost.push(format!("key {key} was answered {other:?}")),
        }
        report.requests += 1;
        drop(report);
        self.ended.send_modify(|ended| *ended += 1);
    }
}

/// In every second block of keys duplicates come together, in the others one after the other.
fn key_of(number: u64) -> u64 {
    let (block, place) = (number / (BLOCK * DUPLICATES), number % (BLOCK * DUPLICATES));
    let key = if block.is_multiple_of(2) { place / DUPLICATES } else { place % BLOCK };
    block * BLOCK + key
}

/// How many keys so many requests have: all below this number.
fn keys(requests: u64) -> u64 {
    (0..requests).map(key_of).max().map_or(0, |last| last + 1)
}
