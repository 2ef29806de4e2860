//! The nodes of a path: loops and requests, 64 bytes each.

use crate::op::Op;

/// Bytes of a node in the file.
pub const NODE_BYTES: usize = 64;

/// A flag of `opendir`: closed again at once, no session begins.
pub const ALONE: u8 = 1;
/// Each rank draws its own slack from the distribution; else all ranks draw alike.
pub const APART: u8 = 2;
/// All ranks wait for each other before the slack, in the first round of the innermost loop; a request outside loops is in one.
pub const TOGETHER: u8 = 4;
/// The same in other rounds.
pub const TOGETHER_REST: u8 = 8;
/// All flags.
pub const FLAGS_KNOWN: u8 = ALONE | APART | TOGETHER | TOGETHER_REST;

/// How a file is opened: the `size` of `open` and `mpi_open`. 0 = for reading and writing, made where it is not there.
pub mod mode {
    pub const READ: u64 = 1;
    pub const WRITE: u64 = 2;
    pub const CREATE: u64 = 4;
    pub const EXCLUSIVE: u64 = 8;
    pub const TRUNCATE: u64 = 16;
    pub const APPEND: u64 = 32;
    /// All of them.
    pub const KNOWN: u64 = 63;
}

/// Which ranks make a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Who {
    #[default]
    All,
    Root,
    AllButRoot,
    Last,
    AllButLast,
    /// The ranks of a group, by its number in the path.
    Group(u8),
}

const FIRST_GROUP: u8 = 16;
/// Groups of a path, at most.
pub const GROUPS_MAX: u32 = 256 - FIRST_GROUP as u32;

impl Who {
    /// The number in the file; None for a group beyond [`GROUPS_MAX`].
    #[must_use]
    pub const fn number(self) -> Option<u8> {
        match self {
            Self::All => Some(0),
            Self::Root => Some(1),
            Self::AllButRoot => Some(2),
            Self::Last => Some(3),
            Self::AllButLast => Some(4),
            Self::Group(group) => FIRST_GROUP.checked_add(group),
        }
    }

    /// What a number in the file means.
    #[must_use]
    pub const fn of(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::All),
            1 => Some(Self::Root),
            2 => Some(Self::AllButRoot),
            3 => Some(Self::Last),
            4 => Some(Self::AllButLast),
            _ => match number.checked_sub(FIRST_GROUP) {
                Some(group) => Some(Self::Group(group)),
                None => None,
            },
        }
    }
}

/// A loop or a request. Its place in the file is `at`, plus `at_rank` for each rank, plus `stride` for each round of the loop around it, plus the place of
/// that loop: all in bytes. A loop's own place is where its body begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// None: a loop.
    pub op: Option<Op>,
    pub who: Who,
    pub flags: u8,
    /// Of a request its file; of a loop the nodes of its body, those of inner loops included.
    pub link: u32,
    /// Number of the communicator; of calls of MPI.
    pub comm: u16,
    /// Of `mpi_view`: number of the view plus 1; 0 = bytes as they lie.
    pub view: u16,
    /// 0, or the entry (from 1) of the per-rank numbers that take the place of `at`, `stride` and `size`; `at_rank` counts no more then.
    pub table: u32,
    pub at: i64,
    pub at_rank: i64,
    pub stride: i64,
    /// Bytes of a request; rounds of a loop; [`mode`] of an open; new size of `ftruncate`, `truncate`, `mpi_set_size`, `mpi_preallocate`; the other file's
    /// number plus 1 of `rename`, `link` and `symlink`; 0 or 1 of `mpi_atomicity`.
    pub size: u64,
    /// Slack before the request where no distribution is given, ns.
    pub slack_ns: u64,
    /// Distribution (from 1) of the slack in the first round of the innermost loop; 0 = `slack_ns`.
    pub slack_first: u32,
    /// The same in other rounds.
    pub slack_rest: u32,
}

impl Node {
    /// A request of all ranks without place, size and slack.
    #[must_use]
    pub const fn request(op: Op, file: u32) -> Self {
        Self {
            op: Some(op),
            who: Who::All,
            flags: 0,
            link: file,
            comm: 0,
            view: 0,
            table: 0,
            at: 0,
            at_rank: 0,
            stride: 0,
            size: 0,
            slack_ns: 0,
            slack_first: 0,
            slack_rest: 0,
        }
    }

    /// A loop over the `body` nodes that follow it.
    #[must_use]
    pub const fn rounds(rounds: u64, body: u32) -> Self {
        Self { op: None, size: rounds, ..Self::request(Op::Open, body) }
    }

    /// As in the file (docs/formats.md, Workload path); None where the group has no number.
    #[must_use]
    pub fn bytes(&self) -> Option<[u8; NODE_BYTES]> {
        let head = [u8::from(self.op.is_some()), self.op.map_or(0, Op::number), self.who.number()?, self.flags];
        let mut out = [0; NODE_BYTES];
        let parts: [&[u8]; 12] = [
            &head,
            &self.link.to_le_bytes(),
            &self.comm.to_le_bytes(),
            &self.view.to_le_bytes(),
            &self.table.to_le_bytes(),
            &self.at.to_le_bytes(),
            &self.at_rank.to_le_bytes(),
            &self.stride.to_le_bytes(),
            &self.size.to_le_bytes(),
            &self.slack_ns.to_le_bytes(),
            &self.slack_first.to_le_bytes(),
            &self.slack_rest.to_le_bytes(),
        ];
        let mut at = 0;
        for part in parts {
            out.get_mut(at..at + part.len())?.copy_from_slice(part);
            at += part.len();
        }
        Some(out)
    }

    /// A node of a file; None where a number in it means nothing.
    #[must_use]
    pub fn parse(bytes: &[u8; NODE_BYTES]) -> Option<Self> {
        let [kind, op, who, flags, rest @ ..] = bytes;
        let op = match (*kind, *op) {
            (0, 0) => None,
            (1, number) => Some(Op::of(number)?),
            _ => return None,
        };
        let (link, rest) = rest.split_first_chunk()?;
        let (comm, rest) = rest.split_first_chunk()?;
        let (view, rest) = rest.split_first_chunk()?;
        let (table, rest) = rest.split_first_chunk()?;
        let (at, rest) = rest.split_first_chunk()?;
        let (at_rank, rest) = rest.split_first_chunk()?;
        let (stride, rest) = rest.split_first_chunk()?;
        let (size, rest) = rest.split_first_chunk()?;
        let (slack_ns, rest) = rest.split_first_chunk()?;
        let (slack_first, rest) = rest.split_first_chunk()?;
        let (slack_rest, _) = rest.split_first_chunk()?;
        Some(Self {
            op,
            who: Who::of(*who)?,
            flags: *flags,
            link: u32::from_le_bytes(*link),
            comm: u16::from_le_bytes(*comm),
            view: u16::from_le_bytes(*view),
            table: u32::from_le_bytes(*table),
            at: i64::from_le_bytes(*at),
            at_rank: i64::from_le_bytes(*at_rank),
            stride: i64::from_le_bytes(*stride),
            size: u64::from_le_bytes(*size),
            slack_ns: u64::from_le_bytes(*slack_ns),
            slack_first: u32::from_le_bytes(*slack_first),
            slack_rest: u32::from_le_bytes(*slack_rest),
        })
    }
}
