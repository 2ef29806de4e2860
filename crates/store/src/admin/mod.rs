//! The half of the store that allocates: create and configure, apply (the mover), fsck, sizes after a power cut, the index.
//! Nothing here runs inside the preloaded library. Every change of durable state goes through [`medium::Medium`].

pub mod adopt;
pub mod apply;
pub mod capacity;
pub mod catalogue;
pub mod copy;
pub mod create;
mod cutting;
pub mod data;
pub mod disk;
pub mod error;
pub mod export;
pub mod fake;
mod fake_content;
mod fake_file;
pub mod findings;
pub mod foreground;
pub mod fsck;
pub mod fsck_file;
pub mod gc;
pub mod guide;
pub mod identity;
pub mod info;
pub mod journal;
pub mod leftovers;
pub mod medium;
pub mod mover;
pub mod newfile;
pub mod probe;
pub mod protocol;
pub mod publish;
pub mod ranges;
pub mod reader;
pub mod recover;
pub mod relink;
pub mod scrub;
pub mod size;
pub mod spec;
pub mod store;
pub mod sums;
pub mod temporary;
pub mod throttle;
pub mod unlinked;
pub mod upgrade;

pub use error::{Result, StoreError};
pub use store::Store;
