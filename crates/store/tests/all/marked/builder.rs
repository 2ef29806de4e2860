//! The command that makes copies, or drops them, step by step as the store's administration takes them. One at a time: another waits for its lock.

use crate::marked::fault::Fault;
use crate::marked::machine::{Count, Machine};
use crate::marked::world::{BLOCKS, Bytes, Cached, Copies, PIECES};
use stripewise_store::copies::{DROPPED, IN_USE};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    Idle,
    /// Notes the boot and drops what is there; then, where that is wanted, makes copies of so many blocks.
    Note(Option<usize>),
    FlushNote(Option<usize>),
    Drop(Option<usize>),
    FlushDropped(Option<usize>),
    Unlink(Option<usize>),
    Record,
    Word,
    FlushWord,
    Snapshot,
    Wait(Vec<(usize, u64)>),
    Pins,
    Read(usize),
    Put(usize, usize, Bytes),
    Sync,
    SyncHome,
    Count,
    FlushState,
}

pub struct Builder {
    pub stage: Stage,
    blocks: usize,
    copies: usize,
    is_announced: bool,
}

impl Builder {
    pub fn new() -> Self {
        Self { stage: Stage::Idle, blocks: 0, copies: 0, is_announced: false }
    }
}

impl Machine {
    /// One step of the command.
    pub fn build(&mut self) {
        let stage = std::mem::replace(&mut self.builder.stage, Stage::Idle);
        self.world.tell(|| format!("builder: {stage:?}"));
        let copies = self.builder.copies;
        let next = match stage {
            Stage::Idle => self.choose_command(),
            // Who writes from the word on neither marks nor notes, and a power cut may take the word back.
            Stage::Note(then) => match self.world.record.get() {
                Some(copies) if self.fault != Fault::DropsUnnoted && self.counts_in_this_boot(copies) => {
                    self.world.copies[copies].boot.set(self.world.boot);
                    Stage::FlushNote(then)
                }
                _ => Stage::Drop(then),
            },
            Stage::FlushNote(then) => {
                if let Some(copies) = self.world.record.get() {
                    self.world.copies[copies].boot.flush();
                }
                Stage::Drop(then)
            }
            Stage::Drop(then) => match self.world.record.get() {
                None => self.dropped(then),
                Some(copies) => {
                    self.world.copies[copies].state.set(DROPPED);
                    self.count(Count::Dropped);
                    Stage::FlushDropped(then)
                }
            },
            Stage::FlushDropped(then) => {
                if let Some(copies) = self.world.record.get() {
                    self.world.copies[copies].state.flush();
                }
                Stage::Unlink(then)
            }
            Stage::Unlink(then) => {
                self.world.record.set(None);
                self.dropped(then)
            }
            Stage::Record => {
                self.world.record.set(Some(copies));
                self.world.record.flush();
                if self.builder.is_announced { Stage::Snapshot } else { Stage::Word }
            }
            Stage::Word => {
                self.world.word.set(copies + 1);
                Stage::FlushWord
            }
            Stage::FlushWord => {
                self.world.word.flush();
                self.builder.is_announced = true;
                if self.fault == Fault::WordBeforeRecord { Stage::Record } else { Stage::Snapshot }
            }
            Stage::Snapshot if self.fault == Fault::NoGrace => Stage::Pins,
            Stage::Snapshot => Stage::Wait(self.inside(usize::MAX)),
            Stage::Wait(awaited) => match self.still_inside(awaited) {
                none if none.is_empty() => Stage::Pins,
                awaited => Stage::Wait(awaited),
            },
            Stage::Pins if self.fault != Fault::NoLookAtPins && self.processes.iter().any(|process| process.pins > 0) => {
                self.count(Count::Refused);
                Stage::Note(None)
            }
            Stage::Pins => Stage::Read(0),
            Stage::Read(block) if block < self.builder.blocks => Stage::Put(block, 0, self.world.bytes(block)),
            Stage::Read(_) if self.fault == Fault::CountsBeforeSync => Stage::SyncHome,
            Stage::Read(_) => Stage::Sync,
            Stage::Put(block, piece, bytes) => {
                self.world.copies[copies].data[block][piece].set(bytes[piece]);
                if piece + 1 < PIECES { Stage::Put(block, piece + 1, bytes) } else { Stage::Read(block + 1) }
            }
            Stage::Sync => {
                self.world.copies[copies].data.iter_mut().flatten().for_each(Cached::flush);
                if self.fault == Fault::CountsBeforeHomeSync { Stage::Count } else { Stage::SyncHome }
            }
            Stage::SyncHome => {
                self.world.sync_home();
                Stage::Count
            }
            Stage::Count => {
                self.world.copies[copies].state.set(IN_USE);
                self.count(Count::Built);
                Stage::FlushState
            }
            Stage::FlushState => {
                self.world.copies[copies].state.flush();
                Stage::Idle
            }
        };
        self.builder.stage = next;
    }

    fn choose_command(&mut self) -> Stage {
        let size = self.world.size.get();
        Stage::Note(Some(size).filter(|size| *size > 0 && !self.random.chance(1, 6)))
    }

    fn dropped(&mut self, then: Option<usize>) -> Stage {
        let Some(blocks) = then.map(|blocks| blocks.min(BLOCKS)) else { return Stage::Idle };
        self.builder.copies = self.world.copies.len();
        let copies = Copies::new(blocks, &mut self.random);
        self.world.copies.push(copies);
        (self.builder.blocks, self.builder.is_announced) = (blocks, false);
        if self.fault == Fault::WordBeforeRecord { Stage::Word } else { Stage::Record }
    }
}
