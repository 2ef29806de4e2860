//! The mpi layer of a run: what its records leave to be worked out. The ranges of the file behind a view, the bytes that nonblocking calls have done, the
//! place of the shared file pointer, which call of the posix layer was made for which call of the mpi layer.

mod calls;
mod hints;
mod layout;
mod sessions;

pub(super) use calls::{Ahead, Calls};
pub(super) use hints::hints_of;
pub use layout::{Extent, Layout};
pub(super) use sessions::{Session, Sessions, Survey};
