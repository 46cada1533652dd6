//! [`Job`]: a request to the writer thread, with its reply channel.

use hapax_core::transition::{Answer, Command};
use hapax_core::{StoreError, Swept};
use tokio::sync::oneshot;

use crate::error::RefuseReason;
use crate::reader::ReadJob;

/// The reply channel. The caller may have dropped its end.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// A request to the writer thread.
#[derive(Debug)]
pub(crate) enum Job {
    /// One command of the state machine.
    Command(CommandJob),
    /// Remove due records.
    Sweep { batch_max: usize, reply: Reply<Swept> },
    /// Commit, so that other connections see all changes.
    Commit { reply: Reply<()> },
    /// Read on the writer's connection, uncommitted changes included.
    Read(ReadJob),
}

/// One command of the state machine, with its reply channel.
#[derive(Debug)]
pub(crate) struct CommandJob {
    pub(crate) command: Command,
    pub(crate) reply: Reply<Answer>,
}

impl Job {
    pub(crate) fn refuse(self, reason: RefuseReason) {
        match self {
            Self::Command(job) => {
                let name = command_name(&job.command);
                job.respond(Err(reason.error(name)));
            }
            Self::Sweep { reply, .. } => send(reply, Err(reason.error("sweep"))),
            Self::Commit { reply } => send(reply, Err(reason.error("commit"))),
            // Dropping its channel tells the caller.
            Self::Read(read) => drop(read),
        }
    }
}

impl CommandJob {
    pub(crate) fn respond(self, result: Result<Answer, StoreError>) {
        send(self.reply, result);
    }
}

/// Jobs that are served together.
#[derive(Default)]
pub(crate) struct JobBatch {
    pub(crate) commands: Vec<CommandJob>,
    pub(crate) reads: Vec<ReadJob>,
    pub(crate) sweeps: Vec<(usize, Reply<Swept>)>,
    pub(crate) commits: Vec<Reply<()>>,
}

impl JobBatch {
    pub(crate) fn of(jobs: Vec<Job>) -> Self {
        let mut batch = Self::default();
        for job in jobs {
            match job {
                Job::Command(command) => batch.commands.push(command),
                Job::Read(read) => batch.reads.push(read),
                Job::Sweep { batch_max, reply } => batch.sweeps.push((batch_max, reply)),
                Job::Commit { reply } => batch.commits.push(reply),
            }
        }
        batch
    }
}

/// A caller that has gone is no error.
pub(crate) fn send<T>(reply: Reply<T>, result: Result<T, StoreError>) {
    let _ = reply.send(result);
}

/// The operation that an error names.
pub(crate) const fn command_name(command: &Command) -> &'static str {
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
