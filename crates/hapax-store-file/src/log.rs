//! [`Log`]: brings commits to the disk, and only then lets their answers go.
//!
//! The engine writes a commit to its log and leaves the syncing to this file. So the writer can work on the next
//! transaction while the disk is busy with the last one; it commits only after that is durable, so that there is
//! never more than one commit that a power failure could take.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};
use rusqlite::ffi;

use crate::config::Sync;
use crate::error::{Failure, Phase};
use crate::writer::Answered;

/// One writer's way to the disk.
#[derive(Debug)]
pub(crate) struct Log {
    disk: Arc<Disk>,
    /// Syncs and answers what the writer hands over; taken when it is joined.
    thread: Option<JoinHandle<()>>,
}

/// What the writer, the syncing thread and readers share.
#[derive(Debug)]
pub(crate) struct Disk {
    path: PathBuf,
    sync: Sync,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Answers whose commit is to be synced.
    waiting: Option<Vec<Answered>>,
    /// How many commits were begun, and how many of them are settled.
    begun: u64,
    settled: u64,
    failed: bool,
    closed: bool,
    file: Option<Arc<File>>,
}

/// A sync failed: nobody can say what a later one would mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SyncFailed;

impl Log {
    /// The way of the log at `path`. `stop` is called when a sync fails, before anybody is told.
    pub(crate) fn new(path: PathBuf, sync: Sync, stop: impl Fn() + Send + 'static) -> io::Result<Self> {
        let disk =
            Arc::new(Disk { path, sync, state: Mutex::new(State::default()), changed: Condvar::new() });
        let thread = thread::Builder::new().name("hapax-file-sync".to_owned()).spawn({
            let disk = Arc::clone(&disk);
            move || disk.serve(&stop)
        })?;
        Ok(Self { disk, thread: Some(thread) })
    }

    pub(crate) fn disk(&self) -> Arc<Disk> {
        Arc::clone(&self.disk)
    }

    /// Waits for the last commit to be durable, and announces the next.
    pub(crate) fn begin(&self) -> Result<(), SyncFailed> {
        self.disk.settle()?;
        self.disk.state.lock().begun += 1;
        Ok(())
    }

    /// The commit that was begun came to nothing.
    pub(crate) fn forget(&self) {
        self.disk.settled();
    }

    /// Brings the commit that was begun to the disk before this returns.
    pub(crate) fn bring(&self) -> Result<(), Failure> {
        let synced = self.disk.sync();
        match &synced {
            Ok(()) => self.disk.settled(),
            Err(_) => self.disk.fail(),
        }
        synced
    }

    /// Brings the commit that was begun to the disk behind the writer's back, and answers then.
    pub(crate) fn bring_behind(&self, answers: Vec<Answered>) {
        self.disk.state.lock().waiting = Some(answers);
        self.disk.changed.notify_all();
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.disk.state.lock().closed = true;
        self.disk.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // Its panic, if it had one, was reported by itself.
            let _ = thread.join();
        }
    }
}

impl Disk {
    /// Waits until all commits that were begun are durable: what was read before is then a fact.
    pub(crate) fn settle(&self) -> Result<(), SyncFailed> {
        let mut state = self.state.lock();
        let begun = state.begun;
        while state.settled < begun && !state.failed {
            self.changed.wait(&mut state);
        }
        if state.failed { Err(SyncFailed) } else { Ok(()) }
    }

    /// Whether a commit is on its way.
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.state.lock();
        state.settled < state.begun
    }

    fn settled(&self) {
        let mut state = self.state.lock();
        state.settled = state.begun;
        drop(state);
        self.changed.notify_all();
    }

    fn fail(&self) {
        self.state.lock().failed = true;
        self.changed.notify_all();
    }

    fn sync(&self) -> Result<(), Failure> {
        if self.sync == Sync::Off {
            return Ok(());
        }
        let synced = self.file().and_then(|file| file.sync_data());
        synced.map_err(|error| {
            let code = ffi::Error::new(ffi::SQLITE_IOERR_FSYNC);
            Failure::at(Phase::Commit)(rusqlite::Error::SqliteFailure(code, Some(error.to_string())))
        })
    }

    /// The engine makes the log with its first commit and keeps the file as long as a connection is open.
    fn file(&self) -> io::Result<Arc<File>> {
        let mut state = self.state.lock();
        if let Some(file) = &state.file {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(File::open(&self.path)?);
        state.file = Some(Arc::clone(&file));
        Ok(file)
    }

    fn serve(&self, stop: &dyn Fn()) {
        let _guard = FailGuard(self);
        while let Some(answers) = self.next() {
            match self.sync() {
                Ok(()) => {
                    // First, so that the next commit need not wait until everybody has been told.
                    self.settled();
                    answers.into_iter().for_each(Answered::tell);
                }
                Err(failure) => {
                    tracing::error!(error = %failure, "file store stopped; it must be opened again");
                    stop();
                    self.fail();
                    answers.into_iter().for_each(|answered| answered.fail(&failure));
                }
            }
        }
    }

    fn next(&self) -> Option<Vec<Answered>> {
        let mut state = self.state.lock();
        loop {
            if let Some(answers) = state.waiting.take() {
                return Some(answers);
            }
            if state.closed {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }
}

/// A thread that ends with a commit in its hands, by a panic, has not brought it to the disk.
struct FailGuard<'a>(&'a Disk);

impl Drop for FailGuard<'_> {
    fn drop(&mut self) {
        if !self.0.state.lock().closed {
            self.0.fail();
        }
    }
}

#[cfg(test)]
mod tests;
