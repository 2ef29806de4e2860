//! The words of marks in the memory of the model. The real functions of `marks` work on them, one access a step: a call that has made some accesses is run
//! again from its beginning with what those gave, makes one more, and what it would do after that is not done yet.

use std::cell::{Cell, RefCell};
use stripewise_store::marks::{Blocks, Words};

/// Bytes of a block of marks.
pub const BLOCK_BYTES: u64 = 4096;

pub struct Stepped<'a> {
    cells: &'a [Cell<u64>],
    /// What the accesses of this call gave so far.
    log: RefCell<&'a mut Vec<u64>>,
    made: Cell<usize>,
    has_acted: Cell<bool>,
}

impl Stepped<'_> {
    /// How many there are.
    pub fn len(&self) -> u64 {
        self.cells.len() as u64
    }

    fn access(&self, act: impl FnOnce() -> u64) -> u64 {
        let number = self.made.replace(self.made.get() + 1);
        let mut log = self.log.borrow_mut();
        if let Some(given) = log.get(number) {
            return *given;
        }
        if self.has_acted.replace(true) {
            return 0;
        }
        log.push(act());
        log[number]
    }

    fn change(&self, block: u64, by: impl FnOnce(u64) -> u64) -> u64 {
        let cell = &self.cells[block as usize];
        self.access(|| cell.replace(by(cell.get())))
    }
}

impl Words for Stepped<'_> {
    fn blocks(&self) -> Blocks {
        Blocks::of(self.cells.len() as u64 * BLOCK_BYTES)
    }

    fn load(&self, block: u64) -> u64 {
        self.access(|| self.cells[block as usize].get())
    }

    fn add(&self, block: u64, value: u64) -> u64 {
        self.change(block, |word| word.wrapping_add(value))
    }

    fn set(&self, block: u64, bits: u64) {
        if self.load(block) & bits != bits {
            self.change(block, |word| word | bits);
        }
    }
}

/// One more access of a call; what it returns once it has made its last one, and then the log is empty for the next call.
pub fn step<T>(cells: &[Cell<u64>], log: &mut Vec<u64>, call: impl FnOnce(&Stepped<'_>) -> T) -> Option<T> {
    let words = Stepped { cells, log: RefCell::new(log), made: Cell::new(0), has_acted: Cell::new(false) };
    let result = call(&words);
    let made = words.made.get();
    let is_whole = made <= words.log.borrow().len();
    is_whole.then(|| {
        log.clear();
        result
    })
}

#[test]
fn a_call_in_steps_does_what_it_does_at_once() {
    use stripewise_layout::OnWrite::Update;
    use stripewise_store::marks::{begin, look, settle};
    let cells = [const { Cell::new(0) }; 3];
    let mut log = vec![];
    let mut steps = |call: &dyn Fn(&Stepped<'_>)| 1 + (0..100).take_while(|_| step(&cells, &mut log, call).is_none()).count();
    assert_eq!(steps(&|words| begin(words, 0, 2 * BLOCK_BYTES)), 2);
    assert_eq!(steps(&|words| begin(words, BLOCK_BYTES, 2 * BLOCK_BYTES)), 4);
    assert_eq!(steps(&|words| assert_eq!(look(words, 0, 1, Update), None)), 1);
    assert_eq!(steps(&|words| settle(words, 0, 1, true)), 1);
    assert_eq!(steps(&|words| assert!(words.load(1) & 3 == 0 || look(words, 0, 1, Update).is_some())), 2);
}

/// The words of memory that nobody else looks at, without steps.
struct Plain<'a>(&'a [Cell<u64>]);

impl Words for Plain<'_> {
    fn blocks(&self) -> Blocks {
        Blocks::of(self.0.len() as u64 * BLOCK_BYTES)
    }

    fn load(&self, block: u64) -> u64 {
        self.0[block as usize].get()
    }

    fn add(&self, block: u64, value: u64) -> u64 {
        let word = &self.0[block as usize];
        word.replace(word.get().wrapping_add(value))
    }

    fn set(&self, block: u64, bits: u64) {
        self.0[block as usize].update(|word| word | bits);
    }
}

#[test]
fn a_write_that_only_invalidates_is_not_seen_by_readers_of_copies_that_are_updated() {
    use stripewise_layout::OnWrite::{Invalidate, Update};
    use stripewise_store::marks::{begin, invalidate, invalidate_on_write, look, settle, stale_bytes};
    let cells = [const { Cell::new(0) }; 2];
    let words = &Plain(&cells);
    let looks = || (look(words, 0, BLOCK_BYTES, Update), look(words, 0, BLOCK_BYTES, Invalidate));
    let before = looks();
    assert_eq!(before, (Some(0), Some(0)));
    // Others' writers and versions are nothing to a copy that none of them writes.
    begin(words, 0, 1);
    assert_eq!(looks(), (None, Some(0)));
    settle(words, 0, 1, true);
    let after = looks();
    assert!(after.0.is_some_and(|version| Some(version) != before.0) && after.1 == Some(0));
    assert_eq!(stale_bytes(words), 0);
    invalidate_on_write(words, 0, 1);
    assert_eq!(looks(), (after.0, None));
    assert_eq!(stale_bytes(words), BLOCK_BYTES);
    begin(words, 0, 1);
    settle(words, 0, 1, true);
    assert!(looks().0.is_some() && looks().1.is_none());
    invalidate(words, BLOCK_BYTES, 1);
    assert_eq!(look(words, BLOCK_BYTES, 1, Invalidate), None);
    assert_eq!(stale_bytes(words), 2 * BLOCK_BYTES);
}
