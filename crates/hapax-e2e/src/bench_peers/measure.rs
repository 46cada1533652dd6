//! Rounds of load on the peers, by turns, and the figures that are made of them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;

use super::catalogue::{PEERS, Peer, bare};
use super::server::{Host, LOCK, Tools};
use crate::bench_http::Key;
use crate::bench_http::driver::{self, Load};
use crate::bench_store::Sample;
use crate::sidecar::bench::cpu_seconds;

/// The keys of a load.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Mode {
    /// Any, for peers that ignore them.
    Bare,
    /// A new one with every request.
    Fresh,
    /// One of a thousand that were answered before.
    Replay,
}

impl Mode {
    /// The loads that a peer is measured under.
    pub(super) fn of(peer: &Peer) -> &'static [Self] {
        if peer.is_idempotent() { &[Self::Fresh, Self::Replay] } else { &[Self::Bare] }
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Fresh => "fresh",
            Self::Replay => "replay",
        }
    }

    fn key(self) -> Key {
        match self {
            Self::Bare | Self::Fresh => Key::Fresh,
            Self::Replay => Key::Known,
        }
    }
}

/// The figures of one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    /// Requests a second.
    pub(super) rate: f64,
    /// The median of the latency, in milliseconds.
    pub(super) p50_millis: f64,
    /// The 99th percentile of the latency, in milliseconds.
    pub(super) p99_millis: f64,
    /// CPU time of the server, in microseconds for each request.
    pub(super) cpu_micros: f64,
    /// CPU time of the Redis server, in microseconds for each request.
    pub(super) redis_micros: f64,
}

/// Starts a peer on empty records, warms it up, and drives it for `span`.
///
/// # Errors
/// When it does not start, or answers a request with anything but 201.
pub(super) fn round(tools: &Tools, peer: &'static Peer, mode: Mode, span: Duration) -> Result<Round> {
    let host = Host::open(tools, peer, LOCK)?;
    let run = host.start()?;
    let load = Load { to: run.address, path: run.path, key: mode.key(), span };
    driver::warm_up(&load)?;
    // Longer than two passes over the keys, for servers that compile what runs often.
    driver::drive(&Load { span: span / 2, ..load })?;
    let before = (cpu_seconds(run.id())?, cpu_seconds(tools.redis_id())?);
    let driven = driver::drive(&load)?;
    let after = (cpu_seconds(run.id())?, cpu_seconds(tools.redis_id())?);
    let requests = driven.requests as f64;
    Ok(Round {
        rate: requests / driven.took.as_secs_f64(),
        p50_millis: driven.p50.as_secs_f64() * 1e3,
        p99_millis: driven.p99.as_secs_f64() * 1e3,
        cpu_micros: (after.0 - before.0) * 1e6 / requests,
        redis_micros: (after.1 - before.1) * 1e6 / requests,
    })
}

/// All rounds of all peers.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured(BTreeMap<(String, Mode), Vec<Round>>);

/// The figures of a peer under one load: medians, and the spread of the rates.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Figures {
    /// Requests a second.
    pub(super) rate: f64,
    /// The difference of the highest and the lowest rate, in percent of the median.
    pub(super) spread_percent: f64,
    /// The ratio of the rate to that of the bare peer in the same round.
    pub(super) ratio: f64,
    /// The median of the latency, in milliseconds.
    pub(super) p50_millis: f64,
    /// The 99th percentile of the latency, in milliseconds.
    pub(super) p99_millis: f64,
    /// CPU time of the server, in microseconds for each request.
    pub(super) cpu_micros: f64,
    /// CPU time of the Redis server, in microseconds for each request.
    pub(super) redis_micros: f64,
}

impl Measured {
    /// Adds a round.
    pub(super) fn push(&mut self, peer: &Peer, mode: Mode, round: Round) {
        self.0.entry((peer.title(), mode)).or_default().push(round);
    }

    /// Removes what was measured of a peer that has failed since.
    pub(super) fn forget(&mut self, peer: &Peer) {
        self.0.retain(|(title, _), _| *title != peer.title());
    }

    /// The figures of a peer, if it was measured. Without its bare peer, the ratio is not a number.
    pub(super) fn figures(&self, peer: &Peer, mode: Mode) -> Option<Figures> {
        let own = self.rounds(peer, mode)?;
        let base = self.rounds(bare(peer.base), Mode::Bare).unwrap_or_default();
        let sample = |figure: fn(&Round) -> f64| own.iter().map(figure).collect::<Sample>();
        let rates = sample(|round| round.rate);
        let ratios: Sample = own.iter().zip(base).map(|(own, base)| own.rate / base.rate).collect();
        Some(Figures {
            rate: rates.median(),
            spread_percent: rates.spread_percent(),
            ratio: ratios.median(),
            p50_millis: sample(|round| round.p50_millis).median(),
            p99_millis: sample(|round| round.p99_millis).median(),
            cpu_micros: sample(|round| round.cpu_micros).median(),
            redis_micros: sample(|round| round.redis_micros).median(),
        })
    }

    /// The peer among some that has the highest ratio.
    pub(super) fn best(&self, mode: Mode, among: impl Fn(&Peer) -> bool) -> Option<(&'static Peer, Figures)> {
        let measured = PEERS.iter().filter(|peer| among(peer));
        let figures = measured.filter_map(|peer| Some((peer, self.figures(peer, mode)?)));
        let compared = figures.filter(|(_, figures)| !figures.ratio.is_nan());
        compared.max_by(|one, other| one.1.ratio.total_cmp(&other.1.ratio))
    }

    fn rounds(&self, peer: &Peer, mode: Mode) -> Option<&[Round]> {
        self.0.get(&(peer.title(), mode)).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests;
