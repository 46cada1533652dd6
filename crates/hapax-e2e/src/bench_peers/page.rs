//! The page of the documentation that a run writes, and its charts.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::catalogue::{Base, PEERS, Peer};
use super::chart::{self, Bar};
use super::measure::{Figures, Mode};
use super::report::{Report, is_service};
use super::table::Table;

/// The page, with a place for each part that a run fills in.
const PAGE: &str = include_str!("page.template");

impl Report {
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

    fn charts(&self) -> Vec<(&'static str, String)> {
        let bars = |mode: Mode, is_shown: fn(&Peer) -> bool, value: fn(&Figures) -> f64| {
            let shown = PEERS.iter().filter(|peer| is_shown(peer));
            let bars = shown.filter_map(|peer| {
                let mode = if peer.is_idempotent() { mode } else { Mode::Bare };
                let value = value(&self.measured.figures(peer, mode)?);
                let label = format!("{} ({})", peer.title(), peer.base.name());
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

#[cfg(test)]
mod tests;
