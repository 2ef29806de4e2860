//! Whether independent reads behind a view with gaps are sieved: one read over several pieces and what lies between them, or one read for each piece. The
//! thesis takes ROMIO's default, which always sieves reads; this choice is ours.
//!
//! A read takes a start-up on each target that serves it, and its bytes. All processes of a file read at once, so they take as long as one of them needs for
//! its reads one behind the other, or as the targets are busy with those of all, whichever is longer.

/// Where a file's bytes lie: figures of its slowest target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Servers {
    /// Targets of one cycle of stripes, from 1 on.
    pub count: u32,
    /// Bytes of one stripe, from 1 on.
    pub stripe_bytes: u64,
    /// Of a read, ns.
    pub startup_ns: u64,
    /// Transfer time, picoseconds per byte.
    pub ps_per_byte: u64,
}

impl Servers {
    /// A file of whose devices nothing is known: a start-up takes as long as 64 KiB do, a choice of ours between disks (a few hundred KiB) and memory (a few).
    pub const UNKNOWN: Self = Self { count: 1, stripe_bytes: u64::MAX, startup_ns: 65_536, ps_per_byte: 1000 };

    /// Targets that serve a read of so many bytes.
    fn serving(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.stripe_bytes.max(1)).clamp(1, u64::from(self.count.max(1)))
    }

    /// How long `processes` take that make `reads` of so many bytes each at once, ns.
    fn time_ns(&self, processes: u32, reads: u64, bytes: u64) -> f64 {
        let (targets, startup_ns) = (self.serving(bytes) as f64, self.startup_ns as f64);
        let transfer_ns = bytes as f64 * self.ps_per_byte as f64 / 1000.0;
        let one_by_one = startup_ns + transfer_ns / targets;
        let busy = f64::from(processes.max(1)) * (targets * startup_ns + transfer_ns) / f64::from(self.count.max(1));
        reads as f64 * one_by_one.max(busy)
    }
}

/// What a view shows: pieces of the same size, in each copy of its filetype as far from each other. Bytes, from 1 on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pieces {
    pub bytes: u64,
    /// From the beginning of one piece to that of the next.
    pub stride_bytes: u64,
    /// None: all pieces are so far from each other.
    pub copy: Option<Repetition>,
}

/// The pieces of one copy of a filetype, and from the beginning of one copy to that of the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repetition {
    pub pieces: u64,
    pub extent_bytes: u64,
}

impl Pieces {
    /// From one piece to the next, on average of the whole file.
    #[must_use]
    pub fn mean_stride_bytes(&self) -> u64 {
        self.copy.and_then(|copy| copy.extent_bytes.checked_div(copy.pieces)).unwrap_or(self.stride_bytes).max(self.bytes)
    }

    /// So many pieces as whole copies with more behind them, and how many are left for the last one.
    fn copies(&self, count: u64) -> (u64, u64) {
        let before = self.copy.and_then(|copy| (count - 1).checked_div(copy.pieces)).unwrap_or(0);
        (before, count - before * self.copy.map_or(0, |copy| copy.pieces))
    }

    /// From the first byte of so many pieces of one copy to their last.
    fn span(&self, count: u64) -> u64 {
        (count - 1).saturating_mul(self.stride_bytes.max(self.bytes)).saturating_add(self.bytes)
    }

    /// How many ROMIO may read at once, two at least: of one copy, or of many.
    fn at_once(&self) -> u64 {
        let inside = self.copy.map_or(0, |copy| copy.pieces.min(BUFFER_BYTES / self.stride_bytes.max(1)));
        (BUFFER_BYTES / self.mean_stride_bytes().max(1)).max(inside).max(2)
    }
}

/// What one request takes either way, of all processes, ns; and which way that is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sieving {
    pub sieved_ns: f64,
    pub unsieved_ns: f64,
    pub is_sieved: bool,
}

/// What ROMIO reads at once (`ind_rd_buffer_size`); hints that say otherwise are left out.
const BUFFER_BYTES: u64 = 4 << 20;
/// By so much unsieved reads have to be cheaper: that they are has to be told to ROMIO, by all processes together.
const CLEARLY: f64 = 1.25;

/// Smaller pieces are sieved, whatever they cost: ROMIO looks for the place of a read by the file pointer from the first piece of the view on, which is some
/// nanoseconds for each, and so nothing beside reading them only where they are large.
const UNSIEVED_BYTES_MIN: u64 = 64 << 10;

impl Sieving {
    /// The choice for requests of so many bytes. Of what size they are is not known before the first one: 0 is as many pieces as ROMIO reads at once, which is
    /// the most that sieving may gain.
    pub fn choose(pieces: Pieces, request_bytes: u64, processes: u32, servers: &Servers) -> Self {
        let pieces = Pieces { bytes: pieces.bytes.max(1), ..pieces };
        let count = if request_bytes > 0 { request_bytes.div_ceil(pieces.bytes) } else { pieces.at_once() };
        let unsieved_ns = servers.time_ns(processes, count, pieces.bytes);
        let full = |buffers| servers.time_ns(processes, buffers, BUFFER_BYTES);
        // One behind the other, from the first byte to the last.
        let through = |span: u64| {
            let rest = span % BUFFER_BYTES;
            full(span / BUFFER_BYTES) + if rest == 0 { 0.0 } else { servers.time_ns(processes, 1, rest) }
        };
        // Each buffer begins at a piece, so wide gaps are left out: those between pieces, or between copies.
        let jumping = |times: u64, span: u64, last: u64| full(times.saturating_mul(span.div_ceil(BUFFER_BYTES))) + through(last);
        let (copies, rest) = pieces.copies(count);
        let (whole, last) = (pieces.span(pieces.copy.map_or(1, |copy| copy.pieces.max(1))), pieces.span(rest));
        let span = copies.saturating_mul(pieces.copy.map_or(0, |copy| copy.extent_bytes.max(whole))).saturating_add(last);
        let sieved_ns = through(span).min(jumping(count - 1, pieces.bytes, pieces.bytes)).min(jumping(copies, whole, last));
        Self { sieved_ns, unsieved_ns, is_sieved: pieces.bytes < UNSIEVED_BYTES_MIN || unsieved_ns * CLEARLY >= sieved_ns }
    }
}

/// By so much joined writes have to be cheaper: what an exchange takes is a guess.
const JOINED_CLEARLY: f64 = 2.0;

/// What writes behind a view with gaps take that each process makes piece by piece, over what they take that are joined: all bytes of all processes in one
/// piece, after an exchange of `exchange_ns`. None: that is no gain, or not a clear one.
pub fn gain_of_joining(pieces: Pieces, request_bytes: u64, processes: u32, servers: &Servers, exchange_ns: u64) -> Option<f64> {
    let (bytes, request) = (pieces.bytes.max(1), request_bytes.max(1));
    let apart_ns = servers.time_ns(processes, request.div_ceil(bytes), bytes.min(request));
    let joined_ns = exchange_ns as f64 + servers.time_ns(1, 1, request.saturating_mul(u64::from(processes.max(1))));
    (joined_ns * JOINED_CLEARLY < apart_ns).then_some(apart_ns / joined_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    /// Of experiments/engine-modes: four disks and two SSDs, stripes of 64 KiB, as slow as the disks.
    const STORE: Servers = Servers { count: 6, stripe_bytes: 64 * KIB, startup_ns: 2_000_000, ps_per_byte: 10_000 };

    /// Whether a request of four pieces is sieved, and one of unknown size; of eight processes, an eighth of all bytes each.
    fn strided(request: u64, servers: &Servers) -> [bool; 2] {
        let pieces = Pieces { bytes: request / 4, stride_bytes: request * 2, copy: None };
        [request, 0].map(|bytes| Sieving::choose(pieces, bytes, 8, servers).is_sieved)
    }

    #[test]
    fn small_pieces_are_sieved_and_large_ones_are_not() {
        assert_eq!(strided(4 * KIB, &STORE), [true, true]);
        // By the price alone four of 16 KiB would not be.
        assert_eq!(strided(64 * KIB, &STORE), [true, true]);
        assert_eq!(strided(256 * KIB, &STORE), [false, false]);
        assert_eq!(strided(MIB, &STORE), [false, false]);
        // On the quickest devices, too.
        let of = |bytes| Sieving::choose(Pieces { bytes, stride_bytes: MIB, copy: None }, 0, 1, &Servers { startup_ns: 0, ..STORE }).is_sieved;
        assert!(of(8) && of(64 * KIB - 1) && !of(64 * KIB));
    }

    #[test]
    fn gaps_that_take_no_longer_than_a_startup_are_read_over() {
        for bytes in [64 * KIB, 100_000, MIB] {
            let of = |gap| Sieving::choose(Pieces { bytes, stride_bytes: bytes + gap, copy: None }, 0, 4, &Servers::UNKNOWN).is_sieved;
            assert!(of(8 * KIB) && of(60 * KIB), "{bytes}");
            assert!(!of(8 * MIB), "{bytes}");
        }
        // A slow start-up is worth a wide gap, a quick one none.
        let wide = Pieces { bytes: 64 * KIB, stride_bytes: MIB, copy: None };
        let of = |startup_ns| Sieving::choose(wide, 256 * KIB, 1, &Servers { startup_ns, ..STORE }).is_sieved;
        assert!(of(200_000_000) && !of(100_000));
    }

    #[test]
    fn the_times_of_a_request_by_hand() {
        let one = Servers { count: 1, ..STORE };
        let priced = Sieving::choose(Pieces { bytes: 1000, stride_bytes: 10_000, copy: None }, 4000, 2, &one);
        // Two processes of four reads of 2.01 ms; of one of 31,000 bytes each.
        assert_eq!((priced.unsieved_ns, priced.sieved_ns, priced.is_sieved), (16_080_000.0, 4_620_000.0, true));
        // A buffer begins at a piece: a whole one, and one piece.
        let priced = Sieving::choose(Pieces { bytes: MIB, stride_bytes: 7 * MIB, copy: None }, 2 * MIB, 1, &one);
        assert_eq!(priced.sieved_ns, 2.0 * 2_000_000.0 + 5.0 * MIB as f64 * 10.0);
        // Two buffers, each with two pieces.
        let priced = Sieving::choose(Pieces { bytes: MIB, stride_bytes: 2 * MIB, copy: None }, 4 * MIB, 1, &one);
        assert_eq!(priced.sieved_ns, 2.0 * 2_000_000.0 + 7.0 * MIB as f64 * 10.0);
    }

    #[test]
    fn copies_of_a_filetype_may_be_far_from_each_other() {
        let one = Servers { count: 1, ..STORE };
        let far = Pieces { bytes: 4 * KIB, stride_bytes: 8 * KIB, copy: Some(Repetition { pieces: 2, extent_bytes: 8 * MIB }) };
        assert_eq!(far.mean_stride_bytes(), 4 * MIB);
        let sieved = |count: u64| Sieving::choose(far, count * 4 * KIB, 1, &one).sieved_ns;
        // One copy is 12 KiB; of three, two take a buffer each.
        assert_eq!(sieved(2), 2_000_000.0 + 12.0 * KIB as f64 * 10.0);
        assert_eq!(sieved(6), 2.0 * (2_000_000.0 + 4.0 * MIB as f64 * 10.0) + sieved(2));
        assert_eq!(sieved(5), 2.0 * (2_000_000.0 + 4.0 * MIB as f64 * 10.0) + sieved(1));
        // Copies close together are read through.
        let near = Pieces { copy: Some(Repetition { pieces: 2, extent_bytes: 20 * KIB }), ..far };
        assert_eq!(Sieving::choose(near, 4 * 4 * KIB, 1, &one).sieved_ns, 2_000_000.0 + 32.0 * KIB as f64 * 10.0);
        // Of requests of unknown size as many pieces as fit into a buffer, and the whole of one copy at least.
        let many = Pieces { bytes: KIB, stride_bytes: 2 * KIB, copy: Some(Repetition { pieces: 100, extent_bytes: 1 << 30 }) };
        assert_eq!([far.at_once(), near.at_once(), many.at_once()], [2, 409, 100]);
    }

    #[test]
    fn writes_of_many_small_pieces_are_joined() {
        // Eight processes, an exchange of a turn of 4 ms each: of requests of four pieces none is worth it, of 64 and more it is.
        let of = |request: u64, count: u64| {
            gain_of_joining(Pieces { bytes: request / count, stride_bytes: 8 * request / count, copy: None }, request, 8, &STORE, 32_000_000)
        };
        assert_eq!([4 * KIB, 64 * KIB, MIB].map(|request| of(request, 4)), [None; 3]);
        let gain = of(4 * KIB, 64).unwrap();
        assert!((4.0..6.0).contains(&gain), "{gain}");
        // Where an exchange takes no time, four are enough; one piece never is.
        let pieces = Pieces { bytes: KIB, stride_bytes: 8 * KIB, copy: None };
        assert!(gain_of_joining(pieces, 4 * KIB, 8, &STORE, 0).is_some());
        assert!(gain_of_joining(pieces, KIB, 8, &STORE, 32_000_000).is_none());
    }

    proptest! {
        #[test]
        fn wider_gaps_never_make_sieving_worth_it(bytes in 1u64..1 << 22, gap in 1u64..1 << 24, more in 1u64..1 << 24, count in 2u64..64, processes in 1u32..64) {
            let of = |gap| Sieving::choose(Pieces { bytes, stride_bytes: bytes + gap, copy: None }, bytes * count, processes, &STORE);
            prop_assert!(of(gap).is_sieved || !of(gap + more).is_sieved);
            prop_assert_eq!(of(gap).unsieved_ns, of(gap + more).unsieved_ns);
        }

        #[test]
        fn one_piece_is_one_read_either_way(bytes in 1u64..MIB, stride in 1u64..1 << 30) {
            let priced = Sieving::choose(Pieces { bytes, stride_bytes: stride, copy: None }, bytes, 3, &STORE);
            prop_assert!(priced.is_sieved && priced.sieved_ns == priced.unsieved_ns);
        }
    }
}
