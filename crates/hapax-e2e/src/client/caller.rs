//! [`Calls`]: the process that is killed. It makes all calls of the work list with one client and its journal.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use hapax_client::{
    CallBuilder, Client, ClientBuilder, Error, Key, Limit, OpenCallState, Response, RetryPolicy,
    UncertainCause,
};

use super::work_list::{self, CallAnswer, CallEnd, Noted, WorkList};
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

/// Where the keys of calls come from, and so what repeats a call after a restart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Keys {
    /// From the number of the call: the caller repeats it with the same key, and the journal continues it.
    Derived,
    /// Each is random: only the journal continues a call that was begun.
    Random,
}

impl Keys {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Derived, Self::Random];

    /// Its name as an argument.
    pub fn name(self) -> &'static str {
        match self {
            Self::Derived => "derived",
            Self::Random => "random",
        }
    }
}

/// A planted defect that the audit must find.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ClientDefect {
    /// A restarted process gives the calls that were under way new keys.
    RandomKeys,
    /// A restarted process neither continues nor repeats the calls that were under way.
    Forgotten,
    /// The journal of a killed process has lost its open calls.
    JournalForgets,
    /// The journal was never synced, and its machine lost its power.
    JournalUnsynced,
}

impl ClientDefect {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::RandomKeys, Self::Forgotten, Self::JournalForgets, Self::JournalUnsynced];

    /// Its name as an argument.
    pub fn name(self) -> &'static str {
        match self {
            Self::RandomKeys => "random-keys",
            Self::Forgotten => "forgotten",
            Self::JournalForgets => "journal-forgets",
            Self::JournalUnsynced => "journal-unsynced",
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
    /// Where the keys come from.
    #[arg(long, value_enum)]
    pub keys: Keys,
    /// The planted defect.
    #[arg(long, value_enum)]
    pub defect: Option<ClientDefect>,
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
        let is_without_journal = self.defect == Some(ClientDefect::RandomKeys);
        let client = if is_without_journal { limits().build()? } else { client(&self.folder)? };
        if self.defect == Some(ClientDefect::Forgotten) {
            for call in client.open_calls().iter().filter(|call| call.state == OpenCallState::Open) {
                client.forget(call).await?;
            }
        }
        for _ in 0..PASSES_MAX {
            self.resume(&client, &list).await?;
            let left = self.left(&work_list::read(&path)?, &earlier);
            let is_open = client.open_calls().iter().any(|call| call.state == OpenCallState::Open);
            if left.is_empty() && !is_open {
                return Ok(());
            }
            let calls = stream::iter(left.iter().map(|id| self.call(&client, &list, *id, &earlier)));
            calls.buffer_unordered(CONCURRENT).try_collect::<()>().await?;
        }
        bail!("calls have no end after {PASSES_MAX} passes")
    }

    /// The calls that this process has to make. A call with a random key is begun once.
    fn left(&self, noted: &Noted, earlier: &Noted) -> Vec<u64> {
        let is_forgotten =
            |id: &u64| self.defect == Some(ClientDefect::Forgotten) && earlier.under_way.contains(id);
        let is_left = |id: &u64| match self.keys {
            Keys::Derived => noted.is_unfinished(*id) && !is_forgotten(id),
            Keys::Random => !noted.ends.contains_key(id),
        };
        (0..self.calls).filter(is_left).collect()
    }

    /// Notes the end of each call before it leaves the journal.
    async fn resume(&self, client: &Client, list: &WorkList) -> Result<()> {
        let noted = work_list::read(&list_path(&self.folder))?;
        let ids: HashMap<&Key, u64> = noted.keys.iter().map(|(id, key)| (key, *id)).collect();
        let ids = &ids;
        client
            .resume(|resumed| async move {
                let Some(id) = ids.get(&resumed.call.key) else { return Ok(()) };
                list.resumed(*id)?;
                list.end(*id, &call_end(resumed.result).await?)
            })
            .await
    }

    async fn call(&self, client: &Client, list: &WorkList, id: u64, earlier: &Noted) -> Result<()> {
        let was_under_way = earlier.ends.contains_key(&id);
        let has_new_key = self.defect == Some(ClientDefect::RandomKeys) && was_under_way;
        let key = if has_new_key || self.keys == Keys::Random { Key::random() } else { key(id)? };
        // Noted first: a call of the journal that is not in the list would be lost.
        list.begin(id, &key)?;
        let result = request(client, self.to, id, key).send().await;
        list.end(id, &call_end(result).await?)
    }
}

/// A client with the journal in this folder.
pub(super) fn client(folder: &Path) -> Result<Client> {
    Ok(limits().journal(format!("file:{}", journal_path(folder).display())).build()?)
}

pub(super) fn journal_path(folder: &Path) -> PathBuf {
    folder.join("journal")
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

/// The derived key of a call: any process makes the same.
fn key(id: u64) -> Result<Key> {
    Ok(Key::derive(&format!("order-{id}"), "pay", None)?)
}

pub(super) fn list_path(folder: &Path) -> PathBuf {
    folder.join("calls.list")
}

async fn call_end(result: Result<Response, Error>) -> Result<CallEnd> {
    Ok(match result {
        Ok(response) => {
            let status = response.status().as_u16();
            let body = String::from_utf8(response.bytes().await?.into())?;
            CallEnd::Answered(CallAnswer { status, body })
        }
        Err(
            Error::Uncertain { cause: UncertainCause::Server | UncertainCause::Lifetime, .. }
            | Error::Exhausted { limit: Limit::Told, .. },
        ) => CallEnd::Uncertain,
        Err(Error::Uncertain { .. } | Error::Exhausted { .. } | Error::InProgress { .. }) => CallEnd::Open,
        Err(_) => CallEnd::Refused,
    })
}
