//! Targets: where the bytes of managed files lie. One interface for every kind of target, its kinds, and the suite that says what each must do. What the
//! feature `admin` does not bring in allocates nothing and calls no libc, because the preloaded library links it.

pub mod devices;
pub mod identity;
pub mod kind;
pub mod names;
pub mod text;
pub mod within;
