//! [`Queue`]: jobs for a thread that may block. Pushing never blocks.

use std::collections::VecDeque;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

/// How many jobs may be queued. Each caller waits for its own job, so only callers that have gone and a disk that
/// hangs fill the queue; further jobs are refused.
const JOBS_MAX: usize = 65_536;

/// A bounded queue with one end for async callers and one for threads.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    inner: Mutex<Inner<T>>,
    filled: Condvar,
}

#[derive(Debug)]
struct Inner<T> {
    jobs: VecDeque<T>,
    /// How many jobs wake the consumer.
    wake_at: usize,
    closed: bool,
}

/// The result of waiting for jobs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Taken<T> {
    /// All queued jobs, up to a maximum.
    Jobs(Vec<T>),
    /// The deadline has passed.
    TimedOut,
    /// The queue is closed and empty.
    Closed,
}

/// Why a job was not queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PushError {
    /// Too many jobs are queued.
    Full,
    /// The queue takes no more jobs.
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
        let inner = Inner { jobs: VecDeque::new(), wake_at: 1, closed: false };
        Self { inner: Mutex::new(inner), filled: Condvar::new() }
    }

    pub(crate) fn push(&self, job: T) -> Result<(), PushError> {
        let mut inner = self.inner.lock();
        if inner.closed {
            return Err(PushError::Closed);
        }
        if inner.jobs.len() >= JOBS_MAX {
            return Err(PushError::Full);
        }
        inner.jobs.push_back(job);
        let is_due = inner.jobs.len() >= inner.wake_at;
        drop(inner);
        if is_due {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Waits until `count` jobs are queued, or until `deadline`, with one wake-up. The queue must have one consumer only.
    pub(crate) fn gather(&self, count: usize, deadline: Instant) {
        let mut inner = self.inner.lock();
        inner.wake_at = count;
        while inner.jobs.len() < count && !inner.closed {
            if self.filled.wait_until(&mut inner, deadline).timed_out() {
                break;
            }
        }
        inner.wake_at = 1;
    }

    /// Waits for jobs and takes up to `count_max` of them; `None` when the queue is closed and empty.
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

    /// Like [`take`](Self::take), but waits until `deadline` only.
    pub(crate) fn take_until(&self, count_max: usize, deadline: Instant) -> Taken<T> {
        let mut inner = self.inner.lock();
        while inner.jobs.is_empty() {
            if inner.closed {
                return Taken::Closed;
            }
            if self.filled.wait_until(&mut inner, deadline).timed_out() && inner.jobs.is_empty() {
                return Taken::TimedOut;
            }
        }
        Taken::Jobs(inner.take(count_max))
    }

    /// Refuses further jobs; queued jobs are still served.
    pub(crate) fn close(&self) {
        self.inner.lock().closed = true;
        self.filled.notify_all();
    }

    /// Refuses further jobs and returns the queued ones.
    pub(crate) fn abort(&self) -> VecDeque<T> {
        let mut inner = self.inner.lock();
        inner.closed = true;
        self.filled.notify_all();
        std::mem::take(&mut inner.jobs)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn takes_all_queued_jobs_up_to_the_maximum() {
        let queue = Queue::new();
        for job in 0..5 {
            queue.push(job).unwrap();
        }
        assert_eq!(queue.take(3), Some(vec![0, 1, 2]));
        assert_eq!(queue.take(3), Some(vec![3, 4]));
    }

    #[test]
    fn take_until_ends_at_the_deadline() {
        let queue = Queue::new();
        assert_eq!(queue.take_until(3, Instant::now()), Taken::TimedOut);
        queue.push(1).unwrap();
        assert_eq!(queue.take_until(3, Instant::now()), Taken::Jobs(vec![1]));
        queue.close();
        assert_eq!(queue.take_until(3, Instant::now()), Taken::Closed);
    }

    #[test]
    fn gather_ends_at_the_count_or_the_deadline() {
        let queue = Queue::new();
        queue.push(1).unwrap();
        queue.gather(2, Instant::now());
        assert_eq!(queue.inner.lock().jobs.len(), 1, "the job stays queued");
        let far = Instant::now() + Duration::from_secs(3_600);
        thread::scope(|scope| {
            scope.spawn(|| (2..=3).for_each(|job| queue.push(job).unwrap()));
            queue.gather(3, far);
            assert_eq!(queue.take(10), Some(vec![1, 2, 3]));
        });
        assert_eq!(queue.inner.lock().wake_at, 1, "one job wakes the consumer again");
    }

    #[test]
    fn close_ends_a_gather() {
        let queue = Queue::<u8>::new();
        let far = Instant::now() + Duration::from_secs(3_600);
        thread::scope(|scope| {
            scope.spawn(|| queue.close());
            queue.gather(2, far);
        });
        assert_eq!(queue.take(10), None);
    }

    #[test]
    fn a_closed_queue_serves_queued_jobs_and_refuses_others() {
        let queue = Queue::new();
        queue.push(1).unwrap();
        queue.close();
        assert_eq!(queue.push(2), Err(PushError::Closed));
        assert_eq!(queue.take(10), Some(vec![1]));
        assert_eq!(queue.take(10), None);
    }

    #[test]
    fn an_aborted_queue_returns_its_jobs() {
        let queue = Queue::new();
        queue.push(1).unwrap();
        assert_eq!(queue.abort(), [1]);
        assert_eq!(queue.take(10), None);
    }

    #[test]
    fn a_full_queue_refuses_jobs() {
        let queue = Queue::new();
        for job in 0..JOBS_MAX {
            queue.push(job).unwrap();
        }
        assert_eq!(queue.push(0), Err(PushError::Full));
    }
}
