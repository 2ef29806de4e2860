//! What the preloaded library runs: the descriptor table, redirection of managed files to their targets, and tracing. The shim
//! (shim/posix.c) declares the C symbols and hands over here. Nothing in this crate allocates or calls libc: the program's
//! allocator may be what is calling us, and the C library's functions are the ones that the shim has replaced.

pub mod abi;
mod base;
mod copies;
mod descriptors;
mod fds;
mod file;
mod gate;
mod io;
mod life;
mod map;
mod mpi;
mod names;
mod open;
mod store;
mod trace;
