//! [`Job`]: what is asked of the writing thread, and who waits for it.

use hapax_core::transition::{Answer, Command};
use hapax_core::{StoreError, Swept};
use tokio::sync::oneshot;

use crate::error::Refusal;
use crate::reader::Read;

/// Where an answer goes. Nobody need be there any more.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// Something to write.
#[derive(Debug)]
pub(crate) enum Job {
    /// One step of the state machine.
    Step(Step),
    /// Remove what is due.
    Sweep { batch_max: usize, reply: Reply<Swept> },
    /// Let others see what was written.
    Commit { reply: Reply<()> },
    /// Look at the database as it is, with what nobody else sees yet.
    Read(Read),
}

/// One step of the state machine and who waits for it.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) command: Command,
    pub(crate) reply: Reply<Answer>,
}

impl Job {
    pub(crate) fn refuse(self, refusal: Refusal) {
        match self {
            Self::Step(step) => {
                let op = op(&step.command);
                step.answer(Err(refusal.error(op)));
            }
            Self::Sweep { reply, .. } => send(reply, Err(refusal.error("sweep"))),
            Self::Commit { reply } => send(reply, Err(refusal.error("commit"))),
            // Whoever waits for it is told by its absence.
            Self::Read(read) => drop(read),
        }
    }
}

impl Step {
    pub(crate) fn answer(self, answer: Result<Answer, StoreError>) {
        send(self.reply, answer);
    }
}

/// What is served together.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) steps: Vec<Step>,
    pub(crate) reads: Vec<Read>,
    pub(crate) sweeps: Vec<(usize, Reply<Swept>)>,
    pub(crate) commits: Vec<Reply<()>>,
}

impl Batch {
    pub(crate) fn of(jobs: Vec<Job>) -> Self {
        let mut batch = Self::default();
        for job in jobs {
            match job {
                Job::Step(step) => batch.steps.push(step),
                Job::Read(read) => batch.reads.push(read),
                Job::Sweep { batch_max, reply } => batch.sweeps.push((batch_max, reply)),
                Job::Commit { reply } => batch.commits.push(reply),
            }
        }
        batch
    }
}

/// A caller that gave up is not there to hear the answer.
pub(crate) fn send<T>(reply: Reply<T>, answer: Result<T, StoreError>) {
    let _ = reply.send(answer);
}

/// The name of a command in errors.
pub(crate) const fn op(command: &Command) -> &'static str {
    match command {
        Command::Claim(_) => "claim",
        Command::Renew(_) => "renew",
        Command::Complete { .. } => "complete",
        Command::Release { .. } => "release",
        Command::Abandon { .. } => "abandon",
        Command::Settle { .. } => "settle",
        Command::Delete { .. } => "delete",
    }
}
