//! What decides for a site: how its first calls are made, and what comes after each window.

use crate::contest::{Contest, Step, Window};
use crate::decision::{Mode, Operation};

/// How calls are decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Policy {
    /// By what they cost.
    Price = 0,
    /// By the thesis's rules.
    Rules = 1,
    /// As the program makes them: what would be decided first is noted.
    Dry = 2,
}

/// Why the calls of a site begin in a mode, or stay in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Reason {
    Unknown = 0,
    /// Rule 3.
    Read = 1,
    /// Rule 5.
    Contiguous = 2,
    /// Rule 7.
    Strided = 3,
    /// More processes than processors: an exchange waits for turns on them.
    Crowded = 4,
    /// An earlier run has found it the cheaper one.
    Profile = 5,
    /// A hint of the program's or its user's says how.
    Given = 6,
    /// Some process of the file does not take part, or is on another machine.
    Alone = 7,
    /// Aggregators alone have opened the file (romio_no_indep_rw).
    Deferred = 8,
    /// There are more processes than processors, but a write would be of so many small pieces that an exchange takes less.
    Scattered = 9,
}

impl Policy {
    /// By its number; by price where it is none.
    #[must_use]
    pub fn of(number: u32) -> Self {
        [Self::Rules, Self::Dry].into_iter().find(|policy| *policy as u32 == number).unwrap_or(Self::Price)
    }
}

impl Reason {
    /// By its number.
    #[must_use]
    pub fn of(number: u32) -> Self {
        use Reason::{Alone, Contiguous, Crowded, Deferred, Given, Profile, Read, Scattered, Strided, Unknown};
        [Unknown, Read, Contiguous, Strided, Crowded, Profile, Given, Alone, Deferred, Scattered]
            .into_iter()
            .find(|reason| *reason as u32 == number)
            .unwrap_or(Unknown)
    }
}

/// What decides for a site.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Decider {
    pub contest: Contest,
    pub policy: u32,
    /// A [`Reason`], for the mode of the first calls.
    pub reason: u32,
    /// Windows in which most processes left gaps, and others.
    pub strided: u32,
    pub contiguous: u32,
}

/// A mode by its number, which is none for 0.
#[must_use]
pub const fn mode_of(number: u32) -> Option<Mode> {
    match number {
        1 => Some(Mode::Collective),
        2 => Some(Mode::Independent),
        _ => None,
    }
}

/// As notes have it.
#[must_use]
pub const fn mode_number(mode: Mode) -> u32 {
    match mode {
        Mode::Collective => 1,
        Mode::Independent => 2,
    }
}

/// What is known of a site when its first call begins.
#[derive(Clone, Copy)]
pub struct Begin {
    pub operation: Operation,
    pub policy: Policy,
    /// The first request leaves gaps for others'.
    pub strided: bool,
    /// More processes than processors.
    pub crowded: bool,
    /// What a write takes piece by piece over what it takes joined, by the figures of its targets, where that is clearly more.
    pub scattered: Option<f64>,
    /// Its calls are left alone, and why.
    pub left: Option<Reason>,
    /// What an earlier run has found: the cheaper mode, and the other one's price over its.
    pub known: Option<(Mode, Option<f64>)>,
    /// Ticks that an open took.
    pub floor_ticks: u64,
}

/// The program's own way: collective, and never anything else.
const LEFT: Step = Step { mode: Mode::Collective, calls_log2: 15 };

impl Decider {
    /// The decider of a site, and its first step.
    #[must_use]
    pub fn first(begin: &Begin) -> (Self, Step) {
        let rule = match (begin.operation, begin.strided) {
            (Operation::Read, _) => (Mode::Independent, Reason::Read),
            (Operation::Write, true) => (Mode::Collective, Reason::Strided),
            (Operation::Write, false) => (Mode::Independent, Reason::Contiguous),
        };
        let (mode, reason, ratio) = match (begin.left, begin.policy, begin.known) {
            (Some(why), ..) => (Mode::Collective, why, None),
            (None, Policy::Rules, _) => (rule.0, rule.1, None),
            (None, _, Some((mode, ratio))) => (mode, Reason::Profile, ratio),
            (None, _, None) if begin.crowded && begin.scattered.is_some() => (Mode::Collective, Reason::Scattered, begin.scattered),
            (None, _, None) if begin.crowded => (Mode::Independent, Reason::Crowded, None),
            (None, _, None) => (rule.0, rule.1, None),
        };
        let decider = Self {
            contest: Contest::new(mode, begin.floor_ticks, ratio),
            policy: begin.policy as u32,
            reason: reason as u32,
            strided: 0,
            contiguous: 0,
        };
        let step = if begin.left.is_some() || begin.policy == Policy::Dry { LEFT } else { Step { mode, calls_log2: 0 } };
        (decider, step)
    }

    /// What comes after a window of `size` processes.
    pub fn next(&mut self, window: &Window, size: u32, is_given: bool) -> Step {
        let is_strided = window.strided > size / 2;
        if is_strided {
            self.strided = self.strided.saturating_add(1);
        } else {
            self.contiguous = self.contiguous.saturating_add(1);
        }
        if is_given {
            self.reason = Reason::Given as u32;
            return LEFT;
        }
        if self.policy == Policy::Dry as u32 || matches!(Reason::of(self.reason), Reason::Given | Reason::Alone | Reason::Deferred) {
            return LEFT;
        }
        if self.policy == Policy::Price as u32 {
            return self.contest.next(window);
        }
        let reason = Reason::of(self.reason);
        let mode = match (reason, is_strided) {
            (Reason::Read, _) => Mode::Independent,
            (Reason::Strided | Reason::Contiguous, true) => {
                self.reason = Reason::Strided as u32;
                Mode::Collective
            }
            (Reason::Strided | Reason::Contiguous, false) => {
                self.reason = Reason::Contiguous as u32;
                Mode::Independent
            }
            _ => return LEFT,
        };
        Step { mode, calls_log2: (window.calls.max(1).ilog2() + 1).min(6) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(operation: Operation) -> Begin {
        Begin { operation, policy: Policy::Price, strided: false, crowded: false, scattered: None, left: None, known: None, floor_ticks: 0 }
    }

    #[test]
    fn what_a_site_begins_as() {
        use Reason::{Contiguous, Crowded, Deferred, Given, Profile, Read, Strided};
        let of = |begin: Begin| {
            let (decider, step) = Decider::first(&begin);
            (step.mode, Reason::of(decider.reason), decider.contest.mode())
        };
        let (read, write) = (begin(Operation::Read), begin(Operation::Write));
        assert_eq!(of(read), (Mode::Independent, Read, Mode::Independent));
        assert_eq!(of(write), (Mode::Independent, Contiguous, Mode::Independent));
        assert_eq!(of(Begin { strided: true, ..write }), (Mode::Collective, Strided, Mode::Collective));
        assert_eq!(of(Begin { strided: true, crowded: true, ..write }), (Mode::Independent, Crowded, Mode::Independent));
        assert_eq!(of(Begin { crowded: true, known: Some((Mode::Collective, None)), ..write }), (Mode::Collective, Profile, Mode::Collective));
        let scattered = Begin { strided: true, crowded: true, scattered: Some(5.0), ..write };
        assert_eq!(of(scattered), (Mode::Collective, Reason::Scattered, Mode::Collective));
        assert_eq!(of(Begin { known: Some((Mode::Independent, None)), ..scattered }), (Mode::Independent, Profile, Mode::Independent));
        // What is expected to take so much longer is not tried at once.
        let (mut decider, _) = Decider::first(&scattered);
        let window = Window { mode: Mode::Collective, calls: 1, ticks: 1000, bytes: 1000, strided: 4 };
        assert!((0..32).all(|_| decider.next(&window, 4, false).mode == Mode::Collective));
        let rules = Begin { policy: Policy::Rules, strided: true, crowded: true, known: Some((Mode::Independent, None)), ..write };
        assert_eq!(of(rules), (Mode::Collective, Strided, Mode::Collective));
        for why in [Given, Deferred] {
            let (mut decider, step) = Decider::first(&Begin { left: Some(why), ..read });
            assert_eq!((step, Reason::of(decider.reason)), (LEFT, why));
            let window = Window { mode: Mode::Collective, calls: 1 << 15, ticks: 1 << 40, bytes: 1, strided: 0 };
            assert!((0..100).all(|_| decider.next(&window, 4, false) == LEFT));
        }
        // What it would begin as is told, and not done.
        assert_eq!(of(Begin { policy: Policy::Dry, ..read }), (Mode::Collective, Read, Mode::Independent));
    }

    #[test]
    fn rules_follow_the_pattern_and_a_hint_ends_all() {
        let window = |strided| Window { mode: Mode::Independent, calls: 4, ticks: 9, bytes: 9, strided };
        let (mut decider, _) = Decider::first(&Begin { policy: Policy::Rules, ..begin(Operation::Write) });
        assert_eq!(decider.next(&window(4), 4, false), Step { mode: Mode::Collective, calls_log2: 3 });
        assert_eq!(decider.next(&window(2), 4, false).mode, Mode::Independent);
        assert_eq!((decider.strided, decider.contiguous), (1, 1));
        assert_eq!((decider.next(&window(4), 4, true), Reason::of(decider.reason)), (LEFT, Reason::Given));
        let (mut decider, _) = Decider::first(&Begin { policy: Policy::Rules, ..begin(Operation::Read) });
        assert_eq!(decider.next(&window(4), 4, false).mode, Mode::Independent);
        assert_eq!(Reason::of(99), Reason::Unknown);
        assert_eq!([Policy::of(1), Policy::of(2), Policy::of(3)], [Policy::Rules, Policy::Dry, Policy::Price]);
    }
}
