//! The rounds: start a child, kill it, look at what it left behind.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::child::{Child, End};
use super::image::{Disk, read_journal};
use super::ledger::Ledger;
use super::note::Note;
use super::seed::Seed;
use super::shim::{Faults, KillAt, Point, Shim};
use super::subject::{Engine, Subject};
use super::workload::Workload;

/// Tasks of a child: enough that some operation is always under way.
const TASKS: u64 = 32;

/// Keys that one child can use; the next one starts after them.
const KEYS_PER_ROUND: u64 = 1 << 32;

/// Rounds that follow each other on one directory, so that crashes hit stores with a past.
const ROUNDS_PER_LIFE: u64 = 6;

/// A child that dies at any moment works at most this long after it opened its store.
const WORK_MAX: Duration = Duration::from_millis(60);

/// How much a child has been told before its power goes. Counted, not timed: on a machine that is busy with other
/// things a child may get nothing done for a long time, and a journal without an acknowledgement proves nothing.
const ACKNOWLEDGED: Range<u64> = 1..600;

/// How long a child may take to be told that much.
const ACKNOWLEDGED_MAX: Duration = Duration::from_secs(60);

/// Calls in which a store is opened and recovers from the last crash.
const OPENING_CALLS: Range<u64> = 1..60;

/// Calls in which it works.
const WORKING_CALLS: Range<u64> = 1..1500;

/// Calls in which a log that has reached its full length is moved into the database, and the first ones of the new
/// log: two for each of 8,000 pages make the log full, the journal takes half as many meanwhile, more or less, and moving
/// the log takes one for each page that changed.
const CHECKPOINT_CALLS: Range<u64> = 22_000..28_000;

/// How long a child may take to get to its checkpoint.
const CHECKPOINT_MAX: Duration = Duration::from_secs(10);

/// Moments of power loss that are tried on the journal of one child.
const CUTS: u64 = 3;

/// Calls looked at together when a store is checked.
const LOOKS: usize = 256;

/// How a child dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Death {
    /// SIGKILL at a random moment.
    AnyMoment,
    /// SIGKILL in a chosen call to the disk, one in ten of them while the store is opened.
    InACall,
    /// SIGKILL in a chosen call to the disk when the log has become long.
    InACheckpoint,
    /// Power loss: what was not synced may be gone.
    PowerLoss,
}

/// What the rounds found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Children killed.
    pub kills: u64,
    /// Of these, while an operation was begun and not acknowledged.
    pub busy_kills: u64,
    /// Stores opened and checked after a crash; more than kills, because one journal has many moments.
    pub checks: u64,
    /// Keys compared in all checks.
    pub keys: u64,
    /// Everything that was wrong, with the round's number.
    pub lost: Vec<String>,
}

impl Report {
    /// Part of the kills that landed while operations were unacknowledged.
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

/// Everything that rounds share.
#[derive(Debug)]
pub struct Rig {
    program: PathBuf,
    engine: Engine,
    seed: Seed,
    shim: Shim,
    root: TempDir,
    runtime: Runtime,
}

impl Rig {
    /// A rig whose children are `program child …`, working on `engine`.
    pub fn new(program: impl Into<PathBuf>, engine: Engine, seed: u64) -> Result<Self> {
        let root = tempfile::tempdir()?;
        let shim = Shim::build(root.path())?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
        Ok(Self { program: program.into(), engine, seed: Seed::new(seed), shim, root, runtime })
    }

    /// Runs rounds `first..first + rounds`, choosing each one's death by `death`. The choices depend on the seed
    /// and the round's number only; what the machine does in between is its own.
    pub fn run(&self, rounds: u64, death: impl Fn(&mut Seed) -> Death) -> Result<Report> {
        let mut report = Report::default();
        let mut life = Life::default();
        let mut before = None;
        for round in 0..rounds {
            let mut seed = self.seed.part(round);
            let death = death(&mut seed);
            // A log fills up on its own; the many keys of such a round would only slow the next ones down.
            if round % ROUNDS_PER_LIFE == 0 || before == Some(Death::InACheckpoint) {
                life = self.begin_life()?;
            }
            before = Some(death);
            self.round(round, death, &mut seed, &mut life, &mut report)
                .with_context(|| format!("round {round} ({death:?}) of {}", self.engine))?;
        }
        Ok(report)
    }

    fn round(
        &self,
        round: u64,
        death: Death,
        seed: &mut Seed,
        life: &mut Life,
        report: &mut Report,
    ) -> Result<()> {
        let journal = (death == Death::PowerLoss).then(|| self.root.path().join("journal"));
        let call = match death {
            Death::InACall if seed.percent(10) => Some(seed.within(OPENING_CALLS)),
            Death::InACall => Some(seed.within(WORKING_CALLS)),
            Death::InACheckpoint => Some(seed.within(CHECKPOINT_CALLS)),
            Death::AnyMoment | Death::PowerLoss => None,
        };
        let point = [Point::Before, Point::Torn, Point::After][seed.below(3) as usize];
        let kill = call.map(|call| KillAt { call, point });
        let faults = Faults { kill, journal: journal.clone(), ..Faults::default() };
        let before = journal.as_ref().map(|_| Disk::load(life.path())).transpose()?;

        let child = self.start(round, life.path(), &faults)?;
        let mut notes = child.notes_until_ready()?;
        let (work, mut acknowledgements) = match death {
            Death::InACall => (20 * WORK_MAX, u64::MAX),
            Death::InACheckpoint => (CHECKPOINT_MAX, u64::MAX),
            Death::AnyMoment => (WORK_MAX.mul_f64(seed.below(1000) as f64 / 1000.0), u64::MAX),
            Death::PowerLoss => (ACKNOWLEDGED_MAX, seed.within(ACKNOWLEDGED)),
        };
        notes.extend(child.notes_until(Instant::now() + work, |note| {
            acknowledgements -= u64::from(matches!(note, Note::Done(_)));
            acknowledgements == 0 || matches!(note, Note::Refused(_, how) if how == "stopped")
        })?);
        let (rest, end) = child.kill()?;
        notes.extend(rest);
        if end == End::ByItself {
            report.lost.push(format!("round {round}: the child ended by itself"));
            *life = self.begin_life()?;
            return Ok(());
        }

        let acknowledged = life.ledger.clone();
        notes.iter().for_each(|note| life.ledger.note(note));
        report.kills += 1;
        report.busy_kills += u64::from(life.ledger.is_busy());
        let Some((journal, before)) = journal.zip(before) else {
            return self.check(round, life, report);
        };
        let entries = read_journal(&journal, &life.path().canonicalize()?)?;
        std::fs::remove_file(journal)?;
        for cut in 0..CUTS {
            let mut seed = seed.part(cut);
            let moments = if seed.percent(25) { OPENING_CALLS.end } else { u64::MAX };
            let end = seed.below(moments.min(entries.len() as u64 + 1)) as usize;
            // The last image is the one that the life goes on with.
            *life = self.begin_life()?;
            life.ledger = acknowledged.clone();
            let mut disk = before.clone();
            for entry in &entries[..end] {
                disk.play(entry, &mut seed);
                life.ledger.read(entry)?;
            }
            disk.lose_power(life.path(), &mut seed)?;
            self.check(round, life, report)?;
        }
        Ok(())
    }

    /// Starts the child of a round on `dir`.
    pub fn start(&self, round: u64, dir: &Path, faults: &Faults) -> Result<Child> {
        let workload = Workload {
            engine: self.engine,
            dir: dir.to_owned(),
            first_key: (round + 1) * KEYS_PER_ROUND,
            tasks: TASKS,
        };
        Child::start(&self.program, &self.shim, &workload, faults)
    }

    /// How many tasks a child has.
    pub fn tasks(&self) -> u64 {
        TASKS
    }

    /// A fresh directory and an empty ledger.
    pub fn begin_life(&self) -> Result<Life> {
        Life::begin(self.root.path())
    }

    /// Opens what a crash left, compares every key with the ledger and gives the store new work. After a store
    /// with a fault the life begins anew: one that is damaged shows nothing more.
    pub fn check(&self, round: u64, life: &mut Life, report: &mut Report) -> Result<()> {
        report.checks += 1;
        let compared = self.runtime.block_on(self.compare(round, life));
        let mut faults = life.ledger.take_faults();
        match compared {
            Ok(keys) => report.keys += keys,
            Err(error) => faults.push(format!("the store does not open or does not answer: {error:#}")),
        }
        if !faults.is_empty() {
            *life = self.begin_life()?;
        }
        report.lost.extend(faults.into_iter().map(|fault| format!("round {round}: {fault}")));
        Ok(())
    }

    async fn compare(&self, round: u64, life: &mut Life) -> Result<u64> {
        // The proof itself always syncs: it is the child that is judged.
        let engine = if self.engine == Engine::FileWithoutSync { Engine::File } else { self.engine };
        let subject = Arc::new(Subject::open(engine, life.path())?);
        let keys: Vec<u64> = life.ledger.keys().collect();
        for chunk in keys.chunks(LOOKS) {
            let mut looks = JoinSet::new();
            for &key in chunk {
                let subject = Arc::clone(&subject);
                looks.spawn(async move { subject.look(key).await.map(|seen| (key, seen)) });
            }
            while let Some(look) = looks.join_next().await {
                let (key, seen) = look??;
                life.ledger.compare(key, &seen);
            }
        }
        for act in life.ledger.fresh_acts((round + 2) * KEYS_PER_ROUND - 1) {
            life.ledger.note(&Note::Begin(act));
            let answer = match subject.perform(&act).await {
                Ok(()) => Note::Done(act),
                Err(refusal) => Note::Wrong(act, format!("{refusal:?} on a store that was opened anew")),
            };
            life.ledger.note(&answer);
        }
        Ok(keys.len() as u64)
    }
}

/// A directory and what must be in it, over several crashes.
#[derive(Debug, Default)]
pub struct Life {
    dir: Option<TempDir>,
    /// What must be in the directory.
    pub ledger: Ledger,
}

impl Life {
    fn begin(root: &Path) -> Result<Self> {
        Ok(Self { dir: Some(TempDir::new_in(root)?), ledger: Ledger::default() })
    }

    /// The directory.
    ///
    /// # Panics
    /// When no life has begun.
    pub fn path(&self) -> &Path {
        self.dir.as_ref().expect("a life has begun").path()
    }
}
