//! What a run found, as Markdown: tables, and the places where a peer is faster.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::catalogue::{Base, PEERS, Peer, StoreKind, bare};
use super::function::{Calls, POWERTOOLS};
use super::measure::{Figures, Measured, Mode};
use super::probe::{Cell, STEPS};
use super::table::Table;
use crate::bench_store::Sample;

/// What a run found.
#[derive(Debug, Default)]
pub struct Report {
    /// The figures.
    pub(super) measured: Measured,
    /// The cells of the probe, by the title of the peer.
    pub(super) probes: BTreeMap<String, Vec<Cell>>,
    /// Why a peer was not measured or probed, by its title.
    pub(super) missing: BTreeMap<String, String>,
    /// Names and versions.
    pub(super) versions: BTreeMap<String, String>,
    /// The function.
    pub(super) calls: Calls,
    /// Rounds and the length of each.
    pub(super) effort: (usize, Duration),
    /// Cores of the machine.
    pub(super) cores: usize,
}

impl Report {
    /// All tables, for the terminal.
    pub fn tables(&self) -> String {
        let mut text = String::new();
        for base in Base::ALL {
            let _ = writeln!(text, "### {}\n\n{}", base.name(), self.rates(base));
        }
        let _ =
            write!(text, "### Functions\n\n{}\n### Correctness\n\n{}", self.functions(), self.correctness());
        let _ = write!(text, "\n### Where a peer is faster\n\n{}", self.faster());
        text
    }

    pub(super) fn rates(&self, base: Base) -> String {
        let mut table = Table::new(&[
            "",
            "store",
            "fresh, requests/s",
            "of bare",
            "replay, requests/s",
            "of bare",
            "p50 / p99 ms, fresh",
            "p50 / p99 ms, replay",
            "CPU µs/request, fresh / replay",
            "Redis CPU µs/request, fresh / replay",
        ]);
        for peer in PEERS.iter().filter(|peer| peer.base == base) {
            let [first, second] = match Mode::of(peer) {
                [only] => [Some(*only), None],
                modes => [modes.first().copied(), modes.get(1).copied()],
            };
            let figures = |mode: Option<Mode>| mode.and_then(|mode| self.measured.figures(peer, mode));
            let (fresh, replay) = (figures(first), figures(second));
            let name = if peer.is_ours() { format!("**{}**", peer.name) } else { peer.name.to_owned() };
            let Some(fresh) = fresh else {
                if let Some(reason) = self.missing.get(&peer.title()) {
                    let reason = format!("not available: {reason}");
                    table.row(&[&name, peer.store.name(), &reason, "", "", "", "", "", "", ""]);
                }
                continue;
            };
            let or_dash = |text: fn(&Figures) -> String| replay.as_ref().map_or_else(|| "–".to_owned(), text);
            let is_base = peer.title() == bare(base).title();
            table.row(&[
                &name,
                peer.store.name(),
                &rate(&fresh),
                &if is_base { "1".to_owned() } else { ratio(&fresh) },
                &or_dash(rate),
                &or_dash(ratio),
                &latency(&fresh),
                &or_dash(latency),
                &format!(
                    "{:.1} / {}",
                    fresh.cpu_micros,
                    or_dash(|replay| format!("{:.1}", replay.cpu_micros))
                ),
                &redis(peer, &fresh, replay.as_ref()),
            ]);
        }
        table.text()
    }

    pub(super) fn functions(&self) -> String {
        let mut table = Table::new(&["", "store", "bare, calls/s", "fresh, calls/s", "replay, calls/s"]);
        if let Some(missing) = self.missing.get(POWERTOOLS) {
            table.row(&[POWERTOOLS, "Redis", &format!("not available: {missing}"), "", ""]);
        } else if !self.calls.bare.median().is_nan() {
            let calls = |sample: &Sample| thousands(sample.median(), sample.spread_percent());
            let Calls { bare, fresh, replay } = &self.calls;
            table.row(&[POWERTOOLS, "Redis", &calls(bare), &calls(fresh), &calls(replay)]);
        }
        table.text()
    }

    pub(super) fn correctness(&self) -> String {
        let mut table = Table::new(&[&["", "store"][..], &STEPS].concat());
        for peer in PEERS.iter().filter(|peer| peer.is_idempotent()) {
            let name = if peer.is_ours() { format!("**{}**", peer.name) } else { peer.name.to_owned() };
            let mut row = vec![name, peer.store.name().to_owned()];
            match (self.probes.get(&peer.title()), self.missing.get(&peer.title())) {
                (Some(cells), _) => row.extend(cells.iter().map(cell)),
                (None, Some(reason)) => {
                    row.push(format!("not available: {reason}"));
                    row.resize(STEPS.len() + 2, String::new());
                }
                (None, None) => continue,
            }
            table.row(&row.iter().map(String::as_str).collect::<Vec<_>>());
        }
        table.text()
    }

    /// Where another peer with the same kind of store has a higher ratio than Hapax, or another proxy a higher rate.
    pub(super) fn faster(&self) -> String {
        let mut lines = String::new();
        for mode in [Mode::Fresh, Mode::Replay] {
            for store in [StoreKind::Memory, StoreKind::Redis] {
                let is_rival = |peer: &&Peer| is_service(peer) && !peer.is_ours() && peer.store == store;
                let rivals = PEERS.iter().filter(is_rival);
                rivals
                    .filter_map(|peer| self.faster_service(peer, mode))
                    .for_each(|line| lines.push_str(&line));
            }
            let rivals = PEERS.iter().filter(|peer| !is_service(peer) && !peer.is_ours());
            rivals.filter_map(|peer| self.faster_proxy(peer, mode)).for_each(|line| lines.push_str(&line));
        }
        if lines.is_empty() { "No peer was faster in this run.\n".to_owned() } else { lines }
    }

    fn faster_service(&self, peer: &Peer, mode: Mode) -> Option<String> {
        let (ours, own) = self.ours(mode, |other| is_service(other) && other.store == peer.store)?;
        let figures = self.measured.figures(peer, mode).filter(|figures| figures.ratio > own.ratio)?;
        let added = |peer: &Peer, figures: &Figures| {
            let bare = self.measured.figures(bare(peer.base), Mode::Bare);
            bare.map_or(f64::NAN, |bare| figures.cpu_micros - bare.cpu_micros)
        };
        Some(format!(
            "- **{}**, {}: {:.2} of bare {} against {:.2} of bare axum for Hapax. It serves {} requests/s and adds {:.1} µs \
             of CPU time to a request; Hapax serves {} and adds {:.1} µs. {}\n",
            peer.title(),
            keys(mode),
            figures.ratio,
            peer.base.name(),
            own.ratio,
            kilo(figures.rate),
            added(peer, &figures),
            kilo(own.rate),
            added(ours, &own),
            peer.differs
        ))
    }

    fn faster_proxy(&self, peer: &Peer, mode: Mode) -> Option<String> {
        let (_, own) = self.ours(mode, |other| !is_service(other))?;
        let own_mode = if peer.is_idempotent() { mode } else { Mode::Bare };
        let figures = self.measured.figures(peer, own_mode).filter(|figures| figures.rate > own.rate)?;
        let differs =
            if peer.is_idempotent() { peer.differs } else { "It forwards requests and records nothing." };
        Some(format!(
            "- **{}**: {} requests/s against {} for `hapax serve`, {}. {differs}\n",
            peer.title(),
            kilo(figures.rate),
            kilo(own.rate),
            keys(mode)
        ))
    }

    /// Our ratio over the best one of the other peers among some.
    pub(super) fn ahead(&self, mode: Mode, among: impl Fn(&Peer) -> bool) -> Option<f64> {
        let (_, own) = self.ours(mode, &among)?;
        let (_, best) =
            self.measured.best(mode, |peer| !peer.is_ours() && peer.is_idempotent() && among(peer))?;
        Some(own.ratio / best.ratio)
    }

    /// Hapax with its defaults.
    fn ours(&self, mode: Mode, among: impl Fn(&Peer) -> bool) -> Option<(&'static Peer, Figures)> {
        let peer = PEERS.iter().find(|peer| peer.is_ours() && among(peer))?;
        Some((peer, self.measured.figures(peer, mode)?))
    }
}

/// Whether it serves orders itself.
pub(super) fn is_service(peer: &Peer) -> bool {
    peer.base != Base::Proxy
}

fn keys(mode: Mode) -> &'static str {
    if mode == Mode::Replay { "replays" } else { "fresh keys" }
}

fn cell(cell: &Cell) -> String {
    let runs = if cell.executions == 1 { "run" } else { "runs" };
    let mark = if cell.is_right { "" } else { "✗ " };
    format!("{mark}{} {runs}; {}", cell.executions, cell.answer)
}

fn rate(figures: &Figures) -> String {
    thousands(figures.rate, figures.spread_percent)
}

fn ratio(figures: &Figures) -> String {
    if figures.ratio.is_nan() { "–".to_owned() } else { format!("{:.2}", figures.ratio) }
}

/// The CPU time of the Redis server, where it is used.
fn redis(peer: &Peer, fresh: &Figures, replay: Option<&Figures>) -> String {
    match replay {
        Some(replay) if peer.store == StoreKind::Redis => {
            format!("{:.1} / {:.1}", fresh.redis_micros, replay.redis_micros)
        }
        _ => "–".to_owned(),
    }
}

fn latency(figures: &Figures) -> String {
    format!("{:.2} / {:.2}", figures.p50_millis, figures.p99_millis)
}

/// The median and the noise: half of the spread.
fn thousands(value: f64, spread_percent: f64) -> String {
    format!("{} ± {:.0} %", kilo(value), spread_percent / 2.0)
}

fn kilo(value: f64) -> String {
    format!("{:.1} k", value / 1e3)
}

#[cfg(test)]
mod tests;
