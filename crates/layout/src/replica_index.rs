//! An inverted index over the replicas of a file, with bin extensions, after RADAR (section II-D.1, figure 5): a look-up need not try every replica.
//!
//! Each bin of the file lists the replicas that touch it, the finest blocks first, each with its bin extension. A request asks one bin, that of its first
//! byte: entries whose blocks end before the bin of its last byte are skipped, and the first replica of which one block holds it all is the answer of
//! [`View::replica_lookup`].
//!
//! The index is built into bytes that the caller maps; a look-up allocates nothing and takes no lock. Every hit is located in the layout itself, so
//! damaged bytes can hide a replica but never redirect a request to a wrong place.

mod alone;
mod bins;

use core::sync::atomic::{AtomicU32, Ordering};

pub use self::bins::Bins;
use crate::format::{u32_at, u64_at};
use crate::replica::Patterns;
use crate::stamp::put;
use crate::{Logical, ReplicaHit, View};
use alone::{alone, number};

const MAGIC: &[u8; 8] = b"SWREPIX1";
const HEADER: usize = 64;
const ENTRY: usize = 4;
/// Enough for [`crate::MAX_REPLICAS`].
const REPLICA_BITS: u32 = 16;
/// Entries of a bin that are tried one by one; in a longer list, blocks shorter than the request are skipped by bisection.
const FEW: usize = 8;

/// An index over the replicas of one generation of one file's layout.
///
/// Its bytes, little endian: magic `SWREPIX1`, replicas u32, bins u32, start u64, log2 of a bin's bytes u32, entries u32, generation u64, file id 16 bytes,
/// zero 8 bytes; a bit per replica ([`ReplicaIndex::is_alone`]), padded to 4 bytes; a zero u32, then per bin the number of entries up to its end, u32; the
/// entries, u32 each (replica in bits 0-15, bin extension in bits 16-31), by bin, then block, then replica.
///
/// ```
/// use std::sync::atomic::AtomicU32;
/// use stripewise_layout::{Bins, Dim, Layout, Logical, OnWrite, Placement, Region, Replica, ReplicaIndex, Stripe, View};
/// let placement = Placement::Striped(vec![Stripe { target: 0, width_bytes: 65_536 }]);
/// let regions = vec![Region { start: 0, len: 1 << 20, generation: 0, placement }];
/// // Four columns of an array with 1,000 rows of 4 KiB.
/// let column = |i: u64| Replica {
///     id: i as u32,
///     base: i * 1024,
///     block: 1024,
///     dims: vec![Dim { stride: 4096, count: 1000 }],
///     domain_base: i << 30,
///     is_home: false,
///     on_write: OnWrite::Update,
///     regions: regions.clone(),
/// };
/// let bytes = Layout { regions: regions.clone(), replicas: (0..4).map(column).collect(), ..Layout::default() }.encode()?;
/// let view = View::parse(&bytes)?;
/// let mut memory = vec![0; ReplicaIndex::bytes_needed(&view, Bins::of(&view))];
/// let index = ReplicaIndex::build_into(&view, Bins::of(&view), &mut memory).expect("as many bytes as it needs");
/// let history = AtomicU32::new(0);
/// let hit = index.lookup(Logical(4096 + 2 * 1024), 1024, &history).expect("the second block of column 2");
/// assert_eq!((hit.index, hit.offset.0), (2, 1024));
/// # Ok::<(), stripewise_layout::LayoutError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ReplicaIndex<'a> {
    patterns: Patterns<'a>,
    bins: Bins,
    alone: &'a [u8],
    ends: &'a [[u8; ENTRY]],
    entries: &'a [[u8; ENTRY]],
}

/// A replica in a bin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BinEntry {
    /// Its number in the layout.
    pub index: usize,
    /// Further bins over which the farthest-reaching of its blocks that overlap the bin goes on.
    pub extension: u32,
}

impl BinEntry {
    #[inline]
    fn read(word: &[u8; ENTRY]) -> BinEntry {
        let word = u32::from_le_bytes(*word);
        BinEntry { index: (word & ((1 << REPLICA_BITS) - 1)) as usize, extension: word >> REPLICA_BITS }
    }

    fn word(self) -> u32 {
        self.index as u32 | self.extension << REPLICA_BITS
    }
}

fn get(words: &[[u8; 4]], i: usize) -> usize {
    words.get(i).map_or(0, |w| u32::from_le_bytes(*w) as usize)
}

fn set(words: &mut [[u8; 4]], i: usize, value: usize) {
    if let Some(word) = words.get_mut(i) {
        *word = (value as u32).to_le_bytes();
    }
}

/// Bytes of a bit per replica.
fn alone_bytes(replicas: usize) -> usize {
    replicas.div_ceil(32) * 4
}

impl<'a> ReplicaIndex<'a> {
    /// Up to so many replicas RADAR builds no index (section III-E): [`View::replica_lookup`] tries them all in less than twice the time of a look-up here.
    pub const SCAN_MAX: usize = 10;

    /// Bytes that [`ReplicaIndex::build_into`] asks for: an upper bound, as if every replica touched all bins between its first and its last, and four bytes
    /// per replica for sorting. At most some 16 MiB for [`Bins::COUNT`] bins. Linear in the number of replicas.
    #[must_use]
    pub fn bytes_needed(view: &View<'_>, bins: Bins) -> usize {
        let patterns = Patterns::of(view);
        let entries: u64 = (0..patterns.len()).filter_map(|i| patterns.get(i)).map(|blocks| bins.spanned(&blocks)).sum();
        let words = entries + u64::from(bins.count()) + 1 + patterns.len() as u64;
        let fixed = HEADER + alone_bytes(patterns.len());
        usize::try_from(words * ENTRY as u64).unwrap_or(usize::MAX).saturating_add(fixed)
    }

    /// Builds the index at the front of `into`, whatever that holds. Time is replicas times bins, however many blocks there are: some 3 ms for 128 replicas in
    /// each of 1,024 bins.
    ///
    /// `None` when `into` is shorter than [`ReplicaIndex::bytes_needed`]; it is then unchanged.
    #[must_use]
    pub fn build_into(view: &View<'a>, bins: Bins, into: &'a mut [u8]) -> Option<ReplicaIndex<'a>> {
        if into.len() < Self::bytes_needed(view, bins) {
            return None;
        }
        let patterns = Patterns::of(view);
        let (header, rest) = into.split_at_mut_checked(HEADER)?;
        let (alone, rest) = rest.split_at_mut_checked(alone_bytes(patterns.len()))?;
        let (ends, rest) = rest.split_at_mut_checked((bins.count() as usize + 1) * ENTRY)?;
        // The order is scratch: it lies behind everything that is kept.
        let (entries, order) = rest.split_at_mut_checked(rest.len().checked_sub(patterns.len() * ENTRY)?)?;
        let (ends, entries, order) = (ends.as_chunks_mut().0, entries.as_chunks_mut().0, order.as_chunks_mut().0);
        let count = fill(patterns, bins, ends, entries, order);
        mark(patterns, ends, entries, order, alone);
        header.fill(0);
        put(header, 0, MAGIC);
        for (at, value) in [(8, patterns.len() as u32), (12, bins.count()), (24, bins.shift()), (28, count as u32)] {
            put(header, at, &value.to_le_bytes());
        }
        let [low, high] = view.file_id();
        for (at, value) in [(16, bins.start()), (32, view.generation()), (40, low), (48, high)] {
            put(header, at, &value.to_le_bytes());
        }
        Self::open(view, into)
    }

    /// The index that [`ReplicaIndex::build_into`] left in `bytes`; more may follow it. Linear in the number of bins.
    ///
    /// `None` when it was built for another file, generation or number of replicas, or is cut off, or its counts contradict each other. Single entries are
    /// not checked: damage there can hide a replica from look-ups, or prefer a coarser one, but every hit is true.
    #[must_use]
    pub fn open(view: &View<'a>, bytes: &'a [u8]) -> Option<ReplicaIndex<'a>> {
        let patterns = Patterns::of(view);
        let (header, rest) = bytes.split_at_checked(HEADER)?;
        let is_of_view = u32_at(header, 8) as usize == patterns.len()
            && u64_at(header, 32) == view.generation()
            && [u64_at(header, 40), u64_at(header, 48)] == view.file_id();
        if !header.starts_with(MAGIC) || !is_of_view || u64_at(header, 56) != 0 {
            return None;
        }
        let bins = Bins::stored(u64_at(header, 16), u32_at(header, 24), u32_at(header, 12))?;
        let (alone, rest) = rest.split_at_checked(alone_bytes(patterns.len()))?;
        let (ends, rest) = rest.split_at_checked((bins.count() as usize + 1) * ENTRY)?;
        let (ends, count) = (ends.as_chunks().0, u32_at(header, 28) as usize);
        let entries = rest.as_chunks().0.get(..count)?;
        let is_sound = get(ends, 0) == 0 && get(ends, bins.count() as usize) == count && ends.is_sorted_by_key(|end| u32::from_le_bytes(*end));
        is_sound.then_some(ReplicaIndex { patterns, bins, alone, ends, entries })
    }

    /// The bins over which it was built.
    #[must_use]
    pub fn bins(&self) -> Bins {
        self.bins
    }

    /// The replicas that touch a bin, the finest blocks first, among equals in the layout's order. None past the last bin.
    pub fn entries(&self, bin: u32) -> impl ExactSizeIterator<Item = BinEntry> + use<'a> {
        self.words(bin).iter().map(BinEntry::read)
    }

    #[inline]
    fn words(&self, bin: u32) -> &'a [[u8; ENTRY]] {
        let bin = bin as usize;
        self.entries.get(get(self.ends, bin)..get(self.ends, bin + 1)).unwrap_or(&[])
    }

    /// The answer of [`View::replica_lookup`]: a replica with one block that holds all of `[at, at + len)`; of several the finest, among equals the first.
    ///
    /// `history` belongs to the caller, for example one per descriptor: 1 + the number of the replica that answered last, initially 0. It is tried first, and
    /// answers alone where that replica [`ReplicaIndex::is_alone`]. Any value is safe, so threads may share it.
    #[inline]
    #[must_use]
    pub fn lookup(&self, at: Logical, len: u64, history: &AtomicU32) -> Option<ReplicaHit> {
        let last = (history.load(Ordering::Relaxed) as usize).wrapping_sub(1);
        if self.is_alone(last)
            && let Some(hit) = self.hit(last, at, len)
        {
            return Some(hit);
        }
        let hit = self.search(at, len)?;
        // Only when it changes: constant writes would move the cache line between the processors that share it.
        if hit.index != last {
            history.store(hit.index as u32 + 1, Ordering::Relaxed);
        }
        Some(hit)
    }

    /// [`ReplicaIndex::lookup`] without a history.
    fn search(&self, at: Logical, len: u64) -> Option<ReplicaHit> {
        let last = at.0.checked_add(len.checked_sub(1)?)?;
        let bin = self.bins.bin(at.0);
        let extension = self.bins.bin(last) - bin;
        let words = self.words(bin);
        let too_fine = |word: &[u8; ENTRY]| self.patterns.block(BinEntry::read(word).index) < len;
        let first = if words.len() > FEW { words.partition_point(too_fine) } else { 0 };
        let mut far_enough = words.iter().skip(first).map(BinEntry::read).filter(|entry| entry.extension >= extension);
        far_enough.find_map(|entry| self.hit(entry.index, at, len))
    }

    #[inline]
    fn hit(&self, index: usize, at: Logical, len: u64) -> Option<ReplicaHit> {
        let offset = self.patterns.get(index)?.locate(at.0, len)?;
        Some(ReplicaHit { index, offset })
    }

    /// Whether the history may answer with replica `index` without a look at the bins: proven to share no byte with another replica of equal blocks, and no
    /// bin with one of finer blocks. Some replicas that are alone are not recognised.
    #[inline]
    #[must_use]
    pub fn is_alone(&self, index: usize) -> bool {
        self.alone.get(index / 8).is_some_and(|bits| bits >> (index % 8) & 1 == 1)
    }
}

/// Writes ends and entries, leaves the replicas in `order`, the finest blocks first, and returns the number of entries.
fn fill(patterns: Patterns<'_>, bins: Bins, ends: &mut [[u8; 4]], entries: &mut [[u8; 4]], order: &mut [[u8; 4]]) -> usize {
    ends.fill([0; 4]);
    for (index, place) in order.iter_mut().enumerate() {
        *place = (index as u32).to_le_bytes();
        for (bin, _) in patterns.get(index).into_iter().flat_map(|blocks| bins.touched(blocks)) {
            let slot = bin as usize + 1;
            set(ends, slot, get(ends, slot) + 1);
        }
    }
    // From counts to starts; each start advances to the end of its bin while the bin is filled.
    let mut count = 0;
    for end in ends.iter_mut().skip(1) {
        let of_bin = u32::from_le_bytes(*end) as usize;
        *end = (count as u32).to_le_bytes();
        count += of_bin;
    }
    order.sort_unstable_by_key(|place| (patterns.block(number(place)), number(place)));
    for index in order.iter().map(number) {
        for (bin, extension) in patterns.get(index).into_iter().flat_map(|blocks| bins.touched(blocks)) {
            let slot = bin as usize + 1;
            let free = get(ends, slot);
            set(entries, free, BinEntry { index, extension }.word() as usize);
            set(ends, slot, free + 1);
        }
    }
    count
}

/// Writes the bits of the replicas that share no byte with another one of equal blocks, nor a bin with one of finer ones.
fn mark(patterns: Patterns<'_>, ends: &[[u8; 4]], entries: &[[u8; 4]], order: &mut [[u8; 4]], bits: &mut [u8]) {
    bits.fill(0);
    for equals in order.chunk_by_mut(|a, b| patterns.block(number(a)) == patterns.block(number(b))) {
        alone(patterns, equals, &mut |index| {
            if let Some(byte) = bits.get_mut(index / 8) {
                *byte |= 1 << (index % 8);
            }
        });
    }
    for (start, end) in ends.iter().zip(ends.iter().skip(1)).map(|(start, end)| (number(start), number(end))) {
        let in_bin = entries.get(start..end).unwrap_or(&[]);
        let finest = in_bin.first().map_or(0, |word| patterns.block(BinEntry::read(word).index));
        for index in in_bin.iter().rev().map(|word| BinEntry::read(word).index).take_while(|index| patterns.block(*index) > finest) {
            if let Some(byte) = bits.get_mut(index / 8) {
                *byte &= !(1 << (index % 8));
            }
        }
    }
}
