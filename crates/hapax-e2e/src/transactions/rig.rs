//! [`TransactionRig`]: the servers, and rounds in which a process or a server is killed while processes send orders.

use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hapax_store_postgres::PostgresStore;
use hapax_testkit::servers::{PgBouncer, PostgresServer};

use super::orders::{KEYS, NAME_PREFIX, Orders, TASKS, acknowledged};
use super::{Defect, Mode, ServerPath};
use crate::rig::Damage;
use crate::rig::audit::audit_effects;
use crate::rig::child::{CHILD_ARGUMENT, ChildProcess};
use crate::rig::effects::EffectLog;
use crate::rig::ledger::Ledger;

/// Processes that send orders with the same keys.
const PROCESSES: u64 = 2;

/// A server, and the processes that use it.
pub struct TransactionRig {
    program: PathBuf,
    server: PostgresServer,
    pooler: Option<PgBouncer>,
    mode: Mode,
    patience: Duration,
    round: u64,
}

/// What rounds found.
#[derive(Clone, Default, Debug)]
pub struct RoundReport {
    /// Different keys.
    pub keys: u64,
    /// Orders that were acknowledged.
    pub answers: u64,
    /// Kills.
    pub kills: u64,
    /// Broken promises.
    pub damage: Damage,
}

impl AddAssign for RoundReport {
    fn add_assign(&mut self, more: Self) {
        self.keys += more.keys;
        self.answers += more.answers;
        self.kills += more.kills;
        self.damage += more.damage;
    }
}

/// What is killed.
#[derive(Clone, Copy)]
enum Victim {
    Process,
    Server,
    Pooler,
}

/// The answers of one round.
struct Answers {
    ledger: Ledger<i64>,
    count: u64,
    /// Whether no answer came for the whole patience.
    is_stuck: bool,
}

impl TransactionRig {
    /// Starts the servers. `program child …` is the process that is killed.
    ///
    /// # Errors
    /// When the store cannot be made.
    pub fn start(program: &Path, mode: Mode, path: ServerPath, patience: Duration) -> Result<Self> {
        let server = PostgresServer::options().durable().start();
        tokio::runtime::Runtime::new()?.block_on(PostgresStore::connect(&server.url()))?;
        server.sql("CREATE TABLE effect (key text, number bigserial)");
        let pooler = (path == ServerPath::Pooler).then(|| PgBouncer::start(&server));
        Ok(Self { program: program.to_owned(), server, pooler, mode, patience, round: 0 })
    }

    /// Lets processes send orders with new keys, kills one victim meanwhile, and audits the answers.
    ///
    /// # Errors
    /// When a process cannot be started, or fails without being killed.
    pub fn round(&mut self, defect: Option<Defect>) -> Result<RoundReport> {
        let orders = Orders { url: self.url(), first: self.round * KEYS, mode: self.mode, defect };
        let keys = orders.first..orders.first + KEYS;
        let (sender, lines) = channel();
        let mut processes =
            (0..PROCESSES).map(|_| self.start_process(&orders, &sender)).collect::<Result<Vec<_>>>()?;
        let mut answers = Answers { ledger: Ledger::new(keys.clone()), count: 0, is_stuck: false };
        // A different moment in every round.
        answers.receive(&lines, 1 + (self.round * 7) % KEYS, self.patience);
        if !answers.is_stuck {
            match self.victim() {
                Victim::Process => {
                    let victim = &mut processes[(self.round % PROCESSES) as usize];
                    victim.kill()?;
                    *victim = self.start_process(&orders, &sender)?;
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
            answers.receive(&lines, u64::MAX, self.patience);
        }
        if !answers.is_stuck {
            for mut process in processes {
                let status = process.wait()?;
                ensure!(status.success(), "a process that was not killed failed: {status}");
            }
            let (count, all) = (answers.count, PROCESSES * TASKS * KEYS);
            ensure!(count >= all, "{count} orders were acknowledged, and not {all}");
        }
        self.round += 1;
        let mut damage = audit_effects(&answers.ledger, &self.effects(&answers.ledger));
        if answers.is_stuck {
            damage.stuck.push(format!("no further answer after {}", answers.count));
        }
        Ok(RoundReport { keys: KEYS, answers: answers.count, kills: 1, damage })
    }

    /// Records of all rounds that have no outcome.
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

    fn start_process(&self, orders: &Orders, lines: &Sender<String>) -> Result<ChildProcess> {
        let mut command = Command::new(&self.program);
        command.args([CHILD_ARGUMENT, "--url", &orders.url, "--first", &orders.first.to_string()]);
        command.args(["--mode", &orders.mode.to_string()]);
        if let Some(defect) = orders.defect {
            command.args(["--defect", &defect.to_string()]);
        }
        let mut process = ChildProcess::spawn(&mut command)?;
        process.send_lines(lines.clone())?;
        Ok(process)
    }

    /// The effect log of a round: the rows of its keys.
    fn effects(&self, ledger: &Ledger<i64>) -> EffectLog<i64> {
        let effects = EffectLog::default();
        for line in self.server.sql("SELECT key, number FROM effect").lines() {
            let row = line.split_once('|').map(|(name, number)| {
                (name.strip_prefix(NAME_PREFIX).and_then(|key| key.parse().ok()), number.parse().ok())
            });
            if let Some((Some(key), Some(number))) = row
                && ledger.keys().contains(&key)
            {
                effects.add_effect(key);
                effects.add_answer(key, number);
            }
        }
        effects
    }
}

impl Answers {
    /// Receives answers until there are so many, until all processes have ended, or until none comes for the patience.
    fn receive(&mut self, lines: &Receiver<String>, enough: u64, patience: Duration) {
        while self.count < enough {
            match lines.recv_timeout(patience) {
                Ok(line) => {
                    if let Some((key, number)) = acknowledged(&line) {
                        self.ledger.add_answer(key, number);
                        self.count += 1;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    self.is_stuck = true;
                    break;
                }
            }
        }
    }
}
