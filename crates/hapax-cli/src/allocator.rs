//! The program's allocator: mimalloc, asked for a special alignment only where one is needed.
//!
//! Its usual binding asks for every block with its alignment. For blocks of more than 1 KiB that takes a longer way,
//! and a block that is larger by the alignment; every request has several of them (decision 23).
#![allow(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

use libmimalloc_sys as mi;

/// What mimalloc aligns blocks to that are at least as large, without being asked (`MI_MAX_ALIGN_SIZE`).
const ALIGNED_ANYWAY: usize = 16;

/// mimalloc.
pub(crate) struct Allocator;

fn is_aligned_anyway(size: usize, align: usize) -> bool {
    align <= ALIGNED_ANYWAY && align <= size
}

// SAFETY: blocks come from mimalloc and go back to it, whichever way they were asked for. They are as large as the
// layout says, and aligned as it says: by being asked for so, or because all blocks of that size are.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        let block = unsafe {
            if is_aligned_anyway(size, align) {
                mi::mi_malloc(size)
            } else {
                mi::mi_malloc_aligned(size, align)
            }
        };
        block.cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        let block = unsafe {
            if is_aligned_anyway(size, align) {
                mi::mi_zalloc(size)
            } else {
                mi::mi_zalloc_aligned(size, align)
            }
        };
        block.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        unsafe { mi::mi_free(block.cast::<c_void>()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (block, align) = (block.cast::<c_void>(), layout.align());
        let block = unsafe {
            if is_aligned_anyway(size, align) {
                mi::mi_realloc(block, size)
            } else {
                mi::mi_realloc_aligned(block, size, align)
            }
        };
        block.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_aligned(block: *mut u8, align: usize) -> bool {
        !block.is_null() && block.addr().is_multiple_of(align)
    }

    /// Every size that a class of blocks may begin or end with, at every alignment, new, cleared, grown and shrunk.
    #[test]
    fn blocks_are_aligned_as_asked() {
        let sizes =
            (1..=256).chain((8..17).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 8]));
        for (size, align) in sizes.flat_map(|size| (0..=7).map(move |power| (size, 1_usize << power))) {
            let layout = Layout::from_size_align(size, align).unwrap();
            let other = Layout::from_size_align(size / 2 + 1, align).unwrap();
            // Two of each, so that not all are the first block of a page.
            for _ in 0..2 {
                let (fresh, cleared) = unsafe { (Allocator.alloc(layout), Allocator.alloc_zeroed(layout)) };
                assert!(is_aligned(fresh, align) && is_aligned(cleared, align), "{layout:?}");
                let content = unsafe { std::slice::from_raw_parts(cleared, size) };
                assert!(content.iter().all(|byte| *byte == 0), "{layout:?}");
                let moved = unsafe { Allocator.realloc(fresh, layout, other.size()) };
                assert!(is_aligned(moved, align), "{layout:?} to {other:?}");
                unsafe {
                    Allocator.dealloc(moved, other);
                    Allocator.dealloc(cleared, layout);
                }
            }
        }
    }
}
