//! What a run found, as Markdown: tables, the places where a peer is faster, and the page of the documentation.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::catalogue::{Base, PEERS, Peer, StoreKind, bare};
use super::chart::{self, Bar};
use super::function::{Calls, POWERTOOLS};
use super::measure::{Figures, Measured, Mode};
use super::probe::{Cell, STEPS};
use crate::bench_store::Sample;

/// The page, with a place for each part that a run fills in.
const PAGE: &str = include_str!("page.md");

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

    /// Writes the page and its charts.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, docs: &Path) -> Result<()> {
        let charts = docs.join("comparison");
        fs::create_dir_all(&charts)?;
        for (name, text) in self.charts() {
            fs::write(charts.join(name), text).with_context(|| format!("failed to write {name}"))?;
        }
        fs::write(docs.join("comparison.md"), self.page()).context("failed to write comparison.md")
    }

    fn page(&self) -> String {
        let (rounds, span) = self.effort;
        let pinned = if self.cores > 1 {
            "The server had core 0 to itself; the load, the Redis server and the service behind a proxy shared core 1."
        } else {
            "The machine had one core, so the server, the load and the Redis server shared it."
        };
        let mut page = PAGE.to_owned();
        for (place, text) in [
            ("{rounds}", rounds.to_string()),
            ("{seconds}", format!("{}", span.as_secs_f64())),
            ("{cores}", self.cores.to_string()),
            ("{pinned}", pinned.to_owned()),
            ("{axum}", self.rates(Base::Axum)),
            ("{express}", self.rates(Base::Express)),
            ("{fastapi}", self.rates(Base::FastApi)),
            ("{proxy}", self.rates(Base::Proxy)),
            ("{functions}", self.functions()),
            ("{correctness}", self.correctness()),
            ("{faster}", self.faster()),
            ("{versions}", self.version_table()),
        ] {
            page = page.replace(place, text.trim_end());
        }
        page
    }

    fn rates(&self, base: Base) -> String {
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
                let missing = self.missing.get(&peer.title()).map_or("not measured", String::as_str);
                table.row(&[
                    &name,
                    peer.store.name(),
                    &format!("not available: {missing}"),
                    "",
                    "",
                    "",
                    "",
                    "",
                    "",
                ]);
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
            ]);
        }
        table.text()
    }

    fn functions(&self) -> String {
        let mut table = Table::new(&["", "store", "bare, calls/s", "fresh, calls/s", "replay, calls/s"]);
        if let Some(missing) = self.missing.get(POWERTOOLS) {
            table.row(&[POWERTOOLS, "Redis", &format!("not available: {missing}"), "", ""]);
        } else {
            let calls = |sample: &Sample| thousands(sample.median(), sample.spread_percent());
            let Calls { bare, fresh, replay } = &self.calls;
            table.row(&[POWERTOOLS, "Redis", &calls(bare), &calls(fresh), &calls(replay)]);
        }
        table.text()
    }

    fn correctness(&self) -> String {
        let mut table = Table::new(&[&["", "store"][..], &STEPS].concat());
        for peer in PEERS.iter().filter(|peer| peer.is_idempotent()) {
            let name = if peer.is_ours() { format!("**{}**", peer.name) } else { peer.name.to_owned() };
            let mut row = vec![name, peer.store.name().to_owned()];
            match self.probes.get(&peer.title()) {
                Some(cells) => row.extend(cells.iter().map(cell)),
                None => {
                    let missing = self.missing.get(&peer.title()).map_or("not probed", String::as_str);
                    row.push(format!("not available: {missing}"));
                    row.resize(STEPS.len() + 2, String::new());
                }
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
                let Some((_, own)) = self.ours(mode, |peer| is_service(peer) && peer.store == store) else {
                    continue;
                };
                let others =
                    PEERS.iter().filter(|peer| is_service(peer) && !peer.is_ours() && peer.store == store);
                for peer in others {
                    let Some(figures) = self.measured.figures(peer, mode) else { continue };
                    if figures.ratio > own.ratio {
                        let _ = writeln!(
                            lines,
                            "- **{}**, {}: {:.2} of bare {} against {:.2} of bare axum for Hapax ({} against {} \
                             requests/s). {}",
                            peer.title(),
                            keys(mode),
                            figures.ratio,
                            peer.base.name(),
                            own.ratio,
                            kilo(figures.rate),
                            kilo(own.rate),
                            peer.differs
                        );
                    }
                }
            }
            let Some((_, own)) = self.ours(mode, |peer| peer.base == Base::Proxy) else { continue };
            for peer in PEERS.iter().filter(|peer| peer.base == Base::Proxy && !peer.is_ours()) {
                let mode_of_peer = if peer.is_idempotent() { mode } else { Mode::Bare };
                let Some(figures) = self.measured.figures(peer, mode_of_peer) else { continue };
                if figures.rate > own.rate {
                    let why = if peer.is_idempotent() {
                        peer.differs
                    } else {
                        "It forwards requests and records nothing."
                    };
                    let _ = writeln!(
                        lines,
                        "- **{}**: {} requests/s against {} for `hapax serve`, {}. {why}",
                        peer.title(),
                        kilo(figures.rate),
                        kilo(own.rate),
                        keys(mode)
                    );
                }
            }
        }
        if lines.is_empty() { "No peer was faster in this run.\n".to_owned() } else { lines }
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

    fn charts(&self) -> Vec<(&'static str, String)> {
        let bars = |mode: Mode, is_shown: fn(&Peer) -> bool, value: fn(&Figures) -> f64| {
            let shown = PEERS.iter().filter(|peer| is_shown(peer));
            let bars = shown.filter_map(|peer| {
                let mode = if peer.is_idempotent() { mode } else { Mode::Bare };
                let value = value(&self.measured.figures(peer, mode)?);
                let label = format!("{} on {}", peer.title(), peer.base.name());
                let label = if peer.base == Base::Proxy { peer.title() } else { label };
                Some(Bar { label, value, is_ours: peer.is_ours() })
            });
            bars.filter(|bar| bar.value.is_finite()).collect::<Vec<_>>()
        };
        let services: fn(&Peer) -> bool = |peer| is_service(peer) && peer.is_idempotent();
        let proxies: fn(&Peer) -> bool = |peer| peer.base == Base::Proxy;
        vec![
            (
                "fresh.svg",
                chart::draw(
                    "Fresh keys: requests per second as a ratio to the bare framework",
                    &bars(Mode::Fresh, services, |figures| figures.ratio),
                    2,
                ),
            ),
            (
                "replay.svg",
                chart::draw(
                    "Replays: requests per second as a ratio to the bare framework",
                    &bars(Mode::Replay, services, |figures| figures.ratio),
                    2,
                ),
            ),
            (
                "proxy-fresh.svg",
                chart::draw(
                    "Proxies, fresh keys: thousands of requests per second",
                    &bars(Mode::Fresh, proxies, |figures| figures.rate / 1e3),
                    1,
                ),
            ),
            (
                "proxy-replay.svg",
                chart::draw(
                    "Proxies, replays: thousands of requests per second",
                    &bars(Mode::Replay, proxies, |figures| figures.rate / 1e3),
                    1,
                ),
            ),
        ]
    }

    fn version_table(&self) -> String {
        let mut table = Table::new(&["", "version"]);
        for (name, version) in &self.versions {
            table.row(&[name, version]);
        }
        table.text()
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

/// A Markdown table.
struct Table {
    text: String,
    columns: usize,
}

impl Table {
    fn new(heads: &[&str]) -> Self {
        let mut table = Self { text: String::new(), columns: heads.len() };
        table.row(heads);
        table.text.push_str(&"|---".repeat(heads.len()));
        table.text.push_str("|\n");
        table
    }

    /// A bar or a line end in a cell would end it.
    fn row(&mut self, cells: &[&str]) {
        assert_eq!(cells.len(), self.columns, "a row has a cell for each column");
        for cell in cells {
            let _ = write!(self.text, "| {} ", cell.replace('|', "\\|").replace(['\n', '\r'], " "));
        }
        self.text.push_str("|\n");
    }

    fn text(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests;
