//! [`Workload`]: the child process. It opens the engine, runs operations in many tasks, prints their events, and runs until
//! it is killed.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use hapax_testkit::Random;

use super::event::OperationKind::{Claim, Complete, Release, Renew};
use super::event::{ChildEvent, Operation, OperationKind};
use super::subject::{Engine, OperationError, Subject};

/// The arguments of a child process.
#[derive(clap::Args, Clone, Debug)]
pub struct Workload {
    /// The engine to open.
    #[arg(long)]
    pub engine: Engine,
    /// Its directory.
    #[arg(long)]
    pub dir: PathBuf,
    /// The first key that no child has used yet.
    #[arg(long)]
    pub first_key: u64,
    /// Concurrent tasks.
    #[arg(long)]
    pub tasks: u64,
}

impl Workload {
    /// Runs until the process is killed.
    pub fn run(&self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
        let subject = Arc::new(Subject::open(self.engine, &self.dir)?);
        print(&ChildEvent::Ready)?;
        let keys = Arc::new(AtomicU64::new(self.first_key));
        runtime.block_on(async {
            let tasks: Vec<_> = (0..self.tasks)
                .map(|_| tokio::spawn(work(Arc::clone(&subject), Arc::clone(&keys))))
                .collect();
            for task in tasks {
                task.await??;
            }
            // The store has stopped for every task. The parent kills this process.
            std::future::pending().await
        })
    }
}

async fn work(subject: Arc<Subject>, keys: Arc<AtomicU64>) -> Result<()> {
    loop {
        let key = keys.fetch_add(1, Ordering::Relaxed);
        for operation in operations(key) {
            match run_operation(&subject, operation).await? {
                NextStep::SameKey => {}
                NextStep::OtherKey => break,
                NextStep::End => return Ok(()),
            }
        }
    }
}

enum NextStep {
    SameKey,
    OtherKey,
    End,
}

async fn run_operation(subject: &Subject, operation: Operation) -> Result<NextStep> {
    print(&ChildEvent::Begin(operation))?;
    Ok(match subject.perform(&operation).await {
        Ok(()) => {
            print(&ChildEvent::Done(operation))?;
            NextStep::SameKey
        }
        Err(OperationError::NotApplied(how)) => {
            let next = if how == "stopped" { NextStep::End } else { NextStep::OtherKey };
            if how == "full"
                && let Err(error) = subject.list().await
            {
                print(&ChildEvent::Wrong(operation, format!("a full store cannot be listed: {error}")))?;
            }
            print(&ChildEvent::Refused(operation, how))?;
            next
        }
        Err(OperationError::Unknown) => {
            print(&ChildEvent::Unknown(operation))?;
            NextStep::OtherKey
        }
        Err(OperationError::Wrong(what)) => {
            print(&ChildEvent::Wrong(operation, what))?;
            NextStep::OtherKey
        }
    })
}

/// The operations of a key: most keys are completed, some are released and claimed again, some stay claimed.
fn operations(key: u64) -> Vec<Operation> {
    let mut random = Random::seeded(key).fork(7);
    let kinds: &[(OperationKind, u32)] = match random.below(20) {
        0..=10 => &[(Claim, 1), (Complete, 1)],
        11 | 12 => &[(Claim, 1), (Renew, 1), (Complete, 1)],
        13 | 14 => &[(Claim, 1), (Release, 1)],
        15 | 16 => &[(Claim, 1), (Release, 1), (Claim, 2)],
        17 | 18 => &[(Claim, 1), (Release, 1), (Claim, 2), (Complete, 2)],
        _ => &[(Claim, 1)],
    };
    kinds.iter().map(|&(kind, attempt)| Operation { kind, key, attempt }).collect()
}

/// One write for each line: the pipe takes it whole, and a kill cannot tear it.
fn print(event: &ChildEvent) -> Result<()> {
    Ok(std::io::stdout().write_all(format!("{event}\n").as_bytes())?)
}
