//! The faults of a run, their order and their lengths: the same for the same seed.

use std::ops::AddAssign;
use std::time::Duration;

use hapax_testkit::Random;

use super::Setting;
use super::member::LEASE;
use crate::fault_proxy::NetworkFault;
use crate::rig::service::Gate;

/// How many faults of each kind. Those that do not apply to a store are left out.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, clap::Args)]
pub struct Doses {
    /// How often a sidecar is killed.
    #[arg(long, default_value_t = 60)]
    pub kills: u64,
    /// How often a sidecar, or every sixth time the server, is paused.
    #[arg(long, default_value_t = 30)]
    pub pauses: u64,
    /// How often a network is bad.
    #[arg(long, default_value_t = 60)]
    pub cuts: u64,
    /// How often the server crashes and comes back.
    #[arg(long, default_value_t = 15)]
    pub restarts: u64,
    /// How often the pooler before the server crashes and comes back.
    #[arg(long, default_value_t = 15)]
    pub pooler_restarts: u64,
    /// How often records move from one server of a cluster to another.
    #[arg(long, default_value_t = 15)]
    pub moves: u64,
    /// How often the clock of a sidecar is moved.
    #[arg(long, default_value_t = 15)]
    pub clock_steps: u64,
}

impl Doses {
    /// The faults that this store can suffer.
    pub fn of(self, setting: Setting) -> Self {
        let only = |has_it: bool, dose: u64| if has_it { dose } else { 0 };
        Self {
            restarts: only(setting.can_crash(), self.restarts),
            pooler_restarts: only(setting.has_pooler(), self.pooler_restarts),
            moves: only(setting.has_slots(), self.moves),
            ..self
        }
    }

    /// Their sum.
    pub fn total(self) -> u64 {
        let Self { kills, pauses, cuts, restarts, pooler_restarts, moves, clock_steps } = self;
        kills + pauses + cuts + restarts + pooler_restarts + moves + clock_steps
    }
}

impl AddAssign for Doses {
    fn add_assign(&mut self, more: Self) {
        self.kills += more.kills;
        self.pauses += more.pauses;
        self.cuts += more.cuts;
        self.restarts += more.restarts;
        self.pooler_restarts += more.pooler_restarts;
        self.moves += more.moves;
        self.clock_steps += more.clock_steps;
    }
}

/// One fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ScheduledFault {
    /// A sidecar is killed while the gate holds a handler of the service, and started again.
    Kill { sidecar: usize, gate: Gate },
    /// A sidecar is stopped for longer than a lease.
    Pause { sidecar: usize, gate: Gate, span: Duration },
    /// A network of one sidecar has a fault.
    Network { sidecar: usize, link: NetworkLink, fault: NetworkFault, span: Duration },
    /// The wall clock of a sidecar is off by so much from now on.
    Clock { sidecar: usize, offset_s: i64 },
    /// The store's server crashes.
    ServerCrash,
    /// The pooler before the server crashes.
    PoolerCrash,
    /// Records move from one server to another.
    Move { choice: u64 },
    /// The store's server is stopped.
    ServerPause { span: Duration },
}

/// The network between a sidecar and one of its peers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NetworkLink {
    Store,
    Upstream,
}

/// One in so many pauses is of the server.
const SERVER_PAUSE_EVERY: u64 = 6;
/// The largest offset of clocks: an hour, which is many leases and less than any retention.
const CLOCK_OFF_MAX_S: u64 = 3600;

/// All faults, in their order.
pub(super) fn faults(random: Random, doses: Doses, setting: Setting) -> Vec<ScheduledFault> {
    let doses = doses.of(setting);
    let mut draw = Draw { random, setting };
    let mut faults = Vec::new();
    faults.extend(
        (0..doses.kills).map(|_| ScheduledFault::Kill { sidecar: draw.sidecar(), gate: draw.gate() }),
    );
    faults.extend((0..doses.pauses).map(|number| draw.pause(number)));
    faults.extend((0..doses.cuts).map(|number| draw.network(number)));
    faults.extend((0..doses.clock_steps).map(|_| draw.clock()));
    faults.extend((0..doses.restarts).map(|_| ScheduledFault::ServerCrash));
    faults.extend((0..doses.pooler_restarts).map(|_| ScheduledFault::PoolerCrash));
    faults.extend((0..doses.moves).map(|_| ScheduledFault::Move { choice: draw.random.next_u64() }));
    draw.shuffle(&mut faults);
    faults
}

struct Draw {
    random: Random,
    setting: Setting,
}

impl Draw {
    fn sidecar(&mut self) -> usize {
        self.random.below(self.setting.sidecars() as u64) as usize
    }

    fn gate(&mut self) -> Gate {
        [Gate::BeforeEffect, Gate::BeforeAnswer, Gate::Open][self.random.below(3) as usize]
    }

    fn millis(&mut self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(self.random.within(range))
    }

    fn pause(&mut self, number: u64) -> ScheduledFault {
        if self.setting.has_server() && number % SERVER_PAUSE_EVERY == SERVER_PAUSE_EVERY - 1 {
            return ScheduledFault::ServerPause { span: self.millis(100..1500) };
        }
        let lease_ms = LEASE.as_millis() as u64;
        let span = self.millis(lease_ms * 11 / 10..lease_ms * 5 / 2);
        ScheduledFault::Pause { sidecar: self.sidecar(), gate: self.gate(), span }
    }

    fn network(&mut self, number: u64) -> ScheduledFault {
        let has_link = self.setting.has_link();
        let link =
            if has_link && self.random.chance(500) { NetworkLink::Store } else { NetworkLink::Upstream };
        let fault = match number % 6 {
            0 => NetworkFault::Cut,
            1 => NetworkFault::BlackHole,
            2 => NetworkFault::Delay(self.millis(5..400)),
            3 => NetworkFault::HalfClose,
            // Within the first responses, at any byte.
            4 => NetworkFault::Truncate(self.random.within(1..2000) as usize),
            _ => NetworkFault::Reset,
        };
        // Both shorter and longer than the sidecars' timeouts.
        ScheduledFault::Network { sidecar: self.sidecar(), link, fault, span: self.millis(20..800) }
    }

    /// Only the last sidecar has its own clock.
    fn clock(&mut self) -> ScheduledFault {
        let offset_s = self.random.below(2 * CLOCK_OFF_MAX_S) as i64 - CLOCK_OFF_MAX_S as i64;
        ScheduledFault::Clock { sidecar: self.setting.sidecars() - 1, offset_s }
    }

    fn shuffle(&mut self, faults: &mut [ScheduledFault]) {
        for last in (1..faults.len()).rev() {
            faults.swap(last, self.random.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests;
