//! [`Journal`]: the calls without a final answer, on disk, so that a restarted process continues them with the same keys.
//!
//! An append-only log in a directory with one owner. A call is synced before its first attempt; its end is not, since a lost
//! end only means that the call is made again with its key and gets the recorded answer. Calls that begin at the same time
//! share one fsync. A log that is large is rewritten by a call that begins: none that ends waits for it.

mod entry;
mod error;
mod frame;
mod log;
mod open_call;
mod recover;
mod state;
mod stored;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task;

use crate::age::{KeyAge, Moment};
use crate::error::{Error, MismatchFoundBy};
use crate::plan::Plan;

pub(crate) use self::entry::Entry;
pub use self::error::JournalError;
use self::frame::Event;
pub(crate) use self::log::IfMissing;
use self::log::Log;
pub use self::open_call::{OpenCall, OpenCallState, Resumed};
use self::recover::RecoveredCall;
use self::state::{JournalState, LiveCall};
pub(crate) use self::stored::StoredCall;

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

/// A call that was begun.
struct Begun {
    entry: Entry,
    /// The frame that must be on disk before the call is sent.
    frame: u64,
    age: KeyAge,
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
