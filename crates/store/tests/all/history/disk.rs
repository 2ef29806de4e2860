//! The disk of the simulation: two objects of as many blocks as the file has, and the layout file, each as it is and as a power cut may leave it.

use crate::history::random::Random;

/// Blocks of the file, of 4 KiB.
pub const BLOCKS: usize = 12;
/// log2 of their size.
pub const BLOCK_SHIFT: u32 = 12;
/// Regions of the file, all of one length.
pub const REGIONS: usize = 4;
/// Blocks of a region.
pub const REGION_BLOCKS: usize = BLOCKS / REGIONS;
/// What a block reads as that was punched or never written.
pub const HOLE: u64 = 0;
/// What block `b` holds at first: `INITIAL + b`.
pub const INITIAL: u64 = 1;

/// What a layout says of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    None,
    /// The span's bytes are being copied to the other plane.
    Copying,
    /// They have been, and the plane that they left is to be punched.
    Punching,
}

/// Where each region is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub generation: u64,
    pub planes: [usize; REGIONS],
    pub phase: Phase,
    /// Regions that move, first and one past the last.
    pub span: (usize, usize),
}

impl Layout {
    /// The home of a block.
    pub fn plane(&self, block: usize) -> usize {
        self.planes[block / REGION_BLOCKS]
    }

    /// Blocks of the span.
    pub fn blocks(&self) -> std::ops::Range<usize> {
        self.span.0 * REGION_BLOCKS..self.span.1 * REGION_BLOCKS
    }

    /// The layout that comes after this one.
    pub fn next(&self, phase: Phase, span: (usize, usize)) -> Self {
        Self { generation: self.generation + 1, phase, span, ..*self }
    }

    /// With its span in the other plane.
    pub fn turned(mut self) -> Self {
        for plane in &mut self.planes[self.span.0..self.span.1] {
            *plane = 1 - *plane;
        }
        self
    }
}

/// A layout file.
#[derive(Clone, Copy)]
pub struct Written {
    pub layout: Layout,
    pub is_synced: bool,
}

#[derive(Clone, Copy, Default)]
struct Block {
    now: u64,
    synced: u64,
}

/// All of it.
pub struct Disk {
    planes: [[Block; BLOCKS]; 2],
    /// The layout file by its name, now and after the last flush of the directory.
    pub layout: Written,
    durable: Written,
    /// The layout that waits beside it.
    pub prepared: Option<Written>,
}

impl Disk {
    pub fn new() -> Self {
        let layout = Layout { generation: 1, planes: [0; REGIONS], phase: Phase::None, span: (0, 0) };
        let written = Written { layout, is_synced: true };
        let mut planes = [[Block::default(); BLOCKS]; 2];
        for (number, block) in planes[0].iter_mut().enumerate() {
            *block = Block { now: INITIAL + number as u64, synced: INITIAL + number as u64 };
        }
        Self { planes, layout: written, durable: written, prepared: None }
    }

    pub fn read(&self, plane: usize, block: usize) -> u64 {
        self.planes[plane][block].now
    }

    pub fn write(&mut self, plane: usize, block: usize, value: u64) {
        self.planes[plane][block].now = value;
    }

    /// Flushes an object.
    pub fn sync(&mut self, plane: usize) {
        for block in &mut self.planes[plane] {
            block.synced = block.now;
        }
    }

    /// Gives another layout file the name.
    pub fn rename(&mut self, written: Written) {
        self.layout = written;
    }

    /// Flushes the directory.
    pub fn sync_dir(&mut self) {
        self.durable = self.layout;
    }

    /// What a power cut leaves: each block as it is or as it was flushed, the name with either file; an error when that file may be torn.
    pub fn cut_power(&mut self, random: &mut Random) -> Result<(), String> {
        for block in self.planes.iter_mut().flatten() {
            if random.chance(1, 2) {
                block.now = block.synced;
            }
            block.synced = block.now;
        }
        if random.chance(1, 2) {
            self.layout = self.durable;
        }
        if !self.layout.is_synced {
            return Err("the layout file is torn".to_owned());
        }
        self.durable = self.layout;
        if random.chance(1, 2) {
            self.prepared = None;
        }
        Ok(())
    }
}
