//! What programs share: a file of a few blocks, its copies, their records and marks, the control words, and what a power cut leaves of all that. The home
//! of a block is read and written at once; a copy of it stands in pieces.

use crate::history::random::Random;
use crate::marked::words::BLOCK_BYTES;
use std::array::from_fn;
use std::cell::Cell;
use stripewise_layout::OnWrite;
use stripewise_store::copies::{BUILDING, IN_USE};

/// Blocks of the file, at most.
pub const BLOCKS: usize = 3;
/// Pieces of a block: they stand in different places of the container, and can be written alone.
pub const PIECES: usize = 2;
pub const PIECE_BYTES: u64 = BLOCK_BYTES / PIECES as u64;

pub type Bytes = [u64; PIECES];

/// Something that a power cut sets back to anything it was since it was last flushed.
#[derive(Clone, Debug, Default)]
pub struct Cached<T> {
    now: T,
    before: Vec<T>,
}

impl<T: Copy> Cached<T> {
    pub fn get(&self) -> T {
        self.now
    }

    pub fn set(&mut self, value: T) {
        self.before.push(std::mem::replace(&mut self.now, value));
    }

    pub fn flush(&mut self) {
        self.before.clear();
    }

    fn cut_power(&mut self, random: &mut Random) {
        if let Some(value) = self.before.get(random.below(self.before.len() + 1)) {
            self.now = *value;
        }
        self.flush();
    }
}

/// Copies of the file, with their record and their marks.
pub struct Copies {
    pub state: Cached<u32>,
    /// Blocks that are copied, and have a word each.
    pub words: Vec<Cell<u64>>,
    /// Boot in which the file was written since; 0: in none.
    pub boot: Cached<u64>,
    pub is_noted: Cached<bool>,
    pub data: [[Cached<u64>; PIECES]; BLOCKS],
    /// What writes do to each piece of a block: they are two replicas where that differs.
    pub on_write: [OnWrite; PIECES],
}

impl Copies {
    pub fn new(blocks: usize, random: &mut Random) -> Self {
        let one = |random: &mut Random| if random.chance(1, 2) { OnWrite::Update } else { OnWrite::Invalidate };
        let on_write = if random.chance(1, 2) { [OnWrite::Update; PIECES] } else { from_fn(|_| one(random)) };
        Self {
            state: Cached { now: BUILDING, before: vec![] },
            words: vec![Cell::new(0); blocks],
            boot: Cached::default(),
            is_noted: Cached::default(),
            data: Default::default(),
            on_write,
        }
    }

    /// Whether writes do this to a piece, or to one of all.
    pub fn has(&self, on_write: OnWrite, only: Option<usize>) -> bool {
        (0..PIECES).any(|piece| only.is_none_or(|only| only == piece) && self.on_write[piece] == on_write)
    }

    pub fn counts(&self) -> bool {
        matches!(self.state.get(), IN_USE | BUILDING)
    }

    /// Whether any of `[at, at + len)` is copied.
    pub fn holds_any(&self, at: u64) -> bool {
        at < self.words.len() as u64 * BLOCK_BYTES
    }
}

pub struct World {
    pub home: [[Cached<u64>; PIECES]; BLOCKS],
    /// Blocks in the file.
    pub size: Cached<usize>,
    /// The control word: which copies the file has, counted from 1.
    pub word: Cached<usize>,
    /// Of which copies the record in the directory is.
    pub record: Cached<Option<usize>>,
    pub copies: Vec<Copies>,
    pub boot: u64,
    /// A cut is intended: writers wait, or end it.
    pub is_cut_intended: bool,
    /// A dead writer has left bytes behind the size.
    pub has_remains: bool,
    /// Who has the file's exclusive lock.
    pub lock: Option<usize>,
    /// What each block was since the power came on: from when on, whether it was the file's, and its bytes.
    past: [Vec<(u64, bool, Bytes)>; BLOCKS],
    time: u64,
    pub violation: Option<String>,
    pub trace: Option<Vec<String>>,
}

impl World {
    pub fn new(size: usize, with_trace: bool) -> Self {
        let mut world = Self {
            home: Default::default(),
            size: Cached { now: size, before: vec![] },
            word: Cached::default(),
            record: Cached::default(),
            copies: vec![],
            boot: 1,
            is_cut_intended: false,
            has_remains: false,
            lock: None,
            past: Default::default(),
            time: 0,
            violation: None,
            trace: with_trace.then(Vec::new),
        };
        for (block, home) in world.home.iter_mut().enumerate().take(size) {
            *home = from_fn(|piece| Cached { now: (1 + block * PIECES + piece) as u64, before: vec![] });
        }
        world.has_changed();
        world
    }

    pub fn tell(&mut self, what: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(what());
        }
    }

    pub fn time(&self) -> u64 {
        self.time
    }

    /// A block of the home, as it is read by one who has asked for the size.
    pub fn bytes(&self, block: usize) -> Bytes {
        self.home[block].each_ref().map(Cached::get)
    }

    /// Writes a block, or a piece of it.
    pub fn write(&mut self, block: usize, only: Option<usize>, value: u64) {
        for piece in 0..PIECES {
            if only.is_none_or(|only| only == piece) {
                self.home[block][piece].set(value);
            }
        }
        self.has_changed();
    }

    pub fn set_size(&mut self, size: usize) {
        self.size.set(size);
        self.has_changed();
    }

    pub fn sync_home(&mut self) {
        self.home.iter_mut().flatten().for_each(Cached::flush);
        self.size.flush();
    }

    fn has_changed(&mut self) {
        self.time += 1;
        for block in 0..BLOCKS {
            let now = (block < self.size.get(), self.bytes(block));
            if self.past[block].last().is_none_or(|(_, is_inside, bytes)| (*is_inside, *bytes) != now) {
                self.past[block].push((self.time, now.0, now.1));
            }
        }
    }

    /// A read that began at a time and ends now: what it returns must be what the home was at some moment between. Whoever reads the home may come at any
    /// moment, so anything else would show two orders of writes.
    /// Who reads the home itself while the file is cut and grows again may get what was behind the end.
    pub fn check(&mut self, who: usize, (block, only): (usize, Option<usize>), since: u64, got: Bytes, is_copy: bool) {
        let is_read = |was: &Bytes| (0..PIECES).all(|piece| only.is_some_and(|only| only != piece) || was[piece] == got[piece]);
        let past = &self.past[block];
        let first = past.iter().rposition(|(time, ..)| *time <= since).unwrap_or_default();
        if !past[first..].iter().any(|(_, is_inside, was)| is_read(was) && (*is_inside || !is_copy)) {
            let from = if is_copy { "a copy" } else { "the home" };
            let was = &past[first..];
            let what = format!("{who} read {got:?} of block {block} (piece {only:?}) from {from}; since it began that was {was:?}");
            self.violation.get_or_insert(what);
        }
    }

    /// What the disks hold when the power is back, in another boot. Nobody remembers anything.
    pub fn cut_power(&mut self, random: &mut Random) {
        self.home.iter_mut().flatten().for_each(|piece| piece.cut_power(random));
        self.size.cut_power(random);
        self.word.cut_power(random);
        self.record.cut_power(random);
        // What lies behind the end by then is the file's: it ends where its longest object does.
        let longest = (0..BLOCKS).rposition(|block| self.bytes(block) != [0; PIECES]).map_or(0, |last| last + 1);
        self.size = Cached { now: self.size.get().max(longest), before: vec![] };
        for copies in &mut self.copies {
            copies.state.cut_power(random);
            copies.boot.cut_power(random);
            copies.is_noted.cut_power(random);
            copies.data.iter_mut().flatten().for_each(|piece| piece.cut_power(random));
            let keeps = random.below(3);
            copies.words.iter().filter(|_| keeps == 0 || keeps == 1 && random.chance(1, 2)).for_each(|word| word.set(0));
        }
        (self.is_cut_intended, self.has_remains, self.lock) = (false, false, None);
        self.boot += 1;
        self.past = Default::default();
        self.has_changed();
    }
}
