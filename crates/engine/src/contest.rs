//! The mode of a site's collective calls by price: what calls cost in either mode, measured in the run itself, and when it is worth to measure the other one.
//! The price of a collective call is mostly that of its exchange, which depends on how processes are scheduled: no model of ours predicts it.

use crate::decision::Mode;

/// Calls of one mode, one behind the other, of all processes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Window {
    pub mode: Mode,
    /// Of each process, from 1 on.
    pub calls: u32,
    /// In the calls, of the process that was longest in them.
    pub ticks: u64,
    /// Of all processes.
    pub bytes: u64,
    /// Processes whose requests leave gaps for others'.
    pub strided: u32,
}

/// What the next calls are, in one window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    pub mode: Mode,
    /// Its calls are a power of two.
    pub calls_log2: u32,
}

/// A contest has so many rounds at most; a window of round `n` has twice the calls of one of the round before.
const ROUNDS: u32 = 3;
/// By so much a mode has to be cheaper to win in each round.
const CLEARLY: [f64; ROUNDS as usize] = [2.0, 1.5, 1.05];
/// By this factor a round is decided by the window of the other mode alone.
const FAR: f64 = 4.0;
/// The time that calls have taken, over the expected time of a first one in the other mode, before that is tried: so much is lost at most where it takes as
/// long as expected. Of independent calls nothing is known but that they need not wait for each other.
const BEFORE_INDEPENDENT: f64 = 4.0;
const BEFORE_COLLECTIVE: f64 = 32.0;
/// The same where it has been measured; twice that after each contest that confirms the mode, up to a limit.
const BEFORE_AGAIN: f64 = 64.0;
const CONFIRMED_MAX: u32 = 5;
/// A mode whose price has moved by this factor is another program: the other mode's may have, too, and is measured as soon as one that is not known, by what
/// it was.
const CHANGED: f64 = 4.0;
/// The longest window, where nothing is tried.
const HOLD_LOG2_MAX: u32 = 6;

/// One of each mode.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[repr(C)]
struct Of<T> {
    collective: T,
    independent: T,
}

impl<T> Of<T> {
    fn get(&self, mode: Mode) -> &T {
        match mode {
            Mode::Collective => &self.collective,
            Mode::Independent => &self.independent,
        }
    }

    fn at(&mut self, mode: Mode) -> &mut T {
        match mode {
            Mode::Collective => &mut self.collective,
            Mode::Independent => &mut self.independent,
        }
    }
}

/// What calls took.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[repr(C)]
struct Sum {
    ticks: f64,
    bytes: f64,
}

/// The state of one site. All zeros: not begun.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[repr(C)]
pub struct Contest {
    /// Ticks for a byte, of the cheapest window since the last contest or change (a window may hold a stall that is none of the mode's); of the mode that is
    /// not in force, of that contest. 0: not measured; below: of an earlier run, as a multiple of the other mode's.
    known: Of<f64>,
    /// Of the cheapest windows of the contest that is on; 0: none yet.
    best: Of<f64>,
    /// Of all windows.
    sums: Of<Sum>,
    /// What the mode that lost the last contest cost over the other one in it; 0: there was none.
    ratio: f64,
    /// Ticks in calls since the last contest.
    spent: f64,
    /// The least that a collective call is expected to take.
    floor: f64,
    /// Of the contest that is on; 0: none.
    round: u32,
    /// Contests in a row that confirmed the mode.
    confirmed: u32,
    /// Contests that ended.
    pub contests: u32,
    /// Those that changed the mode.
    pub changes: u32,
    /// The mode in force outside a contest.
    is_independent: u32,
    /// What is known of the other mode is from before a change.
    is_old: u32,
    /// Windows in a row whose price says that the mode's has changed.
    odd: u32,
    unused: u32,
}

const fn other(mode: Mode) -> Mode {
    match mode {
        Mode::Collective => Mode::Independent,
        Mode::Independent => Mode::Collective,
    }
}

impl Contest {
    /// Before the first call. `floor_ticks` is what all processes need to agree on anything, as an open does. `ratio`: of an earlier run, what a byte cost
    /// in the other mode over what it cost in this one.
    #[must_use]
    pub fn new(mode: Mode, floor_ticks: u64, ratio: Option<f64>) -> Self {
        let mut made = Self { floor: floor_ticks as f64, is_independent: u32::from(mode == Mode::Independent), ..Self::default() };
        if let Some(ratio) = ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0) {
            *made.known.at(other(mode)) = -ratio;
        }
        made
    }

    /// The mode in force, where no contest tries the other one.
    #[must_use]
    pub fn mode(&self) -> Mode {
        if self.is_independent == 0 { Mode::Collective } else { Mode::Independent }
    }

    /// Ticks for a byte in a mode, of all windows; none: there was none.
    #[must_use]
    pub fn price(&self, mode: Mode) -> Option<f64> {
        let sum = self.sums.get(mode);
        (sum.bytes > 0.0).then(|| sum.ticks / sum.bytes)
    }

    /// What the other mode cost over the one in force in the last contest; none: there was none.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        Some(self.ratio).filter(|ratio| *ratio > 0.0)
    }

    /// What comes after a window.
    pub fn next(&mut self, window: &Window) -> Step {
        let (ticks, bytes) = (window.ticks.max(1) as f64, window.bytes.max(1) as f64);
        let sum = self.sums.at(window.mode);
        *sum = Sum { ticks: sum.ticks + ticks, bytes: sum.bytes + bytes };
        if self.round == 0 { self.hold(window, ticks, bytes) } else { self.compare(window, ticks / bytes) }
    }

    fn hold(&mut self, window: &Window, ticks: f64, bytes: f64) -> Step {
        let (mode, price) = (self.mode(), ticks / bytes);
        let rival = self.known.at(other(mode));
        if *rival < 0.0 {
            *rival *= -price;
        }
        let known = self.known.at(mode);
        let has_changed = *known > 0.0 && (price > *known * CHANGED || price * CHANGED < *known);
        self.odd = if has_changed { self.odd + 1 } else { 0 };
        if self.odd >= 2 {
            *known = price;
            (self.spent, self.confirmed, self.is_old, self.odd) = (0.0, 0, 1, 0);
        }
        *known = if *known > 0.0 { known.min(price) } else { price };
        self.spent += ticks;
        let calls = f64::from(window.calls.max(1));
        let usual = ticks / calls;
        let rival = *self.known.get(other(mode));
        let again = BEFORE_AGAIN * f64::from(1u32 << self.confirmed.min(CONFIRMED_MAX));
        let (expected, times) = match (rival > 0.0, mode) {
            (true, _) => (rival * bytes / calls, if self.is_old == 0 { again } else { BEFORE_COLLECTIVE }),
            (false, Mode::Collective) => (usual, BEFORE_INDEPENDENT),
            (false, Mode::Independent) => (usual.max(self.floor), BEFORE_COLLECTIVE),
        };
        let left = times * expected.max(usual) - self.spent;
        if left > 0.0 {
            // Windows grow, and end where the next contest is due.
            let calls_log2 = ((left / usual) as u32).max(1).ilog2();
            return Step { mode, calls_log2: calls_log2.min(window.calls.max(1).ilog2() + 1).min(HOLD_LOG2_MAX) };
        }
        self.round = 1;
        self.best = Of::default();
        *self.best.at(mode) = *self.known.get(mode);
        Step { mode: other(mode), calls_log2: 0 }
    }

    /// In each round the other mode has its window first.
    fn compare(&mut self, window: &Window, price: f64) -> Step {
        let mode = self.mode();
        let best = self.best.at(window.mode);
        *best = if *best > 0.0 { best.min(price) } else { price };
        let (own, rival) = (*self.best.get(mode), *self.best.get(other(mode)));
        let log2 = self.round.saturating_sub(1);
        if window.mode != mode {
            if rival > own * FAR {
                return self.confirm(rival, own);
            }
            if rival * FAR >= own {
                return Step { mode, calls_log2: log2 };
            }
            // So much cheaper that this mode need not have its window.
        }
        let clearly = CLEARLY.get(log2 as usize).copied().unwrap_or(1.0);
        // Not by one window: this mode's may have been a bad one.
        if self.round > 1 && rival * clearly < own {
            self.changes += 1;
            self.is_independent ^= 1;
            self.confirmed = 0;
            return self.end(other(mode), own, rival);
        }
        if own * clearly < rival || self.round >= ROUNDS {
            return self.confirm(rival, own);
        }
        self.round += 1;
        Step { mode: other(mode), calls_log2: log2 + 1 }
    }

    fn confirm(&mut self, rival: f64, own: f64) -> Step {
        self.confirmed = (self.confirmed + 1).min(CONFIRMED_MAX);
        self.end(self.mode(), rival, own)
    }

    fn end(&mut self, winner: Mode, loser_price: f64, winner_price: f64) -> Step {
        *self.known.at(other(winner)) = loser_price;
        *self.known.at(winner) = winner_price;
        self.ratio = loser_price / winner_price;
        (self.round, self.spent, self.is_old, self.odd) = (0, 0.0, 0, 0);
        self.contests += 1;
        Step { mode: winner, calls_log2: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Ticks of all windows of a run of so many calls of 1000 bytes, priced by the number of the call and the mode; the calls in each mode.
    fn run(mut contest: Contest, calls: u32, price: impl Fn(u32, Mode) -> u64) -> (u64, [u32; 2], Contest) {
        let (mut step, mut done, mut ticks, mut made) = (Step { mode: contest.mode(), calls_log2: 0 }, 0, 0, [0, 0]);
        while done < calls {
            let n = 1 << step.calls_log2;
            let took = (done..done + n).map(|call| price(call, step.mode)).sum();
            made[usize::from(step.mode == Mode::Independent)] += n;
            ticks += took;
            done += n;
            step = contest.next(&Window { mode: step.mode, calls: n, ticks: took, bytes: u64::from(n) * 1000, strided: 0 });
        }
        (ticks, made, contest)
    }

    #[test]
    fn the_cheaper_mode_is_found_and_kept() {
        for (collective, independent, first) in [(5000, 100, Mode::Collective), (100, 5000, Mode::Independent), (150, 100, Mode::Collective)] {
            let price = |_, mode| if mode == Mode::Collective { collective } else { independent };
            let (ticks, _, contest) = run(Contest::new(first, 0, None), 2000, price);
            assert_eq!(contest.mode(), if collective < independent { Mode::Collective } else { Mode::Independent });
            assert!((1..=6).contains(&contest.contests), "{contest:?}");
            assert_eq!(contest.changes, 1);
            let best = 2000 * collective.min(independent);
            assert!(ticks < best + 40 * (collective + independent), "{ticks} of {best}");
        }
    }

    #[test]
    fn a_stall_changes_no_mode() {
        // One call in 97 takes a hundred times as long, whatever its mode.
        for offset in 0..97 {
            let price = |call: u32, mode| {
                if (call + offset).is_multiple_of(97) {
                    30_000
                } else if mode == Mode::Collective {
                    600
                } else {
                    300
                }
            };
            let (_, made, contest) = run(Contest::new(Mode::Independent, 0, None), 4000, price);
            assert_eq!((contest.mode(), contest.changes), (Mode::Independent, 0), "{contest:?}");
            assert!(made[0] < 100, "{made:?}");
            let ratio = contest.ratio().unwrap();
            assert!((1.9..2.1).contains(&ratio) || ratio > 50.0, "{ratio}");
        }
    }

    #[test]
    fn a_mode_that_does_not_pay_costs_little() {
        for times in [3, 20, 100] {
            let (ticks, made, contest) =
                run(Contest::new(Mode::Independent, 0, None), 5000, |_, m| if m == Mode::Collective { 100 * times } else { 100 });
            // Each contest ends by its first call, and the next comes when that would cost a sixty-fourth.
            assert!(made[0] <= 2 + 5000 / (64 * times as u32), "{made:?} {contest:?}");
            assert!(ticks < 5000 * 100 * 105 / 100 + 200 * times);
        }
    }

    #[test]
    fn what_an_earlier_run_has_measured_is_not_tried_soon() {
        let price = |_, mode| if mode == Mode::Collective { 10_000 } else { 100 };
        let (_, made, _) = run(Contest::new(Mode::Independent, 0, Some(100.0)), 5000, price);
        assert_eq!(made[0], 0);
        let (_, made, _) = run(Contest::new(Mode::Independent, 0, None), 5000, price);
        assert!(made[0] > 0);
        for odd in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Contest::new(Mode::Independent, 0, Some(odd)), Contest::new(Mode::Independent, 0, None));
        }
    }

    #[test]
    fn a_program_that_changes_its_ways_is_measured_anew() {
        // From the 3000th call on what was cheap is dear.
        let price = |call, mode| if (mode == Mode::Collective) == (call < 3000) { 100 } else { 2000 };
        let (_, made, contest) = run(Contest::new(Mode::Collective, 0, None), 9000, price);
        assert_eq!(contest.mode(), Mode::Independent);
        assert!(made[1] > 5500, "{made:?}");
    }

    proptest! {
        #[test]
        fn a_run_loses_little_whatever_the_prices(collective in 1u64..100_000, independent in 1u64..100_000, calls in 1u32..4000, joined: bool) {
            let first = if joined { Mode::Collective } else { Mode::Independent };
            let price = |_, mode| if mode == Mode::Collective { collective } else { independent };
            let (ticks, _, _) = run(Contest::new(first, 0, None), calls, price);
            let calls = u64::from(calls) + 64;
            let (kept, best) = (calls * price(0, first), calls * collective.min(independent));
            // Never much behind the mode that it began in: one call of an unknown price, and then what a contest may cost.
            prop_assert!(ticks as f64 <= kept as f64 * 1.25 + (collective + independent) as f64, "{ticks} {kept}");
            // And near the better one, but for what it takes to see it.
            let seeing = (34 * price(0, first)).max(16 * collective.max(independent));
            prop_assert!(ticks as f64 <= best as f64 * 1.25 + seeing as f64, "{ticks} {best}");
        }

        #[test]
        fn steps_are_sound_whatever_is_measured(windows in proptest::collection::vec((0u64..u64::MAX, 0u64..u64::MAX), 1..200)) {
            let mut contest = Contest::new(Mode::Independent, 12, None);
            let mut step = Step { mode: contest.mode(), calls_log2: 0 };
            for (ticks, bytes) in windows {
                step = contest.next(&Window { mode: step.mode, calls: 1 << step.calls_log2, ticks, bytes, strided: 0 });
                prop_assert!(step.calls_log2 <= HOLD_LOG2_MAX);
            }
        }
    }
}
