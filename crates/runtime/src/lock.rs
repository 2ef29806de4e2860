//! A lock between the threads of this process. Knows its owner, so that a signal handler that comes back into the library on
//! the thread that holds it gets an error instead of a deadlock.

use crate::sys;
use core::sync::atomic::{AtomicU32, Ordering};

/// The lock; 0 = free, else the owner's thread id.
pub struct Lock {
    word: AtomicU32,
}

/// Held until dropped.
pub struct Held<'a> {
    lock: &'a Lock,
}

impl Lock {
    /// A free lock.
    pub const fn new() -> Self {
        Self { word: AtomicU32::new(0) }
    }

    /// Waits for the lock; `None` when this very thread holds it.
    pub fn lock(&self) -> Option<Held<'_>> {
        crate::wiped::notice_fork();
        let me = sys::gettid();
        loop {
            match self.word.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(Held { lock: self }),
                Err(owner) if owner == me => return None,
                Err(owner) => sys::futex_wait(&self.word, owner),
            }
        }
    }

    /// Frees the lock in a forked child, whose other threads are gone.
    pub fn reset(&self) {
        self.word.store(0, Ordering::Release);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.lock.word.store(0, Ordering::Release);
        sys::futex_wake(&self.lock.word);
    }
}
