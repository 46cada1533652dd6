//! Wakers that need not be heard for what a task does itself.
//!
//! The two ends of a body, and those of a request to the origin, wake each other. Here one task often holds both: it would
//! wake itself in the midst of its work, and be asked once more for nothing.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

thread_local! {
    static HUSHED: Cell<Hushed> = const { Cell::new(Hushed::NOBODY) };
}

/// Which waker is not heard on this thread, only noted, and whether it was used.
#[derive(Clone, Copy)]
struct Hushed {
    waker: *const (),
    woken: bool,
}

impl Hushed {
    const NOBODY: Self = Self { waker: ptr::null(), woken: false };
}

/// Puts back what was there before, also when there is a panic.
struct Restore(Hushed);

impl Drop for Restore {
    fn drop(&mut self) {
        HUSHED.set(self.0);
    }
}

/// Does `work`, during which `waker` wakes nobody. If it was used, it does so afterwards, unless `is_needless` says of the
/// result that there is nothing more to do.
///
/// That holds for a waker that [can be hushed](Hushable), and for this thread: whoever uses it on another is heard. In
/// `work` another waker may be hushed, but not the same once more: what is needless further in may be needed further out.
pub(super) fn hush<T>(waker: &Waker, work: impl FnOnce() -> T, is_needless: impl FnOnce(&T) -> bool) -> T {
    let outer = Restore(HUSHED.replace(Hushed { waker: waker.data(), woken: false }));
    debug_assert!(!ptr::eq(outer.0.waker, waker.data()) || outer.0.waker.is_null(), "it is hushed already");
    let done = work();
    let woken = HUSHED.get().woken;
    drop(outer);
    if woken && !is_needless(&done) {
        waker.wake_by_ref();
    }
    done
}

/// A waker that can be [hushed](hush), for one task at a time.
#[derive(Debug)]
pub(super) struct Hushable {
    waker: Waker,
    task: Arc<Task>,
}

#[derive(Debug, Default)]
struct Task(AtomicWaker);

impl Default for Hushable {
    fn default() -> Self {
        let task = Arc::<Task>::default();
        Self { waker: Arc::clone(&task).into(), task }
    }
}

impl Hushable {
    /// Wakes the task of `cx` from now on.
    pub(super) fn of(&self, cx: &Context<'_>) -> &Waker {
        self.task.0.register(cx.waker());
        &self.waker
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let hushed = HUSHED.get();
        if ptr::eq(hushed.waker, Arc::as_ptr(self).cast()) {
            HUSHED.set(Hushed { woken: true, ..hushed });
        } else {
            self.0.wake();
        }
    }
}

/// A future whose waker can be [hushed](hush).
#[derive(Debug)]
pub(super) struct WithHushable<F> {
    future: Pin<Box<F>>,
    waker: Hushable,
}

impl<F> WithHushable<F> {
    pub(super) fn new(future: F) -> Self {
        Self { future: Box::pin(future), waker: Hushable::default() }
    }
}

impl<F: Future> Future for WithHushable<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { future, waker } = &mut *self;
        future.as_mut().poll(&mut Context::from_waker(waker.of(cx)))
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    /// A task that can be woken by a waker that can be hushed.
    #[derive(Default)]
    struct Sleeper {
        count: Arc<Count>,
        waker: Hushable,
    }

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Sleeper {
        /// It has its turn, and sleeps again.
        fn waker(&self) -> &Waker {
            self.waker.of(&Context::from_waker(&Waker::from(Arc::clone(&self.count))))
        }

        fn wakes(&self) -> usize {
            self.count.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_wake_by_its_own_work_is_needless_or_comes_afterwards() {
        for (is_needless, expected) in [(true, 0), (false, 1)] {
            let sleeper = Sleeper::default();
            let waker = sleeper.waker();
            let held = waker.clone();
            let twice = || {
                held.wake();
                waker.wake_by_ref();
                sleeper.wakes()
            };
            assert_eq!(hush(waker, twice, |_| is_needless), 0);
            assert_eq!(sleeper.wakes(), expected);
        }
    }

    #[test]
    fn what_wakes_nobody_wakes_nobody_afterwards() {
        let sleeper = Sleeper::default();
        hush(sleeper.waker(), || (), |()| false);
        assert_eq!(sleeper.wakes(), 0);
    }

    #[test]
    fn a_wake_before_or_after_the_work_is_heard() {
        let sleeper = Sleeper::default();
        sleeper.waker().wake_by_ref();
        hush(sleeper.waker(), || (), |()| true);
        sleeper.waker().wake_by_ref();
        assert_eq!(sleeper.wakes(), 2);
    }

    #[test]
    fn others_are_woken_by_the_work() {
        let [sleeper, other] = [Sleeper::default(), Sleeper::default()];
        hush(sleeper.waker(), || other.waker().wake_by_ref(), |()| true);
        assert_eq!((sleeper.wakes(), other.wakes()), (0, 1));
    }

    #[test]
    fn a_wake_from_another_thread_is_heard() {
        let sleeper = Sleeper::default();
        let waker = sleeper.waker().clone();
        let elsewhere = || {
            thread::spawn(|| waker.wake()).join().unwrap();
            sleeper.wakes()
        };
        assert_eq!(hush(sleeper.waker(), elsewhere, |_| true), 1);
    }

    #[test]
    fn each_of_two_is_noted_for_itself() {
        let [outer, inner] = [Sleeper::default(), Sleeper::default()];
        let both = || {
            outer.waker().wake_by_ref();
            inner.waker().wake_by_ref();
        };
        // What is done further in is not noted for whoever is further out, but is heard at once.
        hush(outer.waker(), || hush(inner.waker(), both, |()| false), |()| true);
        assert_eq!((outer.wakes(), inner.wakes()), (1, 1));
        // What was noted before it is still noted after it.
        let around = || {
            outer.waker().wake_by_ref();
            hush(inner.waker(), || inner.waker().wake_by_ref(), |()| true);
        };
        hush(outer.waker(), around, |()| false);
        assert_eq!((outer.wakes(), inner.wakes()), (2, 1));
    }

    #[test]
    fn nobody_is_hushed_after_a_panic() {
        let sleeper = Sleeper::default();
        let panics = || -> () { panic!("as it should") };
        catch_unwind(AssertUnwindSafe(|| hush(sleeper.waker(), panics, |()| true))).unwrap_err();
        sleeper.waker().wake_by_ref();
        assert_eq!(sleeper.wakes(), 1);
    }

    #[test]
    fn the_task_that_asked_last_is_woken() {
        let [first, second] = [Arc::<Count>::default(), Arc::<Count>::default()];
        let waker = Hushable::default();
        for count in [&first, &second] {
            waker.of(&Context::from_waker(&Waker::from(Arc::clone(count))));
        }
        waker.waker.wake_by_ref();
        assert_eq!([first, second].map(|count| count.0.load(Ordering::Relaxed)), [0, 1]);
    }
}
