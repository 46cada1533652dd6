//! [`Lanes`]: the threads that connections are served on, one for each core.
//!
//! Every lane has a runtime of its own. A request is served on the lane that its connection is on, and so are the
//! connections to the origin that it uses: no other thread has to be woken for any of it, and no core waits for what
//! another holds. Lanes that have much to do stay apart, and connections leave one that has much more to do than another.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures_util::future::{AbortHandle, Abortable};
use tokio::runtime::{Builder, Handle, Runtime};

use self::apart::Apart;
use self::even::Even;
use self::load::Load;
use self::resident::Resident;
use super::socket::Progress;
use super::untaken::Stream;

mod apart;
mod even;
mod load;
mod resident;

tokio::task_local! {
    static STREAM: Stream;
}

/// How often a lane wakes up when there is nothing to do: seldom enough not to matter, and sooner than the time limits of
/// requests pass, as they are by default.
const TICK: Duration = Duration::from_secs(1);

/// The threads of the lanes. What is on them when this is dropped is dropped as well.
#[derive(Debug, Default)]
pub(crate) struct LaneThreads {
    runtimes: Vec<Runtime>,
    loads: Vec<Arc<Load>>,
}

/// The lanes, for whoever has something to put on them.
#[derive(Clone, Debug)]
pub(crate) struct Lanes(Arc<[Lane]>);

/// One of them.
#[derive(Debug)]
struct Lane {
    runtime: Handle,
    load: Arc<Load>,
    even: Even,
}

impl Lane {
    fn new(runtime: Handle, load: Arc<Load>) -> Self {
        Self { runtime, load, even: Even::default() }
    }
}

impl LaneThreads {
    /// As many as there are cores that this process may use.
    pub(crate) fn start() -> io::Result<Self> {
        Self::start_some(thread::available_parallelism().map_or(1, usize::from))
    }

    pub(super) fn start_some(count: usize) -> io::Result<Self> {
        Self::start_apart(count, &Apart::of(count))
    }

    fn start_apart(count: usize, apart: &Arc<Apart>) -> io::Result<Self> {
        let mut threads = Self::default();
        for number in 0..count {
            let place = Arc::new(apart.place(number));
            let same_place = Arc::clone(&place);
            // A runtime of the kind that could have more threads: others wake its one thread once for many tasks, and
            // not once for each of them.
            let mut lane = Builder::new_multi_thread();
            lane.worker_threads(1).thread_name(format!("hapax-lane-{number}")).enable_all();
            lane.on_thread_park(move || place.pause()).on_thread_unpark(move || same_place.go_on());
            let lane = lane.build()?;
            let load = Arc::<Load>::default();
            lane.spawn(keep_a_timer(Arc::clone(&load)));
            threads.runtimes.push(lane);
            threads.loads.push(load);
        }
        Ok(threads)
    }

    pub(crate) fn lanes(&self) -> Lanes {
        let lanes = self.runtimes.iter().zip(&self.loads);
        Lanes(lanes.map(|(runtime, load)| Lane::new(runtime.handle().clone(), Arc::clone(load))).collect())
    }
}

impl Drop for LaneThreads {
    fn drop(&mut self) {
        // Whoever drops them may be a task, and must not wait.
        self.runtimes.drain(..).for_each(Runtime::shutdown_background);
    }
}

impl Lanes {
    /// The runtime of whoever calls this, as the only lane.
    #[cfg(test)]
    pub(super) fn here() -> Self {
        Self(Arc::new([Lane::new(Handle::current(), Arc::default())]))
    }

    /// The next connection that can leave a lane should go to another.
    #[cfg(test)]
    pub(super) fn dismiss_one(&self, from: usize, to: usize) {
        self.0[from].even.dismiss(1, to);
    }

    #[cfg(test)]
    pub(super) fn runtime(&self, lane: usize) -> &Handle {
        &self.0[lane].runtime
    }

    #[cfg(test)]
    pub(super) fn connections(&self, lane: usize) -> usize {
        tasks(&self.0[lane].runtime)
    }

    /// Puts a connection on the lane that has the least on it.
    pub(super) fn put(&self, connection: impl Future<Output = ()> + Send + 'static, progress: Arc<Progress>) {
        Resident::spawn(Box::pin(connection), progress, self, self.emptiest());
    }

    /// The lane that has the least on it.
    fn emptiest(&self) -> usize {
        let lanes = self.0.iter().map(|lane| tasks(&lane.runtime)).enumerate();
        lanes.min_by_key(|(_, tasks)| *tasks).expect("there is at least one lane").0
    }
}

/// Says which thread is the lane's, and has a timer that is due before those of requests. A runtime whose next timer is
/// later than one that is being set, or has none, is woken by a write to a descriptor, although it is its own thread
/// that sets it.
async fn keep_a_timer(load: Arc<Load>) {
    load.follow_this_thread();
    loop {
        tokio::time::sleep(TICK).await;
    }
}

/// Those that serve somebody: all but the one that keeps a timer.
fn tasks(lane: &Handle) -> usize {
    lane.metrics().num_alive_tasks().saturating_sub(1)
}

/// Takes the streams of HTTP/2. One connection may carry the requests of many callers, so they may leave its lane.
impl<F> hyper::rt::Executor<F> for Lanes
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let (here, emptiest) = (Handle::current(), &self.0[self.emptiest()].runtime);
        // To wake another thread has its price.
        let lane = if 2 * tasks(emptiest) < tasks(&here) { emptiest } else { &here };
        let (task, registration) = AbortHandle::new_pair();
        let handle = Stream::new(task);
        lane.spawn(STREAM.scope(handle.clone(), async move {
            // Dropped before its end, it is reset.
            let _aborted = Abortable::new(stream, registration).await;
            handle.over();
        }));
    }
}

/// The stream of HTTP/2 that is being served.
pub(super) fn this_stream() -> Option<Stream> {
    STREAM.try_with(Stream::clone).ok()
}

#[cfg(test)]
mod tests {
    use std::thread::ThreadId;
    use std::time::Instant;

    use hyper::rt::Executor as _;
    use tokio::sync::{mpsc, oneshot};

    use super::*;

    /// Runs as long as the other end is there, and tells where.
    fn visitor(
        seen: &mpsc::UnboundedSender<ThreadId>,
    ) -> (oneshot::Sender<()>, impl Future<Output = ()> + use<>) {
        let (leave, left) = oneshot::channel();
        let seen = seen.clone();
        let visit = async move {
            let _ = seen.send(thread::current().id());
            let _ = left.await;
        };
        (leave, visit)
    }

    #[tokio::test]
    async fn connections_spread_over_the_lanes() {
        let threads = LaneThreads::start_some(3).unwrap();
        let lanes = threads.lanes();
        let (seen, mut where_seen) = mpsc::unbounded_channel();
        let mut stay = Vec::new();
        let mut threads = Vec::new();
        for _ in 0..6 {
            let (leave, visit) = visitor(&seen);
            lanes.0[lanes.emptiest()].runtime.spawn(visit);
            threads.push(where_seen.recv().await.unwrap());
            stay.push(leave);
        }
        for thread in &threads[..3] {
            assert_eq!(threads.iter().filter(|other| *other == thread).count(), 2, "{threads:?}");
        }
    }

    #[tokio::test]
    async fn streams_leave_a_lane_that_has_more_than_twice_as_much_as_another() {
        let threads = LaneThreads::start_some(2).unwrap();
        let lanes = threads.lanes();
        let (seen, mut where_seen) = mpsc::unbounded_channel();
        let (_stay, visits): (Vec<_>, Vec<_>) = (0..4).map(|_| visitor(&seen)).unzip();
        let streams = lanes.clone();
        // The connection that they come by is a task as well.
        let connection = lanes.0[0].runtime.spawn(async move {
            let mut at_home = Vec::new();
            for visit in visits {
                streams.execute(visit);
                at_home.push(where_seen.recv().await.unwrap() == thread::current().id());
            }
            at_home
        });
        assert_eq!(connection.await.unwrap(), [false, true, true, false]);
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn lanes_with_much_to_do_look_where_they_are() {
        let apart = Apart::of(2);
        let threads = LaneThreads::start_apart(2, &apart).unwrap();
        let lanes = threads.lanes();
        let works = lanes.0.iter().enumerate().map(|(number, lane)| {
            let apart = Arc::clone(&apart);
            lane.runtime.spawn(async move {
                while apart.at_work(number).is_none() {
                    let begun = Instant::now();
                    while begun.elapsed() < Duration::from_millis(9) {}
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            })
        });
        for work in works.collect::<Vec<_>>() {
            work.await.unwrap();
        }
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn connections_leave_a_lane_that_is_always_busy_for_one_that_is_not() {
        let threads = LaneThreads::start_some(2).unwrap();
        let lanes = threads.lanes();
        let (seen, mut where_seen) = mpsc::unbounded_channel();
        for _ in 0..4 {
            let progress = Arc::<Progress>::default();
            progress.take_turns();
            drop(progress.begin());
            let seen = seen.clone();
            let connection = async move {
                while seen.send(thread::current().id()).is_ok() {
                    let begun = Instant::now();
                    while begun.elapsed() < Duration::from_micros(500) {}
                    tokio::task::yield_now().await;
                }
            };
            Resident::spawn(Box::pin(connection), progress, &lanes, 0);
        }
        let first = where_seen.recv().await.unwrap();
        let leaves = async { while where_seen.recv().await.unwrap() == first {} };
        tokio::time::timeout(Duration::from_secs(60), leaves).await.expect("one leaves");
    }

    #[test]
    fn what_is_on_a_lane_goes_with_it() {
        let threads = LaneThreads::start_some(1).unwrap();
        let lanes = threads.lanes();
        let (here, gone) = std::sync::mpsc::channel::<()>();
        lanes.0[0].runtime.spawn(async move {
            let _here = here;
            std::future::pending::<()>().await;
        });
        drop(threads);
        assert!(gone.recv().is_err(), "nobody is there any more");
    }
}
