//! The part of a profile that synthesis reads (docs/formats.md, Profile of a workload). Python has checked what a person wrote, and filled in what was
//! left out; here what means nothing is refused in one sentence.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use stripewise_workpath::op::{Layer, Place};
use stripewise_workpath::{Class, Group, Op, Who};

use super::distribution::{Distribution, Slack};
use super::who::{mark, marked};

/// How often each thing comes.
pub type Counts = BTreeMap<String, f64>;

/// A whole profile.
#[derive(Clone, Debug, Deserialize)]
pub struct Profile {
    /// Of the run that it was made from.
    pub processes: u32,
    /// Each rank pauses on its own.
    #[serde(default)]
    pub apart: bool,
    /// By operation: from which slack on, in seconds, all ranks wait for each other before it.
    #[serde(default)]
    pub together: BTreeMap<String, f64>,
    /// What the marks `@group-1`, `@group-2`, ... mean.
    #[serde(default)]
    pub subgroups: Vec<Subgroup>,
    /// By class: `root`, `shared`, `private`.
    pub classes: BTreeMap<String, FileClass>,
}

/// Children that do alike.
#[derive(Clone, Debug, Deserialize)]
pub struct Subgroup {
    /// Which ranks these are at any number of processes; None: nobody can tell.
    pub group: Option<Ranks>,
}

/// Some of the children, as a path tells them.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ranks {
    /// From one share of all ranks to another, in 65,536ths.
    Span([u32; 2]),
    /// Divided by the first they leave the second.
    Congruent([u32; 2]),
}

impl Ranks {
    /// The group of a path; None where it has no ranks at any number of processes.
    #[must_use]
    pub fn in_path(&self) -> Option<Group> {
        match *self {
            Self::Span([low, high]) => (low < high && high <= 1 << 16).then_some(Group::Span { low, high }),
            Self::Congruent([by, rest]) => (rest < by).then_some(Group::Congruent { by, rest }),
        }
    }
}

/// The files of a class; keys as in table 2.4 of the thesis.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileClass {
    /// Number of files.
    #[serde(rename = "OS")]
    pub files: u32,
    /// Sessions of a file.
    #[serde(rename = "OT", default = "one")]
    pub open_times: Distribution,
    /// Ids from a close to the next open.
    #[serde(rename = "ISG", default = "one")]
    pub session_gap: Distribution,
    /// Bytes; None: any.
    #[serde(rename = "FS", default)]
    pub file_size: Option<Distribution>,
    /// Operations outside sessions.
    #[serde(rename = "RT2", default)]
    pub outside: Counts,
    /// Their slack in seconds.
    #[serde(rename = "ST2", default)]
    pub outside_slack: BTreeMap<String, Slack>,
    /// Names of the first files.
    #[serde(default)]
    pub names: Vec<String>,
    /// Which kind of session comes when.
    #[serde(rename = "AM", default)]
    pub access: Access,
    /// By kind and who opens them.
    #[serde(default)]
    pub sessions: BTreeMap<Opening, SessionKind>,
}

/// Which kind of session opens a file first, and which follows which.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// By kind.
    #[serde(default)]
    pub first: BTreeMap<Opening, f64>,
    /// By kind before and kind after.
    #[serde(default)]
    pub next: BTreeMap<Opening, BTreeMap<Opening, f64>>,
}

/// Sessions of a kind on files of a class.
#[derive(Clone, Debug, Deserialize)]
pub struct SessionKind {
    /// Requests after the open, the close included.
    #[serde(rename = "D", default = "two")]
    pub duration: Distribution,
    /// Ids from request to request.
    #[serde(rename = "IRG", default = "one")]
    pub request_gap: Distribution,
    /// Share of sequential data operations.
    #[serde(rename = "SEQ", default = "one")]
    pub sequential: Distribution,
    /// Which operation follows which; "" is the open.
    #[serde(rename = "RT1", default)]
    pub following: BTreeMap<String, Counts>,
    /// Where others begin; None: anywhere.
    #[serde(rename = "OFF", default)]
    pub offset: Option<Distribution>,
    /// Bytes by operation.
    #[serde(rename = "SIZE", default)]
    pub size: BTreeMap<String, Distribution>,
    /// What `mpi_view` sets.
    #[serde(rename = "VIEW", default)]
    pub views: Vec<ViewWeight>,
    /// Bytes by which the offset grows with each rank.
    #[serde(rename = "SHIFT", default = "zero")]
    pub shift: Distribution,
    /// Slack in seconds by operation, `open` and `close` among them.
    #[serde(rename = "ST", default)]
    pub slack: BTreeMap<String, Slack>,
    /// Sessions by communicator.
    #[serde(default, rename = "comm")]
    pub communicators: Counts,
    /// SEQ, OFF and SHIFT of operations that not all make, with their marks behind the key.
    #[serde(flatten)]
    pub own: BTreeMap<String, Distribution>,
}

impl SessionKind {
    /// SEQ of these ranks' operations; that of all where nothing else is said.
    #[must_use]
    pub fn sequential_of(&self, who: Who) -> &Distribution {
        self.own_of("SEQ", who).unwrap_or(&self.sequential)
    }

    /// OFF of these.
    #[must_use]
    pub fn offset_of(&self, who: Who) -> Option<&Distribution> {
        self.own_of("OFF", who).or(self.offset.as_ref())
    }

    /// SHIFT of these.
    #[must_use]
    pub fn shift_of(&self, who: Who) -> &Distribution {
        self.own_of("SHIFT", who).unwrap_or(&self.shift)
    }

    fn own_of(&self, key: &str, who: Who) -> Option<&Distribution> {
        if self.own.is_empty() { None } else { self.own.get(&format!("{key}{}", mark(who))) }
    }
}

/// A view and how often it is set; a piece of no bytes: bytes as they lie.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewWeight {
    /// Bytes of a piece.
    pub piece: u64,
    /// From one's begin to the next one's.
    pub distance: u64,
    /// Pieces of a tile.
    pub pieces: u64,
    /// From one tile's begin to the next one's.
    pub tile: u64,
    /// How often.
    pub weight: f64,
}

fn zero() -> Distribution {
    Distribution::constant(0.0)
}

fn one() -> Distribution {
    Distribution::constant(1.0)
}

fn two() -> Distribution {
    Distribution::constant(2.0)
}

/// Interface and access mode of a session.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// `open` for reading.
    PosixRead,
    /// `open` for writing.
    PosixWrite,
    /// `open` for both.
    #[serde(rename = "posix-readwrite")]
    PosixReadWrite,
    /// `opendir`.
    PosixDirectory,
    /// `MPI_File_open` for reading.
    MpiRead,
    /// For writing.
    MpiWrite,
    /// For both.
    #[serde(rename = "mpi-readwrite")]
    MpiReadWrite,
}

/// A kind of session, and who opens it: `posix-write@root` in a profile.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(try_from = "String")]
pub struct Opening {
    pub kind: Kind,
    pub who: Who,
}

impl TryFrom<String> for Opening {
    type Error = String;

    fn try_from(key: String) -> Result<Self, String> {
        let (name, who) = marked(&key).ok_or_else(|| format!("{key}: its mark means nobody; use @root, @others or @group-N"))?;
        let kind = Kind::deserialize(name.into_deserializer()).map_err(|e: serde::de::value::Error| e.to_string())?;
        Ok(Self { kind, who })
    }
}

impl Kind {
    /// The interface.
    #[must_use]
    pub const fn layer(self) -> Layer {
        match self {
            Self::MpiRead | Self::MpiWrite | Self::MpiReadWrite => Layer::Mpi,
            _ => Layer::Posix,
        }
    }

    /// Whether it may read.
    #[must_use]
    pub const fn reads(self) -> bool {
        matches!(self, Self::PosixRead | Self::PosixReadWrite | Self::MpiRead | Self::MpiReadWrite)
    }

    /// Whether it may write.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Self::PosixWrite | Self::PosixReadWrite | Self::MpiWrite | Self::MpiReadWrite)
    }

    /// What opens it.
    #[must_use]
    pub const fn open(self) -> Op {
        match (self, self.layer()) {
            (Self::PosixDirectory, _) => Op::Opendir,
            (_, Layer::Mpi) => Op::MpiOpen,
            (_, Layer::Posix) => Op::Open,
        }
    }

    /// What closes it.
    #[must_use]
    pub const fn close(self) -> Op {
        match self.layer() {
            Layer::Mpi => Op::MpiClose,
            Layer::Posix => Op::Close,
        }
    }

    /// Whether an operation may stand in it: no write where it was opened for reading, no read where for writing, and what changes the size or
    /// reserves room only where it may write. A mapping is read.
    #[must_use]
    pub fn allows(self, op: Op) -> bool {
        use stripewise_workpath::op::Moves;
        let facts = op.facts();
        let is_end = matches!(op, Op::Open | Op::Close | Op::Opendir | Op::MpiOpen | Op::MpiClose);
        let fits = facts.layer == self.layer() && facts.place == Place::Inside && !is_end;
        if self == Self::PosixDirectory {
            return matches!(op, Op::Readdir | Op::Fstat | Op::Fcntl | Op::Fsync);
        }
        let access = match (facts.moves, op) {
            (Moves::Reads, _) | (_, Op::Mmap | Op::Munmap) => self.reads(),
            (Moves::Writes, _) => self.writes(),
            (_, Op::Ftruncate | Op::Fallocate | Op::MpiSetSize | Op::MpiPreallocate) => self.writes(),
            // MPI-IO refuses to sync what is opened for reading alone.
            (_, Op::MpiSync) => self.writes(),
            (_, Op::Readdir) => false,
            _ => true,
        };
        fits && access
    }

    /// What it does where nothing tells.
    #[must_use]
    pub const fn usual(self) -> Op {
        match self {
            Self::PosixRead => Op::Read0,
            Self::PosixWrite | Self::PosixReadWrite => Op::Write0,
            Self::PosixDirectory => Op::Readdir,
            Self::MpiRead => Op::MpiReadAt,
            Self::MpiWrite | Self::MpiReadWrite => Op::MpiWriteAt,
        }
    }
}

/// The classes in the order of their numbers.
pub const CLASSES: [(&str, Class); 3] = [("root", Class::Root), ("shared", Class::Shared), ("private", Class::Private)];
