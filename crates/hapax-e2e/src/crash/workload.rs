//! The child's part: open the engine, work from many tasks, say what is begun and what is acknowledged, and be
//! killed. It never ends by itself.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;

use super::note::{Act, Note, Step};
use super::seed::Seed;
use super::subject::{Engine, Refusal, Subject};

/// What a child process is told to do.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Which engine to open.
    pub engine: Engine,
    /// Where.
    pub dir: PathBuf,
    /// The first key that nobody has used yet.
    pub first_key: u64,
    /// How many tasks work at once.
    pub tasks: u64,
}

impl Workload {
    /// Works until the process is killed, or until the store has stopped for every task.
    pub fn run(&self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
        let subject = Arc::new(Subject::open(self.engine, &self.dir)?);
        say(&Note::Ready)?;
        let keys = Arc::new(AtomicU64::new(self.first_key));
        runtime.block_on(async {
            let tasks: Vec<_> = (0..self.tasks)
                .map(|_| tokio::spawn(work(Arc::clone(&subject), Arc::clone(&keys))))
                .collect();
            for task in tasks {
                task.await??;
            }
            // Stay for the parent, which decides when this is over.
            std::future::pending().await
        })
    }
}

async fn work(subject: Arc<Subject>, keys: Arc<AtomicU64>) -> Result<()> {
    loop {
        let key = keys.fetch_add(1, Ordering::Relaxed);
        for act in plan(key) {
            match attempt(&subject, act).await? {
                Next::GoOn => {}
                Next::OtherKey => break,
                Next::End => return Ok(()),
            }
        }
    }
}

enum Next {
    GoOn,
    OtherKey,
    End,
}

async fn attempt(subject: &Subject, act: Act) -> Result<Next> {
    say(&Note::Begin(act))?;
    Ok(match subject.perform(&act).await {
        Ok(()) => {
            say(&Note::Done(act))?;
            Next::GoOn
        }
        Err(Refusal::NotApplied(how)) => {
            let next = if how == "stopped" { Next::End } else { Next::OtherKey };
            if how == "full"
                && let Err(error) = subject.list().await
            {
                say(&Note::Wrong(act, format!("a full store cannot be listed: {error}")))?;
            }
            say(&Note::Refused(act, how))?;
            next
        }
        Err(Refusal::Unknown) => {
            say(&Note::Unknown(act))?;
            Next::OtherKey
        }
        Err(Refusal::Wrong(what)) => {
            say(&Note::Wrong(act, what))?;
            Next::OtherKey
        }
    })
}

/// What is done with a key: most are completed, some are released and claimed again, some are left open.
fn plan(key: u64) -> Vec<Act> {
    let mut seed = Seed::new(key).part(7);
    let steps: &[(Step, u32)] = match seed.below(20) {
        0..=10 => &[(Step::Claim, 1), (Step::Complete, 1)],
        11 | 12 => &[(Step::Claim, 1), (Step::Renew, 1), (Step::Complete, 1)],
        13 | 14 => &[(Step::Claim, 1), (Step::Release, 1)],
        15 | 16 => &[(Step::Claim, 1), (Step::Release, 1), (Step::Claim, 2)],
        17 | 18 => &[(Step::Claim, 1), (Step::Release, 1), (Step::Claim, 2), (Step::Complete, 2)],
        _ => &[(Step::Claim, 1)],
    };
    steps.iter().map(|&(step, attempt)| Act { step, key, attempt }).collect()
}

/// One line, one write: the pipe takes it whole, and a kill cannot tear it.
fn say(note: &Note) -> Result<()> {
    Ok(std::io::stdout().write_all(format!("{note}\n").as_bytes())?)
}
