//! [`ResponseBudget`]: limits the response bytes that are buffered for slow clients, on all connections together.
//!
//! By its flow-control windows, or by not reading, a client can leave a response unread for as long as `write_idle` allows,
//! and do so with thousands of them. When the budget is exceeded, the slowest responses are aborted. Replays of one record
//! share a buffer, which counts once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::AbortHandle;
use parking_lot::Mutex;

use crate::client_io::ConnectionState;

/// Smaller buffers are not counted: the task that sends them takes as much memory.
pub(crate) const COUNTED_MIN: usize = 4096;

/// The fraction of the budget (one in this many) that is freed when it is exceeded, so that not every further response
/// searches for the slowest.
const FREED_FRACTION: usize = 8;

/// How long an aborted response may still hold its bytes. Where the connection is stalled, the reset of its stream does
/// not leave either.
const STUCK_AFTER: Duration = Duration::from_secs(1);

/// The bytes of all responses on their way to clients.
#[derive(Debug)]
pub(crate) struct ResponseBudget {
    bytes_max: usize,
    usage: Mutex<Usage>,
}

#[derive(Debug, Default)]
struct Usage {
    /// The sum of all distinct buffers.
    bytes: usize,
    /// The number of responses that hold each buffer, without the aborted ones.
    buffers: HashMap<BufferId, usize>,
    held: HashMap<u64, HeldBuffer>,
    next: u64,
}

/// Address and length. While a buffer is held, no other one has the same.
type BufferId = (usize, usize);

/// A buffer held by a response.
#[derive(Debug)]
struct HeldBuffer {
    buffer: BufferId,
    response: Arc<BufferedResponse>,
    aborted_at: Option<Instant>,
}

/// Responses to be aborted.
struct Evicted {
    slowest: Vec<Arc<BufferedResponse>>,
    /// Aborted earlier and still there: their connections are closed.
    stuck: Vec<Arc<BufferedResponse>>,
}

/// A response on its way to its client.
#[derive(Debug)]
pub(crate) struct BufferedResponse {
    budget: Arc<ResponseBudget>,
    connection: Arc<ConnectionState>,
    /// None over HTTP/1, where a response is aborted with its connection.
    stream: Option<StreamHandle>,
    begun: Instant,
    parts_sent: AtomicU32,
}

/// Aborts the task of an HTTP/2 stream, which resets the stream.
#[derive(Clone, Debug)]
pub(crate) struct StreamHandle {
    task: AbortHandle,
    is_finished: Arc<AtomicBool>,
}

/// A buffer that counts for as long as any part of it exists.
struct CountedBuffer {
    data: Bytes,
    response: Arc<BufferedResponse>,
    number: u64,
}

impl ResponseBudget {
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { bytes_max, usage: Mutex::default() })
    }
}

impl Usage {
    fn add(&mut self, buffer: BufferId, response: Arc<BufferedResponse>) -> u64 {
        let holders = self.buffers.entry(buffer).or_default();
        *holders += 1;
        if *holders == 1 {
            self.bytes += buffer.1;
        }
        self.next += 1;
        self.held.insert(self.next, HeldBuffer { buffer, response, aborted_at: None });
        self.next
    }

    fn remove(&mut self, number: u64) {
        if let Some(held) = self.held.remove(&number)
            && held.aborted_at.is_none()
        {
            self.release(held.buffer);
        }
    }

    fn release(&mut self, buffer: BufferId) {
        let Some(holders) = self.buffers.get_mut(&buffer) else { return };
        *holders -= 1;
        if *holders == 0 {
            self.buffers.remove(&buffer);
            self.bytes -= buffer.1;
        }
    }

    /// Evicts the slowest responses except `newest` until no more than `bytes` are held, and collects those that were
    /// aborted earlier and are stuck.
    fn evict_slowest(&mut self, bytes: usize, newest: &Arc<BufferedResponse>) -> Evicted {
        let now = Instant::now();
        let is_stuck = |held: &&HeldBuffer| {
            held.aborted_at.is_some_and(|at| now.saturating_duration_since(at) > STUCK_AFTER)
        };
        let stuck = self.held.values().filter(is_stuck).map(|held| Arc::clone(&held.response)).collect();
        let others = self
            .held
            .iter()
            .filter(|(_, held)| held.aborted_at.is_none() && !Arc::ptr_eq(&held.response, newest));
        let mut others: Vec<_> =
            others.map(|(number, held)| (held.response.time_per_part(now), *number)).collect();
        others.sort_unstable_by(|one, other| other.cmp(one));
        let mut slowest = Vec::new();
        for (_, number) in others {
            if self.bytes <= bytes {
                break;
            }
            let Some(held) = self.held.get_mut(&number) else { continue };
            held.aborted_at = Some(now);
            let buffer = held.buffer;
            slowest.push(Arc::clone(&held.response));
            self.release(buffer);
        }
        Evicted { slowest, stuck }
    }
}

impl BufferedResponse {
    /// A response on this connection; none where the connection has no budget.
    pub(crate) fn new(connection: &Arc<ConnectionState>, stream: Option<StreamHandle>) -> Option<Arc<Self>> {
        Some(Arc::new(Self {
            budget: Arc::clone(connection.budget()?),
            connection: Arc::clone(connection),
            stream,
            begun: Instant::now(),
            parts_sent: AtomicU32::new(0),
        }))
    }

    /// Counts these bytes until the last part of the returned buffer is dropped.
    pub(crate) fn count(self: &Arc<Self>, data: Bytes) -> Bytes {
        let buffer = (data.as_ptr().addr(), data.len());
        let bytes_max = self.budget.bytes_max;
        let (number, evicted) = {
            let mut usage = self.budget.usage.lock();
            let number = usage.add(buffer, Arc::clone(self));
            let is_exceeded = usage.bytes > bytes_max;
            (number, is_exceeded.then(|| usage.evict_slowest(bytes_max - bytes_max / FREED_FRACTION, self)))
        };
        if let Some(Evicted { slowest, stuck }) = evicted {
            if !slowest.is_empty() {
                tracing::warn!(
                    responses = slowest.len(),
                    "aborted the slowest responses: the budget of buffered response bytes is exceeded"
                );
            }
            slowest.iter().for_each(|response| response.abort());
            stuck.iter().for_each(|response| response.connection.abort());
        }
        Bytes::from_owner(CountedBuffer { data, response: Arc::clone(self), number })
    }

    /// Notes that the client took a part of the response.
    pub(crate) fn part_sent(&self) {
        self.parts_sent.fetch_add(1, Ordering::Relaxed);
    }

    /// The client's mean time per part, including the one that it is reading.
    fn time_per_part(&self, now: Instant) -> Duration {
        let parts = self.parts_sent.load(Ordering::Relaxed).saturating_add(1);
        now.saturating_duration_since(self.begun) / parts
    }

    /// Resets the stream; closes the connection where there is no stream, or only the connection still holds the bytes.
    fn abort(&self) {
        match &self.stream {
            Some(stream) if !stream.is_finished.load(Ordering::Acquire) => stream.task.abort(),
            _ => self.connection.abort(),
        }
    }
}

impl StreamHandle {
    pub(crate) fn new(task: AbortHandle) -> Self {
        Self { task, is_finished: Arc::default() }
    }

    /// Notes that the whole response was handed to the connection.
    pub(crate) fn finished(&self) {
        self.is_finished.store(true, Ordering::Release);
    }
}

impl AsRef<[u8]> for CountedBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for CountedBuffer {
    fn drop(&mut self) {
        self.response.budget.usage.lock().remove(self.number);
    }
}

#[cfg(test)]
mod tests;
