//! MPI datatypes in words of eight bytes, as the library notes the filetype of a view and `collect` reads it.
//!
//! A type is `[combiner, integers, addresses, counts, types, lower bound, extent]`, then so many integers, addresses and counts as MPI_Type_get_contents_c
//! tells them (MPI 4.1, section 5.1.13), then the types themselves. A named type has one integer, its size. Constants are one MPI's like another's.

mod compile;
mod tile;

pub use compile::{compile, room_for};
pub use tile::{Node, Parts, Shape, Tile};

/// How a type is made; the numbers are the on-disk form and never change.
pub mod combiner {
    pub const NAMED: u64 = 0;
    pub const DUP: u64 = 1;
    pub const CONTIGUOUS: u64 = 2;
    pub const VECTOR: u64 = 3;
    pub const HVECTOR: u64 = 4;
    pub const INDEXED: u64 = 5;
    pub const HINDEXED: u64 = 6;
    pub const INDEXED_BLOCK: u64 = 7;
    pub const HINDEXED_BLOCK: u64 = 8;
    pub const STRUCT: u64 = 9;
    pub const SUBARRAY: u64 = 10;
    pub const DARRAY: u64 = 11;
    pub const RESIZED: u64 = 12;
}

/// Storage orders of MPI_Type_create_subarray and _darray.
pub mod order {
    pub const C: u64 = 0;
    pub const FORTRAN: u64 = 1;
}

/// Distributions of MPI_Type_create_darray.
pub mod distribution {
    pub const NONE: u64 = 0;
    pub const BLOCK: u64 = 1;
    pub const CYCLIC: u64 = 2;
    /// The default argument.
    pub const DEFAULT: u64 = u64::MAX;
}

/// Words before the numbers of a type.
pub const HEAD_WORDS: usize = 7;
/// Types in types at most.
pub const DEPTH_MAX: usize = 64;
