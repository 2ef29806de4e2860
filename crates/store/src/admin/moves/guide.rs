//! Who watches over a mover, or over whoever makes copies: is asked before each chunk is copied, and may slow the copy down or stop it.

use crate::admin::medium::CHUNK_BYTES;

/// What a move, or the making of copies, reports to, and asks for leave. One that is stopped leaves the file whole.
pub trait Guide {
    /// Asked before about `bytes` bytes are copied; returns after as long as the copy should wait. False stops the move.
    fn pace(&mut self, _bytes: u64) -> bool {
        true
    }

    /// Bytes that are copied between two questions at most.
    fn chunk_bytes(&self) -> u64 {
        CHUNK_BYTES
    }

    /// Asked while the mover waits for somebody (a program inside an I/O, a paused move). False stops the move.
    fn waits(&mut self) -> bool {
        true
    }

    /// Told how many bytes of how many have their new home. False stops after this step.
    fn moved(&mut self, _done: u64, _total: u64) -> bool {
        true
    }

    /// Told how long writers to a span were kept out, ns; `published` is false when the freeze was aborted.
    fn was_frozen(&mut self, _ns: u64, _published: bool) {}
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unguided;

impl Guide for Unguided {}

impl<F: FnMut(u64, u64) -> bool> Guide for F {
    fn moved(&mut self, done: u64, total: u64) -> bool {
        self(done, total)
    }
}
