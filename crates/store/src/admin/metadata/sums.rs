//! Checksums of a file's objects, one per MiB, kept beside the layout in `files/<id>/sums` with the objects' sizes and times when they
//! were taken: an object that nobody has written since must still have them.

use std::collections::BTreeMap;

use stripewise_checksum::{crc32c, crc32c_without};
use stripewise_target::interface::Facts;

use crate::admin::error::{Context, Result, StoreError};
use crate::admin::medium::{FsyncPoint, read_small, replace_file};
use crate::admin::objects::ObjectId;
use crate::admin::store::Store;

/// Bytes of an object that one checksum covers.
pub const BLOCK_BYTES: u64 = 1 << 20;
const MAGIC: &[u8; 8] = b"SWSUMS01";
const VERSION: u32 = 2;
const HEADER_BYTES: usize = 48;
/// Stands for "not known" where head's time is.
const UNKNOWN_NS: i64 = i64::MIN;
const OBJECT_BYTES: usize = 40;
const LIMIT_BYTES: u64 = 1 << 30;

/// What tells that an object was not written since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Bytes.
    pub size: u64,
    /// Last change of the content, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Last change of anything.
    pub ctime_ns: i64,
}

impl Stamp {
    /// The stamp in what a target tells of an object.
    pub fn of(facts: &Facts) -> Self {
        Self { size: facts.len, mtime_ns: facts.modified_ns, ctime_ns: facts.changed_ns }
    }
}

/// An object's stamp and the CRC-32C of each of its blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectSums {
    /// When they were taken.
    pub stamp: Stamp,
    /// One per block, the last one shorter.
    pub blocks: Vec<u32>,
}

/// What stays as long as no program writes the file and nothing of it moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// Last change of head's content, nanoseconds since 1970: writes of the file move it.
    pub head_mtime_ns: i64,
    /// Of the layout.
    pub generation: u64,
}

/// All objects of a file, and its rest when all of these sums were taken or found right: `None` where some were not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// By target and plane.
    pub objects: BTreeMap<ObjectId, ObjectSums>,
    /// Not known of sums that version 1 has written.
    pub rest: Option<Rest>,
}

fn encode(sums: &Sums) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend((sums.objects.len() as u64).to_le_bytes());
    bytes.extend(BLOCK_BYTES.to_le_bytes());
    bytes.extend(sums.rest.map_or(UNKNOWN_NS, |rest| rest.head_mtime_ns).to_le_bytes());
    bytes.extend(sums.rest.map_or(0, |rest| rest.generation).to_le_bytes());
    for ((target, plane), object) in &sums.objects {
        bytes.extend(target.to_le_bytes());
        bytes.extend(plane.to_le_bytes());
        bytes.extend(object.stamp.size.to_le_bytes());
        bytes.extend(object.stamp.mtime_ns.to_le_bytes());
        bytes.extend(object.stamp.ctime_ns.to_le_bytes());
        bytes.extend((object.blocks.len() as u64).to_le_bytes());
    }
    for crc in sums.objects.values().flat_map(|o| &o.blocks) {
        bytes.extend(crc.to_le_bytes());
    }
    let crc = crc32c_without(&bytes, 12);
    if let Some(place) = bytes.get_mut(12..16) {
        place.copy_from_slice(&crc.to_le_bytes());
    }
    bytes
}

/// Reads little-endian fields one after another.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn word(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn half(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }
}

fn decode(bytes: &[u8]) -> Option<Sums> {
    let mut fields = Fields(bytes);
    let (magic, version) = (fields.take::<8>()?, fields.half()?);
    if magic != *MAGIC || !(1..=VERSION).contains(&version) || fields.half()? != crc32c_without(bytes, 12) {
        return None;
    }
    let (objects, block_bytes) = (fields.word()?, fields.word()?);
    if block_bytes != BLOCK_BYTES {
        return None;
    }
    let rest = if version == 1 { None } else { Some(Rest { head_mtime_ns: fields.word()? as i64, generation: fields.word()? }) };
    let mut heads = Vec::new();
    for _ in 0..objects {
        let id = (fields.half()?, fields.half()?);
        let stamp = Stamp { size: fields.word()?, mtime_ns: fields.word()? as i64, ctime_ns: fields.word()? as i64 };
        heads.push((id, stamp, fields.word()?));
    }
    let mut sums = Sums { objects: BTreeMap::new(), rest: rest.filter(|rest| rest.head_mtime_ns != UNKNOWN_NS) };
    for (id, stamp, count) in heads {
        let blocks = (0..count).map(|_| fields.half()).collect::<Option<Vec<u32>>>()?;
        sums.objects.insert(id, ObjectSums { stamp, blocks });
    }
    fields.0.is_empty().then_some(sums)
}

/// The checksums of a file; empty when there are none, or they are damaged (they are taken anew then).
///
/// # Errors
/// `Io`, `Newer`.
pub fn load(store: &Store<'_>, id: u64) -> Result<Sums> {
    let path = store.part(id, "sums");
    if store.medium.stat(&path).doing("look at", &path)?.is_none() {
        return Ok(Sums::default());
    }
    let bytes = read_small(store.medium, &path, LIMIT_BYTES).doing("read", &path)?;
    let version = bytes.get(8..12).and_then(|b| b.try_into().ok()).map_or(VERSION, u32::from_le_bytes);
    if bytes.starts_with(b"SWSUMS") && bytes.len() >= 12 && version > VERSION {
        return Err(StoreError::Newer(format!(
            "{} has version {version}, this Stripewise reads up to {VERSION}; use the newer Stripewise",
            path.display()
        )));
    }
    Ok(decode(&bytes).unwrap_or_default())
}

/// Keeps the checksums of a file.
///
/// # Errors
/// `Io`.
pub fn save(store: &Store<'_>, id: u64, sums: &Sums) -> Result<()> {
    let path = store.part(id, "sums");
    replace_file(store.medium, &path, &encode(sums), FsyncPoint::Sums, FsyncPoint::Sums).doing("write", &path)
}

/// The checksum of a block of zeros.
pub fn zero_block(len: u64) -> u32 {
    crc32c(&vec![0; len as usize])
}

const _: () = assert!(HEADER_BYTES == 8 + 4 + 4 + 4 * 8 && OBJECT_BYTES == 4 + 4 + 8 * 4);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn sums_read_back_and_no_changed_byte_goes_unnoticed() {
        let object = |n: u32| ObjectSums { stamp: Stamp { size: 9, mtime_ns: -3, ctime_ns: 7 }, blocks: vec![n; n as usize] };
        let objects = BTreeMap::from([((0, 0), object(3)), ((7, 1), object(0)), ((8, 0), object(1))]);
        let sums = Sums { objects, rest: Some(Rest { head_mtime_ns: -9, generation: 4 }) };
        let bytes = encode(&sums);
        assert_eq!(bytes.len(), HEADER_BYTES + 3 * OBJECT_BYTES + 4 * 4);
        assert_eq!(decode(&bytes), Some(sums));
        for n in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[n] ^= 0x10;
            assert_eq!(decode(&changed), None, "{n}");
            assert_eq!(decode(&bytes[..n]), None, "{n}");
        }
    }

    #[test]
    fn sums_of_version_1_are_read_without_a_rest() {
        let objects = BTreeMap::from([((3, 0), ObjectSums { stamp: Stamp::default(), blocks: vec![5, 6] })]);
        let known = Sums { objects: objects.clone(), rest: Some(Rest { head_mtime_ns: 5, generation: 1 }) };
        let unknown = Sums { objects, rest: None };
        assert_eq!(decode(&encode(&unknown)), Some(unknown.clone()));
        let mut old = encode(&known);
        old.drain(32..48);
        old[8] = 1;
        let crc = crc32c_without(&old, 12);
        old[12..16].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(decode(&old), Some(unknown));
    }
}
