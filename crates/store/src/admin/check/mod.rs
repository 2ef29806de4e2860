//! Whether everything in a store is what it should be, and mending it.

pub mod file;
pub mod findings;
pub mod fsck;
pub mod marking;
pub mod owners;
pub mod scrub;
pub mod state;
