//! What the nodes of a path name: files, communicators, groups of ranks, distributions of slack, views, numbers per rank.

/// Bytes of a request, at most: what one call of MPI counts.
pub const SIZE_MAX: u64 = i32::MAX as u64;

/// Slack of one request, at most: some 146 years.
pub(crate) const SLACK_MAX_NS: u64 = 1 << 62;
/// Processes that a path is played by, at most.
pub const PROCESSES_MAX: u32 = 1 << 20;
/// What stands for the rank in a name.
pub const RANK: &str = "{rank}";

/// Whose a file is (thesis, section 2.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Of the root alone.
    Root,
    /// One file for all.
    Shared,
    /// One for each rank: its name has `{rank}`.
    Private,
}

/// A file or directory that is played with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub class: Class,
    /// Below the directory that is given when the path is played: no `..`, not absolute; `{rank}` becomes the rank.
    pub name: String,
    /// Bytes that it must have before the run.
    pub bytes: u64,
    /// It is there before the run even without bytes.
    pub present: bool,
    /// It is a directory.
    pub directory: bool,
}

/// Which ranks open a file together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Comm {
    #[default]
    World,
    Own,
    /// So many consecutive ranks each.
    Blocks(u32),
    /// Ranks that leave the same rest divided by this.
    Congruent(u32),
}

/// Some of the ranks from 1 on (the root is in no group).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Ranks r with low * P <= r * 2^16 < high * P.
    Span { low: u32, high: u32 },
    /// Ranks that leave `rest` divided by `by`.
    Congruent { by: u32, rest: u32 },
}

/// Slack in ns; drawn when the request is made, by (seed, node, round), alike on all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Values and their weights.
    Values(Vec<(u64, u64)>),
    /// Equidistant quantiles, ascending, from the least to the largest; linear between them.
    Quantiles(Vec<u64>),
}

/// What a process sees of a file: `pieces` pieces of `piece` bytes, `distance` bytes from one's begin to the next one's, and all that again every `tile` bytes.
/// The view begins at the offset of its `mpi_view`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    pub piece: u64,
    pub distance: u64,
    pub pieces: u64,
    pub tile: u64,
}

impl View {
    /// Pieces at one distance without end.
    #[must_use]
    pub const fn strided(piece: u64, distance: u64) -> Self {
        Self { piece, distance, pieces: 1, tile: distance }
    }
}

/// Numbers of one rank in the place of a node's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    pub at: i64,
    pub stride: i64,
    pub size: u64,
}

/// All tables of a path.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Tables {
    /// The number of processes that the path is for; 0 = any.
    pub processes: u32,
    pub seed: u64,
    pub files: Vec<File>,
    /// The first is used where a node says nothing.
    pub comms: Vec<Comm>,
    pub groups: Vec<Group>,
    pub distributions: Vec<Distribution>,
    pub views: Vec<View>,
    /// Of each entry the numbers of all ranks.
    pub numbers: Vec<Vec<Numbers>>,
}
