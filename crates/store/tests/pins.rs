//! A program that maps a file and may not write its control words cannot call a move off: the mover has to see its pin.
#![cfg(feature = "admin")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use stripewise_store::admin::protocol::{Limits, Work, begin, run};
use stripewise_store::ctl::{CTL_BYTES, Ctl, MoveState};
use stripewise_store::moving::{Words, is_settled};

/// A mover with nothing to copy. A reader pins the file while the mover waits for programs to leave, during one of its freezes.
struct Mover {
    ctl: Ctl,
    is_pinned: bool,
    published: bool,
}

impl Work for Mover {
    type Error = &'static str;
    type Words = Ctl;

    fn words(&self) -> Ctl {
        self.ctl
    }

    fn now_ns(&self) -> u64 {
        0
    }

    fn grace(&mut self, until_ns: Option<u64>) -> Result<bool, Self::Error> {
        // Long after the last question whether the move may go on.
        self.is_pinned |= until_ns.is_some();
        Ok(true)
    }

    fn may_go_on(&mut self) -> Result<(), Self::Error> {
        if self.is_pinned { Err("mapped") } else { Ok(()) }
    }

    fn is_pinned(&mut self) -> Result<bool, Self::Error> {
        Ok(self.is_pinned)
    }

    fn copy_all(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    fn take(&mut self) -> usize {
        0
    }

    fn copy_taken(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    fn prepare(&mut self) -> Result<u64, Self::Error> {
        Ok(2)
    }

    fn put_in_place(&mut self, _generation: u64) -> Result<(), Self::Error> {
        self.published = true;
        Ok(())
    }

    fn was_frozen(&mut self, _ns: u64, _published: bool) {}

    fn gave_up(&self) -> Self::Error {
        "gave up"
    }
}

#[test]
fn a_pin_that_cannot_call_the_move_off_keeps_it_from_publishing() {
    let mut memory = Box::new([0u64; CTL_BYTES / 8]);
    // SAFETY: the box outlives the ctl.
    let ctl = unsafe { Ctl::from_mapping(memory.as_mut_ptr().cast()) };
    ctl.initialise([1, 2], 0, 1);
    let word = begin(&ctl, 0, 1 << 20, 16);
    let mut mover = Mover { ctl, is_pinned: false, published: false };
    let limits = Limits { few_chunks: 1, passes: 1, freeze_ns: 1, freezes: 3 };
    assert_eq!(run(&mut mover, word, limits), Err("mapped"));
    assert!(!mover.published);
    assert_eq!(MoveState::of(ctl.word()), MoveState::Copying);
}

#[test]
fn a_reader_waits_only_while_a_mover_may_have_looked_for_pins_already() {
    let mut memory = Box::new([0u64; CTL_BYTES / 8]);
    // SAFETY: the box outlives the ctl.
    let ctl = unsafe { Ctl::from_mapping(memory.as_mut_ptr().cast()) };
    for (state, settled) in [(0, true), (1, true), (2, false), (3, false), (4, true)] {
        let before = ctl.word();
        assert!(ctl.exchange(before, state));
        assert_eq!(is_settled(&ctl), settled, "state {state}");
    }
}
