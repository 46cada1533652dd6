//! [`Workers`]: single-threaded runtimes, one for each core, without work stealing.
//!
//! A connection stays on the worker that it was given to, and so do the upstream connections of its requests. A request
//! wakes no other thread, and cores do not contend for locks (decision 26).

use std::io;
use std::sync::Arc;
use std::thread;

use futures_util::future::{AbortHandle, Abortable};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::response_budget::StreamHandle;

tokio::task_local! {
    static STREAM: StreamHandle;
}

/// The threads of the workers. Dropping it drops the tasks that run on them.
#[derive(Debug, Default)]
pub struct WorkerThreads {
    runtimes: Vec<Runtime>,
}

/// Handles of the workers, on which a [`Listener`](crate::Listener) serves its connections.
#[derive(Clone, Debug)]
pub struct Workers(Arc<[Handle]>);

impl WorkerThreads {
    /// Starts one worker for each core that this process may use.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start() -> io::Result<Self> {
        Self::with_count(thread::available_parallelism().map_or(1, usize::from))
    }

    /// Starts this many workers, at least one.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn with_count(count: usize) -> io::Result<Self> {
        let mut threads = Self::default();
        for number in 0..count.max(1) {
            // A multi-threaded runtime with one thread: other threads wake it once for many tasks, not once for each.
            let mut worker = Builder::new_multi_thread();
            worker.worker_threads(1).thread_name(format!("hapax-worker-{number}")).enable_all();
            threads.runtimes.push(worker.build()?);
        }
        Ok(threads)
    }

    /// Handles of these workers.
    pub fn workers(&self) -> Workers {
        Workers(self.runtimes.iter().map(|runtime| runtime.handle().clone()).collect())
    }
}

impl Drop for WorkerThreads {
    fn drop(&mut self) {
        // In the background: this may run inside a task, which must not block.
        self.runtimes.drain(..).for_each(Runtime::shutdown_background);
    }
}

impl Workers {
    /// The current runtime as the only worker.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub fn current() -> Self {
        Self([Handle::current()].into())
    }

    /// Spawns a connection on the worker with the fewest tasks.
    pub(crate) fn spawn(&self, connection: impl Future<Output = ()> + Send + 'static) {
        self.least_loaded().spawn(connection);
    }

    fn least_loaded(&self) -> &Handle {
        self.0.iter().min_by_key(|worker| alive_tasks(worker)).expect("there is at least one worker")
    }
}

fn alive_tasks(worker: &Handle) -> usize {
    worker.metrics().num_alive_tasks()
}

/// Spawns HTTP/2 streams for hyper. One connection may carry the requests of many callers, so its streams may move to
/// another worker.
#[derive(Clone, Debug)]
pub(crate) struct StreamExecutor(pub(crate) Workers);

impl<F> hyper::rt::Executor<F> for StreamExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let (current, least_loaded) = (Handle::current(), self.0.least_loaded());
        // Waking another thread costs a system call.
        let worker =
            if 2 * alive_tasks(least_loaded) < alive_tasks(&current) { least_loaded } else { &current };
        let (task, registration) = AbortHandle::new_pair();
        let handle = StreamHandle::new(task);
        worker.spawn(STREAM.scope(handle.clone(), async move {
            // Dropped before its end, the stream is reset.
            let _aborted = Abortable::new(stream, registration).await;
            handle.finished();
        }));
    }
}

/// The HTTP/2 stream that the current task serves.
pub(crate) fn current_stream() -> Option<StreamHandle> {
    STREAM.try_with(StreamHandle::clone).ok()
}

#[cfg(test)]
mod tests;
