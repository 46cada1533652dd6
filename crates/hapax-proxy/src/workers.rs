//! [`Workers`]: single-threaded runtimes, one for each core, without work stealing.
//!
//! A connection stays on the worker that it was given to, and so do the connections to the origin that its requests use.
//! A request wakes no other thread, and cores do not wait for each other's locks (decision 26).

use std::io;
use std::sync::Arc;
use std::thread;

use futures_util::future::{AbortHandle, Abortable};
use tokio::runtime::{Builder, Handle, Runtime};

use super::untaken::Stream;

tokio::task_local! {
    static STREAM: Stream;
}

/// The threads of the workers. Tasks that are on them when this is dropped are dropped as well.
#[derive(Debug, Default)]
pub(crate) struct WorkerThreads {
    runtimes: Vec<Runtime>,
}

/// Handles of the workers, to spawn connections on.
#[derive(Clone, Debug)]
pub(crate) struct Workers(Arc<[Handle]>);

impl WorkerThreads {
    /// One worker for each core that this process may use.
    pub(crate) fn start() -> io::Result<Self> {
        Self::start_some(thread::available_parallelism().map_or(1, usize::from))
    }

    pub(super) fn start_some(count: usize) -> io::Result<Self> {
        let mut threads = Self::default();
        for number in 0..count {
            // A multi-threaded runtime with one thread: other threads wake it once for many tasks, and not once for each.
            let mut worker = Builder::new_multi_thread();
            worker.worker_threads(1).thread_name(format!("hapax-worker-{number}")).enable_all();
            threads.runtimes.push(worker.build()?);
        }
        Ok(threads)
    }

    pub(crate) fn workers(&self) -> Workers {
        Workers(self.runtimes.iter().map(|runtime| runtime.handle().clone()).collect())
    }
}

impl Drop for WorkerThreads {
    fn drop(&mut self) {
        // This may happen in a task, which must not block.
        self.runtimes.drain(..).for_each(Runtime::shutdown_background);
    }
}

impl Workers {
    /// The current runtime as the only worker.
    #[cfg(test)]
    pub(super) fn current() -> Self {
        Self([Handle::current()].into())
    }

    /// Spawns a connection on the worker with the fewest tasks.
    pub(super) fn spawn(&self, connection: impl Future<Output = ()> + Send + 'static) {
        self.least_loaded().spawn(connection);
    }

    fn least_loaded(&self) -> &Handle {
        self.0.iter().min_by_key(|worker| tasks(worker)).expect("there is at least one worker")
    }
}

fn tasks(worker: &Handle) -> usize {
    worker.metrics().num_alive_tasks()
}

/// Spawns the streams of HTTP/2. One connection may carry the requests of many callers, so its streams may leave its
/// worker.
impl<F> hyper::rt::Executor<F> for Workers
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let (current, least_loaded) = (Handle::current(), self.least_loaded());
        // Waking another thread costs a system call.
        let worker = if 2 * tasks(least_loaded) < tasks(&current) { least_loaded } else { &current };
        let (task, registration) = AbortHandle::new_pair();
        let handle = Stream::new(task);
        worker.spawn(STREAM.scope(handle.clone(), async move {
            // Dropped before its end, the stream is reset.
            let _aborted = Abortable::new(stream, registration).await;
            handle.over();
        }));
    }
}

/// The stream of HTTP/2 that is being served by this task.
pub(super) fn this_stream() -> Option<Stream> {
    STREAM.try_with(Stream::clone).ok()
}

#[cfg(test)]
mod tests;
