//! A lock between the threads of this process. Knows its owner, so that a signal handler that comes back into the library on
//! the thread that holds it gets an error instead of a deadlock; one that was left by siglongjmp is free for that thread again.

use crate::base::sys;
use crate::base::tls;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Beside the owner's thread id: somebody may be waiting.
const WAITED_FOR: u32 = 1 << 31;

/// No frame has been left that is as far out as this: who comes in between finds the lock taken by itself.
const NOWHERE: u64 = u64::MAX - (1 << 20);

/// The lock; 0 = free, else the owner's thread id, with [`WAITED_FOR`].
pub struct Lock {
    word: AtomicU32,
    /// How far below [`NOWHERE`] the owner's stack was when it took the lock; 0 until it has said so. A free lock is all zeros: tables of thousands take
    /// no room in the library's file.
    below: AtomicU64,
}

/// Held until dropped.
pub struct Held<'a> {
    lock: &'a Lock,
}

impl Lock {
    /// A free lock.
    pub const fn new() -> Self {
        Self { word: AtomicU32::new(0), below: AtomicU64::new(0) }
    }

    /// Waits for the lock; `None` when this very thread holds it.
    pub fn lock(&self) -> Option<Held<'_>> {
        crate::base::process::notice_fork();
        let me = tls::id();
        let claim = Claim::of(self);
        // Whoever has waited does not know who else does.
        let mut taken = me;
        loop {
            match self.word.compare_exchange(0, taken, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break,
                Err(seen) if seen & !WAITED_FOR == me && self.is_left() => break,
                Err(seen) if seen & !WAITED_FOR == me => return None,
                Err(seen) => {
                    taken = me | WAITED_FOR;
                    let waited = seen | WAITED_FOR;
                    if seen == waited || self.word.compare_exchange(seen, waited, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                        sys::futex_wait(&self.word, waited);
                    }
                }
            }
        }
        self.below.store(NOWHERE - tls::stack_here(), Ordering::Relaxed);
        drop(claim);
        Some(Held { lock: self })
    }

    /// Holds the lock from here to [`Lock::go_on`]: around a fork, so that the child finds what it guards whole. False when this very thread holds it.
    pub fn hold(&self) -> bool {
        self.lock().map(core::mem::forget).is_some()
    }

    /// Ends what [`Lock::hold`] began.
    pub fn go_on(&self) {
        drop(Held { lock: self });
    }

    /// Frees the lock where this thread holds it and has left the frame that took it.
    #[inline]
    pub fn abandon_if_left(&self) {
        let word = self.word.load(Ordering::Relaxed);
        if word != 0 && word & !WAITED_FOR == tls::id() && self.is_left() {
            self.go_on();
        }
    }

    /// Of the owner: whether it has left the frame that took the lock. One that was left before it had said where it was has left its claim.
    #[cold]
    #[inline(never)]
    fn is_left(&self) -> bool {
        match self.below.load(Ordering::Relaxed) {
            0 => {
                // SAFETY: this thread's own block.
                let [lock, stack] = unsafe { (*tls::thread()).claim };
                lock == core::ptr::from_ref(self) as u64 && tls::is_left_behind(stack)
            }
            below => tls::is_left_behind(NOWHERE - below),
        }
    }

    /// Frees the lock where this thread has left its frame without giving it back; whether it has.
    pub fn abandon(&self) -> bool {
        let is_own = self.word.load(Ordering::Relaxed) & !WAITED_FOR == tls::id();
        if is_own {
            self.go_on();
        }
        is_own
    }

    /// Frees the lock in a forked child, whose other threads are gone.
    pub fn reset(&self) {
        self.below.store(0, Ordering::Relaxed);
        self.word.store(0, Ordering::Release);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let _claim = Claim::of(self.lock);
        self.lock.below.store(0, Ordering::Relaxed);
        if self.lock.word.swap(0, Ordering::Release) & WAITED_FOR != 0 {
            sys::futex_wake(&self.lock.word);
        }
    }
}

/// This thread is about to take a lock, or to give it back: for as long as that lasts the lock itself does not say where its owner's stack is. A signal handler
/// on top of it may make claims of its own.
struct Claim([u64; 2]);

impl Claim {
    #[inline]
    fn of(lock: &Lock) -> Self {
        // SAFETY: this thread's own block; a handler in between puts back what it finds.
        Self(unsafe { core::mem::replace(&mut (*tls::thread()).claim, [core::ptr::from_ref(lock) as u64, tls::stack_here()]) })
    }
}

impl Drop for Claim {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { (*tls::thread()).claim = self.0 };
    }
}
