//! One operation on one object: what is to be read or written where, and what became of it. The caller owns it, memory and outcome included, so that
//! nothing is allocated and a request over many objects is an array on the caller's stack.

use core::marker::PhantomData;
use std::io::{IoSlice, IoSliceMut};

use rustix::io::Errno;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the object into memory.
    Read,
    /// From memory into the object.
    Write,
}

/// A stretch of memory as the kernel's `struct iovec` has it. It may be no good address: whoever moves bytes there lets the kernel copy, or checks.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Memory {
    /// First byte.
    pub base: *mut u8,
    /// Bytes.
    pub len: usize,
}

// SAFETY: a pointer and a length, which only who promises that they may be used makes use of.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

// The standard library's slices are ABI-compatible with struct iovec, by its own promise.
const _: () = assert!(size_of::<Memory>() == size_of::<IoSlice<'static>>() && align_of::<Memory>() == align_of::<IoSlice<'static>>());

/// What became of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Bytes moved, from the first on without a gap. A read that is short without an error has met the end of the object; a write that is, the end of
    /// the room.
    pub done: u64,
    /// Why it ended before all was done. What is in `done` counts all the same.
    pub error: Option<Errno>,
    /// CLOCK_MONOTONIC ns until which an emulated device is busy with it; 0 on any other.
    pub end_ns: u64,
    /// Service time that it takes of an emulated device, ns.
    pub service_ns: u64,
}

impl Outcome {
    /// The bytes moved, or the error.
    ///
    /// # Errors
    /// The operation's, whatever was moved before it.
    pub fn result(self) -> Result<u64, Errno> {
        self.error.map_or(Ok(self.done), Err)
    }
}

/// An operation.
#[derive(Debug)]
pub struct Op<'a> {
    direction: Direction,
    offset: u64,
    memory: *mut Memory,
    count: usize,
    len: u64,
    is_nowait: bool,
    /// Known once the batch has been waited for.
    pub outcome: Outcome,
    /// The serving kind's own, between start and finish: which of its requests this is, or how far it has come.
    pub ticket: u64,
    _borrowed: PhantomData<&'a mut [Memory]>,
}

impl<'a> Op<'a> {
    /// Reads at `offset` into buffers, one after the other.
    #[must_use]
    pub fn read(buffers: &'a mut [IoSliceMut<'_>], offset: u64) -> Self {
        // SAFETY: layouts are the same (asserted above); the buffers are borrowed for as long as the operation lives.
        unsafe { Self::new(Direction::Read, buffers.as_mut_ptr().cast(), buffers.len(), offset) }
    }

    /// Writes buffers, one after the other, at `offset`.
    #[must_use]
    pub fn write(buffers: &'a [IoSlice<'_>], offset: u64) -> Self {
        // SAFETY: as above; nobody writes through what a write is given.
        unsafe { Self::new(Direction::Write, buffers.as_ptr().cast_mut().cast(), buffers.len(), offset) }
    }

    /// An operation on memory that a program named.
    ///
    /// # Safety
    /// Until its batch has been waited for, each stretch of `memory` is the operation's to use, or is no good address, which is an error of the operation.
    #[must_use]
    pub unsafe fn raw(direction: Direction, memory: &'a mut [Memory], offset: u64) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::new(direction, memory.as_mut_ptr(), memory.len(), offset) }
    }

    /// # Safety
    /// As [`Op::raw`]; `memory` points to `count` stretches, which are changed by nobody and for a read are borrowed mutably.
    unsafe fn new(direction: Direction, memory: *mut Memory, count: usize, offset: u64) -> Self {
        let mut made =
            Self { direction, offset, memory, count, len: 0, is_nowait: false, outcome: Outcome::default(), ticket: 0, _borrowed: PhantomData };
        made.len = made.memory().iter().fold(0u64, |sum, part| sum.saturating_add(part.len as u64));
        made
    }

    /// The same, ending with `AGAIN` where it would have to wait for a device; what was moved before that counts.
    #[must_use]
    pub const fn without_waiting(self) -> Self {
        Self { is_nowait: true, ..self }
    }

    /// Which way bytes go.
    #[must_use]
    pub const fn direction(&self) -> Direction {
        self.direction
    }

    /// First byte in the object.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// The memory, in order.
    #[must_use]
    pub const fn memory(&self) -> &[Memory] {
        // SAFETY: the promise of whoever made it.
        unsafe { core::slice::from_raw_parts(self.memory, self.count) }
    }

    /// The stretches from number `first` on, at most `most`, for a call that wants them mutable though it changes none.
    pub(crate) fn vector(&mut self, first: usize, most: usize) -> &mut [Memory] {
        let first = first.min(self.count);
        // SAFETY: inside the stretches by the line above; a mutable borrow lets nobody else look meanwhile. One of a write is never written through.
        unsafe { core::slice::from_raw_parts_mut(self.memory.add(first), (self.count - first).min(most)) }
    }

    /// The memory of its bytes from number `from` on, at most `most` of them, stretch by stretch.
    pub fn stretches(&self, from: u64, most: u64) -> impl Iterator<Item = Memory> + '_ {
        let (mut skip, mut left) = (from, most);
        self.memory().iter().filter_map(move |part| {
            let gone = skip.min(part.len as u64);
            skip -= gone;
            let len = (part.len as u64 - gone).min(left);
            left -= len;
            (len > 0).then(|| Memory { base: part.base.wrapping_add(gone as usize), len: len as usize })
        })
    }

    /// Bytes in all.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether it must not wait for a device.
    #[must_use]
    pub const fn is_nowait(&self) -> bool {
        self.is_nowait
    }

    /// Begins it anew; whether there is anything to do: not of one without bytes, nor of one that ends beyond the largest offset of the kernel's, 2^63 - 1,
    /// which is its error.
    #[inline]
    pub(crate) fn begin(&mut self) -> bool {
        let reaches_too_far = self.offset.checked_add(self.len).is_none_or(|end| end > OFFSET_MAX);
        self.outcome = Outcome { error: reaches_too_far.then_some(Errno::INVAL), ..Outcome::default() };
        !reaches_too_far && self.len > 0
    }
}

/// Largest offset and length of an object.
pub const OFFSET_MAX: u64 = i64::MAX as u64;
