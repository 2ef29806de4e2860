//! The same with threads that run at once, on a mapping of anonymous memory: writers and readers of a few blocks. Who takes what he read from a copy has
//! neither two writes in one nor a write that another had followed, which had ended before he began.

use crate::history::random::Random;
use std::array::from_fn;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Barrier, Mutex};
use stripewise_layout::OnWrite;
use stripewise_store::marks::{Blocks, Marks, begin, head_bytes, invalidate, invalidate_on_write, look, settle};

const BLOCKS: usize = 12;
const BLOCK_BYTES: u64 = 4096;
/// Words of a block that are written and read one by one.
const WORDS: usize = 16;
const WRITERS: usize = 3;
const READERS: usize = 3;
/// Times that copies are made anew: blocks at which two writers meet are stale for good.
const GENERATIONS: u64 = 400;
/// Of so many blocks writes invalidate the copy of one.
const INVALIDATED: usize = 3;
/// Writes of a writer meanwhile, of which one in so many changes the home alone, and one is never settled.
const WRITES: usize = 100;
const ALONE: usize = 300;
const DIES: usize = 600;

/// Marks in memory of their own.
struct Mapping {
    base: *mut u8,
    bytes: usize,
    marks: Marks,
}

// SAFETY: all access is through `Marks`.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new() -> Self {
        let size = BLOCKS as u64 * BLOCK_BYTES;
        let bytes = Blocks::of(size).bytes();
        // SAFETY: a new mapping.
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        let (base, head) = (base.cast::<u8>(), head_bytes(size, 7));
        // SAFETY: longer than the head.
        unsafe { std::ptr::copy_nonoverlapping(head.as_ptr(), base, head.len()) };
        // SAFETY: mapped for as long as this value lives.
        let marks = unsafe { Marks::from_mapping(base, size, 7) }.unwrap();
        Self { base, bytes, marks }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

#[derive(Default)]
struct Block {
    /// The home, which is written at once, as a file is.
    home: Mutex<u64>,
    /// Greatest of the writes that have ended, in the order of the home.
    ended: AtomicU64,
    copy: [AtomicU64; WORDS],
}

fn on_write(block: usize) -> OnWrite {
    if block.is_multiple_of(INVALIDATED) { OnWrite::Invalidate } else { OnWrite::Update }
}

fn write(blocks: &[Block], marks: &Marks, random: &mut Random) {
    let number = random.below(BLOCKS);
    let (block, at) = (&blocks[number], number as u64 * BLOCK_BYTES);
    let next = || {
        let mut home = block.home.lock().unwrap();
        *home += 1;
        *home
    };
    if random.chance(1, ALONE) {
        invalidate(marks, at, BLOCK_BYTES);
        block.ended.fetch_max(next(), Ordering::SeqCst);
        return;
    }
    if on_write(number) == OnWrite::Invalidate {
        invalidate_on_write(marks, at, BLOCK_BYTES);
        block.ended.fetch_max(next(), Ordering::SeqCst);
        return;
    }
    begin(marks, at, BLOCK_BYTES);
    let value = next();
    // A write of a file is a system call.
    fence(Ordering::SeqCst);
    for (n, word) in block.copy.iter().enumerate() {
        word.store(value, Ordering::Relaxed);
        if n % 4 == 0 && random.chance(1, 16) {
            std::thread::yield_now();
        }
    }
    fence(Ordering::SeqCst);
    if !random.chance(1, DIES) {
        settle(marks, at, BLOCK_BYTES, true);
    }
    block.ended.fetch_max(value, Ordering::SeqCst);
}

/// Whether a copy answered.
fn read(blocks: &[Block], marks: &Marks, random: &mut Random) -> bool {
    let number = random.below(BLOCKS);
    let (block, at) = (&blocks[number], number as u64 * BLOCK_BYTES);
    let ended = block.ended.load(Ordering::SeqCst);
    let Some(before) = look(marks, at, BLOCK_BYTES, on_write(number)) else { return false };
    let got: [u64; WORDS] = from_fn(|n| {
        if n % 4 == 0 && random.chance(1, 16) {
            std::thread::yield_now();
        }
        block.copy[n].load(Ordering::Relaxed)
    });
    fence(Ordering::SeqCst);
    if look(marks, at, BLOCK_BYTES, on_write(number)) != Some(before) {
        return false;
    }
    assert!(got.iter().all(|word| *word == got[0]), "two writes in one: {got:?}");
    assert!(got[0] >= ended, "{} was read, and {ended} had ended before", got[0]);
    true
}

/// One generation of copies; how many reads they answered.
fn generation(blocks: &[Block], seed: u64) -> u64 {
    let (mapping, barrier) = (Mapping::new(), Barrier::new(WRITERS + READERS));
    for block in blocks {
        let home = *block.home.lock().unwrap();
        block.copy.iter().for_each(|word| word.store(home, Ordering::Relaxed));
    }
    let (marks, answered) = (&mapping.marks, &AtomicU64::new(0));
    std::thread::scope(|scope| {
        for id in 0..WRITERS + READERS {
            let barrier = &barrier;
            scope.spawn(move || {
                let mut random = Random::new(seed * 100 + id as u64);
                barrier.wait();
                for _ in 0..WRITES {
                    if id < WRITERS {
                        write(blocks, marks, &mut random);
                    } else if read(blocks, marks, &mut random) {
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    // When all have gone, what is neither stale nor left by a dead one is what the home is.
    for (number, block) in blocks.iter().enumerate() {
        let home = *block.home.lock().unwrap();
        let is_same = block.copy.iter().all(|word| word.load(Ordering::Relaxed) == home);
        assert!(is_same || look(marks, number as u64 * BLOCK_BYTES, BLOCK_BYTES, on_write(number)).is_none(), "block {number}");
    }
    answered.load(Ordering::Relaxed)
}

#[test]
fn readers_beside_writers_take_no_torn_and_no_old_copies() {
    let blocks: [Block; BLOCKS] = from_fn(|_| Block::default());
    let answered: u64 = (1..=GENERATIONS).map(|seed| generation(&blocks, seed)).sum();
    println!("{answered} of {} reads were answered by copies", GENERATIONS * (READERS * WRITES) as u64);
    assert!(answered > GENERATIONS);
}
