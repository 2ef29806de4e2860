//! The half of the store that allocates: create and configure, apply (the mover), fsck, sizes after a power cut.
//! Nothing here runs inside the preloaded library. Every change of durable state goes through [`medium::Medium`].

pub mod capacity;
pub mod check;
pub mod copies;
pub mod create;
pub mod disk;
pub mod error;
pub mod fake;
pub mod foreground;
pub mod gc;
pub mod identity;
pub mod ids;
pub mod info;
pub mod medium;
pub mod metadata;
pub mod moves;
pub mod objects;
pub mod probe;
pub mod refused;
pub mod session;
pub mod spec;
pub mod store;
pub mod transfer;
pub mod trusting;
pub mod upgrade;

pub use error::{Result, StoreError};
pub use store::Store;
