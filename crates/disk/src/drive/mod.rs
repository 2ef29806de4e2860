//! A drive: what its file says of it, where its tracks lie, how long its parts move, what its cache holds.

pub mod ahead;
pub mod areas;
pub mod behind;
pub mod layout;
pub mod mechanics;
pub mod seek;
pub mod spec;
