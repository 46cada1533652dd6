//! [`Process`]: one executor, the real engine on its own faulty way to the shared store.

use std::sync::Arc;
use std::time::Duration;

use hapax::{Hapax, Keeper, Policy};
use hapax_testkit::{Fault, Faulty, History, Plan, Point};

use super::event::{Kind, Place, ProcessId};
use super::gate::Gate;
use super::journal::Ground;
use super::wire::Wire;

/// How often a process asks about a key that somebody waits for. Longer than it takes to be woken.
const POLL: Duration = Duration::from_millis(500);

/// One executor.
#[derive(Clone, Debug)]
pub struct Process {
    /// The engine.
    pub hapax: Hapax,
    /// What goes wrong with its store calls.
    pub faulty: Faulty,
    /// What goes wrong on the way.
    pub wire: Wire,
    /// Whether it lives.
    pub gate: Arc<Gate>,
    /// Whether it no longer admits anything.
    pub is_draining: bool,
    /// Whether most of its store calls fail for now.
    pub is_cut_off: bool,
}

impl Process {
    /// A process that begins now, its calls written down in `history` if there is one.
    pub fn open(ground: &Arc<Ground>, policy: Policy, cache_bytes: u64, history: Option<&History>) -> Self {
        let gate = Arc::new(Gate::new(ground.opened(), ground.clone()));
        let wire = Wire::new(gate.clone(), history.cloned());
        let faulty = Faulty::new(Arc::new(wire.clone()));
        let hapax = Hapax::builder(Arc::new(faulty.clone()))
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

    /// Notes every fault that strikes and, at one point of one call, does `deed`.
    pub fn watch(&self, deed: Option<Deed>) {
        let gate = self.gate.clone();
        self.faulty.observe(move |step| {
            let planned = deed.as_ref().filter(|deed| deed.call == step.call && deed.point == step.point);
            let kind = match (planned, step.fault) {
                (Some(deed), _) => Some(deed.kind),
                (None, Some(fault)) => Some(kind_of(fault)),
                (None, None) => None,
            };
            let Some(kind) = kind else { return };
            let place = if kind == Kind::Drop { Place::Callers } else { Place::Call };
            gate.ground.struck(gate.process, kind, place);
            if matches!(step.fault, Some(Fault::Crash(_))) {
                gate.crash();
            }
            if let Some(deed) = planned {
                gate.spring();
                (deed.act)(&gate);
            }
        });
    }

    /// From here on nothing goes wrong.
    pub fn heal(&self) {
        self.watch(None);
        self.faulty.set_plan(Plan::new());
        self.wire.heal();
        self.gate.heal();
    }
}

/// Something done at one point of one store call.
#[derive(Clone, Debug)]
pub struct Deed {
    /// The call's number, from 1.
    pub call: u64,
    /// At which of its points.
    pub point: Point,
    /// Under which kind it is counted.
    pub kind: Kind,
    /// What is done.
    pub act: fn(&Gate),
}

fn kind_of(fault: Fault) -> Kind {
    match fault {
        Fault::ErrorBefore(_) => Kind::Error,
        Fault::AnswerLost => Kind::Lost,
        Fault::Delay(..) | Fault::Stall(_) => Kind::Delay,
        Fault::Drop(_) => Kind::Drop,
        Fault::Panic(_) => Kind::Panic,
        Fault::Crash(_) => Kind::Crash,
    }
}
