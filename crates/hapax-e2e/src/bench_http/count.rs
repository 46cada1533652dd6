//! How often memory was asked for, by every thread but the driver's.
#![allow(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IS_DRIVER: Cell<bool> = const { Cell::new(false) };
}

/// The system's allocator, counted.
#[derive(Clone, Copy, Debug)]
pub struct Counting;

// SAFETY: every call goes to the system's allocator as it is.
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
    if !IS_DRIVER.get() {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

/// Leaves this thread out of the count.
pub fn leave_out_this_thread() {
    IS_DRIVER.set(true);
}

/// How often memory was asked for so far.
pub fn allocations() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}
