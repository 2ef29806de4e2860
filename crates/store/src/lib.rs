//! Stores: where managed files live. This half (names, store.bin, ctl, slots, devices) allocates nothing and calls no libc,
//! because the preloaded library links it; the half behind the feature `admin` creates, moves, checks and indexes.

pub mod bin;
pub mod copies;
pub mod ctl;
pub mod locks;
pub mod marks;
pub mod moving;
pub mod names;
pub mod rights;
pub mod room;
pub mod run;
pub mod sizing;
pub mod slot;
pub mod times;
pub mod trust;

#[cfg(feature = "admin")]
pub mod admin;
