//! The bytes of header and tables (docs/formats.md, Workload path): where each stands follows from the counts in the header.

use crate::node::NODE_BYTES;
use crate::tables::{Class, Comm, Distribution, File, Group, Numbers, Tables, View};

pub(crate) const MAGIC: &[u8; 8] = b"SWPATH1\0";
pub(crate) const VERSION: u32 = 1;
/// Nodes begin here.
pub const HEADER_BYTES: usize = 128;
/// Where the header's checksum stands.
pub(crate) const CRC_AT: usize = 16;

pub(crate) const FILE_BYTES: usize = 32;
pub(crate) const COMM_BYTES: usize = 8;
pub(crate) const GROUP_BYTES: usize = 16;
pub(crate) const DISTRIBUTION_BYTES: usize = 16;
pub(crate) const VIEW_BYTES: usize = 32;
pub(crate) const NUMBERS_BYTES: usize = 24;
pub(crate) const PRESENT: u8 = 1;
pub(crate) const DIRECTORY: u8 = 2;

/// Entries of the tables behind the nodes, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub files: u32,
    pub comms: u32,
    pub groups: u32,
    pub distributions: u32,
    /// Words (8 bytes) of all distributions.
    pub words: u32,
    pub views: u32,
    /// Entries of numbers per rank; each has as many numbers as the path has processes.
    pub numbers: u32,
    /// Bytes of all names.
    pub names: u32,
}

/// What the header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub nodes: u32,
    pub counts: Counts,
    pub processes: u32,
    pub seed: u64,
    pub requests: u64,
}

impl Header {
    /// Bytes of the whole file; None beyond what a u64 counts.
    pub(crate) fn file_bytes(&self) -> Option<u64> {
        let counts = &self.counts;
        let parts = [
            (u64::from(self.nodes), NODE_BYTES),
            (u64::from(counts.files), FILE_BYTES),
            (u64::from(counts.comms), COMM_BYTES),
            (u64::from(counts.groups), GROUP_BYTES),
            (u64::from(counts.distributions), DISTRIBUTION_BYTES),
            (u64::from(counts.words), 8),
            (u64::from(counts.views), VIEW_BYTES),
            (u64::from(counts.numbers).checked_mul(u64::from(self.processes))?, NUMBERS_BYTES),
            (u64::from(counts.names), 1),
        ];
        parts.iter().try_fold(HEADER_BYTES as u64, |sum, (count, bytes)| sum.checked_add(count.checked_mul(*bytes as u64)?))
    }

    /// The header with a checksum of 0; None where the file is too long.
    pub(crate) fn bytes(&self) -> Option<[u8; HEADER_BYTES]> {
        let c = &self.counts;
        let mut out = Vec::with_capacity(HEADER_BYTES);
        out.extend_from_slice(MAGIC);
        for number in [VERSION, HEADER_BYTES as u32, 0, self.processes] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.file_bytes()?, self.seed, self.requests] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.nodes, c.files, c.comms, c.groups, c.distributions, c.words, c.views, c.numbers, c.names] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.resize(HEADER_BYTES, 0);
        out.try_into().ok()
    }
}

fn file_bytes(file: &File, name_at: u32, out: &mut Vec<u8>) -> Option<()> {
    let class = match file.class {
        Class::Root => 0,
        Class::Shared => 1,
        Class::Private => 2,
    };
    let flags = if file.present { PRESENT } else { 0 } | if file.directory { DIRECTORY } else { 0 };
    out.extend_from_slice(&[class, flags, 0, 0]);
    out.extend_from_slice(&name_at.to_le_bytes());
    out.extend_from_slice(&u32::try_from(file.name.len()).ok()?.to_le_bytes());
    out.extend_from_slice(&0u32.to_le_bytes());
    out.extend_from_slice(&file.bytes.to_le_bytes());
    out.extend_from_slice(&0u64.to_le_bytes());
    Some(())
}

fn pair(kind: u32, number: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
}

fn words(numbers: &[u64], out: &mut Vec<u8>) {
    numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
}

/// The tables as they stand behind the nodes; None where one is too long.
pub(crate) fn tables_bytes(tables: &Tables) -> Option<(Vec<u8>, Counts)> {
    let (mut out, mut names) = (Vec::new(), Vec::new());
    for file in &tables.files {
        file_bytes(file, u32::try_from(names.len()).ok()?, &mut out)?;
        names.extend_from_slice(file.name.as_bytes());
    }
    for comm in &tables.comms {
        let (kind, ranks) = match *comm {
            Comm::World => (0, 0),
            Comm::Own => (1, 0),
            Comm::Blocks(ranks) => (2, ranks),
            Comm::Congruent(by) => (3, by),
        };
        pair(kind, ranks, &mut out);
    }
    for group in &tables.groups {
        let (kind, a, b) = match *group {
            Group::Span { low, high } => (0, low, high),
            Group::Congruent { by, rest } => (1, by, rest),
        };
        pair(kind, 0, &mut out);
        pair(a, b, &mut out);
    }
    let mut drawn = Vec::new();
    for distribution in &tables.distributions {
        let first = drawn.len() as u64 / 8;
        let (kind, count) = match distribution {
            Distribution::Values(values) => {
                let mut sum = 0u64;
                for (value, weight) in values {
                    sum = sum.checked_add(*weight)?;
                    words(&[*value, sum], &mut drawn);
                }
                (0, values.len())
            }
            Distribution::Quantiles(quantiles) => {
                words(quantiles, &mut drawn);
                (1, quantiles.len())
            }
        };
        pair(kind, u32::try_from(count).ok()?, &mut out);
        words(&[first], &mut out);
    }
    let count = |length: usize| u32::try_from(length).ok();
    let counts = Counts {
        files: count(tables.files.len())?,
        comms: count(tables.comms.len())?,
        groups: count(tables.groups.len())?,
        distributions: count(tables.distributions.len())?,
        words: count(drawn.len() / 8)?,
        views: count(tables.views.len())?,
        numbers: count(tables.numbers.len())?,
        names: count(names.len())?,
    };
    out.extend_from_slice(&drawn);
    for View { piece, distance, pieces, tile } in &tables.views {
        words(&[*piece, *distance, *pieces, *tile], &mut out);
    }
    for Numbers { at, stride, size } in tables.numbers.iter().flatten() {
        words(&[*at as u64, *stride as u64, *size], &mut out);
    }
    out.extend_from_slice(&names);
    Some((out, counts))
}
