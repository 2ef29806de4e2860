//! Processes that ran one after another: which of them a process had before it, all over, when it began.
//!
//! Who had ended before a process began stands first when all are sorted by their ends, so their number says who they are. Nobody waits in a circle: who is
//! waited for began before, too.

use crate::Start;

/// When the first request of a process began and its last one ended; of one request, or of several taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub start_ns: u64,
    pub end_ns: u64,
}

impl Life {
    /// Both, one after the other or not.
    pub(crate) fn and(self, other: Life) -> Life {
        Life { start_ns: self.start_ns.min(other.start_ns), end_ns: self.end_ns.max(other.end_ns) }
    }
}

/// What [`Start::Behind`] needs of all processes.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Processes in the order in which they ended.
    pub ended: Vec<u32>,
    /// Of each the start of its first request, if it had others before it.
    pub starts: Vec<Option<Start>>,
}

impl Turns {
    /// The lives of process 0, 1, ..
    pub(crate) fn of(lives: &[Life]) -> Self {
        // Clocks that go back do not let a process wait for itself.
        let end_ns = |life: &Life| life.end_ns.max(life.start_ns);
        let mut ended: Vec<(u64, u32)> = lives.iter().map(end_ns).zip(0..).collect();
        ended.sort_unstable();
        let behind = |life: &Life| {
            let over = ended.partition_point(|(end_ns, _)| *end_ns < life.start_ns);
            let (end_ns, _) = ended.get(over.checked_sub(1)?)?;
            Some(Start::Behind { over: over as u32, think_ns: life.start_ns - end_ns })
        };
        let starts: Vec<Option<Start>> = lives.iter().map(behind).collect();
        // Where nobody waits, there is no order to look at.
        let is_used = starts.iter().any(Option::is_some);
        Self { ended: ended.into_iter().filter(|_| is_used).map(|(_, number)| number).collect(), starts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(lives: &[(u64, u64)]) -> Turns {
        Turns::of(&lives.iter().map(|&(start_ns, end_ns)| Life { start_ns, end_ns }).collect::<Vec<_>>())
    }

    #[test]
    fn who_began_when_others_were_over_waits_for_these_and_as_long_as_it_did() {
        let behind = |over, think_ns| Some(Start::Behind { over, think_ns });
        // 0 and 1 beside each other; 2 after 1, beside 0; 3 after all.
        let found = turns(&[(0, 30), (5, 10), (12, 20), (31, 40)]);
        assert_eq!((found.ended, found.starts), (vec![1, 2, 0, 3], vec![None, None, behind(1, 2), behind(3, 1)]));
        // Who begins as another ends had it beside it for all that clocks tell.
        let found = turns(&[(0, 10), (10, 20)]);
        assert_eq!((found.ended, found.starts), (vec![], vec![None, None]));
        // One whose request ended before it began.
        assert_eq!(turns(&[(10, 2), (5, 5)]).starts, [behind(1, 5), None]);
        assert!(turns(&[]).starts.is_empty());
    }
}
