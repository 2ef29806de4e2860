//! Marks: which bytes of a managed file its copies may not answer for. A word per block of the file counts the writers that are at it, says whether its
//! copies are stale, and has a version that each writer raises.
//!
//! Who writes marks the blocks first, then writes the home, then the copies, then settles the marks. A reader takes a copy's bytes where the words of their
//! blocks show no writer and nothing stale, and are the same words when it has them; else it reads the home. Two writers of one block may reach the home and
//! the copies in opposite orders, so whoever finds another there leaves the block stale. A writer that dies leaves its count, and the block to the home. Stale
//! is for good: copies that are made anew have marks of their own.
//!
//! Copies that writes invalidate ([`OnWrite::Invalidate`]) are not written, so they have a bit of their own, which a writer sets before it writes the home
//! and nobody clears: a reader of such a copy looks at the bits alone, before and after. Readers of other copies do not see that bit, for a write that only
//! sets it has no byte of theirs.
//!
//! The words are shared memory and do not outlive a power cut. So the first writer of a boot notes the boot, durably, before it writes the home: in another
//! boot the copies count no more.

use core::sync::atomic::{AtomicU64, Ordering};
use stripewise_layout::OnWrite;

/// What the name of a file of marks ends with; before it stands the name of the record.
pub const MARKS_SUFFIX: &[u8] = b".marks";
/// Bytes before the first word.
pub const MARKS_HEAD_BYTES: usize = 4096;
/// Most words of one file.
const WORDS_MAX: u64 = 1 << 20;
/// Least bytes of a block, as a power of two.
const SHIFT_MIN: u32 = 12;

const MAGIC: u64 = u64::from_le_bytes(*b"SWMARKS1");
const WRITER: u64 = 1;
const WRITERS: u64 = (1 << 23) - 1;
/// The copies that writes invalidate are stale.
const INVALIDATED: u64 = 1 << 23;
/// All copies are.
const STALE: u64 = 1 << 24;
const VERSION: u64 = 1 << 25;

/// How a file of so many bytes is cut into blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blocks {
    /// Bytes of a block, as a power of two.
    shift: u32,
    /// How many.
    count: u64,
}

impl Blocks {
    /// For copies of the first `size` bytes of a file.
    #[must_use]
    pub const fn of(size: u64) -> Self {
        let mut shift = SHIFT_MIN;
        while size.div_ceil(1 << shift) > WORDS_MAX {
            shift += 1;
        }
        Self { shift, count: size.div_ceil(1 << shift) }
    }

    /// How much of the file one mark is of.
    #[must_use]
    pub const fn block_bytes(&self) -> u64 {
        1 << self.shift
    }

    /// Bytes of the file of marks.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        MARKS_HEAD_BYTES + self.count as usize * 8
    }

    /// The blocks that `[at, at + len)` touches, as far as copies reach.
    #[inline]
    const fn touched(&self, at: u64, len: u64) -> (u64, u64) {
        let past = at.saturating_add(len).div_ceil(1 << self.shift);
        (at >> self.shift, if past < self.count { past } else { self.count })
    }
}

/// The words, wherever they are.
pub trait Words {
    /// How the file is cut.
    fn blocks(&self) -> Blocks;
    /// The word of a block.
    fn load(&self, block: u64) -> u64;
    /// Adds to it, wrapping; what it was.
    fn add(&self, block: u64, value: u64) -> u64;
    /// Sets bits in it.
    fn set(&self, block: u64, bits: u64);
}

fn each(words: &impl Words, at: u64, len: u64, work: impl FnMut(u64)) {
    let (from, past) = words.blocks().touched(at, len);
    (from..past).for_each(work);
}

/// A writer's first step, before the home's bytes change: `[at, at + len)` is marked until [`settle`].
pub fn begin(words: &impl Words, at: u64, len: u64) {
    each(words, at, len, |block| {
        if words.add(block, VERSION + WRITER) & WRITERS != 0 {
            words.set(block, STALE);
        }
    });
}

/// A writer's last step, when home and copies are written; where the copies may not be what the home is now, they are stale.
pub fn settle(words: &impl Words, at: u64, len: u64, is_copied: bool) {
    each(words, at, len, |block| {
        if !is_copied {
            words.set(block, STALE);
        }
        words.add(block, WRITER.wrapping_neg());
    });
}

/// The only step of who changes the home and not the copies, before it does.
pub fn invalidate(words: &impl Words, at: u64, len: u64) {
    each(words, at, len, |block| words.set(block, STALE));
}

/// A writer's step for the copies that its write invalidates, before the home's bytes change; the only one where no other copy holds any of them.
pub fn invalidate_on_write(words: &impl Words, at: u64, len: u64) {
    each(words, at, len, |block| words.set(block, INVALIDATED));
}

/// A reader's look, before and after: copies for which writes do this may answer for `[at, at + len)` where both times give the same, and not `None`.
#[inline]
pub fn look(words: &impl Words, at: u64, len: u64, on_write: OnWrite) -> Option<u64> {
    // What counts against them, and what must be the same twice.
    let (against, same) = match on_write {
        OnWrite::Update => (WRITERS | STALE, !INVALIDATED),
        OnWrite::Invalidate => (STALE | INVALIDATED, 0),
    };
    let (from, past) = words.blocks().touched(at, len);
    (from..past).try_fold(0u64, |sum, block| {
        let word = words.load(block);
        (word & against == 0).then_some(sum.wrapping_add(word & same))
    })
}

/// Bytes that some copies do not answer for any more, in whole blocks.
pub fn stale_bytes(words: &impl Words) -> u64 {
    let blocks = words.blocks();
    let marked = (0..blocks.count).filter(|block| words.load(*block) & (WRITERS | INVALIDATED | STALE) != 0).count();
    (marked as u64) << blocks.shift
}

/// Where the boot stands in a file of marks; behind it whether it is durable.
pub const BOOT_AT: usize = core::mem::offset_of!(Head, boot);

/// The first bytes of a file of marks.
#[repr(C)]
struct Head {
    magic: AtomicU64,
    /// Bytes of the file when its copies were made.
    size: AtomicU64,
    /// The container of the copies.
    container: AtomicU64,
    /// Boot in which the file was written since; zeros: in none.
    boot: [AtomicU64; 2],
    /// Not 0: `boot` is durable.
    is_noted: AtomicU64,
}

/// A mapped file of marks.
#[derive(Clone, Copy)]
pub struct Marks {
    base: *mut u8,
    blocks: Blocks,
}

// SAFETY: all access is through atomics in shared memory.
unsafe impl Send for Marks {}
// SAFETY: as above.
unsafe impl Sync for Marks {}

impl Marks {
    /// Marks for the copies of `size` bytes in a container; `None` where what is mapped is none of those.
    ///
    /// # Safety
    /// `base` is a shared mapping of `Blocks::of(size).bytes()` bytes, aligned to 8, that outlives every use, and writable for who calls more than looks.
    #[must_use]
    pub unsafe fn from_mapping(base: *mut u8, size: u64, container: u64) -> Option<Self> {
        let marks = Self { base, blocks: Blocks::of(size) };
        let head = marks.head();
        let is_ours = [(&head.magic, MAGIC), (&head.size, size), (&head.container, container)];
        is_ours.iter().all(|(word, value)| word.load(Ordering::Acquire) == *value).then_some(marks)
    }

    fn head(&self) -> &Head {
        // SAFETY: from_mapping's contract.
        unsafe { &*self.base.cast::<Head>() }
    }

    /// The mapping's first byte.
    #[must_use]
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// Whether the copies count in this boot: the file has not been written since they were made, or in this boot only.
    #[must_use]
    pub fn count_in(&self, boot_id: [u64; 2]) -> bool {
        let boot = self.boot();
        boot == [0, 0] || boot == boot_id
    }

    fn boot(&self) -> [u64; 2] {
        let [first, second] = &self.head().boot;
        [first.load(Ordering::Acquire), second.load(Ordering::Acquire)]
    }

    /// Notes the boot before its first write; `flush` makes the head durable.
    ///
    /// # Errors
    /// Those of `flush`: then nothing may be written.
    #[inline]
    pub fn note_boot<E>(&self, boot_id: [u64; 2], flush: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let head = self.head();
        if head.is_noted.load(Ordering::Acquire) != 0 {
            return Ok(());
        }
        head.boot.iter().zip(boot_id).for_each(|(word, part)| word.store(part, Ordering::Release));
        flush()?;
        head.is_noted.store(1, Ordering::Release);
        Ok(())
    }

    fn word(&self, block: u64) -> Option<&AtomicU64> {
        // SAFETY: inside the mapping, aligned to 8.
        (block < self.blocks.count).then(|| unsafe { &*self.base.add(MARKS_HEAD_BYTES).cast::<AtomicU64>().add(block as usize) })
    }
}

impl Words for Marks {
    #[inline]
    fn blocks(&self) -> Blocks {
        self.blocks
    }

    #[inline]
    fn load(&self, block: u64) -> u64 {
        self.word(block).map_or(STALE, |word| word.load(Ordering::SeqCst))
    }

    #[inline]
    fn add(&self, block: u64, value: u64) -> u64 {
        self.word(block).map_or(STALE, |word| word.fetch_add(value, Ordering::SeqCst))
    }

    #[inline]
    fn set(&self, block: u64, bits: u64) {
        if let Some(word) = self.word(block)
            && word.load(Ordering::SeqCst) & bits != bits
        {
            word.fetch_or(bits, Ordering::SeqCst);
        }
    }
}

/// The first bytes of a new file of marks; all behind them is zeros.
#[must_use]
pub fn head_bytes(size: u64, container: u64) -> [u8; 24] {
    let mut bytes = [0; 24];
    for (place, word) in bytes.chunks_exact_mut(8).zip([MAGIC, size, container]) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}
