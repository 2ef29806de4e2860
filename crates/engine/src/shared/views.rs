//! Whether the views that the processes of a file have set in one collective call are alike: all with gaps, or all without; and whether all of those that have
//! gaps would have their reads unsieved; and which hints about sieving come with them.
//!
//! ROMIO's independent writes through a view with gaps read what lies between, under a lock, and write it back; those without gaps take no lock. So what the
//! ones write is lost now and then where the others do the same at once, as no collective call does.

use core::sync::atomic::{AtomicU64, Ordering::*};

/// Views of one file that processes may be apart, before nothing is known of them: setting one waits for all processes, with the MPIs that we know.
const SLOTS: usize = 8;
/// Of the number of a view, and of the processes.
const NUMBER_MAX: u32 = (1 << 19) - 1;
const SIZE_MAX: u32 = (1 << 14) - 1;

/// A view of one process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    Whole,
    /// It leaves gaps; `unsieved`: its process would have reads take each piece by itself.
    Gaps {
        unsieved: bool,
    },
}

/// Hints about sieving that come with a view: whether there are some, and whether one says how reads are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hinted {
    pub any: bool,
    pub reads: bool,
}

/// What all processes know of their views.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Agreed {
    pub are_alike: bool,
    /// Whether reads are to take each piece by itself; none: no view has gaps, or not all are known.
    pub unsieved: Option<bool>,
    /// Hints of any process.
    pub hinted: Hinted,
}

impl Agreed {
    /// Of views that are not all known.
    pub const UNKNOWN: Self = Self { are_alike: false, unsieved: None, hinted: Hinted { any: true, reads: false } };
}

/// Number, processes with gaps, those without, those with gaps who would have reads unsieved; hints of any; whether somebody has found it incomplete, which
/// is final.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word {
    number: u32,
    gaps: u32,
    whole: u32,
    unsieved: u32,
    hinted: Hinted,
    is_given_up: bool,
}

impl Word {
    fn parse(word: u64) -> Self {
        let part = |at: u32, most: u32| (word >> at) as u32 & most;
        Self {
            number: part(0, NUMBER_MAX),
            gaps: part(19, SIZE_MAX),
            whole: part(33, SIZE_MAX),
            unsieved: part(47, SIZE_MAX),
            hinted: Hinted { any: word >> 61 & 1 != 0, reads: word >> 62 & 1 != 0 },
            is_given_up: word >> 63 != 0,
        }
    }

    fn bits(self) -> u64 {
        let counted = u64::from(self.gaps) << 19 | u64::from(self.whole) << 33 | u64::from(self.unsieved) << 47;
        let hinted = u64::from(self.hinted.any) << 61 | u64::from(self.hinted.reads) << 62;
        u64::from(self.number) | counted | hinted | u64::from(self.is_given_up) << 63
    }

    fn with(mut self, shown: Shown, hinted: Hinted) -> Self {
        self.hinted.any |= hinted.any;
        self.hinted.reads |= hinted.reads;
        match shown {
            Shown::Whole => self.whole += 1,
            Shown::Gaps { unsieved } => {
                self.gaps += 1;
                self.unsieved += u32::from(unsieved);
            }
        }
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
    pub fn arrive(&self, number: u32, shown: Shown, hinted: Hinted, size: u32) -> bool {
        let Some(slot) = self.slots.get(number as usize % SLOTS).filter(|_| number <= NUMBER_MAX && size <= SIZE_MAX) else { return false };
        let mut word = slot.word.load(Acquire);
        loop {
            let seen = Word::parse(word);
            let next = if seen.number == number {
                seen.with(shown, hinted)
            } else if seen.number == 0
                || (seen.number + SLOTS as u32 == number && slot.known.load(Acquire) == u64::from(seen.number) << 32 | u64::from(size))
            {
                Word { number, gaps: 0, whole: 0, unsieved: 0, hinted: Hinted::default(), is_given_up: false }.with(shown, hinted)
            } else {
                return false;
            };
            match slot.word.compare_exchange_weak(word, next.bits(), AcqRel, Acquire) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }

    /// Before a process that was counted sets another view than it was counted for, since MPI has refused that one: nothing is known of the views, to nobody.
    pub fn give_up(&self, number: u32) {
        let Some(slot) = self.slots.get(number as usize % SLOTS) else { return };
        let given_up = |word| Some(Word::parse(word)).filter(|seen| seen.number == number).map(|seen| Word { is_given_up: true, ..seen }.bits());
        let _ = slot.word.fetch_update(AcqRel, Acquire, given_up);
    }

    /// After that, of one who was counted, once: what all know of the views. All processes get the same answer, though some ask before others have come.
    pub fn agreed(&self, number: u32, size: u32) -> Agreed {
        let Some(slot) = self.slots.get(number as usize % SLOTS) else { return Agreed::UNKNOWN };
        let mut word = slot.word.load(Acquire);
        let answer = loop {
            let seen = Word::parse(word);
            if seen.is_given_up || seen.number != number {
                break Agreed::UNKNOWN;
            }
            if seen.is_complete(size) {
                let unsieved = (seen.gaps > 0).then_some(seen.unsieved == seen.gaps);
                break Agreed { are_alike: seen.gaps == 0 || seen.whole == 0, unsieved, hinted: seen.hinted };
            }
            if let Err(now) = slot.word.compare_exchange_weak(word, Word { is_given_up: true, ..seen }.bits(), AcqRel, Acquire) {
                word = now;
            } else {
                break Agreed::UNKNOWN;
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

    fn shown(has_gaps: bool) -> Shown {
        if has_gaps { Shown::Gaps { unsieved: false } } else { Shown::Whole }
    }

    #[test]
    fn reads_are_unsieved_where_all_with_gaps_would_have_it() {
        let (unsieved, sieved) = (Shown::Gaps { unsieved: true }, Shown::Gaps { unsieved: false });
        let cases = [
            ([unsieved; 3], Some(true)),
            ([unsieved, Shown::Whole, unsieved], Some(true)),
            ([unsieved, sieved, unsieved], Some(false)),
            ([sieved, Shown::Whole, sieved], Some(false)),
            ([Shown::Whole; 3], None),
        ];
        let views = Views::default();
        for (number, (all, answer)) in (1..).zip(cases) {
            assert!(all.iter().all(|one| views.arrive(number, *one, Hinted::default(), 3)));
            assert!(all.iter().all(|_| views.agreed(number, 3).unsieved == answer), "{all:?}");
        }
        // One that is not there yet may have another view.
        assert!(views.arrive(6, unsieved, Hinted::default(), 2) && views.agreed(6, 2) == Agreed::UNKNOWN);
        assert!(views.arrive(6, unsieved, Hinted::default(), 2) && views.agreed(6, 2) == Agreed::UNKNOWN);
    }

    #[test]
    fn a_hint_of_one_process_is_known_to_all() {
        let views = Views::default();
        let (none, any, reads) = (Hinted::default(), Hinted { any: true, reads: false }, Hinted { any: true, reads: true });
        for (number, (hints, all)) in (1..).zip([([none; 3], none), ([none, any, none], any), ([any, reads, none], reads), ([none; 3], none)]) {
            assert!(hints.iter().all(|one| views.arrive(number, Shown::Whole, *one, 3)));
            assert!(hints.iter().all(|_| views.agreed(number, 3).hinted == all), "{hints:?}");
        }
    }

    #[test]
    fn views_are_alike_where_all_have_gaps_or_none_has() {
        for (gaps, alike) in [([true, true, true], true), ([false, false, false], true), ([true, false, true], false)] {
            let views = Views::default();
            for number in 1..=3 * SLOTS as u32 {
                assert!(gaps.iter().all(|has_gaps| views.arrive(number, shown(*has_gaps), Hinted::default(), 3)));
                assert!(gaps.iter().all(|_| views.agreed(number, 3).are_alike == alike), "{number}");
            }
        }
    }

    #[test]
    fn of_a_view_that_was_counted_as_another_one_nothing_is_known() {
        let views = Views::default();
        assert!([true; 2].iter().all(|has_gaps| views.arrive(1, shown(*has_gaps), Hinted::default(), 2)));
        views.give_up(1);
        // Of another number it is no matter.
        views.give_up(1 + SLOTS as u32);
        assert!((0..2).all(|_| views.agreed(1, 2) == Agreed::UNKNOWN));
        // It ends as any other, and its place is used again.
        for number in [2, 1 + SLOTS as u32] {
            assert!((0..2).all(|_| views.arrive(number, shown(true), Hinted::default(), 2)), "{number}");
            assert!((0..2).all(|_| views.agreed(number, 2).are_alike), "{number}");
        }
    }

    #[test]
    fn who_asks_too_early_decides_for_all() {
        let views = Views::default();
        assert!(views.arrive(1, shown(true), Hinted::default(), 2) && !views.agreed(1, 2).are_alike);
        assert!(views.arrive(1, shown(true), Hinted::default(), 2) && !views.agreed(1, 2).are_alike);
        // Nobody is known to be through with the second one when its place is wanted.
        assert!(views.arrive(2, shown(true), Hinted::default(), 2));
        for number in 3..=2 + SLOTS as u32 {
            assert_eq!(views.arrive(number, shown(true), Hinted::default(), 2), number < 2 + SLOTS as u32);
        }
        assert!(!views.arrive(NUMBER_MAX + 1, shown(true), Hinted::default(), 2) && !views.arrive(20, shown(true), Hinted::default(), SIZE_MAX + 1));
    }

    /// Processes that set views as fast as they can, some of them waiting for each other: all of them get the same answers.
    #[test]
    fn all_processes_get_the_same_answer() {
        let (mut alike, mut unsieved) = (0, [0; 2]);
        for seed in 0..200u32 {
            let (size, views, barrier) = (2 + seed % 3, Views::default(), Barrier::new(2 + seed as usize % 3));
            let work = |rank: u32| -> Vec<Agreed> {
                let answer = |number: u32| {
                    let has_gaps = !number.is_multiple_of(3) || rank == 0 && number.is_multiple_of(5);
                    let shown = if has_gaps { Shown::Gaps { unsieved: number % 4 < 2 + rank % 2 } } else { Shown::Whole };
                    let is_counted = views.arrive(number, shown, Hinted { any: rank == number % 7, reads: false }, size);
                    if seed % 4 != 0 {
                        barrier.wait();
                    } else if (number + rank).is_multiple_of(7) {
                        std::thread::yield_now();
                    }
                    if is_counted { views.agreed(number, size) } else { Agreed::UNKNOWN }
                };
                (1..200).map(answer).collect()
            };
            let all: Vec<Vec<Agreed>> = std::thread::scope(|scope| {
                let work = &work;
                let all: Vec<_> = (0..size).map(|rank| scope.spawn(move || work(rank))).collect();
                all.into_iter().map(|one| one.join().unwrap()).collect()
            });
            assert!(all.iter().all(|other| *other == all[0]), "seed {seed}");
            alike += all[0].iter().filter(|agreed| agreed.are_alike).count();
            all[0].iter().filter_map(|agreed| agreed.unsieved).for_each(|is| unsieved[usize::from(is)] += 1);
        }
        assert!(alike > 10_000 && unsieved.iter().all(|n| *n > 1000), "{alike} {unsieved:?}");
    }
}
