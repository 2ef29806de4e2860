//! Shingled write disks: a write of a track destroys the next W-1 tracks, and a *scheme* maps logical sectors to physical ones so that nothing is
//! lost. The schemes are written once, against the small trait [`Medium`]; whether that is a simulated disk, a file or memory is not known here.
//!
//! [`InPlace`] holds the static mappings of the second seed's chapter 4 (`hdd`, `1234`, `R(4123)`, `124R(3)`, `14R(23)`), [`TrackLayer`] the track-level
//! translation layer of chapter 5 (`tstl-greedy`, `tstl-smart`, and `tstl-adaptive` of our own) with its checkpoints and recovery, [`Indirection`] the
//! S-block system (`is`) that the seed compares with. [`CheckingMedium`] really destroys what a write destroys and refuses to read it back, so that a wrong
//! scheme shows at once.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod amplification;
mod blank;
mod checking;
mod error;
mod geometry;
mod in_place;
mod indirection;
mod journal;
mod log;
mod medium;
mod order;
mod scheme;
mod span;
mod tstl;
mod words;

pub use amplification::{full_band_amplification, space_gain, uniform_update_amplification};
pub use blank::BlankMedium;
pub use checking::CheckingMedium;
pub use error::{MediumError, SwdError};
pub use geometry::{Geometry, Zone};
pub use in_place::InPlace;
pub use indirection::{Indirection, IndirectionParameters};
pub use medium::{Extent, Medium, Purpose, SPARE_BYTES, Spare};
pub use order::Order;
pub use scheme::{Counters, Scheme};
pub use tstl::{Move, Policy, Scan, Space, TrackLayer, TrackParameters, victim_limit};
