//! [`MeasuringAllocator`]: counts the bytes that are allocated.
#![allow(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static IN_USE: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, with a count of allocated bytes.
#[derive(Clone, Copy, Debug)]
pub struct MeasuringAllocator;

// SAFETY: every call is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for MeasuringAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Allocated bytes, where [`MeasuringAllocator`] is the allocator.
pub(super) fn in_use() -> usize {
    IN_USE.load(Ordering::Relaxed)
}
