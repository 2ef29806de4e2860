//! Moving a file's bytes to another layout while programs use it.

pub mod apply;
pub mod copy;
pub mod guide;
pub mod mover;
pub mod protocol;
pub mod session;
pub mod throttle;
