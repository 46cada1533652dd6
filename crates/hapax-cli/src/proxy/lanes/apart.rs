//! [`Apart`]: keeps lanes that have much to do from sharing a core.
//!
//! The system chooses a core for a thread when it wakes up, and hardly moves one that has run a moment ago. With other
//! busy threads beside them, two lanes stay behind each other on one core for tens of milliseconds while another core
//! has pauses. So a lane looks now and then where it is, and leaves a core that another one works on. It is not bound
//! to where it goes: the system may put it elsewhere at any time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How often a lane looks where it is: a few times as long as it takes to move, and far shorter than lanes stay
/// together by themselves.
const LOOK_EVERY: Duration = Duration::from_millis(3);

/// How long it is believed to be where it was then. One that has nothing to do any more does not say so.
const BELIEVED: Duration = Duration::from_millis(15);

/// A core, and when a lane was on it.
type Seen = (usize, Instant);

/// On which cores lanes are at work.
#[derive(Debug)]
pub(super) struct Apart {
    /// Where each lane was when it looked last, if it had much to do.
    at_work: Vec<Mutex<Option<Seen>>>,
    /// The cores that lanes may use. As of the start: later, the system may lend and take some.
    cores: Vec<usize>,
    is_forbidden: AtomicBool,
}

/// One lane of them.
#[derive(Debug)]
pub(super) struct Place {
    all: Arc<Apart>,
    number: usize,
    pauses: Mutex<Pauses>,
}

/// How long a lane had nothing to do.
#[derive(Clone, Copy, Debug)]
struct Pauses {
    /// Since the last look.
    since: Instant,
    total: Duration,
    /// When the one began that it is in, or the last one.
    began: Instant,
}

impl Pauses {
    fn from(now: Instant) -> Self {
        Self { since: now, total: Duration::ZERO, began: now }
    }

    /// Whether they were most of the time: then the lane has little to do.
    fn are_most(&self, now: Instant) -> bool {
        self.total * 4 > (now - self.since) * 3
    }
}

impl Apart {
    pub(super) fn of(count: usize) -> Arc<Self> {
        let at_work = (0..count).map(|_| Mutex::new(None)).collect();
        Arc::new(Self { at_work, cores: system::allowed(), is_forbidden: AtomicBool::new(false) })
    }

    pub(super) fn place(self: &Arc<Self>, number: usize) -> Place {
        Place { all: Arc::clone(self), number, pauses: Mutex::new(Pauses::from(Instant::now())) }
    }

    /// Where a lane was when it looked last, if it had much to do.
    pub(super) fn at_work(&self, number: usize) -> Option<Seen> {
        *self.at_work[number].lock()
    }

    /// Whether a lane other than `number` is at work on a core.
    fn is_taken(&self, core: usize, number: usize, now: Instant) -> bool {
        let is_there = |(at, then): Seen| at == core && now - then < BELIEVED;
        (0..self.at_work.len()).any(|other| other != number && self.at_work(other).is_some_and(is_there))
    }
}

impl Place {
    /// The lane has nothing to do.
    pub(super) fn pause(&self) {
        self.pauses.lock().began = Instant::now();
    }

    /// It has again. Leaves the core if another lane is at work on it.
    pub(super) fn go_on(&self) {
        let now = Instant::now();
        if self.is_time_to_look(now) && !self.all.is_forbidden.load(Ordering::Relaxed) {
            self.look(now);
        }
    }

    /// Ends a pause. Whether the lane should look where it is: one with little to do is in nobody's way.
    fn is_time_to_look(&self, now: Instant) -> bool {
        let mut pauses = self.pauses.lock();
        let pause = now - pauses.began;
        pauses.total += pause;
        if now - pauses.since < LOOK_EVERY {
            return false;
        }
        let is_busy = !pauses.are_most(now);
        *pauses = Pauses::from(now);
        is_busy
    }

    fn look(&self, now: Instant) {
        let here = system::here();
        self.take(here, now);
        if !self.all.is_taken(here, self.number, now) {
            return;
        }
        if let Some(core) = self.free_core(&system::allowed(), here, now) {
            self.take(core, now);
            if let Err(error) = system::go_to(core, &self.all.cores) {
                tracing::debug!(%error, "lanes cannot leave their cores");
                self.all.is_forbidden.store(true, Ordering::Relaxed);
            }
        }
    }

    /// One that no other lane works on. Not everybody who leaves goes to the same.
    fn free_core(&self, cores: &[usize], here: usize, now: Instant) -> Option<usize> {
        let (before, behind): (Vec<usize>, Vec<usize>) = cores.iter().partition(|core| **core < here);
        behind.into_iter().chain(before).find(|core| !self.all.is_taken(*core, self.number, now))
    }

    fn take(&self, core: usize, now: Instant) {
        *self.all.at_work[self.number].lock() = Some((core, now));
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::io;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

    /// The cores that this thread may use.
    pub(super) fn allowed() -> Vec<usize> {
        let set = sched_getaffinity(None).unwrap_or_default();
        (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
    }

    pub(super) fn here() -> usize {
        sched_getcpu()
    }

    /// Goes to a core, and may be moved to any of `cores` again. Where that is not allowed, all stays as it is.
    pub(super) fn go_to(core: usize, cores: &[usize]) -> io::Result<()> {
        for cores in [&[core], cores] {
            let mut set = CpuSet::new();
            cores.iter().for_each(|core| set.set(*core));
            sched_setaffinity(None, &set)?;
        }
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    /// Where a thread runs is left to the system.
    pub(super) fn allowed() -> Vec<usize> {
        Vec::new()
    }

    pub(super) fn here() -> usize {
        0
    }

    pub(super) fn go_to(_core: usize, _cores: &[usize]) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_for_a_core_that_nobody_works_on() {
        let apart = Apart::of(3);
        let [first, second, third] = [0, 1, 2].map(|number| apart.place(number));
        let now = Instant::now();
        first.take(4, now);
        assert_eq!(second.free_core(&[3, 4, 7], 4, now), Some(7), "not all go to the first");
        assert_eq!(second.free_core(&[3, 4], 4, now), Some(3));
        second.take(7, now);
        assert_eq!(third.free_core(&[3, 4, 7], 4, now), Some(3));
        assert_eq!(third.free_core(&[4, 7], 4, now), None, "there is nowhere to go");
        first.take(4, now + BELIEVED);
        assert_eq!(third.free_core(&[4, 7], 4, now + BELIEVED), Some(7), "nobody has been seen there lately");
    }

    #[test]
    fn looks_now_and_then_while_there_is_much_to_do() {
        let place = Apart::of(1).place(0);
        let start = Instant::now();
        let pause = |from: Duration, to: Duration| {
            place.pauses.lock().began = start + from;
            place.is_time_to_look(start + to)
        };
        *place.pauses.lock() = Pauses::from(start);
        assert!(!pause(LOOK_EVERY / 4, LOOK_EVERY / 2), "it is too early");
        assert!(pause(LOOK_EVERY / 2, LOOK_EVERY), "there were pauses, and work");
        assert!(!pause(LOOK_EVERY * 10 / 9, LOOK_EVERY * 2), "there was nearly nothing else");
        assert!(!pause(LOOK_EVERY * 2, LOOK_EVERY * 5 / 2), "it begins anew each time");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn goes_to_the_one_core_that_is_free_and_may_still_use_all() {
        let cores = system::allowed();
        let apart = Apart::of(cores.len());
        let others: Vec<_> = (1..cores.len()).map(|number| apart.place(number)).collect();
        let place = apart.place(0);
        let now = Instant::now();
        for free in &cores {
            let taken = cores.iter().filter(|core| *core != free);
            others.iter().zip(taken).for_each(|(other, core)| other.take(*core, now));
            place.look(now);
            assert_eq!(apart.at_work(0), Some((*free, now)));
            assert_eq!(system::allowed(), cores);
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn is_where_it_went() {
        for core in system::allowed() {
            let seen = std::thread::spawn(move || {
                // The system has no choice.
                system::go_to(core, &[core]).unwrap();
                system::here()
            });
            assert_eq!(seen.join().unwrap(), core);
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_core_that_there_is_not_is_an_error_and_no_move() {
        let cores = system::allowed();
        system::go_to(1_023, &cores).unwrap_err();
        assert_eq!(system::allowed(), cores);
    }
}
