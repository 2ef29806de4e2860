//! T-STL, the track-level shingled translation layer (chapter 5): a table from logical to physical tracks; updates in place where the next W-1 tracks
//! are free, else the track is copied to a free one of its band. While a band is used little, only alternate tracks are taken and all is in place.
//!
//! **What is safe when.** A flush makes everything before it durable. A copied track carries its logical track, a timestamp and a checksum; the old copy
//! is *held*, neither written nor destroyed, until the new one is flushed. A track is written in place only when a checkpoint has its entry (one is
//! taken if not), because its checksum does not hold afterwards. A trimmed track is held until a checkpoint without it. So after a cut, the newest
//! checkpoint and the newest whole copies since give every flushed sector.
//!
//! **Progress.** N-2W logical tracks per band, and the rule that a band stays *steady* ([`Space::is_steady`]), held tracks included, ensure that a track
//! can always be written, also after any power cut.

mod adaptive;
mod bands;
mod bits;
mod credit;
mod fill;
mod heat;
mod layer;
mod moves;
mod parameters;
mod places;
mod plan;
mod recover;
mod shadow;
mod space;
mod spare;
mod table;

pub use layer::TrackLayer;
pub use parameters::TrackParameters;
pub use plan::{Move, Policy, victim_limit};
pub use recover::Scan;
pub use space::Space;
