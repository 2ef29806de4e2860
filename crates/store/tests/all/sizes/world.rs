//! The file of a history of sizes: its words, two objects of some blocks, the locks, and what may be seen of it. Every value is written once, so a block
//! tells who wrote it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use stripewise_store::sizing::{Note, Sizes};

/// Blocks that the file may have.
pub const BLOCKS: usize = 8;
/// Objects: block `b` lies in object `b % OBJECTS`.
pub const OBJECTS: usize = 2;
/// Lines: the first is the lock holder's, and fewer than there are programs are left.
pub const LINES: usize = 3;
/// Programs at a time.
pub const ACTORS: usize = 4;
/// What a hole reads as.
pub const HOLE: u64 = 0;

/// The shared words.
#[derive(Clone, Default)]
struct Cells {
    size: Cell<u64>,
    is_cutting: Cell<bool>,
    notes: [Cell<Note>; LINES],
}

/// The way to them.
pub struct Words(Rc<Cells>);

impl Clone for Words {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl Words {
    /// Words of another world.
    fn copy(&self) -> Self {
        Self(Rc::new((*self.0).clone()))
    }
}

impl Sizes for Words {
    fn size(&self) -> u64 {
        self.0.size.get()
    }
    fn raise_size(&self, end: u64) {
        self.0.size.set(self.0.size.get().max(end));
    }
    fn set_size(&self, size: u64) {
        self.0.size.set(size);
    }
    fn is_cut_intended(&self) -> bool {
        self.0.is_cutting.get()
    }
    fn intend_cut(&self, is_intended: bool) {
        self.0.is_cutting.set(is_intended);
    }
    fn lines_used(&self) -> usize {
        LINES
    }
    fn note(&self, line: usize) -> Note {
        self.0.notes[line].get()
    }
    fn set_note(&self, line: usize, note: Note) {
        self.0.notes[line].set(note);
    }
}

/// All that there is beside the programs.
pub struct World {
    pub words: Words,
    pub blocks: [u64; BLOCKS],
    /// Which objects are there.
    pub is_made: [bool; OBJECTS],
    /// Who has the exclusive lock.
    pub lock: Option<usize>,
    /// Whose a line is.
    pub owners: [Option<usize>; LINES],
    /// Values of blocks that must not be seen by whatever begins from some moment on: `MAX` stands for all that ever was.
    pub banned: BTreeMap<(usize, u64), u64>,
    /// Values of writes that have returned, where nothing has come over them.
    pub acknowledged: [Option<u64>; BLOCKS],
    pub events: u64,
    pub violation: Option<String>,
}

impl Clone for World {
    fn clone(&self) -> Self {
        Self { words: self.words.copy(), banned: self.banned.clone(), violation: self.violation.clone(), ..*self }
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.words.size(), self.words.is_cut_intended(), self.blocks, self.is_made, self.lock, self.owners, &self.banned, self.acknowledged)
            .hash(state);
        (0..LINES).for_each(|line| self.words.note(line).hash(state));
    }
}

impl World {
    pub fn new(size: u64) -> Self {
        let words = Words(Rc::default());
        words.set_size(size);
        let blocks = std::array::from_fn(|block| if (block as u64) < size { 1 + block as u64 } else { HOLE });
        let acknowledged = std::array::from_fn(|block| (blocks[block] != HOLE).then_some(blocks[block]));
        let is_made = std::array::from_fn(|object| (object as u64) < size);
        Self { words, blocks, is_made, lock: None, owners: [None; LINES], banned: BTreeMap::new(), acknowledged, events: 1, violation: None }
    }

    pub fn event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    pub fn fail(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// A block of a write arrives.
    pub fn store(&mut self, block: usize, value: u64) {
        if !self.is_made[block % OBJECTS] {
            self.fail(format!("block {block} goes into an object that is not there"));
        }
        (self.blocks[block], self.acknowledged[block]) = (value, None);
    }

    /// The size is cut: what lies behind it now is never to be seen again.
    pub fn was_cut(&mut self) {
        for block in self.words.size() as usize..BLOCKS {
            self.acknowledged[block] = None;
            if self.blocks[block] != HOLE {
                self.banned.insert((block, self.blocks[block]), u64::MAX);
            }
        }
    }

    /// A writer is dead, or has given up: what of it lies behind the size is not to be seen by whoever begins later.
    pub fn was_abandoned(&mut self, value: u64) {
        let now = self.event();
        for block in self.words.size() as usize..BLOCKS {
            if self.blocks[block] == value {
                self.banned.entry((block, value)).or_insert(now);
            }
        }
    }

    /// Something that began at some moment has let the file grow from `size`: what a writer left who still lived then was under way with it.
    pub fn has_grown(&mut self, size: u64, began: u64) {
        for block in size as usize..self.words.size() as usize {
            let told = (block, self.blocks[block]);
            if self.banned.get(&told).is_some_and(|since| *since != u64::MAX && *since > began) {
                self.banned.remove(&told);
            }
        }
    }

    /// The objects of a file of so many blocks are there.
    pub fn make(&mut self, size: u64) {
        self.is_made.iter_mut().take(size as usize).for_each(|is_made| *is_made = true);
    }

    /// An object ends where the size says.
    pub fn trim(&mut self, object: usize, size: u64) {
        for block in (size as usize..BLOCKS).filter(|block| block % OBJECTS == object) {
            self.blocks[block] = HOLE;
        }
    }

    /// What must hold at every moment.
    pub fn check(&mut self) {
        let size = self.words.size() as usize;
        if let Some(object) = (0..OBJECTS.min(size)).find(|object| !self.is_made[*object]) {
            self.fail(format!("the size {size} says that object {object} is there"));
        }
        for block in 0..BLOCKS {
            let value = self.blocks[block];
            if block < size && self.banned.contains_key(&(block, value)) {
                self.fail(format!("block {block}: {value} shows again"));
            }
            if let Some(told) = self.acknowledged[block]
                && (block >= size || value != told)
            {
                self.fail(format!("block {block}: {told} was written, {value} is there, the size is {size}"));
            }
        }
    }
}
