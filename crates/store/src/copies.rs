//! Copies of a file: which of its bytes stand a second time in the store, in another order. They are of a plain file beside it, and then the record says how
//! that was when they were made; or of a managed file, whose writers mark what they write ([`crate::marks`]).
//!
//! A file's copies are one managed file, the container. Each replica has a domain of it, one behind the other, in which the bytes of its pattern stand in
//! their order of access; where a domain lies on targets is the container's layout. So moves, checks and upkeep of copies are those of any managed file. The
//! record says which byte of the file is where in the container. It lies in `copies/` under the plain file's device and inode, and counts as long as that file
//! is as it was, and its state word says so; that of a managed file lies under [`MANAGED_DEV`] and the file's id.

use core::sync::atomic::{AtomicU32, Ordering};

use stripewise_checksum::crc32c;
use stripewise_layout::{Logical, MAX_LOGICAL, OnWrite, ReplicaIndex, ReplicaRef, View};
use stripewise_target::text::PartName;

/// The directory of records in a store.
pub const COPIES_DIR: &core::ffi::CStr = c"copies";
/// What the name of a container's link ends with; before it stands the name of its record.
pub const CONTAINER_SUFFIX: &[u8] = b".copy";
/// Longest record that is used.
pub const RECORD_BYTES_MAX: u64 = 256 << 20;
/// Bytes that hold the words which change: they are mapped.
pub const STATE_BYTES: usize = 16;

const MAGIC: &[u8; 8] = b"SWCOPY01";
/// Where the state word stands.
pub const STATE_AT: usize = 8;
const CRC_AT: usize = 12;
/// Bytes before the path: all that [`Record::may_count`] asks for.
pub const HEAD_BYTES: usize = 128;
const VERSION: u32 = 1;

/// The state of a record whose copies may be used.
pub const IN_USE: u32 = 1;
/// The state of one whose copies are dropped: nobody may use them any more, and nobody makes them valid again.
pub const DROPPED: u32 = 2;
/// The state of one whose copies, of a managed file, are being made: readers do not use them, and writers mark what they write.
pub const BUILDING: u32 = 3;
/// In a device's place for a managed file, whose id stands in the inode's.
pub const MANAGED_DEV: u64 = u64::MAX;

/// What a plain file was when its copies were made; one of which any of these differs is another, or was changed. Of a managed file only its id and size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Original {
    /// Device.
    pub dev: u64,
    /// Inode.
    pub ino: u64,
    /// Bytes.
    pub size: u64,
    /// Last change of the content, ns since 1970.
    pub mtime_ns: i64,
    /// Last change of anything, ns since 1970.
    pub ctime_ns: i64,
}

impl Original {
    /// A managed file of so many bytes.
    #[must_use]
    pub const fn managed(id: u64, size: u64) -> Self {
        Self { dev: MANAGED_DEV, ino: id, size, mtime_ns: 0, ctime_ns: 0 }
    }

    /// Whether it is a managed file.
    #[must_use]
    pub const fn is_managed(&self) -> bool {
        self.dev == MANAGED_DEV
    }

    /// Whether copies of it can be those of a file that is like this: a managed one may have changed since.
    fn may_be(&self, now: &Self) -> bool {
        if self.is_managed() { (self.dev, self.ino) == (now.dev, now.ino) } else { self == now }
    }

    /// The name of its record: device and inode, 16 hexadecimal digits each.
    #[must_use]
    pub fn record_name(&self) -> PartName {
        let mut name = PartName::new();
        name.push_id(self.dev).push(b"-").push_id(self.ino);
        name
    }
}

/// A record in its mapped form.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    /// The plain file.
    pub original: Original,
    /// The managed file that holds the copies.
    pub container: u64,
    /// The plain file's path when they were made.
    pub path: &'a [u8],
    /// The plain file with its replicas: each one's domain base is its first byte in the container, its regions are how it was laid out when it was made.
    pub view: View<'a>,
    /// What a write does to all of its replicas; `None` where that differs.
    pub on_write: Option<OnWrite>,
    index: Option<ReplicaIndex<'a>>,
}

/// Where a replica has the bytes of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// The first of them in the container.
    pub at: u64,
    /// Number of the replica, in the order of their domains.
    pub replica: u32,
    /// What a write does to it.
    pub on_write: OnWrite,
}

/// How much of a write replicas hold.
#[derive(Clone, Copy, Default, Debug)]
pub struct Held {
    /// By those that are written, too.
    pub updated: Pieces,
    /// Whether those that it invalidates hold any of it.
    pub is_invalidated: bool,
}

/// How much of a request replicas hold.
#[derive(Clone, Copy, Default, Debug)]
pub struct Pieces {
    /// Pieces, each in one block.
    pub count: u64,
    /// Bytes of all.
    pub bytes: u64,
}

impl Pieces {
    fn add(&mut self, bytes: u64) {
        (self.count, self.bytes) = (self.count + 1, self.bytes + bytes);
    }

    /// Whether there are many small ones, of which each would be a write of its own: the copies are stale then, and the write takes as long as without them.
    #[must_use]
    pub const fn are_small(&self) -> bool {
        const FEW: u64 = 4;
        const SMALL_BYTES: u64 = 4096;
        self.count > FEW && self.bytes < self.count * SMALL_BYTES
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// The file that a record's head names.
#[must_use]
pub fn original_in(head: &[u8]) -> Original {
    Original {
        dev: u64_at(head, 32),
        ino: u64_at(head, 40),
        size: u64_at(head, 48),
        mtime_ns: u64_at(head, 56) as i64,
        ctime_ns: u64_at(head, 64) as i64,
    }
}

fn padded(len: u64) -> Option<u64> {
    len.checked_add(7).map(|len| len & !7)
}

/// The state word of mapped bytes.
///
/// # Safety
/// At least [`STATE_BYTES`] bytes, mapped for as long as the word is used, aligned to 4.
pub unsafe fn state_of<'a>(base: *const u8) -> &'a AtomicU32 {
    // SAFETY: the caller's promise.
    unsafe { &*base.add(STATE_AT).cast::<AtomicU32>() }
}

/// The state in a record's bytes; 0 in what is too short to have one.
#[must_use]
pub fn state_in(bytes: &[u8]) -> u32 {
    u32_at(bytes, STATE_AT)
}

impl<'a> Record<'a> {
    /// Whether a record that begins with these bytes can count for a file that is like this: what is cheap to ask before it is read whole.
    #[must_use]
    pub fn may_count(head: &[u8], now: &Original) -> bool {
        let (original, state) = (original_in(head), u32_at(head, STATE_AT));
        head.starts_with(MAGIC) && (state == IN_USE || state == BUILDING && original.is_managed()) && original.may_be(now)
    }

    /// A record's bytes, whatever their state; `None` for what is damaged, cut off, newer, or of a plain file that cannot be.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let len = u64_at(bytes, 16);
        let is_sound = bytes.starts_with(MAGIC)
            && len == bytes.len() as u64
            && bytes.len() >= HEAD_BYTES
            && u32_at(bytes, 24) == VERSION
            && bytes.get(96..HEAD_BYTES)?.iter().all(|&byte| byte == 0)
            && u32_at(bytes, CRC_AT) == checksum(bytes)?;
        if !is_sound {
            return None;
        }
        let (path, layout, index) = (u64::from(u32_at(bytes, 28)), u64_at(bytes, 80), u64_at(bytes, 88));
        let layout_at = padded(HEAD_BYTES as u64 + path)?;
        let index_at = padded(layout_at.checked_add(layout)?)?;
        if padded(index_at.checked_add(index)?)? != len {
            return None;
        }
        let part = |at: u64, len: u64| bytes.get(at as usize..(at + len) as usize);
        let view = View::parse(part(layout_at, layout)?).ok()?;
        // A damaged index hides copies; it is made with the layout, and must fit it.
        let index = if index == 0 { None } else { Some(ReplicaIndex::open(&view, part(index_at, index)?)?) };
        let original = original_in(bytes);
        let first = view.replica(0).map_or_else(OnWrite::default, |replica| replica.on_write);
        let mut record = Self { original, container: u64_at(bytes, 72), path: part(HEAD_BYTES as u64, path)?, view, on_write: Some(first), index };
        if record.replicas().any(|replica| replica.on_write != first) {
            record.on_write = None;
        }
        (original.size <= MAX_LOGICAL && record.replicas().all(|replica| is_copy_of(&replica, original.size))).then_some(record)
    }

    /// The replicas, in the order of their domains.
    pub fn replicas(&self) -> impl Iterator<Item = ReplicaRef<'a>> + use<'a> {
        let view = self.view;
        (0..view.replica_count()).filter_map(move |index| view.replica(index))
    }

    /// Where in the container `[at, at + len)` of the plain file stands: a replica has one block that holds it all, the finest of those.
    ///
    /// `history` is the caller's, initially 0 ([`ReplicaIndex::lookup`]); whatever it is, the same replica is found.
    #[inline]
    #[must_use]
    pub fn lookup(&self, at: u64, len: u64, history: &AtomicU32) -> Option<Found> {
        let hit = match &self.index {
            Some(index) => index.lookup(Logical(at), len, history)?,
            None => self.view.replica_lookup(Logical(at), len)?,
        };
        let replica = self.view.replica(hit.index)?;
        Some(Found { at: replica.domain_base + hit.offset.0, replica: hit.index as u32, on_write: replica.on_write })
    }

    /// Whether the file is still the one whose bytes were copied.
    #[must_use]
    pub fn is_of(&self, now: &Original) -> bool {
        self.original.may_be(now)
    }

    /// In how many pieces replicas hold bytes of `[at, at + len)` of the file that are to be written.
    #[must_use]
    pub fn held(&self, at: u64, len: u64) -> Held {
        let mut held = Held::default();
        for replica in self.replicas() {
            let mut overlaps = replica.overlaps(Logical(at), len);
            match replica.on_write {
                OnWrite::Update => overlaps.for_each(|overlap| held.updated.add(overlap.len)),
                // One piece says all: none of them is written.
                OnWrite::Invalidate => held.is_invalidated |= overlaps.next().is_some(),
            }
        }
        held
    }
}

/// Whether a replica is a copy, not the home of its bytes, and lies within a file of so many bytes.
fn is_copy_of(replica: &ReplicaRef<'_>, size: u64) -> bool {
    let first = replica.base.checked_add(replica.block);
    let last = replica.dims().fold(first, |end, (stride, count)| end?.checked_add(count.checked_sub(1)?.checked_mul(stride)?));
    !replica.is_home && last.is_some_and(|end| end <= size)
}

/// The checksum of all that does not change.
fn checksum(bytes: &[u8]) -> Option<u32> {
    bytes.get(STATE_BYTES..).map(crc32c)
}

/// Drops copies: whoever looks at the word from now on reads the plain file.
pub fn drop_copies(state: &AtomicU32) {
    state.store(DROPPED, Ordering::SeqCst);
}

#[cfg(feature = "admin")]
mod written {
    use super::{CRC_AT, HEAD_BYTES, IN_USE, MAGIC, Original, RECORD_BYTES_MAX, Record, STATE_AT, VERSION, checksum};
    use stripewise_layout::{Bins, Layout, LayoutError, ReplicaIndex, View};

    fn pad(bytes: &mut Vec<u8>) {
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }

    /// The bytes of a record; `layout` has the replicas, its home is the plain file. With more than [`ReplicaIndex::SCAN_MAX`] of them there is an index.
    ///
    /// # Errors
    /// Those of the layout.
    pub fn encode(original: &Original, container: u64, path: &[u8], layout: &Layout) -> Result<Vec<u8>, LayoutError> {
        let encoded = layout.encode()?;
        let view = View::parse(&encoded)?;
        let mut index = Vec::new();
        if view.replica_count() > ReplicaIndex::SCAN_MAX {
            index.resize(ReplicaIndex::bytes_needed(&view, Bins::of(&view)), 0);
            let _ = ReplicaIndex::build_into(&view, Bins::of(&view), &mut index);
        }
        let mut bytes = vec![0u8; HEAD_BYTES];
        bytes.extend_from_slice(path);
        pad(&mut bytes);
        bytes.extend_from_slice(&encoded);
        pad(&mut bytes);
        bytes.extend_from_slice(&index);
        pad(&mut bytes);
        let len = bytes.len() as u64;
        let mut put = |at: usize, value: &[u8]| {
            if let Some(place) = bytes.get_mut(at..at + value.len()) {
                place.copy_from_slice(value);
            }
        };
        put(0, MAGIC);
        put(STATE_AT, &IN_USE.to_le_bytes());
        put(16, &len.to_le_bytes());
        put(24, &VERSION.to_le_bytes());
        put(28, &(path.len() as u32).to_le_bytes());
        for (at, value) in [(32, original.dev), (40, original.ino), (48, original.size), (72, container), (80, encoded.len() as u64)] {
            put(at, &value.to_le_bytes());
        }
        put(56, &original.mtime_ns.to_le_bytes());
        put(64, &original.ctime_ns.to_le_bytes());
        put(88, &(index.len() as u64).to_le_bytes());
        if let Some(crc) = checksum(&bytes)
            && let Some(place) = bytes.get_mut(CRC_AT..CRC_AT + 4)
        {
            place.copy_from_slice(&crc.to_le_bytes());
        }
        if len > RECORD_BYTES_MAX || Record::parse(&bytes).is_none() {
            return Err(LayoutError::Header { reason: "its copies reach behind the plain file, or are too many; make fewer of them" });
        }
        Ok(bytes)
    }
}

#[cfg(feature = "admin")]
pub use written::encode;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;
    use stripewise_layout::{Dim, Layout, OnWrite, Placement, Region, Replica, Stripe};

    const BLOCK: u64 = 1000;

    /// Writes invalidate every third column.
    fn on_write(column: u64) -> OnWrite {
        if column % 3 == 2 { OnWrite::Invalidate } else { OnWrite::Update }
    }

    /// A record of `count` columns of an array of 50 rows, and what stands where.
    fn columns(count: u64) -> (Original, Vec<u8>) {
        let striped =
            |len| vec![Region { start: 0, len, generation: 0, placement: Placement::Striped(vec![Stripe { target: 0, width_bytes: 4096 }]) }];
        let domain = (50 * BLOCK).next_multiple_of(4096);
        let replica = |n: u64| Replica {
            id: n as u32,
            base: n * BLOCK,
            block: BLOCK,
            dims: vec![Dim { stride: count * BLOCK, count: 50 }],
            domain_base: n * domain,
            is_home: false,
            on_write: on_write(n),
            regions: striped(domain),
        };
        let home = vec![Region { start: 0, len: 1 << 20, generation: 0, placement: Placement::Original }];
        let layout = Layout { regions: home, replicas: (0..count).map(replica).collect(), ..Layout::default() };
        let original = Original { dev: 5, ino: 77, size: count * 50 * BLOCK, mtime_ns: -3, ctime_ns: 1 << 60 };
        let bytes = encode(&original, 0xabc, b"/data/array", &layout).unwrap();
        (original, bytes)
    }

    #[test]
    fn a_record_tells_where_each_byte_stands_with_and_without_an_index() {
        for count in [1, 3, 10, 11, 40] {
            let (original, bytes) = columns(count);
            let record = Record::parse(&bytes).unwrap();
            assert!(record.is_of(&original) && record.container == 0xabc && record.path == b"/data/array");
            assert!(!record.is_of(&Original { mtime_ns: -2, ..original }));
            assert_eq!(record.index.is_some(), count > 10);
            let history = AtomicU32::new(0);
            for at in (0..original.size).step_by(250) {
                let (block, within) = (at / BLOCK, at % BLOCK);
                let (row, column) = (block / count, block % count);
                let domain = (50 * BLOCK).next_multiple_of(4096);
                let found = Found { at: column * domain + row * BLOCK + within, replica: column as u32, on_write: on_write(column) };
                assert_eq!(record.lookup(at, BLOCK - within, &history), Some(found));
                assert_eq!(record.lookup(at, BLOCK - within + 1, &history), None);
            }
        }
    }

    #[test]
    fn a_write_is_followed_in_the_replicas_that_it_updates_alone() {
        let held = |count, at, len| {
            let held = Record::parse(&columns(count).1).unwrap().held(at, len);
            (held.updated.count, held.updated.bytes, held.is_invalidated)
        };
        assert_eq!(held(2, 0, 2 * BLOCK), (2, 2 * BLOCK, false));
        assert_eq!(held(3, 500, 2000), (2, 1500, true));
        assert_eq!(held(3, 2 * BLOCK, BLOCK), (0, 0, true));
        assert_eq!(held(3, 3 * BLOCK, BLOCK), (1, BLOCK, false));
        let how = |count| Record::parse(&columns(count).1).unwrap().on_write;
        assert_eq!((how(2), how(3)), (Some(OnWrite::Update), None));
    }

    #[test]
    fn names_are_device_and_inode() {
        let original = Original { dev: 0x1f, ino: 1 << 63, ..Original::default() };
        assert_eq!(original.record_name().as_bytes(), b"000000000000001f-8000000000000000");
    }

    #[test]
    fn what_reaches_behind_the_plain_file_is_refused() {
        let (mut original, bytes) = columns(2);
        let layout = Record::parse(&bytes).unwrap().view.to_layout();
        original.size -= 1;
        assert!(encode(&original, 1, b"/f", &layout).is_err());
    }

    proptest! {
        #[test]
        fn damaged_and_cut_records_are_refused_and_the_state_is_not_part_of_it(at in 0usize..4000, value: u8, cut: bool) {
            let (_, mut bytes) = columns(12);
            let at = at % bytes.len();
            if cut {
                prop_assert!(Record::parse(&bytes[..at]).is_none());
            }
            prop_assume!(bytes[at] != value);
            bytes[at] = value;
            prop_assert_eq!(Record::parse(&bytes).is_some(), (STATE_AT..CRC_AT).contains(&at));
        }

        #[test]
        fn bytes_by_chance_are_no_record(bytes: Vec<u8>) {
            prop_assert!(Record::parse(&bytes).is_none());
        }
    }
}
