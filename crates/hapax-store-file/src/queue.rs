//! [`Queue`]: what waits for a thread that may block. Callers never do.

use std::collections::VecDeque;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

/// How many jobs may wait. Every caller waits for its own job, so this is about callers that gave up and about
/// a disk that hangs; beyond it callers are told so at once.
const WAITING_MAX: usize = 65_536;

/// A bounded queue with one end for async callers and one for threads.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    inner: Mutex<Inner<T>>,
    filled: Condvar,
}

#[derive(Debug)]
struct Inner<T> {
    jobs: VecDeque<T>,
    closed: bool,
}

/// What came of waiting for work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Taken<T> {
    /// All that waited, up to a maximum.
    Jobs(Vec<T>),
    /// Nothing came in time.
    Nothing,
    /// Nothing will come any more.
    Closed,
}

/// Why a job was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// Too many are waiting.
    Full,
    /// Nobody will come for it.
    Closed,
}

impl<T> Inner<T> {
    fn take(&mut self, count_max: usize) -> Vec<T> {
        let count = self.jobs.len().min(count_max);
        self.jobs.drain(..count).collect()
    }
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        let inner = Inner { jobs: VecDeque::new(), closed: false };
        Self { inner: Mutex::new(inner), filled: Condvar::new() }
    }

    pub(crate) fn push(&self, job: T) -> Result<(), Refused> {
        let mut inner = self.inner.lock();
        if inner.closed {
            return Err(Refused::Closed);
        }
        if inner.jobs.len() >= WAITING_MAX {
            return Err(Refused::Full);
        }
        inner.jobs.push_back(job);
        drop(inner);
        self.filled.notify_one();
        Ok(())
    }

    /// Waits for work and takes all of it, up to `count_max`; `None` when the queue is closed and empty.
    pub(crate) fn take(&self, count_max: usize) -> Option<Vec<T>> {
        let mut inner = self.inner.lock();
        while inner.jobs.is_empty() {
            if inner.closed {
                return None;
            }
            self.filled.wait(&mut inner);
        }
        Some(inner.take(count_max))
    }

    /// The same, but waits no longer than until `deadline`.
    pub(crate) fn take_until(&self, count_max: usize, deadline: Instant) -> Taken<T> {
        let mut inner = self.inner.lock();
        while inner.jobs.is_empty() {
            if inner.closed {
                return Taken::Closed;
            }
            if self.filled.wait_until(&mut inner, deadline).timed_out() && inner.jobs.is_empty() {
                return Taken::Nothing;
            }
        }
        Taken::Jobs(inner.take(count_max))
    }

    /// Takes no more jobs; those that wait are still served.
    pub(crate) fn close(&self) {
        self.inner.lock().closed = true;
        self.filled.notify_all();
    }

    /// Takes no more jobs and gives back those that wait.
    pub(crate) fn abort(&self) -> VecDeque<T> {
        let mut inner = self.inner.lock();
        inner.closed = true;
        self.filled.notify_all();
        std::mem::take(&mut inner.jobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_all_that_wait_up_to_the_maximum() {
        let queue = Queue::new();
        for job in 0..5 {
            queue.push(job).unwrap();
        }
        assert_eq!(queue.take(3), Some(vec![0, 1, 2]));
        assert_eq!(queue.take(3), Some(vec![3, 4]));
    }

    #[test]
    fn waits_no_longer_than_it_is_told() {
        let queue = Queue::new();
        assert_eq!(queue.take_until(3, Instant::now()), Taken::Nothing);
        queue.push(1).unwrap();
        assert_eq!(queue.take_until(3, Instant::now()), Taken::Jobs(vec![1]));
        queue.close();
        assert_eq!(queue.take_until(3, Instant::now()), Taken::Closed);
    }

    #[test]
    fn a_closed_queue_serves_what_waits_and_refuses_the_rest() {
        let queue = Queue::new();
        queue.push(1).unwrap();
        queue.close();
        assert_eq!(queue.push(2), Err(Refused::Closed));
        assert_eq!(queue.take(10), Some(vec![1]));
        assert_eq!(queue.take(10), None);
    }

    #[test]
    fn an_aborted_queue_gives_back_what_waits() {
        let queue = Queue::new();
        queue.push(1).unwrap();
        assert_eq!(queue.abort(), [1]);
        assert_eq!(queue.take(10), None);
    }

    #[test]
    fn a_full_queue_refuses_at_once() {
        let queue = Queue::new();
        for job in 0..WAITING_MAX {
            queue.push(job).unwrap();
        }
        assert_eq!(queue.push(0), Err(Refused::Full));
    }
}
