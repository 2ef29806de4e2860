//! The calls of one site: which mode each is made in, and what they took.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

use crate::contest::{Step, Window};
use crate::decision::Mode;

/// Bits of the number of a call: a site with more calls stays as it is.
const NUMBER_BITS: u32 = 28;
const NUMBER_MAX: u32 = (1 << NUMBER_BITS) - 1;
/// Looks for a first decision that another process is making: some ten microseconds.
const LOOKS: u32 = 1000;

/// A lane's word: how many calls have begun in some process, from which one on the last decision counts, and the decision.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word {
    begun: u32,
    from: u32,
    /// None: there is no decision yet.
    step: Option<Step>,
}

impl Word {
    fn parse(word: u64) -> Self {
        let number = |at: u32| (word >> at) as u32 & NUMBER_MAX;
        let mode = match word >> 60 & 3 {
            1 => Some(Mode::Collective),
            2 => Some(Mode::Independent),
            _ => None,
        };
        let calls_log2 = (word >> 56 & 15) as u32;
        Self { begun: number(0), from: number(NUMBER_BITS), step: mode.map(|mode| Step { mode, calls_log2 }) }
    }

    fn bits(self) -> u64 {
        let step = self.step.map_or(0, |step| {
            let mode = if step.mode == Mode::Collective { 1 } else { 2 };
            mode << 4 | u64::from(step.calls_log2.min(15))
        });
        u64::from(self.begun) | u64::from(self.from) << NUMBER_BITS | step << 56
    }
}

/// The lane in shared memory. All zeros: no call yet.
#[derive(Default)]
#[repr(C)]
pub struct Lane<D> {
    word: AtomicU64,
    /// Of the window: the longest process's time in its calls, the bytes of all, how many processes left gaps.
    ticks: AtomicU64,
    bytes: AtomicU64,
    strided: AtomicU32,
    /// Processes that are through with the window.
    through: AtomicU32,
    /// Whether somebody makes the first decision, or has made it.
    is_begun: AtomicU32,
    unused: AtomicU32,
    /// What decides; of the process that is the last one through, and of who makes the first decision.
    decider: UnsafeCell<D>,
}

// SAFETY: `decider` is touched before the first decision by its maker, and then by the last process through a window, before the next one begins.
unsafe impl<D: Send> Sync for Lane<D> {}

/// What one process knows of a lane.
#[derive(Clone, Copy)]
pub struct Own {
    /// Calls that it has begun.
    calls: u32,
    /// The window that it is in: its calls, and the mode.
    from: u32,
    end: u32,
    mode: Option<Mode>,
    is_through: bool,
    ticks: u64,
    bytes: u64,
    strided: bool,
}

/// A call that one process has made.
#[derive(Clone, Copy)]
pub struct Made {
    pub ticks: u64,
    pub bytes: u64,
    /// Its request leaves gaps for others'.
    pub strided: bool,
}

impl Own {
    /// Before the first call.
    pub const NEW: Self = Self { calls: 0, from: 0, end: 0, mode: None, is_through: false, ticks: 0, bytes: 0, strided: false };
}

impl Own {
    /// Takes the last call back, which MPI has refused: the process may make it again.
    pub fn take_back(&mut self) {
        self.calls = self.calls.saturating_sub(1);
    }
}

impl<D> Lane<D> {
    /// Begins this process's next call; its mode. Whoever is first decides with `first`, which may set the decider up.
    pub fn begin(&self, own: &mut Own, first: impl FnOnce(*mut D) -> Step) -> Mode {
        let call = own.calls;
        if call >= NUMBER_MAX {
            return own.mode.unwrap_or(Mode::Collective);
        }
        own.calls += 1;
        let mut word = self.word.load(Acquire);
        if call == 0 && Word::parse(word).step.is_none() {
            word = self.decide_first(first);
        }
        loop {
            let seen = Word::parse(word);
            if let Some(step) = seen.step.filter(|_| seen.from <= call && (own.mode.is_none() || seen.from != own.from)) {
                *own =
                    Own { calls: own.calls, from: seen.from, end: seen.from.saturating_add(1 << step.calls_log2), mode: Some(step.mode), ..Own::NEW };
            }
            if seen.begun > call {
                break;
            }
            match self.word.compare_exchange_weak(word, Word { begun: call + 1, ..seen }.bits(), AcqRel, Acquire) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        own.mode.unwrap_or(Mode::Collective)
    }

    /// The word after the first decision. Whoever comes while it is made looks a few times whether it is there, and goes on undecided then, as a call that is
    /// collective; the decision counts from a later one.
    #[cold]
    fn decide_first(&self, first: impl FnOnce(*mut D) -> Step) -> u64 {
        if self.is_begun.swap(1, AcqRel) != 0 {
            let look = |_| {
                core::hint::spin_loop();
                self.word.load(Acquire)
            };
            return (0..LOOKS).map(look).find(|word| Word::parse(*word).step.is_some()).unwrap_or_else(|| self.word.load(Acquire));
        }
        self.publish(first(self.decider.get()))
    }

    /// Ends that call. Where it is the last one of a window, and this process the last of `size` that is through, `next` decides on.
    pub fn end(&self, own: &mut Own, size: u32, made: Made, next: impl FnOnce(*mut D, &Window) -> Step) {
        own.ticks = own.ticks.saturating_add(made.ticks);
        own.bytes = own.bytes.saturating_add(made.bytes);
        own.strided |= made.strided;
        let Some(mode) = own.mode.filter(|_| own.calls >= own.end && !own.is_through && own.calls < NUMBER_MAX) else { return };
        own.is_through = true;
        self.ticks.fetch_max(own.ticks, Relaxed);
        self.bytes.fetch_add(own.bytes, Relaxed);
        self.strided.fetch_add(u32::from(own.strided), Relaxed);
        if self.through.fetch_add(1, AcqRel) + 1 != size {
            return;
        }
        let window = Window {
            mode,
            calls: own.end - own.from,
            ticks: self.ticks.swap(0, Relaxed),
            bytes: self.bytes.swap(0, Relaxed),
            strided: self.strided.swap(0, Relaxed),
        };
        let step = next(self.decider.get(), &window);
        self.through.store(0, Relaxed);
        self.publish(step);
    }

    /// Has a decision count from the first call on that nobody has begun.
    fn publish(&self, step: Step) -> u64 {
        let mut word = self.word.load(Acquire);
        loop {
            let seen = Word::parse(word);
            let next = Word { from: seen.begun, step: Some(step), ..seen }.bits();
            match self.word.compare_exchange_weak(word, next, AcqRel, Acquire) {
                Ok(_) => return next,
                Err(now) => word = now,
            }
        }
    }

    /// The decider, for one who knows that nobody else is at it: all processes have closed the file. None: nothing was decided.
    pub fn decider(&self) -> Option<*mut D> {
        Word::parse(self.word.load(Acquire)).step.map(|_| self.decider.get())
    }

    /// Makes it a new one, for one who knows that nobody uses it.
    pub fn clear(&self) {
        for word in [&self.word, &self.ticks, &self.bytes] {
            word.store(0, Relaxed);
        }
        for word in [&self.strided, &self.through, &self.is_begun] {
            word.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicBool;

    /// A generator of our own, so that threads need no lock for chance.
    struct Chance(u64);

    impl Chance {
        fn next(&mut self, below: u64) -> u64 {
            self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (self.0 >> 33) % below
        }
    }

    /// The modes of all calls, of each process. Half of the windows are of one call; `waits`: collective calls wait for each other, as they may.
    fn modes(processes: u32, calls: u32, seed: u64, waits: bool) -> Vec<Vec<Mode>> {
        let (lane, barrier, busy) = (Lane::<u64>::default(), Barrier::new(processes as usize), AtomicBool::new(false));
        let decide = |decider: *mut u64| {
            assert!(!busy.swap(true, SeqCst), "two decide at once");
            // SAFETY: of one at a time, as was just seen.
            let mut chance = Chance(unsafe { *decider });
            let mode = if chance.next(2) == 0 { Mode::Collective } else { Mode::Independent };
            let calls_log2 = if chance.next(2) == 0 { 0 } else { chance.next(4) as u32 };
            // SAFETY: as above.
            unsafe { *decider = chance.0 };
            busy.store(false, SeqCst);
            Step { mode, calls_log2 }
        };
        let work = |rank: u32| {
            let (mut own, mut chance, mut made) = (Own::NEW, Chance(seed ^ u64::from(rank) << 32), Vec::new());
            for _ in 0..calls {
                let mode = lane.begin(&mut own, |decider| {
                    // SAFETY: of who decides first alone.
                    unsafe { *decider = seed };
                    decide(decider)
                });
                made.push(mode);
                match chance.next(20) {
                    0 => std::thread::yield_now(),
                    1..4 => (0..chance.next(200)).for_each(|_| std::hint::spin_loop()),
                    _ => {}
                }
                if waits && mode == Mode::Collective {
                    barrier.wait();
                }
                lane.end(&mut own, processes, Made { ticks: 1 + u64::from(rank), bytes: 10, strided: rank == 0 }, |decider, window| {
                    assert!(window.mode == mode && window.calls.is_power_of_two() && window.strided == 1);
                    assert_eq!(window.ticks, u64::from(window.calls) * u64::from(processes));
                    assert_eq!(window.bytes, u64::from(window.calls) * u64::from(processes) * 10);
                    decide(decider)
                });
            }
            made
        };
        std::thread::scope(|scope| {
            let work = &work;
            let all: Vec<_> = (0..processes).map(|rank| scope.spawn(move || work(rank))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        })
    }

    #[test]
    fn all_processes_make_each_call_in_one_mode() {
        let (mut changes, mut independent) = (0, 0);
        for seed in 0..400u64 {
            let all = modes(2 + (seed % 4) as u32, 300, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), seed % 2 == 0);
            for other in &all {
                assert_eq!(all[0], *other, "seed {seed}");
            }
            changes += all[0].windows(2).filter(|pair| pair[0] != pair[1]).count();
            independent += all[0].iter().filter(|mode| **mode == Mode::Independent).count();
        }
        assert!(changes > 400 && independent > 400, "{changes} {independent}");
    }

    #[test]
    fn a_process_that_does_not_take_part_leaves_all_calls_as_they_began() {
        let lane = Lane::<u64>::default();
        let mut all = [Own::NEW; 3];
        for call in 0..1000 {
            for own in &mut all {
                let mode = lane.begin(own, |_| Step { mode: Mode::Collective, calls_log2: 0 });
                assert_eq!(mode, Mode::Collective, "call {call}");
                // A fourth one never comes.
                lane.end(own, 4, Made { ticks: 1, bytes: 1, strided: false }, |_, _| panic!("nobody decides"));
            }
        }
    }

    #[test]
    fn a_decision_that_is_under_way_holds_nobody_up() {
        let lane = Lane::<u64>::default();
        let (mut first, mut second) = (Own::NEW, Own::NEW);
        let independent = Step { mode: Mode::Independent, calls_log2: 0 };
        let mode = lane.begin(&mut first, |_| {
            assert_eq!(lane.begin(&mut second, |_| panic!("there is one already")), Mode::Collective);
            independent
        });
        assert_eq!(mode, Mode::Collective);
        for own in [&mut first, &mut second] {
            lane.end(own, 2, Made { ticks: 1, bytes: 1, strided: false }, |_, _| panic!("no window has begun"));
        }
        for own in [&mut first, &mut second] {
            assert_eq!(lane.begin(own, |_| panic!("there is one already")), Mode::Independent);
        }
    }

    #[test]
    fn a_site_of_very_many_calls_stays_as_it_is() {
        let lane = Lane::<u64>::default();
        lane.word
            .store(Word { begun: NUMBER_MAX - 2, from: NUMBER_MAX - 2, step: Some(Step { mode: Mode::Independent, calls_log2: 0 }) }.bits(), Relaxed);
        let mut own = Own { calls: NUMBER_MAX - 2, ..Own::NEW };
        for _ in 0..5 {
            assert_eq!(lane.begin(&mut own, |_| panic!()), Mode::Independent);
            lane.end(&mut own, 1, Made { ticks: 1, bytes: 1, strided: false }, |_, _| Step { mode: Mode::Independent, calls_log2: 9 });
        }
    }
}
