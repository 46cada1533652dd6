//! [`Orders`]: the process that is killed. It orders every key until it is acknowledged, in several tasks at once.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use futures_util::future::try_join_all;
use hapax_core::Key;
use hapax_store_postgres::{OnceInError, PostgresStore};
use tokio_postgres::{Client, NoTls};

use super::account::Answer;
use super::handler::Shop;
use super::{Defect, Mode};

/// Keys of one process, and the tasks that order all of them.
pub(super) const KEYS: usize = 40;
pub(super) const TASKS: usize = 4;

/// Longer than a server takes to recover: who waits for an answer does not want a timeout.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long to leave a server alone that does not answer, or a key that somebody is at.
const PAUSE: Duration = Duration::from_millis(10);

/// What one process is to do.
#[derive(Args, Clone, Debug)]
pub struct Orders {
    /// Where the server or its pooler is.
    #[arg(long)]
    pub url: String,
    /// The number of the first key.
    #[arg(long)]
    pub first: usize,
    /// Where transactions come from.
    #[arg(long)]
    pub mode: Mode,
    /// What to do wrong.
    #[arg(long)]
    pub defect: Option<Defect>,
}

impl Orders {
    /// The keys.
    pub(super) fn keys(&self) -> Vec<String> {
        (self.first..self.first + KEYS).map(|number| format!("order-{number}")).collect()
    }

    /// Orders them all and tells each on its output.
    ///
    /// # Errors
    /// When the URL is wrong, or an order is answered with something that it never should be.
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

    /// The keys, of which every task begins with another one.
    fn keys_of(&self, task: usize) -> Vec<String> {
        let mut keys = self.keys();
        keys.rotate_left(task * KEYS / TASKS);
        keys
    }

    async fn in_functions(&self, store: &PostgresStore, keys: Vec<String>) -> Result<()> {
        let (mut client, mut other) = (None, None);
        for name in keys {
            loop {
                let (Some(own), Some(aside)) = (&mut client, &other) else {
                    (client, other) = (connect(&self.url).await, connect(&self.url).await);
                    continue;
                };
                match self.order(store, own, aside, &name).await? {
                    Ok(number) => break acknowledge(&name, number)?,
                    Err(Broken) => {
                        client = None;
                        pause().await;
                    }
                }
            }
        }
        Ok(())
    }

    /// Orders in a transaction.
    async fn order(
        &self,
        store: &PostgresStore,
        client: &mut Client,
        aside: &Client,
        name: &str,
    ) -> Result<Result<i64, Broken>> {
        let insert = insert(name);
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
                    acknowledge(name, done.value)?;
                    // Else the commit is nearly always there before the kill.
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

/// The connection may be broken, and nobody knows whether it happened.
struct Broken;

async fn in_handlers(shop: &Shop, keys: Vec<String>) -> Result<()> {
    for name in keys {
        loop {
            match shop.order(&name).await? {
                Some(number) => break acknowledge(&name, number)?,
                None => pause().await,
            }
        }
    }
    Ok(())
}

/// The effect of an order; the answer is its number. It has no parameters, so it need not be prepared: a statement that is
/// prepared under a name would be in the way of others behind a pooler.
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
    tokio::time::sleep(PAUSE).await;
}

/// In one piece, whoever else prints.
fn acknowledge(name: &str, number: i64) -> Result<()> {
    let line = format!("{name} {number}.\n");
    Ok(std::io::stdout().write_all(line.as_bytes())?)
}

/// What a process has acknowledged. A line that was cut off acknowledges nothing.
pub(super) fn acknowledged(line: &str) -> Option<Answer> {
    let (name, number) = line.strip_suffix('.')?.split_once(' ')?;
    Some((name.to_owned(), number.parse().ok()?))
}
