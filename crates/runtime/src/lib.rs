//! What the preloaded library runs: the descriptor table, redirection of managed files to their targets, and tracing. The shim
//! (shim/posix.c) declares the C symbols and hands over here. Nothing in this crate allocates or calls libc: the program's
//! allocator may be what is calling us, and the C library's functions are the ones that the shim has replaced.

pub mod abi;
mod access;
mod advice;
mod config;
mod copy;
mod create;
mod cutting;
mod desc;
mod ends;
mod epoch;
mod exec;
mod extending;
mod faults;
mod fds;
mod file;
mod gate;
mod guard;
mod heads;
mod io;
mod ioctl;
mod lend;
mod life;
mod limit;
mod lock;
mod locks;
mod log;
mod map;
mod memory;
mod names;
mod open;
mod opening;
mod part;
mod process;
mod rings;
mod room;
mod shed;
mod size;
mod store;
mod sys;
mod tls;
mod trace;
mod vector;
