//! Counts allocations of all threads but the driver's, where that is enabled.
//!
//! Counting slows every allocation down, so it is off while times are measured.
#![allow(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IS_DRIVER: Cell<bool> = const { Cell::new(false) };
}

/// The system's allocator, with a count.
#[derive(Clone, Copy, Debug)]
pub struct Counting;

// SAFETY: every call is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fn note() {
    if IS_COUNTING.load(Ordering::Relaxed) && !IS_DRIVER.get() {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

/// Leaves this thread out of the count.
pub fn leave_out_this_thread() {
    IS_DRIVER.set(true);
}

/// The number of allocations while `act` ran.
pub fn allocations<T>(act: impl FnOnce() -> T) -> (T, u64) {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    IS_COUNTING.store(true, Ordering::Relaxed);
    let done = act();
    IS_COUNTING.store(false, Ordering::Relaxed);
    (done, ALLOCATIONS.load(Ordering::Relaxed) - before)
}
