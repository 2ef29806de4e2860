//! What a process knows of a managed file's copies (`crate::copies::managed`), kept with the file.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use stripewise_store::ctl::Ctl;

/// In a place's stead: the file has copies, and this process has no place for what it knows of them.
pub const NO_PLACE: u32 = u32::MAX;
/// Places that one file may keep so.
const OLD_MAX: usize = 4;
/// What of its copies a process knows of a managed file: kept with the file.
pub struct Known {
    /// Of which copies: [`stripewise_store::ctl::CtlHeader::copies`] when they were looked for.
    pub container: AtomicU64,
    /// Their place, plus one; 0: there are none that count.
    pub place: AtomicU32,
    /// Places of earlier ones that somebody may still have used when they were replaced, each with a number of its own above it; they go when nobody can
    /// any more, at the latest with the last use of the file.
    old: [AtomicU64; OLD_MAX],
}

impl Known {
    pub const fn nothing() -> Self {
        Self { container: AtomicU64::new(0), place: AtomicU32::new(0), old: [const { AtomicU64::new(0) }; OLD_MAX] }
    }

    pub fn place(&self) -> u32 {
        self.place.load(Ordering::Acquire)
    }

    /// Whether this process knows of the copies that the file has now.
    #[inline]
    pub fn is_current(&self, ctl: &Ctl) -> bool {
        self.container.load(Ordering::Acquire) == ctl.header().copies.load(Ordering::SeqCst)
    }

    /// Whether earlier ones are kept.
    pub fn has_old(&self) -> bool {
        self.old.iter().any(|place| place.load(Ordering::Relaxed) != 0)
    }

    /// Whether no more can be.
    pub fn is_old_full(&self) -> bool {
        self.old.iter().all(|place| place.load(Ordering::Relaxed) != 0)
    }

    /// Keeps a place (plus one) as an earlier one; there must be room, and the caller is the only one who does so now.
    pub fn keep_old(&self, place: u32) {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let entry = (NUMBER.fetch_add(1, Ordering::Relaxed) + 1) << 32 | u64::from(place);
        let _ = self.old.iter().any(|kept| kept.compare_exchange(0, entry, Ordering::AcqRel, Ordering::Relaxed).is_ok());
    }

    /// The earlier ones that are kept now, to be taken once nobody is where he was.
    pub fn old(&self) -> [u64; OLD_MAX] {
        core::array::from_fn(|at| self.old.get(at).map_or(0, |kept| kept.load(Ordering::Acquire)))
    }

    /// Takes those of the earlier ones that nobody has taken meanwhile: places, plus one.
    pub fn take_old(&self, seen: [u64; OLD_MAX]) -> impl Iterator<Item = u32> {
        let is_mine = |kept: &AtomicU64, seen: u64| seen != 0 && kept.compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        self.old.iter().zip(seen).filter(move |(kept, seen)| is_mine(kept, *seen)).map(|(_, seen)| seen as u32)
    }

    /// Whether there may be copies that are known.
    #[inline]
    pub fn has_any(&self) -> bool {
        self.place.load(Ordering::Relaxed) != 0
    }
}

/// What gives places back, and what does that where the table of files is locked.
static GIVE_BACK: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Sets what gives places back: each time with the place (plus one), and whether the table of files is locked.
pub fn given_back_by(work: fn(u32, bool)) {
    GIVE_BACK.store(work as *mut (), Ordering::Release);
}

/// Places that a file had which nobody uses any more: to be given back once the table of files is not locked.
pub struct Left([u32; OLD_MAX + 1]);

impl Known {
    /// Takes all places, under that lock.
    pub fn take(&self) -> Left {
        let mut left = Left([0; OLD_MAX + 1]);
        if self.container.swap(0, Ordering::AcqRel) != 0 || self.has_old() {
            let old = self.old.iter().map(|kept| kept.swap(0, Ordering::AcqRel) as u32);
            left.0.iter_mut().zip(core::iter::once(self.place.swap(0, Ordering::AcqRel)).chain(old)).for_each(|(left, place)| *left = place);
        }
        left
    }
}

impl Left {
    pub fn give_back(self, is_locked: bool) {
        let work = GIVE_BACK.load(Ordering::Acquire);
        if !work.is_null() {
            // SAFETY: set by `given_back_by` alone.
            let work = unsafe { core::mem::transmute::<*mut (), fn(u32, bool)>(work) };
            self.0.into_iter().filter(|place| !matches!(*place, 0 | NO_PLACE)).for_each(|place| work(place, is_locked));
        }
    }
}
