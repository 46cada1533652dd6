//! [`Rig`]: the servers, and rounds in which somebody is killed while processes order.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hapax_store_postgres::PostgresStore;
use hapax_testkit::servers::{PgBouncer, PostgresServer};

use super::account::{Answer, Report};
use super::orders::{KEYS, Orders, TASKS, acknowledged};
use super::{Defect, Mode, Way};

/// The argument that makes the program the process that is killed.
const CHILD: &str = "child";

/// Processes that order the same keys.
const PROCESSES: usize = 2;

/// A server, the processes that work on it, and who comes between.
pub struct Rig {
    program: PathBuf,
    server: PostgresServer,
    pooler: Option<PgBouncer>,
    mode: Mode,
    patience: Duration,
    round: usize,
}

/// Who is killed.
#[derive(Clone, Copy)]
enum Victim {
    Process,
    Server,
    Pooler,
}

impl Rig {
    /// Starts the servers. `program` is what this is a part of, to be started as the processes that are killed.
    ///
    /// # Errors
    /// When the store cannot be made.
    pub fn start(program: &Path, mode: Mode, way: Way, patience: Duration) -> Result<Self> {
        let server = PostgresServer::options().durable().start();
        tokio::runtime::Runtime::new()?.block_on(PostgresStore::connect(&server.url()))?;
        server.sql("CREATE TABLE effect (key text, number bigserial)");
        let pooler = (way == Way::Pooler).then(|| PgBouncer::start(&server));
        Ok(Self { program: program.to_owned(), server, pooler, mode, patience, round: 0 })
    }

    /// Lets processes order new keys, kills somebody meanwhile, and judges what was told.
    ///
    /// # Errors
    /// When a process cannot be started, or fails without being killed.
    pub fn round(&mut self, defect: Option<Defect>) -> Result<Report> {
        let orders = Orders { url: self.url(), first: self.round * KEYS, mode: self.mode, defect };
        let (sender, lines) = channel();
        let mut processes = (0..PROCESSES)
            .map(|_| Process::start(&self.program, &orders, &sender))
            .collect::<Result<Vec<_>>>()?;
        // Another moment in every round.
        let before = 1 + (self.round * 7) % KEYS;
        let (mut told, mut is_stuck) = self.listen(&lines, Some(before));
        if !is_stuck {
            match self.victim() {
                Victim::Process => {
                    let victim = &mut processes[self.round % PROCESSES];
                    victim.kill()?;
                    *victim = Process::start(&self.program, &orders, &sender)?;
                }
                Victim::Server => {
                    self.server.kill();
                    self.server.restart();
                }
                Victim::Pooler => {
                    let pooler = self.pooler.as_ref().context("there is a pooler")?;
                    pooler.kill();
                    pooler.restart();
                }
            }
            drop(sender);
            let (more, is_over) = self.listen(&lines, None);
            told.extend(more);
            is_stuck = is_over;
        }
        if !is_stuck {
            processes.into_iter().try_for_each(Process::end)?;
            let full = PROCESSES * TASKS * KEYS;
            ensure!(told.len() >= full, "{} orders were acknowledged, and not {full}", told.len());
        }
        self.round += 1;
        let keys = orders.keys();
        let mut report = Report::of(&keys, &told, &self.effects());
        report.kills = 1;
        if is_stuck {
            report.stuck.push(format!("nobody answered any more after {} answers", told.len()));
        }
        Ok(report)
    }

    /// Records that are left of all rounds without an end.
    pub fn unfinished(&self) -> Vec<String> {
        let ids = self.server.sql("SELECT encode(id, 'hex') FROM hapax.record WHERE state <> 2");
        ids.lines().map(|id| format!("record {id} is unfinished")).collect()
    }

    fn url(&self) -> String {
        match &self.pooler {
            Some(pooler) => pooler.url(),
            None => self.server.url(),
        }
    }

    fn victim(&self) -> Victim {
        match (self.round % 3, &self.pooler) {
            (2, _) => Victim::Server,
            (1, Some(_)) => Victim::Pooler,
            _ => Victim::Process,
        }
    }

    /// What is acknowledged until there are so many, or until all processes have ended. True when nothing came for too
    /// long.
    fn listen(&self, lines: &Receiver<Answer>, enough: Option<usize>) -> (Vec<Answer>, bool) {
        let mut told = Vec::new();
        while enough.is_none_or(|enough| told.len() < enough) {
            match lines.recv_timeout(self.patience) {
                Ok(answer) => told.push(answer),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => return (told, true),
            }
        }
        (told, false)
    }

    /// The numbers of the effects of every key.
    fn effects(&self) -> BTreeMap<String, Vec<i64>> {
        let mut effects = BTreeMap::<_, Vec<_>>::new();
        for line in self.server.sql("SELECT key, number FROM effect").lines() {
            if let Some((key, Ok(number))) = line.split_once('|').map(|(key, number)| (key, number.parse())) {
                effects.entry(key.to_owned()).or_default().push(number);
            }
        }
        effects
    }
}

/// A running process. Dropping it kills it.
struct Process(Child);

impl Process {
    /// Starts one and passes on what it acknowledges.
    fn start(program: &Path, orders: &Orders, told: &Sender<Answer>) -> Result<Self> {
        let mut command = Command::new(program);
        command.args([CHILD, "--url", &orders.url, "--first", &orders.first.to_string()]);
        command.args(["--mode", &orders.mode.to_string()]);
        if let Some(defect) = orders.defect {
            command.args(["--defect", &defect.to_string()]);
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let lines = BufReader::new(child.stdout.take().context("its output is a pipe")?).lines();
        let told = told.clone();
        thread::spawn(move || {
            // Ends with the pipe, and so with the process.
            for answer in lines.map_while(Result::ok).filter_map(|line| acknowledged(&line)) {
                if told.send(answer).is_err() {
                    return;
                }
            }
        });
        Ok(Self(child))
    }

    fn kill(&mut self) -> Result<()> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }

    /// Waits for one that was not killed.
    fn end(mut self) -> Result<()> {
        let status = self.0.wait()?;
        ensure!(status.success(), "a process that was not killed failed: {status}");
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when it is dead and gone, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
