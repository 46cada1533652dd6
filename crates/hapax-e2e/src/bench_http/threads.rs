//! Pins threads to cores, and reads their CPU times from the kernel.

use std::fs;
use std::time::Duration;

use rustix::thread::{CpuSet, Pid, gettid, sched_setaffinity};

/// Pins this thread, and those that it starts, to one core, if there is such a core.
pub fn pin(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    // A machine with one core has no other; the figures show that.
    let _ = sched_setaffinity(None, &cores);
}

/// This thread's id.
pub(super) fn this() -> Pid {
    gettid()
}

/// The CPU time of one thread.
pub(super) fn cpu_of(thread: Pid) -> Duration {
    ran(&format!("/proc/self/task/{}/schedstat", thread.as_raw_nonzero()))
}

/// The CPU time of all threads of this process.
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
