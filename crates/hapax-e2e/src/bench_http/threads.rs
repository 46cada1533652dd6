//! Where a thread runs and how long it ran, as the kernel tells.

use std::fs;
use std::time::Duration;

use rustix::thread::{CpuSet, Pid, gettid, sched_setaffinity};

/// Keeps this thread, and those that it starts, on one core. Without that core, it runs where it likes.
pub fn pin(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    // A machine with one core has no other; the figures then say so by themselves.
    let _ = sched_setaffinity(None, &cores);
}

/// This thread's name to the kernel.
pub(super) fn this() -> Pid {
    gettid()
}

/// How long one thread has run.
pub(super) fn cpu_of(thread: Pid) -> Duration {
    ran(&format!("/proc/self/task/{}/schedstat", thread.as_raw_nonzero()))
}

/// How long all threads of this process have run.
pub(crate) fn cpu() -> Duration {
    let tasks = fs::read_dir("/proc/self/task").expect("the kernel lists a process's threads");
    tasks.flatten().map(|task| ran(&format!("{}/schedstat", task.path().display()))).sum()
}

/// The first figure is the time on a core, in nanoseconds. A thread that has ended has none.
fn ran(path: &str) -> Duration {
    let text = fs::read_to_string(path).unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}
