//! Processes that order things, and the server that they order from, are killed while they are at it. What was ordered
//! must have happened exactly once, and what was acknowledged must be what happened.

use std::collections::HashMap;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use futures_util::future::join_all;
use hapax::{Done, Hapax, OnLapse, Policy};
use hapax_store_postgres::{OnceInError, PostgresStore};
use hapax_testkit::servers::PostgresServer;
use tokio_postgres::{Client, NoTls};

use crate::fixture::PATIENCE;
use crate::shop::key;

/// More rounds than a test has time for.
const ROUNDS_VARIABLE: &str = "HAPAX_TEST_KILL_ROUNDS";
const ROUNDS_DEFAULT: usize = 6;
/// Every so many rounds it is the server that is killed.
const SERVER_EVERY: usize = 3;
/// Rounds in which a process that writes its effect apart must be found out.
const TEETH_ROUNDS_MAX: usize = 50;

const KEYS_PER_ROUND: usize = 40;
const TASKS: usize = 4;
const PROCESSES: usize = 2;

/// Tells a process of this test what to do: the URL, the first key and how it writes.
const ORDERS_VARIABLE: &str = "HAPAX_TEST_ORDERS";
/// The name of the test that is such a process.
const PROCESS: &str = "once_in_kills::the_process_that_is_killed";

#[test]
fn killed_again_and_again_everything_happens_exactly_once() {
    judge("together");
}

#[test]
fn transactions_that_joined_an_attempt_happen_exactly_once() {
    judge("joined");
}

/// All rounds, and what they must show.
fn judge(how: &str) {
    let rounds = env::var(ROUNDS_VARIABLE).map_or(ROUNDS_DEFAULT, |rounds| rounds.parse().unwrap());
    let rig = Rig::start();
    let acknowledged: Vec<_> = (0..rounds).flat_map(|round| rig.round(round, how)).collect();
    let effects = rig.effects();
    assert_eq!(effects.len(), rounds * KEYS_PER_ROUND, "an order was lost");
    assert!(acknowledged.len() >= PROCESSES * effects.len(), "{} answers", acknowledged.len());
    for (name, numbers) in &effects {
        assert_eq!(numbers.len(), 1, "{name} happened more than once");
    }
    for (name, number) in acknowledged {
        assert_eq!(effects[&name], [number], "{name} was answered with something else");
    }
    let unfinished = rig.server.sql("SELECT count(*) FROM hapax.record WHERE state <> 2");
    assert_eq!(unfinished, "0", "an order was left unfinished");
}

/// Without one transaction for both, the same rounds show what is wrong.
#[test]
fn an_effect_that_is_written_apart_is_found_out() {
    let rig = Rig::start();
    let doubled = (0..TEETH_ROUNDS_MAX).any(|round| {
        rig.round(round, "apart");
        rig.effects().values().any(|numbers| numbers.len() > 1)
    });
    assert!(doubled);
}

struct Rig {
    server: PostgresServer,
}

impl Rig {
    fn start() -> Self {
        let server = PostgresServer::options().durable().start();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(PostgresStore::connect(&server.url())).unwrap();
        server.sql("CREATE TABLE effect (key text, number bigserial)");
        Self { server }
    }

    /// Two processes order the same keys, and somebody is killed meanwhile. Returned is what was acknowledged.
    fn round(&self, round: usize, how: &str) -> Vec<(String, i64)> {
        let (sender, lines) = mpsc::channel();
        let orders = format!("{} {} {how}", self.server.url(), round * KEYS_PER_ROUND);
        let mut processes: Vec<Child> = (0..PROCESSES).map(|_| process(&orders, &sender)).collect();
        // Another moment in every round.
        let before = 1 + (round * 7) % KEYS_PER_ROUND;
        let mut acknowledged: Vec<_> = lines.iter().take(before).collect();
        if round % SERVER_EVERY == SERVER_EVERY - 1 {
            self.server.kill();
            self.server.restart();
        } else {
            let victim = &mut processes[round % PROCESSES];
            victim.kill().unwrap();
            victim.wait().unwrap();
            *victim = process(&orders, &sender);
        }
        drop(sender);
        acknowledged.extend(lines.iter());
        for mut process in processes {
            assert!(process.wait().unwrap().success(), "a process that was not killed failed");
        }
        acknowledged
    }

    /// The numbers of the effects of every key.
    fn effects(&self) -> HashMap<String, Vec<i64>> {
        let mut effects = HashMap::<_, Vec<_>>::new();
        for line in self.server.sql("SELECT key, number FROM effect").lines() {
            let (name, number) = line.split_once('|').unwrap();
            effects.entry(name.to_owned()).or_default().push(number.parse().unwrap());
        }
        effects
    }
}

/// Starts a process and passes on what it acknowledges.
fn process(orders: &str, acknowledged: &Sender<(String, i64)>) -> Child {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([PROCESS, "--exact", "--nocapture"])
        .env(ORDERS_VARIABLE, orders)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let acknowledged = acknowledged.clone();
    thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let Some(("ordered", told)) = line.split_once(' ') else { continue };
            // A line that was cut off acknowledges nothing.
            let Some((name, number)) = told.strip_suffix('.').and_then(|told| told.split_once(' ')) else {
                continue;
            };
            acknowledged.send((name.to_owned(), number.parse().unwrap())).unwrap();
        }
    });
    child
}

/// Not a test by itself: what [`process`] starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_process_that_is_killed() {
    let Ok(orders) = env::var(ORDERS_VARIABLE) else { return };
    let [url, first, how] = orders.split(' ').collect::<Vec<_>>()[..] else { panic!("{orders}") };
    let first: usize = first.parse().unwrap();
    let store = loop {
        match PostgresStore::options(url).unwrap().timeout(PATIENCE).existing().connect().await {
            Ok(store) => break store,
            Err(_) => pause().await,
        }
    };
    let keys = first..first + KEYS_PER_ROUND;
    if how == "joined" {
        let store = Arc::new(store);
        let hapax = Hapax::builder(store.clone()).build();
        join_all((0..TASKS).map(|task| order_all_joined(&hapax, &store, keys.clone(), task))).await;
    } else {
        join_all((0..TASKS).map(|task| order_all(&store, url, keys.clone(), task, how == "apart"))).await;
    }
}

/// The keys, of which every task begins with another one.
fn keys_of(task: usize, keys: Range<usize>) -> impl Iterator<Item = String> {
    let (begin, count) = (task * keys.len() / TASKS, keys.len());
    keys.cycle().skip(begin).take(count).map(|at| format!("order-{at}"))
}

/// In one piece, whoever else prints.
fn acknowledge(name: &str, number: i64) {
    let line = format!("\nordered {name} {number}.\n");
    std::io::stdout().write_all(line.as_bytes()).unwrap();
}

/// Whoever was killed is taken over soon, however often.
fn policy() -> Policy {
    Policy::default().on_lapse(OnLapse::Rerun).lease(Duration::from_secs(1)).attempts_max(u32::MAX)
}

/// Orders every key in the ordinary mode, with the effect in the transaction of the attempt.
async fn order_all_joined(hapax: &Hapax, store: &Arc<PostgresStore>, keys: Range<usize>, task: usize) {
    for name in keys_of(task, keys) {
        loop {
            let insert = format!("INSERT INTO effect VALUES ('{name}') RETURNING number");
            let store = store.clone();
            let once = hapax.once("order", name.as_str()).policy(policy()).run(async move |context| {
                let tx = store.transaction_of(context.fence()).await.map_err(|error| error.to_string())?;
                let row = tx.query_one(&insert, &[]).await.map_err(|error| error.to_string())?;
                row.try_get::<_, i64>(0).map_err(|error| error.to_string())
            });
            match once.await {
                Ok(Done { value, recorded: true, .. }) => break acknowledge(&name, value),
                _ => pause().await,
            }
        }
    }
}

/// Orders every key until it is acknowledged.
async fn order_all(store: &PostgresStore, url: &str, keys: Range<usize>, task: usize, is_apart: bool) {
    let (mut client, mut other) = (None, None);
    for name in keys_of(task, keys) {
        loop {
            let (Some(inner), Some(aside)) = (&mut client, &other) else {
                (client, other) = (connect(url).await, connect(url).await);
                continue;
            };
            match order(store, inner, is_apart.then_some(aside), &name).await {
                Ok(number) => break acknowledge(&name, number),
                Err(is_broken) => {
                    if is_broken {
                        client = None;
                    }
                    pause().await;
                }
            }
        }
    }
}

/// Orders in a transaction; the error tells whether the connection may be broken.
async fn order(
    store: &PostgresStore,
    client: &mut Client,
    aside: Option<&Client>,
    name: &str,
) -> Result<i64, bool> {
    let insert = format!("INSERT INTO effect VALUES ('{name}') RETURNING number");
    let mut tx = client.transaction().await.map_err(|_| true)?;
    let once = store.once_in(&mut tx, "order", &key(name)).wait(PATIENCE);
    let done = once.run(async |tx| {
        match aside {
            Some(aside) => aside.query_one(&insert, &[]).await?,
            None => tx.query_one(&insert, &[]).await?,
        }
        .try_get::<_, i64>(0)
    });
    match done.await {
        Ok(done) => tx.commit().await.map(|()| done.value).map_err(|_| true),
        Err(OnceInError::Store(_) | OnceInError::Failed(_)) => Err(true),
        Err(_) => Err(false),
    }
}

async fn connect(url: &str) -> Option<Client> {
    let Ok((client, connection)) = tokio_postgres::connect(url, NoTls).await else {
        pause().await;
        return None;
    };
    tokio::spawn(connection);
    Some(client)
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}
