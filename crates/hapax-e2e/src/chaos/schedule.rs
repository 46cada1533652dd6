//! Which faults come, in which order and for how long: the same for the same seed.

use std::ops::AddAssign;
use std::time::Duration;

use super::Setting;
use super::slot::LEASE;
use crate::crash::seed::Seed;
use crate::fault_proxy::NetworkFault;
use crate::witness::upstream::Gate;

/// How many faults of each kind. What a store does not have is left out.
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

    /// All of them.
    pub fn in_all(self) -> u64 {
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

/// Something bad that happens once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// A sidecar is killed and started again, while the service's handlers stand at the gate.
    Kill { sidecar: usize, gate: Gate },
    /// A sidecar is stopped for longer than a lease.
    Pause { sidecar: usize, gate: Gate, span: Duration },
    /// A network of one sidecar is bad.
    Network { sidecar: usize, link: Link, fault: NetworkFault, span: Duration },
    /// The wall clock of a sidecar is so far off from now on.
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

/// The networks of a sidecar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Link {
    Store,
    Upstream,
}

/// Every so many pauses, it is the server that is paused.
const SERVER_PAUSE_EVERY: u64 = 6;
/// How far clocks are off, at most: an hour, which is many leases and less than any retention.
const CLOCK_OFF_MAX_S: u64 = 3600;

/// All faults, in their order.
pub(super) fn faults(seed: &Seed, doses: Doses, setting: Setting) -> Vec<Fault> {
    let doses = doses.of(setting);
    let mut draw = Draw { seed: seed.clone(), setting };
    let mut faults = Vec::new();
    faults.extend((0..doses.kills).map(|_| Fault::Kill { sidecar: draw.sidecar(), gate: draw.gate() }));
    faults.extend((0..doses.pauses).map(|number| draw.pause(number)));
    faults.extend((0..doses.cuts).map(|number| draw.network(number)));
    faults.extend((0..doses.clock_steps).map(|_| draw.clock()));
    faults.extend((0..doses.restarts).map(|_| Fault::ServerCrash));
    faults.extend((0..doses.pooler_restarts).map(|_| Fault::PoolerCrash));
    faults.extend((0..doses.moves).map(|_| Fault::Move { choice: draw.seed.below(u64::MAX) }));
    draw.shuffle(&mut faults);
    faults
}

struct Draw {
    seed: Seed,
    setting: Setting,
}

impl Draw {
    fn sidecar(&mut self) -> usize {
        self.seed.below(self.setting.sidecars() as u64) as usize
    }

    fn gate(&mut self) -> Gate {
        [Gate::Before, Gate::After, Gate::Open][self.seed.below(3) as usize]
    }

    fn millis(&mut self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(self.seed.within(range))
    }

    fn pause(&mut self, number: u64) -> Fault {
        if self.setting.has_server() && number % SERVER_PAUSE_EVERY == SERVER_PAUSE_EVERY - 1 {
            return Fault::ServerPause { span: self.millis(100..1500) };
        }
        let lease_ms = LEASE.as_millis() as u64;
        let span = self.millis(lease_ms * 11 / 10..lease_ms * 5 / 2);
        Fault::Pause { sidecar: self.sidecar(), gate: self.gate(), span }
    }

    fn network(&mut self, number: u64) -> Fault {
        let has_link = self.setting.has_link();
        let link = if has_link && self.seed.percent(50) { Link::Store } else { Link::Upstream };
        let fault = match number % 6 {
            0 => NetworkFault::Cut,
            1 => NetworkFault::BlackHole,
            2 => NetworkFault::Delay(self.millis(5..400)),
            3 => NetworkFault::HalfClose,
            // Within the first answers, wherever that is in one of them.
            4 => NetworkFault::Truncate(self.seed.within(1..2000) as usize),
            _ => NetworkFault::Reset,
        };
        // Both shorter and longer than what sidecars wait for an answer.
        Fault::Network { sidecar: self.sidecar(), link, fault, span: self.millis(20..800) }
    }

    /// Only the last sidecar has a clock of its own.
    fn clock(&mut self) -> Fault {
        let offset_s = self.seed.below(2 * CLOCK_OFF_MAX_S) as i64 - CLOCK_OFF_MAX_S as i64;
        Fault::Clock { sidecar: self.setting.sidecars() - 1, offset_s }
    }

    fn shuffle(&mut self, faults: &mut [Fault]) {
        for last in (1..faults.len()).rev() {
            faults.swap(last, self.seed.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests;
