//! [`Untaken`]: answers that are in memory because their clients have not taken them yet.
//!
//! By its windows, or by not reading, a client can leave an answer where it is for as long as its deadline allows, and do so
//! with thousands of them. All of them together may have so many bytes. Beyond that, the answers that are taken most
//! slowly are cut off. Answers from one record share their bytes, which count once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::AbortHandle;
use parking_lot::Mutex;

use super::socket::Progress;

/// Smaller parts of an answer are not counted: the task that sends them takes as much.
pub(super) const COUNTED_MIN: usize = 4096;

/// Which part of the limit is made free when it is reached, so that not every further answer looks for the slowest.
const FREED: usize = 8;

/// How long an answer that was cut off may still be there. Where its connection takes nothing any more, the reset of its
/// stream does not leave either.
const STUCK: Duration = Duration::from_secs(1);

/// The bytes of all answers that are on their way to clients.
#[derive(Debug)]
pub(super) struct Untaken {
    bytes_max: usize,
    ledger: Mutex<Ledger>,
}

#[derive(Debug, Default)]
struct Ledger {
    /// What all buffers have together.
    bytes: usize,
    /// How many answers hold each buffer, those that were cut off not counted.
    buffers: HashMap<Buffer, usize>,
    holds: HashMap<u64, Hold>,
    next: u64,
}

/// Where a buffer begins, and its length. As long as it is held, no other one is there.
type Buffer = (usize, usize);

/// A buffer that is held by an answer.
#[derive(Debug)]
struct Hold {
    buffer: Buffer,
    answer: Arc<Leaving>,
    /// When it was cut off.
    cut_at: Option<Instant>,
}

/// Answers to be cut off.
struct Cut {
    slowest: Vec<Arc<Leaving>>,
    /// With their connections.
    stuck: Vec<Arc<Leaving>>,
}

/// An answer on its way to its client.
#[derive(Debug)]
pub(super) struct Leaving {
    untaken: Arc<Untaken>,
    connection: Arc<Progress>,
    /// None over HTTP/1, where an answer ends with its connection.
    stream: Option<Stream>,
    begun: Instant,
    pieces_taken: AtomicU32,
}

/// A stream of HTTP/2, to be reset.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    task: AbortHandle,
    is_over: Arc<AtomicBool>,
}

/// A buffer, counted for as long as anything of it is there.
struct Counted {
    data: Bytes,
    answer: Arc<Leaving>,
    number: u64,
}

impl Untaken {
    pub(super) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { bytes_max, ledger: Mutex::default() })
    }
}

impl Ledger {
    fn add(&mut self, buffer: Buffer, answer: Arc<Leaving>) -> u64 {
        let holders = self.buffers.entry(buffer).or_default();
        *holders += 1;
        if *holders == 1 {
            self.bytes += buffer.1;
        }
        self.next += 1;
        self.holds.insert(self.next, Hold { buffer, answer, cut_at: None });
        self.next
    }

    fn remove(&mut self, number: u64) {
        if let Some(hold) = self.holds.remove(&number)
            && hold.cut_at.is_none()
        {
            self.leave(hold.buffer);
        }
    }

    fn leave(&mut self, buffer: Buffer) {
        let Some(holders) = self.buffers.get_mut(&buffer) else { return };
        *holders -= 1;
        if *holders == 0 {
            self.buffers.remove(&buffer);
            self.bytes -= buffer.1;
        }
    }

    /// The slowest answers but `newest`, as many as it takes to have no more than `bytes`, and those that were cut off and
    /// are still there.
    fn cut_slowest(&mut self, bytes: usize, newest: &Arc<Leaving>) -> Cut {
        let now = Instant::now();
        let is_stuck = |hold: &&Hold| hold.cut_at.is_some_and(|at| now.saturating_duration_since(at) > STUCK);
        let stuck = self.holds.values().filter(is_stuck).map(|hold| Arc::clone(&hold.answer)).collect();
        let others =
            self.holds.iter().filter(|(_, hold)| hold.cut_at.is_none() && !Arc::ptr_eq(&hold.answer, newest));
        let mut others: Vec<_> =
            others.map(|(number, hold)| (hold.answer.time_per_piece(now), *number)).collect();
        others.sort_unstable_by(|one, other| other.cmp(one));
        let mut slowest = Vec::new();
        for (_, number) in others {
            if self.bytes <= bytes {
                break;
            }
            let Some(hold) = self.holds.get_mut(&number) else { continue };
            hold.cut_at = Some(now);
            let buffer = hold.buffer;
            slowest.push(Arc::clone(&hold.answer));
            self.leave(buffer);
        }
        Cut { slowest, stuck }
    }
}

impl Leaving {
    /// An answer of this connection; nothing where its bytes are not counted.
    pub(super) fn new(connection: &Arc<Progress>, stream: Option<Stream>) -> Option<Arc<Self>> {
        Some(Arc::new(Self {
            untaken: Arc::clone(connection.untaken()?),
            connection: Arc::clone(connection),
            stream,
            begun: Instant::now(),
            pieces_taken: AtomicU32::new(0),
        }))
    }

    /// Counts these bytes until the last piece of what comes back is gone.
    pub(super) fn hold(self: &Arc<Self>, data: Bytes) -> Bytes {
        let buffer = (data.as_ptr().addr(), data.len());
        let bytes_max = self.untaken.bytes_max;
        let (number, cut) = {
            let mut ledger = self.untaken.ledger.lock();
            let number = ledger.add(buffer, Arc::clone(self));
            let is_over = ledger.bytes > bytes_max;
            (number, is_over.then(|| ledger.cut_slowest(bytes_max - bytes_max / FREED, self)))
        };
        if let Some(Cut { slowest, stuck }) = cut {
            if !slowest.is_empty() {
                tracing::warn!(
                    answers = slowest.len(),
                    "cut off the slowest answers: too much waits for clients"
                );
            }
            slowest.iter().for_each(|answer| answer.cut_off());
            stuck.iter().for_each(|answer| answer.connection.cut_off());
        }
        Bytes::from_owner(Counted { data, answer: Arc::clone(self), number })
    }

    /// A piece of it was taken.
    pub(super) fn taken(&self) {
        self.pieces_taken.fetch_add(1, Ordering::Relaxed);
    }

    /// How long its client takes for a piece, the one that it is taking included.
    fn time_per_piece(&self, now: Instant) -> Duration {
        let pieces = self.pieces_taken.load(Ordering::Relaxed).saturating_add(1);
        now.saturating_duration_since(self.begun) / pieces
    }

    /// Ends it: with its stream, or with its connection where it has none any more and only the connection still holds it.
    fn cut_off(&self) {
        match &self.stream {
            Some(stream) if !stream.is_over.load(Ordering::Acquire) => stream.task.abort(),
            _ => self.connection.cut_off(),
        }
    }
}

impl Stream {
    pub(super) fn new(task: AbortHandle) -> Self {
        Self { task, is_over: Arc::default() }
    }

    /// All of its answer was handed to the connection.
    pub(super) fn over(&self) {
        self.is_over.store(true, Ordering::Release);
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.answer.untaken.ledger.lock().remove(self.number);
    }
}

#[cfg(test)]
mod tests;
