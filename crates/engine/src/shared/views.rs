//! Whether the views that the processes of a file have set in one collective call are alike: all with gaps, or all without.
//!
//! ROMIO's independent writes through a view with gaps read what lies between, under a lock, and write it back; those without gaps take no lock. So what the
//! ones write is lost now and then where the others do the same at once, as no collective call does.

use core::sync::atomic::{AtomicU64, Ordering::*};

/// Views of one file that processes may be apart, before nothing is known of them: setting one waits for all processes, with the MPIs that we know.
const SLOTS: usize = 8;
/// Of the number of a view, and of the processes.
const NUMBER_MAX: u32 = (1 << 23) - 1;
const SIZE_MAX: u32 = (1 << 20) - 1;

/// Number, processes with gaps, those without; whether somebody has found it incomplete, which is final.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word {
    number: u32,
    gaps: u32,
    whole: u32,
    is_given_up: bool,
}

impl Word {
    fn parse(word: u64) -> Self {
        let part = |at: u32, most: u32| (word >> at) as u32 & most;
        Self { number: part(0, NUMBER_MAX), gaps: part(23, SIZE_MAX), whole: part(43, SIZE_MAX), is_given_up: word >> 63 != 0 }
    }

    fn bits(self) -> u64 {
        u64::from(self.number) | u64::from(self.gaps) << 23 | u64::from(self.whole) << 43 | u64::from(self.is_given_up) << 63
    }

    fn with(mut self, has_gaps: bool) -> Self {
        *(if has_gaps { &mut self.gaps } else { &mut self.whole }) += 1;
        self
    }

    fn is_complete(self, size: u32) -> bool {
        self.gaps + self.whole == size
    }
}

/// One view of a file, until another one takes its place.
#[derive(Default)]
#[repr(C)]
struct Slot {
    word: AtomicU64,
    /// Number (upper half), and the processes that know how it ended.
    known: AtomicU64,
}

/// In shared memory; all zeros: no view was set.
#[derive(Default)]
#[repr(C)]
pub struct Views {
    slots: [Slot; SLOTS],
}

impl Views {
    /// Before a process sets the file's `number`th view, from 1 on: whether it is counted. One that is not must take the views for unlike, as all others will.
    pub fn arrive(&self, number: u32, has_gaps: bool, size: u32) -> bool {
        let Some(slot) = self.slots.get(number as usize % SLOTS).filter(|_| number <= NUMBER_MAX && size <= SIZE_MAX) else { return false };
        let mut word = slot.word.load(Acquire);
        loop {
            let seen = Word::parse(word);
            let next = if seen.number == number {
                seen.with(has_gaps)
            } else if seen.number == 0
                || (seen.number + SLOTS as u32 == number && slot.known.load(Acquire) == u64::from(seen.number) << 32 | u64::from(size))
            {
                Word { number, gaps: 0, whole: 0, is_given_up: false }.with(has_gaps)
            } else {
                return false;
            };
            match slot.word.compare_exchange_weak(word, next.bits(), AcqRel, Acquire) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }

    /// After that, of one who was counted, once: whether the views are alike. All processes get the same answer, though some ask before others have come.
    pub fn are_alike(&self, number: u32, size: u32) -> bool {
        let Some(slot) = self.slots.get(number as usize % SLOTS) else { return false };
        let mut word = slot.word.load(Acquire);
        let answer = loop {
            let seen = Word::parse(word);
            if seen.is_given_up || seen.number != number {
                break false;
            }
            if seen.is_complete(size) {
                break seen.gaps == 0 || seen.whole == 0;
            }
            if let Err(now) = slot.word.compare_exchange_weak(word, Word { is_given_up: true, ..seen }.bits(), AcqRel, Acquire) {
                word = now;
            } else {
                break false;
            }
        };
        let count = |known: u64| Some(if known >> 32 == u64::from(number) { known + 1 } else { u64::from(number) << 32 | 1 });
        let _ = slot.known.fetch_update(AcqRel, Acquire, count);
        answer
    }

    /// Makes it a new one, for one who knows that nobody uses it.
    pub fn clear(&self) {
        for slot in &self.slots {
            slot.word.store(0, Relaxed);
            slot.known.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn views_are_alike_where_all_have_gaps_or_none_has() {
        for (gaps, alike) in [([true, true, true], true), ([false, false, false], true), ([true, false, true], false)] {
            let views = Views::default();
            for number in 1..=3 * SLOTS as u32 {
                assert!(gaps.iter().all(|has_gaps| views.arrive(number, *has_gaps, 3)));
                assert!(gaps.iter().all(|_| views.are_alike(number, 3) == alike), "{number}");
            }
        }
    }

    #[test]
    fn who_asks_too_early_decides_for_all() {
        let views = Views::default();
        assert!(views.arrive(1, true, 2) && !views.are_alike(1, 2));
        assert!(views.arrive(1, true, 2) && !views.are_alike(1, 2));
        // Nobody is known to be through with the second one when its place is wanted.
        assert!(views.arrive(2, true, 2));
        for number in 3..=2 + SLOTS as u32 {
            assert_eq!(views.arrive(number, true, 2), number < 2 + SLOTS as u32);
        }
        assert!(!views.arrive(NUMBER_MAX + 1, true, 2) && !views.arrive(20, true, SIZE_MAX + 1));
    }

    /// Processes that set views as fast as they can, some of them waiting for each other: all of them get the same answers.
    #[test]
    fn all_processes_get_the_same_answer() {
        let mut alike = 0;
        for seed in 0..200u32 {
            let (size, views, barrier) = (2 + seed % 3, Views::default(), Barrier::new(2 + seed as usize % 3));
            let work = |rank: u32| -> Vec<bool> {
                let answer = |number: u32| {
                    let has_gaps = !number.is_multiple_of(3) || rank == 0 && number.is_multiple_of(5);
                    let is_counted = views.arrive(number, has_gaps, size);
                    if seed % 4 != 0 {
                        barrier.wait();
                    } else if (number + rank).is_multiple_of(7) {
                        std::thread::yield_now();
                    }
                    is_counted && views.are_alike(number, size)
                };
                (1..200).map(answer).collect()
            };
            let all: Vec<Vec<bool>> = std::thread::scope(|scope| {
                let work = &work;
                let all: Vec<_> = (0..size).map(|rank| scope.spawn(move || work(rank))).collect();
                all.into_iter().map(|one| one.join().unwrap()).collect()
            });
            assert!(all.iter().all(|other| *other == all[0]), "seed {seed}");
            alike += all[0].iter().filter(|alike| **alike).count();
        }
        assert!(alike > 10_000, "{alike}");
    }
}
