//! [`Journal`]: the calls without a final answer, on disk, so that a restarted process continues them with the same keys.
//!
//! An append-only log in a directory with one owner. A call is synced before its first attempt; its end is not, since a lost
//! end only means that the call is made again with its key and gets the recorded answer. Calls that begin at the same time
//! share one fsync. A log that is large is rewritten by a call that begins: none that ends waits for it.

mod entry;
mod error;
mod frame;
mod log;
mod recover;
mod stored;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hapax_core::Key;
use http::Method;
use parking_lot::Mutex;
use tokio::task;

use crate::age::{KeyAge, Moment};
use crate::error::{Error, MismatchFoundBy};
use crate::plan::Plan;
use crate::response::Response;

pub(crate) use self::entry::Entry;
pub use self::error::JournalError;
use self::frame::Event;
pub(crate) use self::log::IfMissing;
use self::log::Log;
use self::recover::RecoveredCall;
pub(crate) use self::stored::StoredCall;

/// A log below this size is not rewritten.
const REWRITE_MIN: u64 = 1 << 20;
/// How many times larger than its open calls a log may be.
const REWRITE_FACTOR: u64 = 4;

/// A journal, open in this process.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<JournalState>,
    /// Held while a sync runs, so that the calls that wait for it share the next one.
    syncing: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct JournalState {
    log: Log,
    calls: BTreeMap<u64, LiveCall>,
    next_id: u64,
    /// The bytes of the frames that open these calls.
    live_size: u64,
    /// Frames appended since the journal was opened, and those of them that are on disk.
    appended: u64,
    synced: u64,
}

#[derive(Debug)]
struct LiveCall {
    stored: StoredCall,
    age: KeyAge,
    is_uncertain: bool,
    /// The bytes of the frame that opened it.
    size: u64,
    /// The frame that opened it; 0 when it was on disk already as the journal was opened.
    frame: u64,
    /// Futures of this process that make the call.
    running: u32,
}

/// A call that was begun.
struct Begun {
    entry: Entry,
    /// The frame that must be on disk before the call is sent.
    frame: u64,
    age: KeyAge,
}

/// A call without a final answer.
#[derive(Clone)]
#[non_exhaustive]
pub struct OpenCall {
    id: u64,
    /// Its key.
    pub key: Key,
    /// The method of its request.
    pub method: Method,
    /// The URL of its request, without credentials.
    pub url: String,
    /// When its key was made.
    pub key_made_at: SystemTime,
    /// Whether it runs, waits or is uncertain.
    pub state: OpenCallState,
}

impl fmt::Debug for OpenCall {
    /// Without the query of the URL, which may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenCall")
            .field("key", &self.key)
            .field("method", &self.method)
            .field("url", &self.url.split(['?', '#']).next())
            .field("key_made_at", &self.key_made_at)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// The state of an open call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OpenCallState {
    /// This process makes it at the moment.
    Running,
    /// [`Client::resume`](crate::Client::resume) continues it.
    Open,
    /// It is not sent again: a person must find out what happened. A call with its key, method and URL continues it.
    Uncertain,
}

/// A call that was continued, and how it ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Resumed {
    /// The call.
    pub call: OpenCall,
    /// Its end.
    pub result: Result<Response, Error>,
    /// The state that it has in the journal once its handler has returned `Ok`; none when it leaves the journal.
    pub next_state: Option<OpenCallState>,
}

impl Journal {
    /// Opens the journal in a directory.
    pub(crate) fn open(directory: PathBuf, if_missing: IfMissing) -> Result<Self, JournalError> {
        let (log, recovered) = Log::open(directory, if_missing)?;
        let next_id = recovered.last_key_value().map_or(0, |(id, _)| id + 1);
        let now = Moment::now();
        let live = |call: RecoveredCall| LiveCall {
            age: KeyAge::new(call.stored.key_made_at(), now),
            stored: call.stored,
            is_uncertain: call.is_uncertain,
            size: call.size,
            frame: 0,
            running: 0,
        };
        let calls: BTreeMap<u64, LiveCall> =
            recovered.into_iter().map(|(id, call)| (id, live(call))).collect();
        let live_size = calls.values().map(|call| call.size).sum();
        let state = JournalState { log, calls, next_id, live_size, appended: 0, synced: 0 };
        let shared = Shared { state: Mutex::new(state), syncing: tokio::sync::Mutex::new(()) };
        Ok(Self { shared: Arc::new(shared) })
    }

    pub(crate) fn open_calls(&self) -> Vec<OpenCall> {
        let state = self.shared.state.lock();
        state.calls.iter().map(|(id, call)| call.listed(*id)).collect()
    }

    /// Records a call before its first attempt. A call that is recorded already is continued, with the age of its key.
    pub(crate) async fn begin(&self, plan: &mut Plan) -> Result<Entry, Error> {
        let stored = StoredCall::of(plan).map_err(Error::Journal)?;
        let journal = self.clone();
        // Inside of the task: where the caller is dropped, so is the entry, and the call does not count as running.
        let age = plan.age;
        let begun = blocking(move || journal.begin_or_continue(stored, age)).await.map_err(Error::Journal)?;
        let Some(Begun { entry, frame, age }) = begun else {
            return Err(Error::Mismatch { key: plan.key.clone(), by: MismatchFoundBy::Journal });
        };
        self.recorded(&entry, frame).await.map_err(Error::Journal)?;
        plan.age = plan.age.older(age, Moment::now());
        plan.is_continued = entry.is_resumed;
        Ok(entry)
    }

    /// Under one lock, so that two calls with a key are never both the first. `None` when the key has another body.
    fn begin_or_continue(&self, stored: StoredCall, age: KeyAge) -> Result<Option<Begun>, JournalError> {
        let mut state = self.shared.state.lock();
        let mut same = state.calls.iter_mut().filter(|(_, call)| call.stored.is_same_operation(&stored));
        if let Some((id, call)) = same.next() {
            if call.stored.body() != stored.body() {
                return Ok(None);
            }
            call.running += 1;
            let entry = Entry { journal: self.clone(), id: *id, is_resumed: true };
            return Ok(Some(Begun { entry, frame: call.frame, age: call.age }));
        }
        let id = state.next_id;
        let size = state.append(&Event::Opened { id, call: stored.head() }, stored.body())?;
        state.next_id += 1;
        let frame = state.appended;
        state.live_size += size;
        state.calls.insert(id, LiveCall { stored, age, is_uncertain: false, size, frame, running: 1 });
        // A call that begins waits for the disk in any case; one that ends does not.
        if let Err(error) = state.rewrite_if_large() {
            tracing::warn!(%error, "the journal was not rewritten; it keeps calls that have ended");
        }
        let entry = Entry { journal: self.clone(), id, is_resumed: false };
        Ok(Some(Begun { entry, frame, age }))
    }

    /// Waits until the call of an entry is on disk. One that cannot be written is no call of the journal.
    async fn recorded(&self, entry: &Entry, frame: u64) -> Result<(), JournalError> {
        self.sync_through(frame).await.inspect_err(|_| {
            self.shared.state.lock().remove(entry.id);
        })
    }

    /// Takes an open call that neither runs nor is uncertain.
    pub(crate) async fn continue_call(
        &self,
        call: &OpenCall,
    ) -> Option<Result<(Entry, StoredCall, KeyAge), JournalError>> {
        let (entry, stored, age, frame) = {
            let mut state = self.shared.state.lock();
            let live = state.calls.get_mut(&call.id).filter(|live| live.stored.is_listed_as(call))?;
            if live.running > 0 || live.is_uncertain {
                return None;
            }
            live.running = 1;
            let entry = Entry { journal: self.clone(), id: call.id, is_resumed: true };
            (entry, live.stored.clone(), live.age, live.frame)
        };
        Some(self.recorded(&entry, frame).await.map(|()| (entry, stored, age)))
    }

    /// Removes a call, durably. The number alone does not name it: that of a call which has left is used again.
    pub(crate) async fn forget(&self, call: &OpenCall) -> Result<(), JournalError> {
        let (shared, call) = (Arc::clone(&self.shared), call.clone());
        let close = move || {
            let mut state = shared.state.lock();
            let found = state.calls.get(&call.id).is_some_and(|live| live.stored.is_listed_as(&call));
            if found { state.close(call.id) } else { Ok(state.synced) }
        };
        let frame = blocking(close).await?;
        self.sync_through(frame).await
    }

    /// Waits until a frame is on disk. One sync serves all that wait for it.
    async fn sync_through(&self, frame: u64) -> Result<(), JournalError> {
        let _turn = self.shared.syncing.lock().await;
        if self.shared.state.lock().synced >= frame {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        blocking(move || {
            let (sync, appended) = {
                let state = shared.state.lock();
                (state.log.sync()?, state.appended)
            };
            let result = sync.run();
            let mut state = shared.state.lock();
            state.log.synced(&sync, result)?;
            state.synced = state.synced.max(appended);
            Ok(())
        })
        .await
    }
}

impl JournalState {
    /// Appends a frame, and returns its size.
    fn append(&mut self, event: &Event, body: &[u8]) -> Result<u64, JournalError> {
        let size = self.log.append(event, body)?;
        self.appended += 1;
        Ok(size)
    }

    /// Removes a call, and returns the number of the frame that says so.
    fn close(&mut self, id: u64) -> Result<u64, JournalError> {
        if self.calls.contains_key(&id) {
            self.append(&Event::Closed { id }, &[])?;
            self.remove(id);
        }
        Ok(self.appended)
    }

    fn remove(&mut self, id: u64) {
        if let Some(call) = self.calls.remove(&id) {
            self.live_size -= call.size;
        }
    }

    fn rewrite_if_large(&mut self) -> Result<(), JournalError> {
        let size = self.log.size();
        if size < REWRITE_MIN || size / REWRITE_FACTOR < self.live_size {
            return Ok(());
        }
        let calls = self.calls.iter().map(|(id, call)| (*id, &call.stored, call.is_uncertain));
        self.log.rewrite(calls)?;
        self.synced = self.appended;
        Ok(())
    }
}

impl LiveCall {
    fn listed(&self, id: u64) -> OpenCall {
        let state = match self {
            Self { running: 1.., .. } => OpenCallState::Running,
            Self { is_uncertain: true, .. } => OpenCallState::Uncertain,
            _ => OpenCallState::Open,
        };
        self.stored.listed(id, state)
    }
}

/// Runs file operations where they block no other task.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, JournalError> + Send + 'static,
) -> Result<T, JournalError> {
    task::spawn_blocking(work).await.unwrap_or(Err(JournalError::Stopped))
}

/// A duration as whole milliseconds.
fn as_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
