//! [`Calls`]: the process that is killed. It makes all calls of the work list with one client and its journal.

use std::collections::HashMap;
use std::future::ready;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use hapax_client::{
    CallBuilder, Client, ClientBuilder, Error, Key, Limit, OpenCallState, Response, Resumed, RetryPolicy,
    UncertainCause,
};

use super::work_list::{self, CallEnd, Noted, WorkList};
use crate::rig::flaws::SLOW;
use crate::rig::service::{NOW, WAIT};

/// Calls at a time.
const CONCURRENT: usize = 8;
/// Passes over the calls without an end. A call that is refused for a while, or whose answers are lost, takes a few.
const PASSES_MAX: usize = 50;
/// A slow answer is later.
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(SLOW.as_millis() as u64 / 2);
/// Only a sidecar that hangs takes longer.
const DEADLINE: Duration = Duration::from_secs(30);
const PAUSE_BASE: Duration = Duration::from_millis(10);

/// A defect of the caller that the audit must find.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum CallerDefect {
    /// A restarted process gives the calls that were under way new keys.
    RandomKeys,
    /// A restarted process neither continues nor repeats the calls that were under way.
    Forgotten,
}

impl CallerDefect {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::RandomKeys, Self::Forgotten];

    /// Its name as an argument.
    pub fn name(self) -> &'static str {
        match self {
            Self::RandomKeys => "random-keys",
            Self::Forgotten => "forgotten",
        }
    }
}

/// The arguments of one process.
#[derive(Args, Clone, Debug)]
pub struct Calls {
    /// The address of the sidecar.
    #[arg(long)]
    pub to: SocketAddr,
    /// The folder of the journal and the work list.
    #[arg(long)]
    pub folder: PathBuf,
    /// The number of calls.
    #[arg(long)]
    pub calls: u64,
    /// The planted defect.
    #[arg(long, value_enum)]
    pub defect: Option<CallerDefect>,
}

impl Calls {
    /// Continues the calls of the journal, then makes all others, until each has an end.
    ///
    /// # Errors
    /// When the journal or the work list cannot be used, or calls remain without an end.
    pub async fn run(&self) -> Result<()> {
        let path = list_path(&self.folder);
        let earlier = work_list::read(&path)?;
        let list = WorkList::open(&path)?;
        // With a journal, calls are continued with their own keys.
        let is_without_journal = self.defect == Some(CallerDefect::RandomKeys);
        let client = if is_without_journal { limits().build()? } else { client(&self.folder)? };
        if self.defect == Some(CallerDefect::Forgotten) {
            for call in client.open_calls().iter().filter(|call| call.state == OpenCallState::Open) {
                client.forget(call).await?;
            }
        }
        for _ in 0..PASSES_MAX {
            self.resume(&client, &list).await?;
            let left = self.left(&work_list::read(&path)?, &earlier);
            if left.is_empty() {
                return Ok(());
            }
            let calls = stream::iter(left.iter().map(|id| self.call(&client, &list, *id, &earlier)));
            calls.buffer_unordered(CONCURRENT).try_collect::<()>().await?;
        }
        bail!("calls have no end after {PASSES_MAX} passes")
    }

    /// The calls that this process has to make.
    fn left(&self, noted: &Noted, earlier: &Noted) -> Vec<u64> {
        let is_forgotten =
            |id: &u64| self.defect == Some(CallerDefect::Forgotten) && earlier.under_way.contains(id);
        (0..self.calls).filter(|id| noted.is_unfinished(*id) && !is_forgotten(id)).collect()
    }

    async fn resume(&self, client: &Client, list: &WorkList) -> Result<()> {
        let ids = ids_by_key(self.calls)?;
        let note = |resumed: Resumed| {
            let id = ids.get(&resumed.call.key);
            ready(id.map_or(Ok(()), |id| list.end(*id, call_end(&resumed.result))))
        };
        client.resume(note).await
    }

    async fn call(&self, client: &Client, list: &WorkList, id: u64, earlier: &Noted) -> Result<()> {
        let was_under_way = earlier.ends.contains_key(&id);
        let is_random = self.defect == Some(CallerDefect::RandomKeys) && was_under_way;
        let key = if is_random { Key::random() } else { key(id)? };
        list.begin(id)?;
        let result = request(client, self.to, id, key).send().await;
        list.end(id, call_end(&result))
    }
}

/// A client with the journal in this folder.
pub(super) fn client(folder: &Path) -> Result<Client> {
    Ok(limits().journal(format!("file:{}", folder.join("journal").display())).build()?)
}

fn limits() -> ClientBuilder {
    let retry = RetryPolicy::default().base(PAUSE_BASE);
    Client::builder().retry(retry).attempt_timeout(ATTEMPT_TIMEOUT).deadline(DEADLINE)
}

/// The request of a call. Its body is its number, as the service expects.
pub(super) fn request(client: &Client, to: SocketAddr, id: u64, key: Key) -> CallBuilder {
    let path = if id.is_multiple_of(2) { WAIT } else { NOW };
    client.post(format!("http://{to}{path}")).key(key).body(id.to_string())
}

/// The key of a call: any process makes the same.
pub(super) fn key(id: u64) -> Result<Key> {
    Ok(Key::derive(&format!("order-{id}"), "pay", None)?)
}

pub(super) fn ids_by_key(calls: u64) -> Result<HashMap<Key, u64>> {
    (0..calls).map(|id| Ok((key(id)?, id))).collect()
}

pub(super) fn list_path(folder: &Path) -> PathBuf {
    folder.join("calls.list")
}

fn call_end(result: &Result<Response, Error>) -> CallEnd {
    match result {
        Ok(_) => CallEnd::Answered,
        Err(
            Error::Uncertain { cause: UncertainCause::Server | UncertainCause::Lifetime, .. }
            | Error::Exhausted { limit: Limit::Told, .. },
        ) => CallEnd::Uncertain,
        Err(Error::Uncertain { .. } | Error::Exhausted { .. } | Error::InProgress { .. }) => CallEnd::Open,
        Err(_) => CallEnd::Refused,
    }
}
