//! The mover of the simulation: the real protocol, called as the mover on files calls it, with layouts published and old homes punched in its order. It
//! is ordinary blocking code; at each of its steps the others go first. Its kill is an error that nobody handles.

use crate::history::disk::{BLOCK_SHIFT, HOLE, Layout, Phase, REGION_BLOCKS, REGIONS, Written};
use crate::history::faults::Fault;
use crate::history::sim::{Count, Shared};
use crate::history::words::MoverWords;
use stripewise_store::admin::moves::protocol::{self, Limits, Work};
use stripewise_store::moving::{MoveState, Publication, Words, publish, with_state};

const LIMITS: Limits = Limits { few_chunks: 1, passes: 3, freeze_ns: 1500, freezes: 3 };

/// Why a mover ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Killed, or the history is over: nothing more is done.
    Dead,
    /// The move was given up; the mover goes on.
    GaveUp,
    /// A device failed once.
    Io,
}

type Result<T> = std::result::Result<T, End>;

pub struct Mover {
    sim: Shared,
    words: MoverWords,
    fault: Fault,
    layout: Layout,
}

/// Others first; then on, unless the mover is dead.
fn hook(sim: &Shared) -> Result<()> {
    let mut sim = sim.borrow_mut();
    sim.others();
    if sim.is_mover_dead || sim.is_over() { Err(End::Dead) } else { Ok(()) }
}

/// Now and then a device fails.
fn device(sim: &Shared) -> Result<()> {
    hook(sim)?;
    let is_quiet = sim.borrow().is_quiet;
    if !is_quiet && sim.borrow_mut().random.chance(1, 250) { Err(End::Io) } else { Ok(()) }
}

/// Waits until everybody has left; false when it is later than `until_ns` before they have.
fn grace(sim: &Shared, until_ns: Option<u64>) -> Result<bool> {
    let mut thread = 0;
    while thread < sim.borrow().threads.len() {
        hook(sim)?;
        let epoch = sim.borrow().inside(thread);
        while epoch.is_some() && sim.borrow().inside(thread) == epoch {
            if until_ns.is_some_and(|until| sim.borrow().now_ns > until) {
                return Ok(false);
            }
            sim.borrow_mut().one();
            hook(sim)?;
        }
        thread += 1;
    }
    Ok(true)
}

fn put_in_place(sim: &Shared, generation: u64) -> Result<()> {
    device(sim)?;
    sim.borrow_mut().rename(generation);
    device(sim)?;
    sim.borrow_mut().disk.sync_dir();
    Ok(())
}

impl Mover {
    /// Finishes or undoes what an earlier one left.
    pub fn open(sim: &Shared, fault: Fault) -> Result<Self> {
        let words = MoverWords(sim.clone());
        if let Some(owed) = protocol::end(&words) {
            publish(&words, owed, |generation| put_in_place(sim, generation))?;
        }
        hook(sim)?;
        let layout = sim.borrow().disk.layout.layout;
        let mut mover = Self { sim: sim.clone(), words, fault, layout };
        mover.drop_prepared()?;
        match layout.phase {
            Phase::None => {}
            Phase::Copying => mover.drop_pending()?,
            Phase::Punching => {
                put_in_place(sim, layout.generation)?;
                mover.words.raise_generation(layout.generation);
                mover.finish()?;
            }
        }
        Ok(mover)
    }

    /// Moves some regions to their other plane.
    pub fn shift(&mut self) -> Result<()> {
        let (first, count, shift) = {
            let random = &mut self.sim.borrow_mut().random;
            (random.below(REGIONS), 1 + random.below(2), BLOCK_SHIFT + random.below(2) as u32)
        };
        let span = (first, (first + count).min(REGIONS));
        let copying = self.layout.next(Phase::Copying, span);
        self.publish(copying)?;
        let next = copying.next(Phase::Punching, span).turned();
        let bytes = |regions: usize| (regions * REGION_BLOCKS) as u64 * (1 << BLOCK_SHIFT);
        self.sim.borrow_mut().tell(|| format!("the mover begins to move {span:?}"));
        let word = protocol::begin(&self.words, bytes(span.0), bytes(span.1 - span.0), shift);
        let mut work = Filling { sim: self.sim.clone(), fault: self.fault, next, shift, taken: 0, has_copied_all: false, is_frozen: false };
        let done = protocol::run(&mut work, word, LIMITS);
        hook(&self.sim)?;
        self.sim.borrow_mut().tell(|| format!("the move ends: {done:?}"));
        if let Err(end) = done {
            self.sim.borrow_mut().count(if end == End::Io { Count::Failed } else { Count::CalledOff });
            let is_published = self.is_published(protocol::end(&self.words), next.generation)?;
            hook(&self.sim)?;
            if !is_published {
                self.drop_pending()?;
                return Err(end);
            }
        }
        self.layout = next;
        self.sim.borrow_mut().count(Count::Published);
        self.finish()
    }

    /// After a move that failed: the layout file tells whether it is published.
    fn is_published(&mut self, owed: Option<Publication>, generation: u64) -> Result<bool> {
        let there = |sim: &Shared| sim.borrow().disk.layout.layout.generation >= generation;
        let Some(owed) = owed else { return Ok(there(&self.sim)) };
        if !there(&self.sim) {
            self.drop_prepared()?;
        }
        if there(&self.sim) {
            publish(&self.words, owed, |generation| put_in_place(&self.sim, generation))?;
            return Ok(true);
        }
        self.words.exchange(owed.word, with_state(owed.word, MoveState::Idle));
        Ok(false)
    }

    fn drop_prepared(&self) -> Result<()> {
        hook(&self.sim)?;
        self.sim.borrow_mut().disk.prepared = None;
        Ok(())
    }

    fn drop_pending(&mut self) -> Result<()> {
        self.drop_prepared()?;
        self.punch(self.layout.turned())?;
        self.publish(self.layout.next(Phase::None, (0, 0)))
    }

    fn finish(&mut self) -> Result<()> {
        if self.fault != Fault::NoGraceBeforePunch {
            grace(&self.sim, None)?;
        }
        self.punch(self.layout.turned())?;
        self.publish(self.layout.next(Phase::None, (0, 0)))
    }

    /// Punches where a layout says that the span is, durably.
    fn punch(&self, gone: Layout) -> Result<()> {
        for block in gone.blocks() {
            hook(&self.sim)?;
            self.sim.borrow_mut().disk.write(gone.plane(block), block, HOLE);
        }
        for plane in [0, 1] {
            device(&self.sim)?;
            self.sim.borrow_mut().disk.sync(plane);
        }
        Ok(())
    }

    /// Replaces the layout file.
    fn publish(&mut self, layout: Layout) -> Result<()> {
        device(&self.sim)?;
        self.sim.borrow_mut().disk.rename(Written { layout, is_synced: true });
        device(&self.sim)?;
        self.sim.borrow_mut().disk.sync_dir();
        self.words.raise_generation(layout.generation);
        self.layout = layout;
        Ok(())
    }
}

struct Filling {
    sim: Shared,
    fault: Fault,
    next: Layout,
    shift: u32,
    taken: u64,
    has_copied_all: bool,
    is_frozen: bool,
}

impl Filling {
    fn copy(&self, blocks: impl Iterator<Item = usize>) -> Result<()> {
        let old = self.next.turned();
        for block in blocks {
            hook(&self.sim)?;
            let value = self.sim.borrow().disk.read(old.plane(block), block);
            device(&self.sim)?;
            let mut sim = self.sim.borrow_mut();
            sim.disk.write(self.next.plane(block), block, value);
            sim.tell(|| format!("the mover copies {value} of block {block}"));
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        for plane in [0, 1] {
            device(&self.sim)?;
            self.sim.borrow_mut().disk.sync(plane);
        }
        Ok(())
    }

    fn take_bits(&mut self) {
        self.taken |= MoverWords(self.sim.clone()).take(0);
    }
}

impl Work for Filling {
    type Error = End;
    type Words = MoverWords;

    fn words(&self) -> MoverWords {
        MoverWords(self.sim.clone())
    }

    fn now_ns(&self) -> u64 {
        self.sim.borrow().now_ns
    }

    fn grace(&mut self, until_ns: Option<u64>) -> Result<bool> {
        self.is_frozen |= until_ns.is_some();
        let at = Fault::of_grace(until_ns.is_some(), self.has_copied_all, self.taken != 0);
        if self.fault == at {
            return Ok(true);
        }
        if self.is_frozen && self.fault == Fault::TakeBeforeFrozenGrace {
            self.take_bits();
        }
        grace(&self.sim, until_ns)
    }

    fn is_pinned(&mut self) -> Result<bool> {
        hook(&self.sim)?;
        Ok(self.sim.borrow().is_pinned())
    }

    fn may_go_on(&mut self) -> Result<()> {
        self.is_frozen = false;
        hook(&self.sim)?;
        if self.sim.borrow().is_pinned() { Err(End::GaveUp) } else { Ok(()) }
    }

    fn copy_all(&mut self) -> Result<()> {
        self.copy(self.next.blocks())?;
        self.has_copied_all = true;
        Ok(())
    }

    fn take(&mut self) -> usize {
        match self.fault {
            Fault::ClearAfterCopy => self.taken |= MoverWords(self.sim.clone()).dirty(0),
            Fault::TakeBeforeFrozenGrace if self.is_frozen => {}
            _ => self.take_bits(),
        }
        let count = self.taken.count_ones() as usize;
        if self.fault == Fault::ForgetWhenCalledOff && self.is_frozen {
            let _ = self.copy_taken();
        }
        count
    }

    fn copy_taken(&mut self) -> Result<()> {
        let taken = std::mem::take(&mut self.taken);
        let per_chunk = 1 << (self.shift - BLOCK_SHIFT);
        let blocks = self.next.blocks();
        let first = blocks.start;
        self.copy(blocks.filter(|block| taken >> ((block - first) / per_chunk) & 1 == 1))?;
        if self.fault == Fault::ClearAfterCopy {
            hook(&self.sim)?;
            self.sim.borrow().cells.clear(taken);
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        if self.fault == Fault::PublishBeforeSync { Ok(()) } else { self.flush() }
    }

    fn prepare(&mut self) -> Result<u64> {
        device(&self.sim)?;
        self.sim.borrow_mut().disk.prepared = Some(Written { layout: self.next, is_synced: false });
        device(&self.sim)?;
        self.sim.borrow_mut().disk.prepared = Some(Written { layout: self.next, is_synced: true });
        Ok(self.next.generation)
    }

    fn put_in_place(&mut self, generation: u64) -> Result<()> {
        put_in_place(&self.sim, generation)?;
        if self.fault == Fault::PublishBeforeSync { self.flush() } else { Ok(()) }
    }

    fn was_frozen(&mut self, _ns: u64, published: bool) {
        if !published {
            self.sim.borrow_mut().count(Count::Thawed);
        }
    }

    fn gave_up(&self) -> End {
        End::GaveUp
    }

    fn was_called_off(&self) -> End {
        End::GaveUp
    }
}
