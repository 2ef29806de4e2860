//! Fitting requests to a disk: folding them into its space, cutting off what lies beyond, stretching time.

use serde::Deserialize;

use crate::{BlockRequest, Source};

/// What becomes of requests beyond the space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Beyond {
    /// First blocks are taken modulo the space (thesis, chapters 4.6.3 and 5.3.3). A request that would cross the end is moved back so far that it
    /// ends there: it stays one request of its size.
    #[default]
    Fold,
    /// Requests beyond are left out, those that cross the end are cut there.
    Clip,
}

/// The request within `space_blocks`, if anything of it is left; a request longer than the space is cut to it.
#[must_use]
pub fn fitted(request: BlockRequest, space_blocks: u64, beyond: Beyond) -> Option<BlockRequest> {
    if space_blocks == 0 {
        return None;
    }
    let blocks = u64::from(request.blocks).min(space_blocks);
    let (lba, blocks) = match beyond {
        Beyond::Fold => ((request.lba % space_blocks).min(space_blocks - blocks), blocks),
        Beyond::Clip => (request.lba, blocks.min(space_blocks.saturating_sub(request.lba))),
    };
    (blocks > 0).then_some(BlockRequest { lba, blocks: blocks as u32, ..request })
}

/// All requests of a source, fitted.
#[must_use]
pub fn fit(source: Source, space_blocks: u64, beyond: Beyond) -> Source {
    Box::new(source.filter_map(move |request| match request {
        Ok(request) => fitted(request, space_blocks, beyond).map(Ok),
        Err(error) => Some(Err(error)),
    }))
}

/// Times of arrival multiplied by `factor`, not negative: gaps grow alike.
#[must_use]
pub fn stretch(source: Source, factor: f64) -> Source {
    let stretched = move |request: BlockRequest| BlockRequest { arrival_ns: (request.arrival_ns as f64 * factor).round() as u64, ..request };
    Box::new(source.map(move |request| request.map(stretched)))
}

/// First blocks multiplied by `factor`; those that would have no number end at the last one that has.
#[must_use]
pub fn scatter(source: Source, factor: u64) -> Source {
    let scattered = move |request: BlockRequest| {
        let last = u64::MAX - u64::from(request.blocks);
        BlockRequest { lba: request.lba.saturating_mul(factor).min(last), ..request }
    };
    Box::new(source.map(move |request| request.map(scattered)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(lba: u64, blocks: u32) -> BlockRequest {
        BlockRequest { arrival_ns: 3, lba, blocks, write: true }
    }

    #[test]
    fn folded_requests_keep_their_size_and_end_within() {
        let folded = |lba, blocks| fitted(at(lba, blocks), 100, Beyond::Fold).map(|request| (request.lba, request.blocks));
        assert_eq!(folded(5, 8), Some((5, 8)));
        assert_eq!(folded(205, 8), Some((5, 8)));
        assert_eq!(folded(199, 8), Some((92, 8)));
        assert_eq!(folded(7, 250), Some((0, 100)));
        assert_eq!(folded(u64::MAX, 1), Some((u64::MAX % 100, 1)));
    }

    #[test]
    fn clipped_requests_lose_what_lies_beyond() {
        let clipped = |lba, blocks| fitted(at(lba, blocks), 100, Beyond::Clip).map(|request| (request.lba, request.blocks));
        assert_eq!(clipped(96, 8), Some((96, 4)));
        assert_eq!(clipped(100, 8), None);
        assert_eq!(fitted(at(0, 1), 0, Beyond::Clip), None);
    }

    #[test]
    fn scattered_requests_keep_their_size_and_a_number() {
        let source: Source = Box::new([at(3, 8), at(u64::MAX - 8, 8)].into_iter().map(Ok));
        let scattered: Vec<(u64, u32)> = scatter(source, 512).map(|request| request.unwrap()).map(|request| (request.lba, request.blocks)).collect();
        assert_eq!(scattered, [(1536, 8), (u64::MAX - 8, 8)]);
    }

    #[test]
    fn stretching_multiplies_every_gap() {
        let source: Source = Box::new([0u64, 10, 25].into_iter().map(|arrival_ns| Ok(BlockRequest { arrival_ns, ..at(0, 1) })));
        let times: Vec<u64> = stretch(source, 2.5).map(|request| request.unwrap().arrival_ns).collect();
        assert_eq!(times, [0, 25, 63]);
    }
}
