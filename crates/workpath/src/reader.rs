//! Reading a path: header, tables and nodes, each number checked, so that whoever goes over the nodes needs to check none.

use stripewise_checksum::crc32c_without;

use crate::error::PathError;
use crate::format::{
    COMM_BYTES, CRC_AT, Counts, DIRECTORY, DISTRIBUTION_BYTES, FILE_BYTES, GROUP_BYTES, HEADER_BYTES, Header, MAGIC, NUMBERS_BYTES, PRESENT, VERSION,
    VIEW_BYTES,
};
use crate::node::{GROUPS_MAX, NODE_BYTES};
use crate::path::Path;
use crate::structure;
use crate::tables::{Class, Comm, Distribution, File, Group, Numbers, PROCESSES_MAX, RANK, SIZE_MAX, SLACK_MAX_NS, Tables, View};

fn damaged(what: impl Into<String>) -> PathError {
    PathError::Damaged(what.into())
}

impl<'a> Path<'a> {
    /// A path from the bytes of its file.
    ///
    /// # Errors
    /// [`PathError::Newer`] and [`PathError::Damaged`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, PathError> {
        let header = header_of(bytes)?;
        let mut rest = Cursor(bytes.get(HEADER_BYTES..).unwrap_or_default());
        let nodes = rest.take(header.nodes, NODE_BYTES)?;
        let tables = tables_of(&mut rest, &header)?;
        let path = Self { nodes, tables, requests_of_root: header.requests };
        structure::check(&path)?;
        Ok(path)
    }
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: u32, bytes: usize) -> Result<&'a [u8], PathError> {
        let cut = || damaged("the file is cut");
        let length = usize::try_from(count).ok().and_then(|count| count.checked_mul(bytes)).ok_or_else(cut)?;
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(cut)?;
        self.0 = rest;
        Ok(taken)
    }
}

fn number32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |chunk| u32::from_le_bytes(*chunk))
}

fn number64(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

fn header_of(bytes: &[u8]) -> Result<Header, PathError> {
    if !bytes.starts_with(MAGIC) {
        return Err(damaged("this is no workload path"));
    }
    let head = bytes.get(..HEADER_BYTES).ok_or_else(|| damaged("the file is cut within its header"))?;
    match number32(head, 8) {
        VERSION => (),
        version => return Err(PathError::Newer(version)),
    }
    if crc32c_without(head, CRC_AT) != number32(head, CRC_AT) || number32(head, 12) as usize != HEADER_BYTES {
        return Err(damaged("the header's checksum is wrong"));
    }
    let count = |place: usize| number32(head, 48 + 4 * place);
    let counts = Counts {
        files: count(1),
        comms: count(2),
        groups: count(3),
        distributions: count(4),
        words: count(5),
        views: count(6),
        numbers: count(7),
        names: count(8),
    };
    let header = Header { nodes: count(0), counts, processes: number32(head, 20), seed: number64(head, 32), requests: number64(head, 40) };
    let expected =
        header.file_bytes().filter(|expected| *expected == number64(head, 24)).ok_or_else(|| damaged("the header's counts do not fit together"))?;
    if bytes.len() as u64 != expected {
        return Err(damaged(format!("the file has {} bytes where its header says {expected}", bytes.len())));
    }
    Ok(header)
}

fn tables_of(rest: &mut Cursor<'_>, header: &Header) -> Result<Tables, PathError> {
    let counts = &header.counts;
    if header.processes > PROCESSES_MAX {
        return Err(damaged(format!("it is for more than {PROCESSES_MAX} processes")));
    }
    if counts.groups > GROUPS_MAX {
        return Err(damaged(format!("it has more than {GROUPS_MAX} groups")));
    }
    if counts.comms > u32::from(u16::MAX) || counts.views > u32::from(u16::MAX) - 1 {
        return Err(damaged("it has more communicators or views than a node can name"));
    }
    let files = rest.take(counts.files, FILE_BYTES)?;
    let comms = rest.take(counts.comms, COMM_BYTES)?;
    let groups = rest.take(counts.groups, GROUP_BYTES)?;
    let distributions = rest.take(counts.distributions, DISTRIBUTION_BYTES)?;
    let words = rest.take(counts.words, 8)?;
    let views = rest.take(counts.views, VIEW_BYTES)?;
    let per_rank = (header.processes as usize).checked_mul(NUMBERS_BYTES).ok_or_else(|| damaged("the file is cut"))?;
    if counts.numbers > 0 && per_rank == 0 {
        return Err(damaged("it has numbers for each rank, but is for any number of processes"));
    }
    let numbers = rest.take(counts.numbers, per_rank)?;
    let names = rest.take(counts.names, 1)?;
    Ok(Tables {
        processes: header.processes,
        seed: header.seed,
        files: files.chunks_exact(FILE_BYTES).enumerate().map(|(place, bytes)| file_of(place, bytes, names)).collect::<Result<_, _>>()?,
        comms: comms.chunks_exact(COMM_BYTES).map(comm_of).collect::<Result<_, _>>()?,
        groups: groups.chunks_exact(GROUP_BYTES).map(group_of).collect::<Result<_, _>>()?,
        distributions: distributions.chunks_exact(DISTRIBUTION_BYTES).map(|bytes| distribution_of(bytes, words)).collect::<Result<_, _>>()?,
        views: views.chunks_exact(VIEW_BYTES).map(view_of).collect::<Result<_, _>>()?,
        numbers: if per_rank == 0 { Vec::new() } else { numbers.chunks_exact(per_rank).map(numbers_of).collect() },
    })
}

/// Whether a name leads to a place below the directory that it is played in.
fn stays_below(name: &str) -> bool {
    !name.is_empty() && name.len() < 4096 && !name.contains('\0') && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn file_of(place: usize, bytes: &[u8], names: &[u8]) -> Result<File, PathError> {
    let (at, length) = (number32(bytes, 4) as usize, number32(bytes, 8) as usize);
    let name = names.get(at..).and_then(|rest| rest.get(..length)).and_then(|name| std::str::from_utf8(name).ok());
    let name = name.ok_or_else(|| damaged(format!("file {place} has no name")))?;
    if !stays_below(name) {
        return Err(damaged(format!("file {place} has the name '{}', which is not a relative one without '..'", name.escape_debug())));
    }
    let [class, flags, ..] = bytes else { return Err(damaged("the file is cut")) };
    let class = match class {
        0 => Class::Root,
        1 => Class::Shared,
        2 if name.contains(RANK) => Class::Private,
        2 => return Err(damaged(format!("file {place} is private, but its name '{}' has no {RANK}", name.escape_debug()))),
        _ => return Err(damaged(format!("file {place} is of no class"))),
    };
    if flags & !(PRESENT | DIRECTORY) != 0 {
        return Err(damaged(format!("file {place} has unknown flags")));
    }
    let bytes_before = number64(bytes, 16);
    let (present, directory) = (flags & PRESENT != 0, flags & DIRECTORY != 0);
    if bytes_before > i64::MAX as u64 || directory && bytes_before > 0 {
        return Err(damaged(format!("file {place} cannot have {bytes_before} bytes before the run")));
    }
    Ok(File { class, name: name.to_owned(), bytes: bytes_before, present, directory })
}

fn comm_of(bytes: &[u8]) -> Result<Comm, PathError> {
    match (number32(bytes, 0), number32(bytes, 4)) {
        (0, _) => Ok(Comm::World),
        (1, _) => Ok(Comm::Own),
        (2, ranks @ 1..) => Ok(Comm::Blocks(ranks)),
        (3, by @ 1..) => Ok(Comm::Congruent(by)),
        _ => Err(damaged("a communicator is of no kind")),
    }
}

fn group_of(bytes: &[u8]) -> Result<Group, PathError> {
    match (number32(bytes, 0), number32(bytes, 8), number32(bytes, 12)) {
        (0, low, high) => Ok(Group::Span { low, high }),
        (1, by @ 1.., rest) => Ok(Group::Congruent { by, rest }),
        _ => Err(damaged("a group of ranks is of no kind")),
    }
}

fn distribution_of(bytes: &[u8], words: &[u8]) -> Result<Distribution, PathError> {
    let wrong = || damaged("a distribution of slack has no sound numbers");
    let (kind, count) = (number32(bytes, 0), number32(bytes, 4) as usize);
    let at = usize::try_from(number64(bytes, 8)).ok().and_then(|first| first.checked_mul(8)).ok_or_else(wrong)?;
    let width = if kind == 0 { 16 } else { 8 };
    let length = count.checked_mul(width).ok_or_else(wrong)?;
    let own = words.get(at..).and_then(|rest| rest.get(..length)).filter(|own| !own.is_empty()).ok_or_else(wrong)?;
    match kind {
        0 => {
            let mut sum = 0;
            let value = |pair: &[u8]| {
                let (value, up_to) = (number64(pair, 0), number64(pair, 8));
                let weight = up_to.checked_sub(sum).filter(|weight| *weight > 0).ok_or_else(wrong)?;
                sum = up_to;
                (value <= SLACK_MAX_NS).then_some((value, weight)).ok_or_else(wrong)
            };
            Ok(Distribution::Values(own.chunks_exact(16).map(value).collect::<Result<_, _>>()?))
        }
        1 => {
            let quantiles: Vec<u64> = own.chunks_exact(8).map(|word| number64(word, 0)).collect();
            let is_sound = quantiles.is_sorted() && quantiles.last().is_some_and(|last| *last <= SLACK_MAX_NS);
            is_sound.then_some(Distribution::Quantiles(quantiles)).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

fn view_of(bytes: &[u8]) -> Result<View, PathError> {
    let [piece, distance, pieces, tile] = [0, 8, 16, 24].map(|at| number64(bytes, at));
    let spanned = pieces.checked_sub(1).and_then(|between| between.checked_mul(distance)).and_then(|begun| begun.checked_add(piece));
    let is_sound = (1..=SIZE_MAX).contains(&piece) && (1..=SIZE_MAX).contains(&pieces) && distance >= piece && tile <= i64::MAX as u64;
    if !is_sound || spanned.is_none_or(|spanned| spanned > tile) || piece.checked_mul(pieces).is_none_or(|bytes| bytes > SIZE_MAX) {
        return Err(damaged("the pieces of a view overlap, or there are none"));
    }
    Ok(View { piece, distance, pieces, tile })
}

fn numbers_of(bytes: &[u8]) -> Vec<Numbers> {
    let of = |one: &[u8]| Numbers { at: number64(one, 0) as i64, stride: number64(one, 8) as i64, size: number64(one, 16) };
    bytes.chunks_exact(NUMBERS_BYTES).map(of).collect()
}
