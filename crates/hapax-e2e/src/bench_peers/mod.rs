//! Hapax beside its alternatives, in one run: `cargo xtask bench peers`.
//!
//! | file | what it owns |
//! |---|---|
//! | `catalogue.rs` | the peers |
//! | `install.rs`, `versions.rs` | their installation and their versions |
//! | `server.rs`, `proxy.rs`, `valkey.rs` | their processes, on the cores of the machine |
//! | `measure.rs` | rounds of load, and the figures made of them |
//! | `function.rs` | the peer that is a function |
//! | `probe.rs` | executions and answers under duplicates, hang-ups and crashes |
//! | `report.rs`, `table.rs` | what a run found, as tables |
//! | `page.rs`, `page.template`, `chart.rs` | the page of the documentation and its charts |
//!
//! The services are in `peers/` of this package: one program each, all with the same endpoint. A peer that cannot be
//! installed or fails is listed with the reason.
#![allow(clippy::print_stdout, reason = "the figures are what the benchmarks are for")]

mod catalogue;
mod chart;
mod function;
mod install;
mod measure;
mod page;
mod probe;
mod proxy;
mod report;
mod server;
mod table;
mod valkey;
mod versions;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use self::catalogue::{Base, PEERS, Peer, StoreKind, bare};
use self::function::POWERTOOLS;
use self::measure::Mode;
pub use self::report::Report;
use self::report::is_service;
use self::server::Tools;
use crate::goal::Goal;

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `hapax` to run.
    pub hapax: PathBuf,
    /// Rounds that count.
    pub rounds: usize,
    /// The length of a load.
    pub span: Duration,
    /// Only peers whose title contains this, and what they are compared with.
    pub only: String,
    /// Whether the behaviour is tried too.
    pub has_probe: bool,
}

/// Runs everything. A peer that fails is in the report with the reason.
///
/// # Errors
/// When what all peers need cannot be started.
pub fn run(plan: &Plan) -> Result<Report> {
    let cores = std::thread::available_parallelism()?.get();
    if cores == 1 {
        println!("this machine has one core: the server shares it with the load");
    }
    let mut report = Report { effort: (plan.rounds, plan.span), cores, ..Report::default() };
    let mut tools = Tools::start(plan.hapax.clone())?;
    let chosen = chosen(&plan.only);
    let mut peers = Vec::new();
    for peer in chosen {
        match install(&mut tools, peer) {
            Ok(version) => {
                println!("{}: {} {version}", peer.title(), peer.package);
                report.versions.insert(peer.package.to_owned(), version);
                peers.push(peer);
            }
            Err(error) => miss(&mut report, peer, &error),
        }
    }
    report.versions.extend(tools.installed.other_versions()?);
    measure(&mut report, &tools, &mut peers, plan);
    if plan.has_probe {
        for peer in peers.into_iter().filter(|peer| peer.is_idempotent()) {
            println!("probe: {}", peer.title());
            match probe::probe(&tools, peer) {
                Ok(cells) => drop(report.probes.insert(peer.title(), cells)),
                Err(error) => miss(&mut report, peer, &error.context("failed in the probe")),
            }
        }
    }
    Ok(report)
}

/// Chooses peers that are compared with each other.
type Class = fn(&Peer) -> bool;

const CLASSES: [(&str, Class); 3] = [
    ("memory", |peer| is_service(peer) && peer.store == StoreKind::Memory),
    ("redis", |peer| is_service(peer) && peer.store == StoreKind::Redis),
    ("sidecar", |peer| !is_service(peer)),
];

/// Our ratio over the best one of a peer, by kind of store.
pub fn goals(report: &Report) -> Vec<Goal> {
    let pairs = CLASSES.into_iter().flat_map(|class| [Mode::Fresh, Mode::Replay].map(|mode| (class, mode)));
    let goals = pairs.filter_map(|((name, among), mode)| {
        let name = format!("peers-ahead-{name}-{}", mode.name());
        Some(Goal::at_least(&name, report.ahead(mode, among)?, 1.0))
    });
    goals.collect()
}

/// The same among services on axum, which shows how much of a goal is the speed of the frameworks.
pub fn print_ahead_on_axum(report: &Report) {
    for (name, among) in CLASSES {
        for mode in [Mode::Fresh, Mode::Replay] {
            if let Some(ahead) = report.ahead(mode, |peer| peer.base == Base::Axum && among(peer)) {
                println!("on axum alone, {name}, {}: {ahead:.2}", mode.name());
            }
        }
    }
}

/// The peers with that text in their titles, and what they are compared with.
fn chosen(only: &str) -> Vec<&'static Peer> {
    let named = || PEERS.iter().filter(|peer| peer.title().contains(only));
    let mut titles: BTreeSet<String> =
        named().flat_map(|peer| [peer.title(), bare(peer.base).title()]).collect();
    if named().any(|peer| peer.base == Base::Proxy) {
        // It is the service behind the proxies.
        titles.insert(bare(Base::Axum).title());
    }
    PEERS.iter().filter(|peer| titles.contains(&peer.title())).collect()
}

fn install(tools: &mut Tools, peer: &Peer) -> Result<String> {
    tools.installed.install(peer)?;
    tools.installed.version(peer)
}

fn measure(report: &mut Report, tools: &Tools, peers: &mut Vec<&'static Peer>, plan: &Plan) {
    for number in 1..=plan.rounds {
        println!("round {number} of {}", plan.rounds);
        peers.retain(|peer| match measure_round(report, tools, peer, plan.span) {
            Ok(()) => true,
            Err(error) => {
                report.measured.forget(peer);
                miss(report, peer, &error.context("failed under load"));
                false
            }
        });
        if plan.only.is_empty()
            && !report.missing.contains_key(POWERTOOLS)
            && let Err(error) = report.calls.round(tools, plan.span)
        {
            report.missing.insert(POWERTOOLS.to_owned(), reason(&error));
        }
    }
}

fn measure_round(report: &mut Report, tools: &Tools, peer: &'static Peer, span: Duration) -> Result<()> {
    for mode in Mode::of(peer) {
        let round = measure::round(tools, peer, *mode, span)?;
        println!("{}, {}: {:.0} requests/s", peer.title(), mode.name(), round.rate);
        report.measured.push(peer, *mode, round);
    }
    Ok(())
}

fn miss(report: &mut Report, peer: &Peer, error: &anyhow::Error) {
    let reason = reason(error);
    println!("{}: not available: {reason}", peer.title());
    report.missing.insert(peer.title(), reason);
}

/// The first line and the last: of a response that is part of the message, its status and its body.
fn reason(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    lines.next_back().map_or_else(|| first.to_owned(), |last| format!("{first}: {last}"))
}
