//! [`Process`]: one executor: the real engine with its own faults between it and the shared store.

use std::sync::Arc;
use std::time::Duration;

use hapax::{Hapax, Keeper, Policy};
use hapax_testkit::{Fault, Faulty, History, Plan, Point};

use super::event::{FaultKind, FaultSite, ProcessId};
use super::gate::Gate;
use super::trace::TracedStore;
use super::wire::Wire;

/// The poll interval for keys with waiting duplicates. Longer than a wake-up takes.
const POLL: Duration = Duration::from_millis(500);

/// One executor.
#[derive(Clone, Debug)]
pub struct Process {
    /// The engine.
    pub hapax: Hapax,
    /// The faults of its store calls.
    pub faulty: Faulty,
    /// The faults between it and the store.
    pub wire: Wire,
    /// Whether it is alive.
    pub gate: Arc<Gate>,
    /// Whether it drains.
    pub is_draining: bool,
    /// Whether most of its store calls fail for now.
    pub is_cut_off: bool,
}

impl Process {
    /// A process that begins now, with its calls recorded in `history` if there is one.
    pub fn open(
        traced: &Arc<TracedStore>,
        policy: Policy,
        cache_bytes: u64,
        history: Option<&History>,
    ) -> Self {
        let gate = Arc::new(Gate::new(traced.opened(), traced.clone()));
        let wire = Wire::new(gate.clone(), history.cloned());
        let faulty = Faulty::new(Arc::new(wire.clone()));
        let hapax = Hapax::builder(faulty.clone())
            .policy(policy)
            .poll(POLL)
            .cache(cache_bytes)
            .sweep(None)
            .keeper(Keeper::SharedRuntime)
            .build();
        let process = Self { hapax, faulty, wire, gate, is_draining: false, is_cut_off: false };
        process.watch(None);
        process
    }

    /// Its name.
    pub fn id(&self) -> ProcessId {
        self.gate.process
    }

    /// Records every fault that is injected and, at one point of one call, injects `injection`.
    pub fn watch(&self, injection: Option<Injection>) {
        let gate = self.gate.clone();
        self.faulty.observe(move |step| {
            let planned = injection
                .as_ref()
                .filter(|injection| injection.call == step.call && injection.point == step.point);
            let kind = match (planned, step.fault) {
                (Some(injection), _) => Some(injection.kind),
                (None, Some(fault)) => Some(kind_of(fault)),
                (None, None) => None,
            };
            let Some(kind) = kind else { return };
            let place = if kind == FaultKind::Drop { FaultSite::Callers } else { FaultSite::Call };
            gate.traced.fault_injected(gate.process, kind, place);
            if matches!(step.fault, Some(Fault::Crash(_))) {
                gate.crash();
            }
            if let Some(injection) = planned {
                gate.mark_injected();
                (injection.act)(&gate);
            }
        });
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.watch(None);
        self.faulty.set_plan(Plan::new());
        self.wire.heal();
        self.gate.heal();
    }
}

/// A fault that is injected at one point of one store call.
#[derive(Clone, Debug)]
pub struct Injection {
    /// The call's number, from 1.
    pub call: u64,
    /// At which of its points.
    pub point: Point,
    /// The kind that it is counted as.
    pub kind: FaultKind,
    /// The fault.
    pub act: fn(&Gate),
}

fn kind_of(fault: Fault) -> FaultKind {
    match fault {
        Fault::ErrorBefore(_) => FaultKind::Error,
        Fault::AnswerLost => FaultKind::Lost,
        Fault::Delay(..) | Fault::Stall(_) => FaultKind::Delay,
        Fault::Drop(_) => FaultKind::Drop,
        Fault::Panic(_) => FaultKind::Panic,
        Fault::Crash(_) => FaultKind::Crash,
    }
}
