//! How a disk is divided, as in chapter 5.3.1 of the thesis: from the outermost track on the random access zone, the E-region, and all the rest.

use stripewise_swd::{Geometry, Zone};

use crate::drive::layout::Layout;
use crate::error::Error;

/// Tracks of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Area {
    pub first_track: u32,
    /// How many.
    pub tracks: u32,
}

impl Area {
    fn end(self) -> u32 {
        self.first_track + self.tracks
    }
}

/// The areas of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Areas {
    /// Where writes destroy nothing.
    pub random_access: Area,
    /// The E-region: left untouched by schemes that do not use it.
    pub e_region: Area,
    /// The rest.
    pub data: Area,
}

impl Areas {
    /// Areas of at least so many bytes each, in whole tracks.
    ///
    /// # Errors
    /// Areas that leave nothing of the disk, a random access zone of 2^32 sectors.
    pub fn new(layout: &Layout, block_bytes: u32, random_access_bytes: u64, e_region_bytes: u64) -> Result<Self, Error> {
        let blocks = |bytes: u64| bytes.div_ceil(u64::from(block_bytes));
        let random_tracks = tracks(layout, 0, blocks(random_access_bytes))
            .filter(|_| blocks(random_access_bytes) < 1 << 31)
            .ok_or_else(|| Error::key("random_access_bytes", "is more than the disk or 2^31 sectors", "give less"))?;
        let e_tracks = tracks(layout, random_tracks, blocks(e_region_bytes))
            .filter(|&e_tracks| random_tracks + e_tracks < layout.tracks())
            .ok_or_else(|| Error::key("e_region_bytes", "leaves nothing of the disk", "give less"))?;
        let data = random_tracks + e_tracks;
        Ok(Self {
            random_access: Area { first_track: 0, tracks: random_tracks },
            e_region: Area { first_track: random_tracks, tracks: e_tracks },
            data: Area { first_track: data, tracks: layout.tracks() - data },
        })
    }

    /// What a scheme works on: the data area, with the E-region before it where the scheme uses it.
    #[must_use]
    pub fn main(&self, with_e_region: bool) -> Area {
        if with_e_region { Area { first_track: self.e_region.first_track, tracks: self.e_region.tracks + self.data.tracks } } else { self.data }
    }
}

/// Whole tracks from `first` on that hold so many blocks.
fn tracks(layout: &Layout, first: u32, blocks: u64) -> Option<u32> {
    if blocks == 0 {
        return Some(0);
    }
    let begin = layout.place(first)?.first_block;
    let last = layout.track_of(begin + blocks - 1);
    (last < layout.tracks()).then_some(last - first + 1)
}

/// Sectors of an area.
pub(crate) fn sectors(layout: &Layout, area: Area) -> u64 {
    let begin = |track: u32| layout.place(track).map_or(layout.blocks(), |place| place.first_block);
    begin(area.end()) - begin(area.first_track)
}

/// The shape of an area, for a medium that carries no data.
pub(crate) fn geometry(layout: &Layout, main: Area, random_access: Area, head_tracks: u32) -> Result<Geometry, Error> {
    let clipped = |(first, tracks, sectors): (u32, u32, u32)| {
        let (from, to) = (first.max(main.first_track), (first + tracks).min(main.end()));
        (from < to).then(|| Zone { tracks: to - from, sectors })
    };
    let zones: Vec<Zone> = layout.zones().filter_map(clipped).collect();
    let random = u32::try_from(sectors(layout, random_access)).unwrap_or(u32::MAX);
    Geometry::new(&zones, head_tracks, 0, random).map_err(|error| Error::Invalid(error.to_string()))
}
