//! Targets: where the bytes of managed files lie. One interface for every kind of target ([`interface`]), the kinds, and the suite that says what each must
//! do. What the feature `admin` does not bring in allocates nothing and calls no libc, because the preloaded library links it.

pub mod any;
pub mod batch;
pub mod devices;
pub mod dir;
pub mod emulated;
pub mod file;
pub mod identity;
pub mod interface;
pub mod kind;
pub mod names;
pub mod op;
pub mod text;
pub mod time;
pub mod vectored;
pub mod within;

#[cfg(feature = "admin")]
pub mod erased;
#[cfg(feature = "admin")]
pub mod fake;
#[cfg(feature = "served")]
pub mod shared_memory;
#[cfg(feature = "suite")]
pub mod suite;
