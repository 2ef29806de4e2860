//! How a thread cuts the file, lets it grow, ends what dead ones left behind its end, and maps it.

use crate::marked::fault::Fault;
use crate::marked::machine::{Count, Machine};
use crate::marked::program::{Stage, Task};
use crate::marked::words::BLOCK_BYTES;
use crate::marked::world::{BLOCKS, PIECES};

impl Machine {
    pub fn cut(&mut self, id: usize, stage: Stage) -> Stage {
        let to = if let Task::Truncate { to } = self.threads[id].task { Some(to) } else { None };
        let marks_late = matches!(self.fault, Fault::CutMarksLast | Fault::CutMarksAfterSize | Fault::CutMarksBeforeTrim);
        match stage {
            Stage::Lock if self.world.lock.is_some() => Stage::Lock,
            Stage::Lock => {
                self.world.lock = Some(id);
                let (size, is_unsettled) = (self.world.size.get(), self.world.is_cut_intended || self.world.has_remains);
                match to {
                    Some(to) if to > size && is_unsettled => {
                        self.threads[id].resumes = Some(self.threads[id].task);
                        self.threads[id].task = Task::Finish;
                        Stage::Intend
                    }
                    Some(to) if to > size => {
                        self.world.set_size(to);
                        self.world.lock = None;
                        Stage::Idle
                    }
                    None if !is_unsettled => self.end_cut(id),
                    _ => Stage::Intend,
                }
            }
            Stage::Intend => {
                self.world.is_cut_intended = true;
                self.threads[id].awaited = self.inside(id);
                Stage::Drain
            }
            Stage::Drain => {
                let awaited = std::mem::take(&mut self.threads[id].awaited);
                self.threads[id].awaited = self.still_inside(awaited);
                if self.threads[id].awaited.is_empty() { Stage::EnterCut } else { Stage::Drain }
            }
            Stage::EnterCut => {
                self.enter(id);
                self.count(Count::Cut);
                let from = to.unwrap_or(self.world.size.get()).min(BLOCKS);
                (self.threads[id].at, self.threads[id].bytes) = (from as u64 * BLOCK_BYTES, u64::MAX / 2);
                match (marks_late, to) {
                    (false, _) => self.marks_span(id, Stage::Resize),
                    (true, Some(_)) => Stage::Resize,
                    (true, None) if self.fault == Fault::CutMarksBeforeTrim => self.marks_span(id, Stage::Trim(from)),
                    (true, None) => Stage::Trim(from),
                }
            }
            Stage::Resize => {
                let Some(to) = to else { return Stage::Trim(self.world.size.get()) };
                self.world.set_size(to);
                self.world.tell(|| format!("  the file has {to} blocks"));
                match self.fault {
                    Fault::CutMarksAfterSize | Fault::CutMarksBeforeTrim => self.marks_span(id, Stage::Trim(to)),
                    _ => Stage::Trim(to),
                }
            }
            Stage::Trim(block) if block < BLOCKS => {
                self.world.write(block, None, 0);
                Stage::Trim(block + 1)
            }
            Stage::Trim(_) => Stage::Conclude,
            _ => {
                (self.world.has_remains, self.world.is_cut_intended) = (false, false);
                self.world.lock = None;
                if self.fault == Fault::CutMarksLast { self.marks_span(id, Stage::Leave) } else { self.end_cut(id) }
            }
        }
    }

    fn end_cut(&mut self, id: usize) -> Stage {
        if self.world.lock == Some(id) {
            self.world.lock = None;
        }
        let thread = &mut self.threads[id];
        thread.is_inside = false;
        let Some(task) = thread.resumes.take() else { return Stage::Idle };
        thread.task = task;
        if matches!(task, Task::Truncate { .. }) { Stage::Lock } else { Stage::Enter }
    }

    pub fn map(&mut self, id: usize, stage: Stage) -> Stage {
        let Task::Map { at, stores } = self.threads[id].task else { return Stage::Idle };
        let process = self.threads[id].process;
        (self.threads[id].at, self.threads[id].bytes) = (at as u64 * BLOCK_BYTES, u64::MAX / 2);
        match stage {
            // The wrong order: pinned when all is marked.
            Stage::Pin if self.fault == Fault::MapMarksBeforePin => self.marks_span(id, Stage::Mapped(0)),
            Stage::Pin => {
                self.processes[process].pins += 1;
                self.marks_span(id, Stage::Mapped(1))
            }
            Stage::Mapped(0) => {
                self.processes[process].pins += 1;
                Stage::Mapped(1)
            }
            Stage::Mapped(number) if number <= stores => {
                self.count(Count::Stored);
                let (block, piece) = (at + self.random.below(BLOCKS - at), self.random.below(PIECES));
                if block < self.world.size.get() {
                    let value = self.value();
                    self.world.write(block, Some(piece), value);
                    self.world.tell(|| format!("  {value} is stored in block {block}"));
                }
                Stage::Mapped(number + 1)
            }
            Stage::Mapped(_) => Stage::Unpin,
            _ => {
                self.processes[process].pins -= 1;
                Stage::Idle
            }
        }
    }
}
