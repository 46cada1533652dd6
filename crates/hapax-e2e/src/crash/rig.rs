//! [`CrashRig`]: rounds in which a child is started and killed, and the check of the directory that it left.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hapax_testkit::Random;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::child::{ChildEnd, CrashChild};
use super::event::ChildEvent;
use super::expected::ExpectedStore;
use super::image::{Disk, read_trace};
use super::shim::{CallPoint, DiskFaults, KillAt, Shim};
use super::subject::{Engine, Subject};
use super::workload::Workload;

/// Tasks of a child: enough that an operation is always in flight.
const TASKS: u64 = 32;

/// Size of the range of keys of one child.
const KEYS_PER_ROUND: u64 = 1 << 32;

/// Rounds on one directory, so that crashes also hit stores with records.
const ROUNDS_PER_DIR: u64 = 6;

/// A child that is killed at a random moment runs at most this long after it opened its store.
const WORK_MAX: Duration = Duration::from_millis(60);

/// Acknowledgements before a power loss. Counted, not timed: on a busy machine a child may make no progress for a long
/// time, and a trace without an acknowledgement proves nothing.
const ACKNOWLEDGED: Range<u64> = 1..600;

/// How long a child may take for them.
const ACKNOWLEDGED_MAX: Duration = Duration::from_secs(60);

/// Disk calls in which a store is opened and recovers from the last crash.
const OPENING_CALLS: Range<u64> = 1..60;

/// Disk calls in which it works.
const WORKING_CALLS: Range<u64> = 1..1500;

/// Disk calls in which a write-ahead log of full length is checkpointed into the database, and the first ones of the
/// new log: two for each of 8,000 pages fill the log, the journal takes about half as many meanwhile, and the checkpoint
/// takes one for each page that changed.
const CHECKPOINT_CALLS: Range<u64> = 22_000..28_000;

/// How long a child may take until its checkpoint.
const CHECKPOINT_MAX: Duration = Duration::from_secs(10);

/// Power losses that are tried on the trace of one child.
const CUTS: u64 = 3;

/// Concurrent reads in the check of a store.
const READS: usize = 256;

/// How a child dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Death {
    /// SIGKILL at a random moment.
    AnyMoment,
    /// SIGKILL in a chosen disk call, for one child in ten while the store is opened.
    InACall,
    /// SIGKILL in a chosen disk call around a checkpoint.
    InACheckpoint,
    /// Power loss: what was not synced may be gone.
    PowerLoss,
}

/// What the rounds found.
#[derive(Clone, Debug, Default)]
pub struct CrashReport {
    /// Children killed.
    pub kills: u64,
    /// Of these, while an operation was in flight.
    pub busy_kills: u64,
    /// Stores opened and checked after a crash; more than kills, because several power losses are tried on one trace.
    pub checks: u64,
    /// Keys compared in all checks.
    pub keys: u64,
    /// Every fault, with the round's number.
    pub lost: Vec<String>,
}

impl CrashReport {
    /// Fraction of the kills that hit an operation in flight.
    pub fn busy_ratio(&self) -> f64 {
        self.busy_kills as f64 / (self.kills.max(1)) as f64
    }

    /// Adds what another run found.
    pub fn add(&mut self, other: Self) {
        self.kills += other.kills;
        self.busy_kills += other.busy_kills;
        self.checks += other.checks;
        self.keys += other.keys;
        self.lost.extend(other.lost);
    }
}

/// The engine under test, and what its rounds share.
#[derive(Debug)]
pub struct CrashRig {
    program: PathBuf,
    engine: Engine,
    random: Random,
    shim: Shim,
    root: TempDir,
    runtime: Runtime,
}

impl CrashRig {
    /// A rig whose children are `program child …`, working on `engine`.
    pub fn new(program: impl Into<PathBuf>, engine: Engine, seed: u64) -> Result<Self> {
        let root = tempfile::tempdir()?;
        let shim = Shim::build(root.path())?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
        Ok(Self { program: program.into(), engine, random: Random::seeded(seed), shim, root, runtime })
    }

    /// Runs so many rounds, each with the death that `death` chooses. The choices depend only on the seed and the round's
    /// number; the scheduling of the machine does not.
    pub fn run(&self, rounds: u64, death: impl Fn(&mut Random) -> Death) -> Result<CrashReport> {
        let mut report = CrashReport::default();
        let mut tracked = self.track_new_dir()?;
        let mut before = None;
        for round in 0..rounds {
            let mut random = self.random.fork(round);
            let death = death(&mut random);
            // The many keys of such a round would slow the next ones down.
            if round % ROUNDS_PER_DIR == 0 || before == Some(Death::InACheckpoint) {
                tracked = self.track_new_dir()?;
            }
            before = Some(death);
            self.round(round, death, &mut random, &mut tracked, &mut report)
                .with_context(|| format!("round {round} ({death:?}) of {}", self.engine))?;
        }
        Ok(report)
    }

    fn round(
        &self,
        round: u64,
        death: Death,
        random: &mut Random,
        tracked: &mut TrackedDir,
        report: &mut CrashReport,
    ) -> Result<()> {
        let trace = (death == Death::PowerLoss).then(|| self.root.path().join("trace"));
        let call = match death {
            Death::InACall if random.chance(100) => Some(random.within(OPENING_CALLS)),
            Death::InACall => Some(random.within(WORKING_CALLS)),
            Death::InACheckpoint => Some(random.within(CHECKPOINT_CALLS)),
            Death::AnyMoment | Death::PowerLoss => None,
        };
        let point = [CallPoint::Before, CallPoint::Torn, CallPoint::After][random.below(3) as usize];
        let kill = call.map(|call| KillAt { call, point });
        let faults = DiskFaults { kill, trace: trace.clone(), ..DiskFaults::default() };
        let before = trace.as_ref().map(|_| Disk::load(tracked.path())).transpose()?;

        let child = self.start(round, tracked.path(), &faults)?;
        let mut events = child.events_until_ready()?;
        let (work, mut acknowledgements) = match death {
            Death::InACall => (20 * WORK_MAX, u64::MAX),
            Death::InACheckpoint => (CHECKPOINT_MAX, u64::MAX),
            Death::AnyMoment => (WORK_MAX.mul_f64(random.below(1000) as f64 / 1000.0), u64::MAX),
            Death::PowerLoss => (ACKNOWLEDGED_MAX, random.within(ACKNOWLEDGED)),
        };
        events.extend(child.events_until(Instant::now() + work, |event| {
            acknowledgements -= u64::from(matches!(event, ChildEvent::Done(_)));
            acknowledgements == 0 || matches!(event, ChildEvent::Refused(_, how) if how == "stopped")
        })?);
        let (rest, end) = child.kill()?;
        events.extend(rest);
        if end == ChildEnd::Exited {
            report.lost.push(format!("round {round}: the child exited before it was killed"));
            *tracked = self.track_new_dir()?;
            return Ok(());
        }

        let acknowledged = tracked.expected.clone();
        events.iter().for_each(|event| tracked.expected.apply(event));
        report.kills += 1;
        report.busy_kills += u64::from(tracked.expected.is_busy());
        let Some((trace, before)) = trace.zip(before) else {
            return self.check(round, tracked, report);
        };
        let disk_events = read_trace(&trace, &tracked.path().canonicalize()?)?;
        std::fs::remove_file(trace)?;
        for cut in 0..CUTS {
            let mut random = random.fork(cut);
            let moments = if random.chance(250) { OPENING_CALLS.end } else { u64::MAX };
            let end = random.below(moments.min(disk_events.len() as u64 + 1)) as usize;
            // The next round continues on the last image.
            *tracked = self.track_new_dir()?;
            tracked.expected = acknowledged.clone();
            let mut disk = before.clone();
            for event in &disk_events[..end] {
                disk.apply(event, &mut random);
                tracked.expected.apply_output(event)?;
            }
            disk.lose_power(tracked.path(), &mut random)?;
            self.check(round, tracked, report)?;
        }
        Ok(())
    }

    /// Starts the child of a round on `dir`.
    pub fn start(&self, round: u64, dir: &Path, faults: &DiskFaults) -> Result<CrashChild> {
        let workload = Workload {
            engine: self.engine,
            dir: dir.to_owned(),
            first_key: (round + 1) * KEYS_PER_ROUND,
            tasks: TASKS,
        };
        CrashChild::start(&self.program, &self.shim, &workload, faults)
    }

    /// How many tasks a child has.
    pub fn tasks(&self) -> u64 {
        TASKS
    }

    /// A new directory without records.
    pub fn track_new_dir(&self) -> Result<TrackedDir> {
        let dir = TempDir::new_in(self.root.path())?;
        Ok(TrackedDir { dir, expected: ExpectedStore::default() })
    }

    /// Opens the directory after a crash, compares every key and runs new operations. A directory with a fault is replaced
    /// by a new one.
    pub fn check(&self, round: u64, tracked: &mut TrackedDir, report: &mut CrashReport) -> Result<()> {
        report.checks += 1;
        let compared = self.runtime.block_on(self.compare(round, tracked));
        let mut faults = tracked.expected.take_faults();
        match compared {
            Ok(keys) => report.keys += keys,
            Err(error) => faults.push(format!("the store does not open or does not answer: {error:#}")),
        }
        if !faults.is_empty() {
            *tracked = self.track_new_dir()?;
        }
        report.lost.extend(faults.into_iter().map(|fault| format!("round {round}: {fault}")));
        Ok(())
    }

    async fn compare(&self, round: u64, tracked: &mut TrackedDir) -> Result<u64> {
        // The check itself always syncs: the child is under test.
        let engine = if self.engine == Engine::FileWithoutSync { Engine::File } else { self.engine };
        let subject = Arc::new(Subject::open(engine, tracked.path())?);
        let keys: Vec<u64> = tracked.expected.keys().collect();
        for chunk in keys.chunks(READS) {
            let mut reads = JoinSet::new();
            for &key in chunk {
                let subject = Arc::clone(&subject);
                reads.spawn(async move { subject.read_state(key).await.map(|stored| (key, stored)) });
            }
            while let Some(read) = reads.join_next().await {
                let (key, stored) = read??;
                tracked.expected.compare(key, &stored);
            }
        }
        for operation in tracked.expected.next_operations((round + 2) * KEYS_PER_ROUND - 1) {
            tracked.expected.apply(&ChildEvent::Begin(operation));
            let answered = match subject.perform(&operation).await {
                Ok(()) => ChildEvent::Done(operation),
                Err(error) => {
                    ChildEvent::Wrong(operation, format!("{error:?} on a store that was opened again"))
                }
            };
            tracked.expected.apply(&answered);
        }
        Ok(keys.len() as u64)
    }
}

/// A directory and the state that its store must have, over several crashes.
#[derive(Debug)]
pub struct TrackedDir {
    dir: TempDir,
    /// The state that the store must have.
    pub expected: ExpectedStore,
}

impl TrackedDir {
    /// The directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}
