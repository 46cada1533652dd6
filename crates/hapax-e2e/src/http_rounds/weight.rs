//! How much memory is in use, as an allocator sees it.
#![allow(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static IN_USE: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, weighed.
#[derive(Clone, Copy, Debug)]
pub struct Weighing;

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Weighing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Bytes that were asked for and not given back, where [`Weighing`] is the allocator.
pub(super) fn in_use() -> usize {
    IN_USE.load(Ordering::Relaxed)
}
