//! A file's own parts: layout, size, objects, the record of its name, what killed commands left of them, and the trash.

pub mod container;
pub(crate) mod cutting;
pub mod data;
pub mod journal;
pub mod leftovers;
pub mod link;
pub mod lost;
pub mod newfile;
pub mod publish;
pub mod ranges;
pub mod reader;
pub mod settle;
pub mod size;
pub mod sums;
pub mod temporary;
pub mod trash;
pub mod unlinked;
