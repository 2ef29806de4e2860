//! File names as small numbers: each new name is appended once to `<pid>-<start id>.names`, records carry the number. What else records carry the
//! number of (communicators, views of MPI files) is noted there, too.
//!
//! A fixed table of 65,536 names (768 KiB, mapped at the first name) finds known names without lock or system call. When it is full,
//! or crowded where a name hashes to, that name gets a new number at every open: a few bytes of log, never an error. Names are
//! told apart by a 64-bit hash of (device, inode, path); two of 65,536 agree with a chance of 1e-10.

use crate::format::{Identity, NAMES_ENTRY_BYTES, NAMES_HEADER_BYTES, NAMES_MAGIC, NAMES_VERSION, entry_kind};
use crate::process::Process;
use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use stripewise_checksum::{crc32c, crc32c_of};

const ENTRIES: usize = 65_536;
const PROBES: usize = 64;
const TABLE_BYTES: usize = ENTRIES * 12;

/// The table: keys (0 = free), then ids (0 = name not written yet).
struct Table {
    base: *mut u8,
}

impl Table {
    fn key(&self, entry: usize) -> &AtomicU64 {
        // SAFETY: the mapping holds ENTRIES words from its base on; the mask keeps us inside.
        unsafe { &*self.base.cast::<AtomicU64>().add(entry & (ENTRIES - 1)) }
    }

    fn id(&self, entry: usize) -> &AtomicU32 {
        // SAFETY: the ids follow the keys in the same mapping.
        unsafe { &*self.base.add(ENTRIES * 8).cast::<AtomicU32>().add(entry & (ENTRIES - 1)) }
    }

    /// The entry of `key`, or the free one it would take; `None` where the table is crowded.
    fn find(&self, key: u64) -> Option<usize> {
        (key as usize..key as usize + PROBES).find(|&entry| {
            let present = self.key(entry).load(Ordering::Acquire);
            present == key || present == 0
        })
    }
}

/// An entry of a names file.
struct Entry<'a> {
    kind: u32,
    id: u32,
    device: u64,
    inode: u64,
    bytes: &'a [u8],
}

impl Process {
    /// The id of a file name, the same for the same (path, device, inode) in this process; device and inode 0 when unknown. An id is
    /// valid even when its name could not be written (counted in [`Process::names_lost`]). 0 when tracing is off.
    ///
    /// A new name costs a few system calls; a known one none.
    pub fn file_id(&self, path: &[u8], device: u64, inode: u64) -> u32 {
        if !self.enabled() {
            return 0;
        }
        let key = hash(path, device, inode);
        let table = self.table();
        if let Some(table) = &table
            && let Some(entry) = table.find(key)
            && table.key(entry).load(Ordering::Acquire) == key
        {
            let id = table.id(entry).load(Ordering::Acquire);
            if id != 0 {
                return id;
            }
        }
        self.with_identity(|identity| self.new_id(identity, table.as_ref(), key, path, device, inode))
    }

    /// Under the lock: looks again, then writes the name.
    fn new_id(&self, identity: &Identity, table: Option<&Table>, key: u64, path: &[u8], device: u64, inode: u64) -> u32 {
        let entry = table.and_then(|table| Some((table, table.find(key)?)));
        if let Some((table, entry)) = entry {
            let id = table.id(entry).load(Ordering::Acquire);
            if table.key(entry).load(Ordering::Relaxed) == key && id != 0 {
                return id;
            }
        }
        let id = self.next_file.fetch_add(1, Ordering::Relaxed);
        if self.append(identity, &Entry { kind: entry_kind::NAME, id, device, inode, bytes: path }).is_err() {
            // Not remembered: the next open of this name tries again.
            self.names_lost.fetch_add(1, Ordering::Relaxed);
            return id;
        }
        if let Some((table, entry)) = entry {
            table.id(entry).store(id, Ordering::Release);
            table.key(entry).store(key, Ordering::Release);
        }
        id
    }

    /// Keeps a note of `kind` (see [`entry_kind`]) about what has the number `id`; false where it could not be written, which is counted as a name
    /// that was lost.
    pub fn note(&self, kind: u32, id: u32, words: &[u64]) -> bool {
        // SAFETY: any eight bytes of a word are bytes.
        let bytes = unsafe { core::slice::from_raw_parts(words.as_ptr().cast::<u8>(), core::mem::size_of_val(words)) };
        let entry = Entry { kind, id, device: 0, inode: 0, bytes };
        let kept = self.enabled() && self.with_identity(|identity| self.append(identity, &entry)).is_ok();
        if !kept {
            self.names_lost.fetch_add(1, Ordering::Relaxed);
        }
        kept
    }

    /// Appends one entry; a partly written one is cut off again.
    fn append(&self, identity: &Identity, what: &Entry) -> Result<(), Errno> {
        let dir = self.open_dir()?;
        let mut name = FileName::stem(identity);
        name.push(b".names");
        let flags = OFlags::CREATE | OFlags::APPEND | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(&dir, name.as_c_str()?, flags, Mode::from_raw_mode(0o644))?;
        let size = rustix::fs::fstat(&file)?.st_size as u64;
        let mut header = [0u8; NAMES_HEADER_BYTES];
        let mut entry = [0u8; NAMES_ENTRY_BYTES];
        fill_header(&mut header, identity);
        fill_entry(&mut entry, what);
        let first = if size == 0 { header.as_slice() } else { &[] };
        let bytes = (first.len() + entry.len() + what.bytes.len()) as u64;
        crate::log::check_file_size_limit(size + bytes)?;
        // Only this thread writes the file (the lock), so what a full disk left of an entry can be cut off again.
        for part in [first, &entry, what.bytes] {
            if let Err(error) = write_all(&file, part) {
                let _ = rustix::fs::ftruncate(&file, size);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Makes every free entry a taken one.
    #[cfg(test)]
    pub(crate) fn fill_table_for_test(&self) {
        let Some(table) = self.table() else { return };
        for entry in 0..ENTRIES {
            let _ = table.key(entry).compare_exchange(0, u64::MAX - entry as u64, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// The table, mapped at first use; none if there is no memory.
    fn table(&self) -> Option<Table> {
        let known = self.table.load(Ordering::Acquire);
        if !known.is_null() {
            return Some(Table { base: known });
        }
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
        // SAFETY: a fresh private mapping of zeros, which is an empty table.
        let base =
            unsafe { mmap_anonymous(core::ptr::null_mut(), TABLE_BYTES, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) }.ok()?.cast::<u8>();
        match self.table.compare_exchange(core::ptr::null_mut(), base, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Some(Table { base }),
            Err(winner) => {
                // SAFETY: nobody else has seen this mapping.
                let _ = unsafe { munmap(base.cast(), TABLE_BYTES) };
                Some(Table { base: winner })
            }
        }
    }
}

fn write_all(file: &rustix::fd::OwnedFd, mut part: &[u8]) -> Result<(), Errno> {
    while !part.is_empty() {
        match rustix::io::write(file, part) {
            Ok(0) => return Err(Errno::NOSPC),
            Ok(written) => part = part.get(written..).unwrap_or(&[]),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn put(to: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = to.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

fn fill_header(header: &mut [u8; NAMES_HEADER_BYTES], identity: &Identity) {
    put(header, 0, &NAMES_MAGIC);
    put(header, 8, &NAMES_VERSION.to_le_bytes());
    put(header, 16, &identity.start_id.to_le_bytes());
    put(header, 24, &identity.parent_start_id.to_le_bytes());
    put(header, 32, &identity.pid.to_le_bytes());
    put(header, 36, &identity.parent_pid.to_le_bytes());
    put(header, 40, &identity.first_file_id.to_le_bytes());
    let crc = crc32c(header);
    put(header, 12, &crc.to_le_bytes());
}

fn fill_entry(entry: &mut [u8; NAMES_ENTRY_BYTES], what: &Entry) {
    put(entry, 0, &(what.bytes.len() as u32).to_le_bytes());
    put(entry, 8, &what.id.to_le_bytes());
    put(entry, 12, &what.kind.to_le_bytes());
    put(entry, 16, &what.device.to_le_bytes());
    put(entry, 24, &what.inode.to_le_bytes());
    let crc = crc32c_of(&[entry, what.bytes]);
    put(entry, 4, &crc.to_le_bytes());
}

/// Never 0. Eight bytes at a time: paths are hashed at every open.
fn hash(path: &[u8], device: u64, inode: u64) -> u64 {
    let mix = |state: u64, word: u64| {
        let product = u128::from(state ^ word) * 0x9e37_79b9_7f4a_7c15u128;
        (product as u64 ^ (product >> 64) as u64).wrapping_add(0x632b_e59b_d9b4_e019)
    };
    let mut state = mix(mix(path.len() as u64, device), inode);
    for chunk in path.chunks(8) {
        let mut word = [0u8; 8];
        put(&mut word, 0, chunk);
        state = mix(state, u64::from_le_bytes(word));
    }
    mix(state, 0).max(1)
}

/// A short file name built without allocation.
pub(crate) struct FileName {
    bytes: [u8; 80],
    length: usize,
}

impl FileName {
    /// `<pid>-<start id in hexadecimal>`.
    pub(crate) fn stem(identity: &Identity) -> FileName {
        let mut name = FileName { bytes: [0; 80], length: 0 };
        name.push_number(u64::from(identity.pid), 10);
        name.push(b"-");
        name.push_number(identity.start_id, 16);
        name
    }

    pub(crate) fn push(&mut self, text: &[u8]) {
        put(&mut self.bytes, self.length, text);
        self.length += text.len();
    }

    pub(crate) fn push_number(&mut self, number: u64, radix: u64) {
        if number >= radix {
            self.push_number(number / radix, radix);
        }
        let digit = (number % radix) as u8;
        self.push(&[if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }]);
    }

    pub(crate) fn as_c_str(&self) -> Result<&CStr, Errno> {
        CStr::from_bytes_until_nul(&self.bytes).map_err(|_| Errno::NAMETOOLONG)
    }
}
