//! The names of a process: file id -> path, device, inode; and its notes of MPI files.

use super::{Error, u32_at, u64_at};
use crate::format::{Identity, NAMES_ENTRY_BYTES, NAMES_HEADER_BYTES, NAMES_MAGIC, NAMES_VERSION, entry_kind};
use std::collections::HashMap;
use std::path::Path;
use stripewise_checksum::crc32c_of;

/// What an id stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The path as the program gave it, made absolute by the library where it could.
    pub path: Vec<u8>,
    /// Device, 0 unknown.
    pub device: u64,
    /// Inode, 0 unknown.
    pub inode: u64,
}

#[derive(Clone, Debug, Default)]
pub struct NamesFile {
    /// Whose.
    pub identity: Identity,
    /// By id.
    pub names: HashMap<u32, Name>,
    /// Notes by kind ([`entry_kind`]) and number.
    pub notes: HashMap<(u32, u32), Vec<u64>>,
    /// Those of hints ([`entry_kind::HINTS`]) by file id, in their order: a file may have several.
    pub hints: Vec<(u32, Vec<u64>)>,
    /// Bytes at the end that are no whole entry.
    pub lost_bytes: u64,
}

impl NamesFile {
    /// Reads a names file; `None` when it is empty (its process died before the first name). An entry that a kill cut short at the end is normal.
    ///
    /// # Errors
    /// I/O errors, a newer version, a checksum that does not fit (when `lenient`: the rest of the file is counted in `lost_bytes`).
    pub fn open(path: &Path, lenient: bool) -> Result<Option<NamesFile>, Error> {
        let bytes = std::fs::read(path).map_err(Error::io(path, "read"))?;
        Self::parse(&bytes, path, lenient)
    }

    /// As [`NamesFile::open`], from memory; `path` is for messages.
    ///
    /// # Errors
    /// As [`NamesFile::open`].
    pub fn parse(bytes: &[u8], path: &Path, lenient: bool) -> Result<Option<NamesFile>, Error> {
        let Some((header, mut rest)) = bytes.split_at_checked(NAMES_HEADER_BYTES) else {
            // Shorter than a header: a kill between creating and writing, or the first part of a write.
            return if NAMES_MAGIC.starts_with(bytes.get(..8.min(bytes.len())).unwrap_or(&[])) {
                Ok(None)
            } else {
                Err(Error::damaged(path, 0, "it does not begin with SWNAMES1, so it is not a names file"))
            };
        };
        if !header.starts_with(&NAMES_MAGIC) {
            return Err(Error::damaged(path, 0, "it does not begin with SWNAMES1, so it is not a names file"));
        }
        let version = u32_at(header, 8);
        if version > NAMES_VERSION {
            return Err(Error::Newer { path: path.to_owned(), version, known: NAMES_VERSION });
        }
        if !fits(header, 12, &[]) {
            return Err(Error::damaged(path, 12, "the header's checksum does not fit"));
        }
        let identity = Identity {
            start_id: u64_at(header, 16),
            parent_start_id: u64_at(header, 24),
            pid: u32_at(header, 32),
            parent_pid: u32_at(header, 36),
            first_file_id: u32_at(header, 40),
            reserved: 0,
        };
        let mut file = NamesFile { identity, ..NamesFile::default() };
        while !rest.is_empty() {
            let path_bytes = u32_at(rest, 0) as usize;
            let Some((entry, after)) = rest.split_at_checked(NAMES_ENTRY_BYTES.saturating_add(path_bytes)) else {
                break;
            };
            let (fixed, name) = entry.split_at(NAMES_ENTRY_BYTES);
            if !fits(fixed, 4, name) {
                let offset = (bytes.len() - rest.len()) as u64;
                if lenient {
                    break;
                }
                return Err(Error::damaged(path, offset, "the checksum of a name does not fit"));
            }
            let id = u32_at(fixed, 8);
            if u32_at(fixed, 12) == entry_kind::NAME {
                let name = Name { path: name.to_vec(), device: u64_at(fixed, 16), inode: u64_at(fixed, 24) };
                file.names.insert(id, name);
            } else {
                let words = name.chunks_exact(8).map(|word| u64_at(word, 0)).collect();
                match u32_at(fixed, 12) {
                    entry_kind::HINTS => file.hints.push((id, words)),
                    kind => drop(file.notes.insert((kind, id), words)),
                }
            }
            rest = after;
        }
        file.lost_bytes = rest.len() as u64;
        Ok(Some(file))
    }
}

/// Does the checksum at `at`, computed with itself as zero, fit?
fn fits(fixed: &[u8], at: usize, more: &[u8]) -> bool {
    let (before, after) = (fixed.get(..at).unwrap_or(&[]), fixed.get(at + 4..).unwrap_or(&[]));
    crc32c_of(&[before, &[0; 4], after, more]) == u32_at(fixed, at)
}
