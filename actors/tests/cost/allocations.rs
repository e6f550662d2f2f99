//! Allocation counter of each thread. The index has a thread of its own, which must not disturb the
//! count.
#![allow(unsafe_code, reason = "an allocator can be counted only from within, and its trait is unsafe")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::{AddAssign, Sub};

/// What was asked for. Memory that is given back is not counted, so a figure never falls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allocations {
    /// How many times, a change of size included.
    pub(crate) allocations: u64,
    /// Bytes; of a change of size what it grew by.
    pub(crate) bytes: u64,
}

impl Sub for Allocations {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self { allocations: self.allocations - before.allocations, bytes: self.bytes - before.bytes }
    }
}

impl AddAssign for Allocations {
    fn add_assign(&mut self, more: Self) {
        self.allocations += more.allocations;
        self.bytes += more.bytes;
    }
}

/// What this thread has asked for since it began.
pub(crate) fn allocated() -> Allocations {
    ALLOCATED.get()
}

thread_local! {
    // Neither made nor dropped by any code of its own: that could allocate again.
    static ALLOCATED: Cell<Allocations> = const { Cell::new(Allocations { allocations: 0, bytes: 0 }) };
}

fn count(bytes: usize) {
    let mut total = ALLOCATED.get();
    total += Allocations { allocations: 1, bytes: bytes as u64 };
    ALLOCATED.set(total);
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call goes to the system's allocator as it came; counting touches a thread's own
// cell only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the promises of this same call.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.saturating_sub(layout.size()));
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}
