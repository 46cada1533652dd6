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
    /// How many must wait before anybody is woken for them.
    awaited: usize,
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
        let inner = Inner { jobs: VecDeque::new(), awaited: 1, closed: false };
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
        let are_enough = inner.jobs.len() >= inner.awaited;
        drop(inner);
        if are_enough {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Waits until `count` jobs are there, or until `deadline`. Is woken once, not for each of them, so there must be
    /// nobody else who takes from the queue.
    pub(crate) fn gather(&self, count: usize, deadline: Instant) {
        let mut inner = self.inner.lock();
        inner.awaited = count;
        while inner.jobs.len() < count && !inner.closed {
            if self.filled.wait_until(&mut inner, deadline).timed_out() {
                break;
            }
        }
        inner.awaited = 1;
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
    use std::thread;
    use std::time::Duration;

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
    fn gathers_as_many_as_it_is_told_and_no_longer_than_that() {
        let queue = Queue::new();
        queue.push(1).unwrap();
        queue.gather(2, Instant::now());
        assert_eq!(queue.inner.lock().jobs.len(), 1, "they are there, although there are too few");
        let far = Instant::now() + Duration::from_secs(3_600);
        thread::scope(|scope| {
            scope.spawn(|| (2..=3).for_each(|job| queue.push(job).unwrap()));
            queue.gather(3, far);
            assert_eq!(queue.take(10), Some(vec![1, 2, 3]));
        });
        assert_eq!(queue.inner.lock().awaited, 1, "whoever waits for any is woken for one again");
    }

    #[test]
    fn whoever_gathers_is_told_that_nothing_more_comes() {
        let queue = Queue::<u8>::new();
        let far = Instant::now() + Duration::from_secs(3_600);
        thread::scope(|scope| {
            scope.spawn(|| queue.close());
            queue.gather(2, far);
        });
        assert_eq!(queue.take(10), None);
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
