//! The shared control words of one file: its size, the layout generation in force, and the volatile half of a move.
//! Every process that has the file open maps them; a killed process leaves nothing to clean up here.

use crate::moving::Words;
use crate::sizing::{LINES, Note, Sizes};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use stripewise_layout::MAX_LOGICAL;

/// Bytes of a ctl file.
pub const CTL_BYTES: usize = 65_536;
/// Bytes of its header; the dirty bitmap follows.
pub const CTL_HEADER_BYTES: usize = 4096;
/// Bytes of a ctl file that have blocks from the start, for a store through a map to a hole on a full disk is SIGBUS: the header, in whole pages. The
/// mover gives the bitmap its blocks before a move begins; before that nobody sets a bit.
pub const CTL_RESERVED_BYTES: usize = if cfg!(target_arch = "x86_64") { CTL_HEADER_BYTES } else { CTL_BYTES };
/// Dirty bits that one move may have: a span is cut into at most so many chunks.
pub const DIRTY_BITS: u64 = ((CTL_BYTES - CTL_HEADER_BYTES) * 8) as u64;
/// First bytes of a ctl file.
pub const CTL_MAGIC: [u8; 8] = *b"SWCTL001";
/// Flag: the file has been unlinked; its last closer need not mirror anything.
pub const FLAG_UNLINKED: u64 = 1;
/// Flag: a cut is intended, and drains or cuts; writers wait. With nobody who has the exclusive lock, its maker has died: whoever gets the lock ends it.
pub const FLAG_TRUNCATING: u64 = 2;
/// In [`CtlHeader::copies`]: there are none any more, which is not durable yet; whoever writes the file makes it so first.
pub const COPIES_LEAVE: u64 = u64::MAX;
/// Where the lines for notes of extending writers begin, and their length.
const LINES_AT: usize = 256;
const LINE_BYTES: usize = 32;

/// A boot id as ctl holds it: its 32 hexadecimal digits as two words, the first digits highest.
pub fn boot_words(text: &str) -> [u64; 2] {
    let mut words = [0u64; 2];
    for (i, digit) in text.chars().filter_map(|c| c.to_digit(16)).enumerate() {
        if let Some(word) = words.get_mut(i / 16) {
            *word = *word << 4 | u64::from(digit);
        }
    }
    words
}

/// The first 4,096 bytes of a ctl file.
#[repr(C)]
pub struct CtlHeader {
    /// [`CTL_MAGIC`].
    pub magic: [u8; 8],
    /// Boot under which the size is valid.
    pub boot_id: [AtomicU64; 2],
    pad0: [u8; 40],
    /// Logical size in bytes.
    pub size: AtomicU64,
    /// Generation of the layout in force.
    pub generation: AtomicU64,
    /// [`FLAG_UNLINKED`].
    pub flags: AtomicU64,
    /// Names (hard links) besides the first, as of the last link or unlink by the library.
    pub more_names: AtomicU64,
    /// The container of the copies that count ([`crate::marks`]); 0 where none do.
    pub copies: AtomicU64,
    pad1: [u8; 24],
    /// State in bits 0-2, number of the move above.
    pub move_word: AtomicU64,
    /// First byte of the span that moves.
    pub span_start: AtomicU64,
    /// Its length.
    pub span_len: AtomicU64,
    /// log2 of the bytes that one dirty bit stands for.
    pub chunk_shift: AtomicU32,
    pad2: u32,
    /// CLOCK_MONOTONIC ns after which a waiter may abort a freeze, or take the last step of a move itself.
    pub freeze_deadline_ns: AtomicU64,
    /// Generation of the layout that a move in state `Publishing` publishes.
    pub next_generation: AtomicU64,
    /// Lines for notes that have ever been used.
    pub lines_used: AtomicU64,
    /// Objects made in this boot besides those of a creation, an adoption or a move.
    pub objects_made: AtomicU64,
    /// Of these, so many have durable names.
    pub objects_durable: AtomicU64,
    /// Odd while somebody moves head's times to put them back ([`crate::times`]).
    pub times: AtomicU64,
}

/// The words that tell what a file shows, as they were read from a ctl file that is not mapped.
pub struct Glance {
    /// [`CTL_MAGIC`] where they are those of a ctl file.
    pub magic: [u8; 8],
    /// See [`CtlHeader::boot_id`].
    pub boot_id: [u64; 2],
    /// See [`CtlHeader::size`].
    pub size: u64,
    /// See [`CtlHeader::generation`].
    pub generation: u64,
    /// See [`CtlHeader::flags`].
    pub flags: u64,
    /// See [`CtlHeader::more_names`].
    pub more_names: u64,
}

impl Glance {
    /// Bytes that are read of a ctl file.
    pub const BYTES: usize = core::mem::offset_of!(CtlHeader, more_names) + 8;

    /// The words in the first [`Glance::BYTES`] of a ctl file.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let boot = core::mem::offset_of!(CtlHeader, boot_id);
        Some(Self {
            magic: bytes.get(..8)?.try_into().ok()?,
            boot_id: [word(boot)?, word(boot + 8)?],
            size: word(core::mem::offset_of!(CtlHeader, size))?,
            generation: word(core::mem::offset_of!(CtlHeader, generation))?,
            flags: word(core::mem::offset_of!(CtlHeader, flags))?,
            more_names: word(core::mem::offset_of!(CtlHeader, more_names))?,
        })
    }
}

/// A mapped ctl file.
#[derive(Clone, Copy)]
pub struct Ctl {
    base: *mut u8,
}

// SAFETY: all access is through atomics in shared memory.
unsafe impl Send for Ctl {}
// SAFETY: as above.
unsafe impl Sync for Ctl {}

impl Ctl {
    /// # Safety
    /// `base` is a shared, writable mapping of [`CTL_BYTES`] bytes that outlives every use.
    pub const unsafe fn from_mapping(base: *mut u8) -> Self {
        Self { base }
    }

    /// The mapping's first byte, for unmapping.
    pub fn base(self) -> *mut u8 {
        self.base
    }

    /// The header words.
    pub fn header(&self) -> &CtlHeader {
        // SAFETY: from_mapping's contract; the header is smaller than 4,096 bytes and the mapping page-aligned.
        unsafe { &*self.base.cast::<CtlHeader>() }
    }

    /// Writes magic, boot, size and generation into a fresh ctl.
    pub fn initialise(&self, boot_id: [u64; 2], size: u64, generation: u64) {
        let h = self.header();
        h.size.store(size, Ordering::Relaxed);
        h.generation.store(generation, Ordering::Relaxed);
        h.objects_made.store(0, Ordering::Relaxed);
        h.objects_durable.store(0, Ordering::Relaxed);
        // Of another boot: what they tell of is the file's by now.
        (0..LINES).for_each(|line| self.set_note(line, Note::default()));
        self.set_boot(boot_id);
        // SAFETY: within the mapping; readers check the magic last.
        unsafe { core::ptr::copy_nonoverlapping(CTL_MAGIC.as_ptr(), self.base, 8) };
    }

    /// Whether the magic is there.
    pub fn is_valid(&self) -> bool {
        self.header().magic == CTL_MAGIC
    }

    /// Whether the size belongs to this boot.
    pub fn boot_is(&self, boot_id: [u64; 2]) -> bool {
        let h = self.header();
        [h.boot_id[0].load(Ordering::Acquire), h.boot_id[1].load(Ordering::Acquire)] == boot_id
    }

    /// States that size and words belong to this boot.
    pub fn set_boot(&self, boot_id: [u64; 2]) {
        let h = self.header();
        h.boot_id[0].store(boot_id[0], Ordering::Release);
        h.boot_id[1].store(boot_id[1], Ordering::Release);
    }

    /// Logical size in bytes.
    #[inline]
    pub fn size(&self) -> u64 {
        self.header().size.load(Ordering::Acquire)
    }

    /// The size, unless it is none that a file can have: the words come from whoever may write the file.
    #[inline]
    pub fn sane_size(&self) -> Option<u64> {
        Some(self.size()).filter(|size| *size < MAX_LOGICAL)
    }

    /// Raises the size to at least `end`.
    #[inline]
    pub fn raise_size(&self, end: u64) {
        let size = &self.header().size;
        if size.load(Ordering::Relaxed) < end {
            size.fetch_max(end, Ordering::SeqCst);
        }
    }

    /// Sets the size (truncate, under the file's exclusive lock).
    pub fn set_size(&self, size: u64) {
        self.header().size.store(size, Ordering::Release);
    }

    /// Start and end in a line for notes; those of the first where there is none of that number.
    fn line(&self, line: usize) -> &[AtomicU64; LINE_BYTES / 8] {
        let line = if line < LINES { line } else { 0 };
        // SAFETY: inside the mapping, 8-byte aligned.
        unsafe { &*self.base.add(LINES_AT + line * LINE_BYTES).cast() }
    }

    fn dirty_word(&self, index: u64) -> Option<&AtomicU64> {
        if index >= DIRTY_BITS / 64 {
            return None;
        }
        // SAFETY: inside the mapping, 8-byte aligned.
        Some(unsafe { &*self.base.add(CTL_HEADER_BYTES).cast::<AtomicU64>().add(index as usize) })
    }

    /// Forgets whatever move the word tells of: after a boot, before anybody else uses these words.
    pub fn reset_move(&self) {
        let word = &self.header().move_word;
        word.store(word.load(Ordering::SeqCst) & !7, Ordering::SeqCst);
    }
}

impl Words for Ctl {
    fn word(&self) -> u64 {
        self.header().move_word.load(Ordering::SeqCst)
    }

    fn exchange(&self, from: u64, to: u64) -> bool {
        self.header().move_word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    fn span(&self) -> (u64, u64, u32) {
        let h = self.header();
        (h.span_start.load(Ordering::SeqCst), h.span_len.load(Ordering::SeqCst), h.chunk_shift.load(Ordering::SeqCst))
    }

    fn set_span(&self, start: u64, len: u64, chunk_shift: u32) {
        let h = self.header();
        h.span_start.store(start, Ordering::SeqCst);
        h.span_len.store(len, Ordering::SeqCst);
        h.chunk_shift.store(chunk_shift, Ordering::SeqCst);
    }

    fn bits(&self) -> u64 {
        DIRTY_BITS
    }

    fn dirty(&self, index: u64) -> u64 {
        self.dirty_word(index).map_or(0, |word| word.load(Ordering::SeqCst))
    }

    fn mark(&self, index: u64, mask: u64) {
        if let Some(word) = self.dirty_word(index) {
            word.fetch_or(mask, Ordering::SeqCst);
        }
    }

    fn take(&self, index: u64) -> u64 {
        self.dirty_word(index).map_or(0, |word| word.swap(0, Ordering::SeqCst))
    }

    fn deadline_ns(&self) -> u64 {
        self.header().freeze_deadline_ns.load(Ordering::SeqCst)
    }

    fn set_deadline_ns(&self, deadline_ns: u64) {
        self.header().freeze_deadline_ns.store(deadline_ns, Ordering::SeqCst);
    }

    fn next_generation(&self) -> u64 {
        self.header().next_generation.load(Ordering::SeqCst)
    }

    fn set_next_generation(&self, generation: u64) {
        self.header().next_generation.store(generation, Ordering::SeqCst);
    }

    fn raise_generation(&self, generation: u64) {
        self.header().generation.fetch_max(generation, Ordering::SeqCst);
    }
}

impl Sizes for Ctl {
    fn size(&self) -> u64 {
        self.header().size.load(Ordering::SeqCst)
    }

    fn raise_size(&self, end: u64) {
        Self::raise_size(self, end);
    }

    fn set_size(&self, size: u64) {
        self.header().size.store(size, Ordering::SeqCst);
    }

    fn is_cut_intended(&self) -> bool {
        self.header().flags.load(Ordering::SeqCst) & FLAG_TRUNCATING != 0
    }

    fn intend_cut(&self, is_intended: bool) {
        let flags = &self.header().flags;
        if is_intended {
            flags.fetch_or(FLAG_TRUNCATING, Ordering::SeqCst)
        } else {
            flags.fetch_and(!FLAG_TRUNCATING, Ordering::SeqCst)
        };
    }

    fn lines_used(&self) -> usize {
        self.header().lines_used.load(Ordering::SeqCst).min(LINES as u64) as usize
    }

    fn note(&self, line: usize) -> Note {
        let [start, end, ..] = self.line(line);
        let end = end.load(Ordering::SeqCst);
        Note { start: start.load(Ordering::SeqCst), end }
    }

    fn set_note(&self, line: usize, note: Note) {
        let [start, end, ..] = self.line(line);
        if note.end != 0 {
            start.store(note.start, Ordering::SeqCst);
        }
        end.store(note.end, Ordering::SeqCst);
    }
}

const _: () = assert!(LINES_AT + LINES * LINE_BYTES == CTL_HEADER_BYTES && core::mem::size_of::<CtlHeader>() <= LINES_AT);
const _: () = assert!(core::mem::offset_of!(CtlHeader, size) == 64 && core::mem::offset_of!(CtlHeader, move_word) == 128);
const _: () = assert!(core::mem::offset_of!(CtlHeader, chunk_shift) == 152 && core::mem::offset_of!(CtlHeader, freeze_deadline_ns) == 160);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use crate::moving::mark_dirty;

    fn ctl() -> (Box<[u64; CTL_BYTES / 8]>, Ctl) {
        let mut memory = Box::new([0u64; CTL_BYTES / 8]);
        // SAFETY: the box outlives the ctl in each test.
        let ctl = unsafe { Ctl::from_mapping(memory.as_mut_ptr().cast()) };
        ctl.initialise([1, 2], 0, 1);
        (memory, ctl)
    }

    #[test]
    fn the_size_only_grows_by_writes() {
        let (_memory, ctl) = ctl();
        ctl.raise_size(10);
        ctl.raise_size(5);
        assert_eq!(ctl.size(), 10);
        ctl.set_size(3);
        assert_eq!(ctl.size(), 3);
    }

    #[test]
    fn a_write_dirties_exactly_the_chunks_it_touches() {
        let (_memory, ctl) = ctl();
        ctl.set_span(1 << 20, 1 << 20, 12);
        mark_dirty(&ctl, (1 << 20) - 100, 101);
        mark_dirty(&ctl, (1 << 20) + 4095, 2);
        mark_dirty(&ctl, (2 << 20) - 1, 1 << 20);
        assert_eq!(ctl.take(0), 0b11);
        assert_eq!(ctl.take(3), 1 << 63);
        assert_eq!(ctl.take(0), 0);
        mark_dirty(&ctl, (1 << 20) + 62 * 4096, 4 * 4096);
        assert_eq!([ctl.take(0), ctl.take(1)], [3 << 62, 3]);
    }

    #[test]
    fn what_no_bit_is_left_for_is_the_last_bit() {
        let (_memory, ctl) = ctl();
        ctl.set_span(0, u64::MAX, 16);
        mark_dirty(&ctl, 1 << 61, 10);
        assert_eq!(ctl.take(DIRTY_BITS / 64 - 1), 1 << 63);
    }
}
