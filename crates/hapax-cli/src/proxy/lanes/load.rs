//! [`Load`]: how much a lane has to do, as the system sees it.

use std::sync::OnceLock;
use std::time::Duration;

/// How much the time counts that a thread waited for a core. One that runs without waiting has room until it runs all
/// the time. One that waits is slow already, and so is whatever else is on its core.
const WAITING: u64 = 3;

/// The load of one thread; none until it is known which.
#[derive(Debug, Default)]
pub(super) struct Load(OnceLock<system::Thread>);

impl Load {
    /// From now on it is the load of the thread that calls this.
    pub(super) fn follow_this_thread(&self) {
        if let Some(thread) = system::this_thread() {
            let _known = self.0.set(thread);
        }
    }

    /// All of it until now, in units of time. None where the system does not tell.
    pub(super) fn so_far(&self) -> Option<Duration> {
        let (ran, waited) = system::ran_and_waited(self.0.get()?)?;
        Some(Duration::from_nanos(ran.saturating_add(waited.saturating_mul(WAITING))))
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    pub(super) type Thread = File;

    /// Three numbers of at most twenty digits.
    const LINE_MAX: usize = 64;

    pub(super) fn this_thread() -> Option<Thread> {
        File::open("/proc/thread-self/schedstat").ok()
    }

    /// For how many nanoseconds a thread ran, and was ready to run while others did.
    pub(super) fn ran_and_waited(thread: &Thread) -> Option<(u64, u64)> {
        let mut line = [0; LINE_MAX];
        let length = thread.read_at(&mut line, 0).ok()?;
        let mut numbers = str::from_utf8(&line[..length]).ok()?.split_ascii_whitespace();
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    /// Nobody tells.
    #[derive(Debug)]
    pub(super) enum Thread {}

    pub(super) fn this_thread() -> Option<Thread> {
        None
    }

    pub(super) fn ran_and_waited(thread: &Thread) -> Option<(u64, u64)> {
        match *thread {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_told_before_it_is_known_which_thread() {
        assert_eq!(Load::default().so_far(), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn whoever_works_has_more_of_it() {
        let load = Load::default();
        load.follow_this_thread();
        let before = load.so_far().unwrap();
        // The system does not count every moment at once.
        while load.so_far().unwrap() < before + Duration::from_millis(5) {}
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn waiting_for_a_core_counts_more_than_having_it() {
        // Two that run all the time on one core: each waits for as long as the other runs.
        let core = rustix::thread::sched_getcpu();
        let begun = std::sync::Barrier::new(2);
        let works = || {
            let mut only = rustix::thread::CpuSet::new();
            only.set(core);
            rustix::thread::sched_setaffinity(None, &only).unwrap();
            let thread = system::this_thread().unwrap();
            let load = Load::default();
            load.follow_this_thread();
            begun.wait();
            let begun = std::time::Instant::now();
            loop {
                let all = load.so_far().unwrap();
                // Read later, so both may be more than what was counted before, and never less.
                let (ran, waited) = system::ran_and_waited(&thread).unwrap();
                if all > Duration::from_nanos(ran + 2 * waited) {
                    break;
                }
                assert!(begun.elapsed() < Duration::from_secs(60), "{all:?} {ran} {waited}");
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(works);
            scope.spawn(works);
        });
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn any_thread_may_ask_for_it() {
        let load = Load::default();
        std::thread::scope(|scope| {
            let (told, is_told) = std::sync::mpsc::channel();
            let (asked, is_asked) = std::sync::mpsc::channel::<()>();
            let load = &load;
            scope.spawn(move || {
                load.follow_this_thread();
                told.send(()).unwrap();
                let _ = is_asked.recv();
            });
            is_told.recv().unwrap();
            assert!(load.so_far().is_some());
            drop(asked);
        });
    }
}
