//! [`Orders`]: the process that is killed. It sends an order for every key until it is acknowledged, in concurrent tasks.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use futures_util::future::try_join_all;
use hapax_core::Key;
use hapax_store_postgres::{OnceInError, PostgresStore};
use tokio_postgres::{Client, NoTls};

use super::handler::Shop;
use super::{Defect, Mode};

/// What the name of a key begins with.
pub(super) const NAME_PREFIX: &str = "order-";
/// Keys of one round.
pub(super) const KEYS: u64 = 40;
/// Tasks of a process, each of which sends orders for all keys.
pub(super) const TASKS: u64 = 4;

/// Longer than a server takes to recover, so that no call times out.
const PATIENCE: Duration = Duration::from_secs(120);
/// Back-off when a server does not answer, or a key is in progress.
const BACK_OFF: Duration = Duration::from_millis(10);

/// The arguments of one process.
#[derive(Args, Clone, Debug)]
pub struct Orders {
    /// The URL of the server or its pooler.
    #[arg(long)]
    pub url: String,
    /// The number of the first key.
    #[arg(long)]
    pub first: u64,
    /// Where the transactions come from.
    #[arg(long)]
    pub mode: Mode,
    /// The planted defect.
    #[arg(long)]
    pub defect: Option<Defect>,
}

impl Orders {
    /// Sends all orders and prints the answers.
    ///
    /// # Errors
    /// When the URL is wrong, or an order is answered in a way that breaks the contract.
    pub async fn run(&self) -> Result<()> {
        let options = PostgresStore::options(&self.url)?.timeout(PATIENCE);
        let store = loop {
            match options.clone().existing().connect().await {
                Ok(store) => break Arc::new(store),
                Err(_) => pause().await,
            }
        };
        match self.mode {
            Mode::Function => {
                try_join_all((0..TASKS).map(|task| self.in_functions(&store, self.keys_of(task)))).await?;
            }
            Mode::Handler => {
                let apart = (self.defect == Some(Defect::Apart)).then(|| self.url.clone());
                let shop = Shop::new(&store, apart);
                try_join_all((0..TASKS).map(|task| in_handlers(&shop, self.keys_of(task)))).await?;
            }
        }
        Ok(())
    }

    /// All keys; each task begins with a different one.
    fn keys_of(&self, task: u64) -> Vec<u64> {
        let mut keys = Vec::from_iter(self.first..self.first + KEYS);
        keys.rotate_left((task * KEYS / TASKS) as usize);
        keys
    }

    async fn in_functions(&self, store: &PostgresStore, keys: Vec<u64>) -> Result<()> {
        let (mut client, mut other) = (None, None);
        for key in keys {
            loop {
                let (Some(own), Some(aside)) = (&mut client, &other) else {
                    (client, other) = (connect(&self.url).await, connect(&self.url).await);
                    continue;
                };
                match self.order(store, own, aside, key).await? {
                    Ok(number) => break acknowledge(key, number)?,
                    Err(Broken) => {
                        client = None;
                        pause().await;
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends one order in a transaction.
    async fn order(
        &self,
        store: &PostgresStore,
        client: &mut Client,
        aside: &Client,
        key: u64,
    ) -> Result<Result<i64, Broken>> {
        let name = name(key);
        let insert = insert(&name);
        let Ok(mut tx) = client.transaction().await else { return Ok(Err(Broken)) };
        let once = store.once_in(&mut tx, "order", &Key::new(name)?).wait(PATIENCE);
        let done = once.run(async |tx| {
            let row = match self.defect {
                Some(Defect::Apart) => aside.query_typed_one(&insert, &[]).await?,
                _ => tx.query_typed_one(&insert, &[]).await?,
            };
            row.try_get::<_, i64>(0)
        });
        match done.await {
            Ok(done) => {
                if self.defect == Some(Defect::Early) {
                    acknowledge(key, done.value)?;
                    // Otherwise the commit nearly always comes before the kill.
                    pause().await;
                }
                Ok(tx.commit().await.map(|()| done.value).map_err(|_| Broken))
            }
            Err(
                OnceInError::Store(_)
                | OnceInError::Failed(_)
                | OnceInError::Conflict(_)
                | OnceInError::InProgress { .. },
            ) => Ok(Err(Broken)),
            Err(other) => Err(other.into()),
        }
    }
}

/// The connection may be broken, and the outcome is unknown.
struct Broken;

async fn in_handlers(shop: &Shop, keys: Vec<u64>) -> Result<()> {
    for key in keys {
        let name = name(key);
        loop {
            match shop.order(&name).await? {
                Some(number) => break acknowledge(key, number)?,
                None => pause().await,
            }
        }
    }
    Ok(())
}

/// The name of a key.
fn name(key: u64) -> String {
    format!("{NAME_PREFIX}{key}")
}

/// The effect of an order; the answer is its number. It has no parameters, because a prepared statement with a name would
/// collide with those of other clients behind a pooler.
pub(super) fn insert(name: &str) -> String {
    format!("INSERT INTO effect VALUES ('{name}') RETURNING number")
}

pub(super) async fn connect(url: &str) -> Option<Client> {
    let Ok((client, connection)) = tokio_postgres::connect(url, NoTls).await else {
        pause().await;
        return None;
    };
    tokio::spawn(connection);
    Some(client)
}

async fn pause() {
    tokio::time::sleep(BACK_OFF).await;
}

/// One write, so that lines of several tasks do not mix.
fn acknowledge(key: u64, number: i64) -> Result<()> {
    let line = format!("{key} {number}.\n");
    Ok(std::io::stdout().write_all(line.as_bytes())?)
}

/// The key and the number that a line acknowledges. An incomplete line acknowledges nothing.
pub(super) fn acknowledged(line: &str) -> Option<(u64, i64)> {
    let (key, number) = line.strip_suffix('.')?.split_once(' ')?;
    Some((key.parse().ok()?, number.parse().ok()?))
}
