//! What programs do, as the gate of the preloaded library does it: enter the epoch, respect a truncate and the move word, only then look up the layout,
//! write, leave. The decisions are the real ones (`moving::turn`, `call_off`, `publish`); the order is the runtime's, and one fault turns it round.

use crate::model::explore::{Actor, Kind};
use crate::model::faults::Fault;
use crate::model::world::{BLOCKS, Handle, World, home};
use std::sync::Arc;
use stripewise_store::moving::{Turn, call_off, look_on, publish, turn};

/// Contents after a cut, which programs read as zeros: told apart from holes that nobody made.
pub const CUT: u64 = 999;

/// One process with a thread: it remembers the layout that it loaded last.
struct Process<'a> {
    handle: &'a Handle,
    fault: Fault,
    loaded: u64,
}

impl Process<'_> {
    /// No move begins or goes on while somebody has the file mapped.
    fn pin(&self) {
        self.handle.step("pins", |world| {
            world.memory.pins += 1;
            0
        });
    }

    fn unpin(&self) {
        self.handle.step("unpins", |world| {
            world.memory.pins -= 1;
            0
        });
    }

    /// The home that a map is of.
    fn mapped(&mut self) -> usize {
        self.handle.enter(|_| ());
        let home = self.layout();
        self.handle.leave(|_| ());
        home
    }

    fn layout(&mut self) -> usize {
        let handle = self.handle;
        if handle.step("generation", |world| world.memory.generation) != self.loaded {
            self.loaded = handle.step("loads the layout", |world| world.memory.layout);
            let loaded = self.loaded;
            handle.step("raise generation", |world| {
                world.memory.generation = world.memory.generation.max(loaded);
                0
            });
        }
        home(self.loaded)
    }

    /// Inside the epoch with the home to write to. The place in the code is `place`.
    fn for_change(&mut self, place: u64, at: u64, len: u64, respects_cuts: bool, begins: impl Fn(&mut World)) -> Option<usize> {
        let handle = self.handle;
        let mut has_begun = false;
        while !handle.is_over() {
            handle.forget(place, self.loaded * 2 + u64::from(has_begun));
            let first = !std::mem::replace(&mut has_begun, true);
            handle.enter(|world| {
                if first {
                    begins(world);
                }
            });
            if respects_cuts && handle.step("truncating", |world| u64::from(world.memory.truncating)) != 0 {
                handle.leave(|_| ());
                handle.wait();
                continue;
            }
            let early = (self.fault == Fault::LayoutBeforeWord).then(|| self.layout());
            let what = handle.forgetting(|| turn(handle, at, len, || handle.time()), |turn| tell(*turn));
            if what == Turn::Go {
                let home = early.unwrap_or_else(|| self.layout());
                handle.forget(place + 1, self.loaded);
                return Some(home);
            }
            handle.leave(|_| ());
            wait(handle, what);
        }
        None
    }
}

fn tell(turn: Turn) -> u64 {
    match turn {
        Turn::Go => 1,
        Turn::Wait => 2,
        Turn::Publish(publication) => publication.word << 16 | publication.generation << 4 | 3,
    }
}

/// Waits, or takes the mover's last step for it.
fn wait(handle: &Handle, turn: Turn) {
    if let Turn::Publish(publication) = turn {
        let put = publish(handle, publication, |generation| put_in_place(handle, generation));
        assert_eq!(put, Ok(()));
    } else {
        handle.wait();
    }
}

/// The rename of the layout that waits, and the flush of its directory. What the new home would hold after a power cut must be all.
pub fn put_in_place(handle: &Handle, generation: u64) -> Result<(), ()> {
    handle.step("rename", |world| {
        let memory = &mut world.memory;
        if memory.prepared == generation {
            let new = home(generation);
            (memory.layout, memory.prepared) = (generation, 0);
            if memory.homes[new] != memory.synced[new] {
                world.fail("published before it was flushed: a power cut now would lose what the new home holds".to_owned());
            }
        }
        0
    });
    handle.step("flush the directory", |_| 0);
    Ok(())
}

fn program(work: impl Fn(&Handle) + Send + Sync + 'static) -> Actor {
    Actor { kind: Kind::Program, work: Arc::new(work) }
}

/// Writes each value in turn to all `blocks`, one block after the other.
pub fn writer(fault: Fault, blocks: &'static [u64], values: &'static [u64]) -> Actor {
    program(move |handle| {
        let mut process = Process { handle, fault, loaded: 1 };
        for &value in values {
            let (at, len) = (blocks[0], blocks.len() as u64);
            let begins = |world: &mut World| {
                for &block in blocks {
                    Handle::invoke(world, block, true, value);
                }
            };
            let Some(home) = process.for_change(value * 100, at, len, true, begins) else { return };
            for &block in blocks {
                handle.step("writes", |world| {
                    world.memory.homes[home][block as usize] = value;
                    value
                });
            }
            handle.leave(|world| finish(world, |op| op.is_write && op.value == value));
        }
        handle.forget(0, 0);
    })
}

fn finish(world: &mut World, which: impl Fn(&crate::model::register::Op) -> bool) {
    let now = world.event();
    for op in world.ops.iter_mut().filter(|op| which(op)) {
        op.returned = now;
    }
}

/// Reads a block some times.
pub fn reader(block: u64, times: u64) -> Actor {
    program(move |handle| {
        let mut process = Process { handle, fault: Fault::None, loaded: 1 };
        for time in 0..times {
            handle.forget(5000 + time, process.loaded);
            let mut op = 0;
            handle.enter(|world| op = Handle::invoke(world, block, false, 0));
            let home = process.layout();
            let value = handle.step("reads", |world| world.memory.homes[home][block as usize]);
            handle.leave(|world| {
                let now = world.event();
                (world.ops[op].value, world.ops[op].returned) = (value, now);
            });
        }
    })
}

/// Cuts the file to nothing: asks for its turn and then, inside, keeps everybody else out, waits until they have left, and cuts.
pub fn cutter() -> Actor {
    program(move |handle| {
        let mut process = Process { handle, fault: Fault::None, loaded: 1 };
        let begins = |world: &mut World| {
            for block in 0..BLOCKS as u64 {
                Handle::invoke(world, block, true, CUT);
            }
        };
        let Some(home) = process.for_change(7000, 0, BLOCKS as u64, false, begins) else { return };
        handle.step("truncating on", |world| {
            world.memory.truncating = true;
            0
        });
        handle.grace(None);
        for block in 0..BLOCKS {
            handle.step("cuts", |world| {
                world.memory.homes[home][block] = CUT;
                0
            });
        }
        handle.step("truncating off", |world| {
            world.memory.truncating = false;
            0
        });
        handle.leave(|world| finish(world, |op| op.value == CUT && op.is_write));
    })
}

/// Maps the file, writes and reads through the map without asking anybody, and unmaps it.
pub fn mapper(value: u64) -> Actor {
    program(move |handle| {
        let mut process = Process { handle, fault: Fault::None, loaded: 1 };
        process.pin();
        loop {
            handle.forget(8000, 0);
            match handle.forgetting(|| call_off(handle, handle.time()), |turn| tell(*turn)) {
                Turn::Go => break,
                turn => wait(handle, turn),
            }
            if handle.is_over() {
                return;
            }
        }
        let home = process.mapped();
        handle.forget(8001, home as u64);
        handle.step("writes through the map", |world| {
            let op = Handle::invoke(world, 0, true, value);
            world.memory.homes[home][0] = value;
            world.ops[op].returned = world.event();
            0
        });
        handle.step("reads through the map", |world| {
            let op = Handle::invoke(world, 1, false, world.memory.homes[home][1]);
            world.ops[op].returned = world.event();
            0
        });
        process.unpin();
    })
}

/// Maps the file without the right to write it, and so to end a move: reads twice through the map.
pub fn looker() -> Actor {
    program(move |handle| {
        let mut process = Process { handle, fault: Fault::None, loaded: 1 };
        process.pin();
        while look_on(handle) != Turn::Go && !handle.is_over() {
            handle.forget(8100, 0);
            handle.wait();
        }
        let home = process.mapped();
        for time in 0..2 {
            handle.forget(8101 + time, home as u64);
            handle.step("reads through the map", |world| {
                let op = Handle::invoke(world, 0, false, world.memory.homes[home][0]);
                world.ops[op].returned = world.event();
                0
            });
        }
        process.unpin();
    })
}

/// Stops the mover for ever, at whatever step it is.
pub fn stopper() -> Actor {
    Actor {
        kind: Kind::Mover,
        work: Arc::new(|handle| {
            handle.step("stops the mover", |world| {
                world.memory.is_stopped = true;
                0
            });
        }),
    }
}

/// Lets time pass while others have things to do.
pub fn clock(ticks: u64) -> Actor {
    Actor {
        kind: Kind::Clock,
        work: Arc::new(move |handle| {
            for _ in 0..ticks {
                handle.step("ticks", |world| {
                    world.memory.now_ns += crate::model::world::TICK_NS;
                    0
                });
            }
        }),
    }
}
