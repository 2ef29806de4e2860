//! Access patterns as arithmetic: which bytes request i of a process touches.
//!
//! The same arithmetic as `workloads/pattern.c`, so that the MPI program and a simulation issue the very same requests; random ones draw from a
//! counter-based generator, so nothing is remembered from request to request. Requests past `requests_max` walk over the process's share again.

use stripewise_chance::{below, mix};

use super::describe::{Description, Kind};
use super::zipf::Zipf;
use crate::Error;

/// Phases as the MPI program numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Write = 0,
    Read = 1,
}

/// One pattern over one file that `processes` share.
#[derive(Debug)]
pub(super) struct Pattern {
    kind: Kind,
    seed: u64,
    processes: u64,
    /// Bytes from one request to the next where they lie side by side: the request's own and the gap after it.
    pitch: u64,
    /// Pieces of a request; 1 where requests are contiguous.
    pub pieces: u64,
    /// Bytes of a piece, the largest that is drawn.
    granule: u64,
    /// From a piece of a row to the one below it: the pieces of all processes and the gap after them.
    across: u64,
    slots: u64,
    /// Requests of one process that cover its share once.
    pub requests_max: u64,
    /// Nested: pieces of an inner group; tiles: processes across.
    inner: u64,
    /// Nested: groups; tiles: processes down.
    outer: u64,
    zipf: Option<Zipf>,
}

impl Pattern {
    /// The pattern that `described` means, with `request_bytes` as the largest request.
    pub(super) fn new(described: &Description, request_bytes: u64) -> Result<Pattern, Error> {
        let kind = described.kind;
        let processes = if described.is_shared() { u64::from(described.processes) } else { 1 };
        let pieces = if kind.in_pieces() { described.pieces } else { 1 };
        let granule = request_bytes / pieces;
        // A gap stands after each row of a strided request, after each request of the others.
        let across = processes * granule + if kind == Kind::Strided { described.gap_bytes } else { 0 };
        let pitch = request_bytes + if kind == Kind::Strided { 0 } else { described.gap_bytes };
        let slots = described.file_bytes / pitch;
        let mut requests_max = if kind == Kind::Strided { described.file_bytes / (across * pieces) } else { slots / processes };
        let (mut inner, mut outer) = (1, 1);
        if kind == Kind::Nested {
            outer = largest_divisor_up_to_root(pieces);
            inner = pieces / outer;
            requests_max -= requests_max % 2;
        }
        if kind == Kind::Tiles {
            outer = largest_divisor_up_to_root(processes);
            inner = processes / outer;
        }
        if requests_max == 0 {
            let room = if kind == Kind::Nested { "two requests" } else { "one request" };
            return Err(Error::Invalid(format!(
                "file_bytes = {} is too small: each of {processes} processes needs room for {room} of {request_bytes} bytes; use a larger file_bytes",
                described.file_bytes
            )));
        }
        let zipf = if kind == Kind::Zipf { Some(Zipf::new(described, request_bytes)?) } else { None };
        Ok(Pattern { kind, seed: described.seed, processes, pitch, pieces, granule, across, slots, requests_max, inner, outer, zipf })
    }

    /// What everything about this request is drawn from.
    pub(super) fn draw(&self, process: u64, phase: Phase, request: u64) -> u64 {
        mix(mix(mix(self.seed) ^ (process << 1 | phase as u64)) ^ request)
    }

    /// First byte of a request. `rank` is the process's place among those that share the file; the random patterns take `draw`, zipf `window` too.
    pub(super) fn offset(&self, rank: u64, request: u64, draw: u64, window: u64) -> u64 {
        let i = request % self.requests_max;
        let (piece, processes) = (self.granule, self.processes);
        match self.kind {
            Kind::Sequential => (rank * self.requests_max + i) * self.pitch,
            Kind::Interleaved => (i * processes + rank) * self.pitch,
            Kind::Strided => i * self.pieces * self.across + rank * piece,
            Kind::Random => below(draw, self.slots) * self.pitch,
            Kind::Zipf => self.zipf.as_ref().map_or(0, |zipf| zipf.offset(draw, window)),
            Kind::Nested => {
                let group = self.inner * processes * piece;
                let half = self.requests_max / 2;
                i % half * 2 * self.outer * group + i / half * group + rank * piece
            }
            Kind::Tiles => {
                let row = (rank / self.inner * self.requests_max + i) * self.pieces;
                row * self.inner * piece + rank % self.inner * piece
            }
        }
    }

    /// Offset of one piece of the request that begins at `first`.
    pub(super) fn piece(&self, first: u64, piece: u64) -> u64 {
        match self.kind {
            Kind::Strided => first + piece * self.across,
            Kind::Nested => first + (piece / self.inner * 2 * self.inner + piece % self.inner) * self.processes * self.granule,
            Kind::Tiles => first + piece * self.inner * self.granule,
            _ => first,
        }
    }
}

fn largest_divisor_up_to_root(number: u64) -> u64 {
    let root = number.isqrt();
    (1..=root).rev().find(|d| number.is_multiple_of(*d)).unwrap_or(1)
}
