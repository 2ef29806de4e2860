//! What all else stands on: system calls, the thread and the process, locks, the log, and what this process was told.

pub mod config;
pub mod guard;
pub mod lock;
pub mod locks;
pub mod log;
pub mod memory;
pub mod process;
pub mod sys;
pub mod tls;
pub mod vector;
