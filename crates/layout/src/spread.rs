//! The layout of a new file on targets of unequal room, made from a template by who has no allocator.
//!
//! Equal widths end where the smallest target is full. So the file's head keeps the template's widths only as far as thousands of files that grow at once have
//! room for theirs, on the targets with room for that; from there on each target gets as much of a cycle as it has of the room, and all of them fill up
//! together, however many files grow. Nothing of this changes later: who writes never changes a layout. Files begin on one target or another, by chance, so
//! that small ones are not all on the first.

use crate::format::{CRC_AT, HEADER, MAGIC, ORIGIN_AT, PLACEMENT, REGION, REPEATS, STRIPE, VERSION, placement_flags};
use crate::region::RegionRef;
use crate::stamp::{checksum, put};
use crate::{GRANULE, MAX_LOGICAL, MAX_TARGETS, Origin, View};

/// Files whose heads, grown together, fit on a target: of a hundred they take a hundredth of it out of proportion.
const HEADS: u64 = 8192;
/// Of all room, percent that a template must reach to be left as it is.
const ENOUGH_PERCENT: u128 = 95;
/// Of all room, percent that rounding widths down to granules may lose; else the cycle gets longer.
const LOST_PERCENT: u128 = 1;
/// Widest stripe, granules (256 MiB): a target with a 65,536th of the largest one's room still gets a granule.
const WIDEST: u64 = 65_536;
/// No target has more room that counts, bytes (16 PiB): sums and products then fit their words.
const MOST_ROOM: u64 = 1 << 54;

/// What somebody asks for of a new file's stripes; of what he leaves open the template decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Striping {
    /// How many targets; 0 = all of the template's.
    pub count: u32,
    /// Bytes; 0 = the template's. Rounded up to granules.
    pub width_bytes: u64,
    /// Place of the first one among the template's, from 1 on; 0 = any.
    pub first: u32,
}

/// Why a new file does not get the stripes that it was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotAsked {
    /// The template has several regions, or one that is too long.
    Shaped,
    /// All targets would be used, and have unlike room: who writes most would fill the smallest.
    Unlike,
    /// One of the targets has no room for a stripe.
    NoRoom,
}

/// What a new file gets instead of a template ([`Spread::of`], [`Spread::asked`]).
pub struct Spread<'a> {
    template: RegionRef<'a>,
    origin: Origin,
    /// Bytes of the head; 0 = none.
    head: u64,
    /// Bytes of a window of the tail.
    tail_len: u64,
    /// By stripe of the template: in the head, and its granules in a cycle of the tail.
    in_head: [bool; MAX_TARGETS as usize],
    granules: [u32; MAX_TARGETS as usize],
    /// Stripe with which both cycles begin, where files of a few bytes go.
    first: usize,
}

impl<'a> Spread<'a> {
    /// How a file is spread over the targets of `template`, each with `room` of its number, which may change meanwhile; `chance` decides with which one it
    /// begins, each in proportion to its room. `None` where the template serves as it is: it says more than one region, and so was made by somebody who knows
    /// the file; or it fills 95 % of all room and `chance` is none, or chose its first stripe.
    #[must_use]
    #[inline(never)] // Its tables would lie on the stack below what is done after it.
    pub fn of(template: &View<'a>, room: impl Fn(u32) -> u64, chance: Option<u64>) -> Option<Self> {
        let region = template.home().region(0).filter(|r| template.region_count() == 1 && !r.is_original())?;
        if !template.pending().is_empty() || !template.retired().is_empty() || template.replica_count() != 0 {
            return None;
        }
        let room_of = |target: u32| room(target).min(MOST_ROOM);
        let whole: u128 = region.stripes().map(|(target, _)| u128::from(room_of(target))).sum();
        let cycle: u64 = region.stripes().map(|(_, width)| width).sum();
        let reached = region.stripes().map(|(target, width)| u128::from(room_of(target)) * u128::from(cycle) / u128::from(width)).min()?;
        let most = region.stripes().map(|(target, _)| room_of(target)).max().filter(|most| *most > 0)?;
        let mut left = (u128::from(chance.unwrap_or(0)) * whole) >> 64;
        let first = region.stripes().position(|(target, _)| {
            let (is_here, room) = (left < u128::from(room_of(target)), u128::from(room_of(target)));
            left = left.saturating_sub(room);
            is_here
        })?;
        let mut spread = Self {
            template: region,
            origin: template.origin(),
            head: 0,
            tail_len: region.len,
            in_head: [false; MAX_TARGETS as usize],
            granules: [0; MAX_TARGETS as usize],
            first,
        };
        if reached * 100 >= whole * ENOUGH_PERCENT {
            for ((_, width), granules) in region.stripes().zip(&mut spread.granules) {
                *granules = u32::try_from(width / GRANULE).ok()?;
            }
            return (chance.is_some() && first != 0).then_some(spread);
        }
        spread.weigh(room_of, whole, most);
        let cycle: u64 = spread.tail_stripes().map(|(_, width)| width).sum();
        spread.tail_len = cycle * region.len.div_ceil(cycle.max(1));
        spread.begin(room_of);
        (cycle > 0).then_some(spread)
    }

    /// A file in the stripes that were asked for, over neighbours in the template, the first one behind the last; more than there are are all. `chance` decides
    /// with which one it begins, where nobody says that.
    ///
    /// # Errors
    /// [`NotAsked`], and the file lies as any other.
    #[inline(never)] // As above.
    pub fn asked(template: &View<'a>, asked: &Striping, room: impl Fn(u32) -> u64, chance: u64) -> Result<Self, NotAsked> {
        let region = template.home().region(0).filter(|r| template.region_count() == 1 && !r.is_original()).ok_or(NotAsked::Shaped)?;
        if !template.pending().is_empty() || !template.retired().is_empty() || template.replica_count() != 0 {
            return Err(NotAsked::Shaped);
        }
        let there = region.stripes().count();
        let count = if asked.count == 0 { there } else { there.min(asked.count as usize) };
        if count == there && Self::of(template, &room, None).is_some() {
            return Err(NotAsked::Unlike);
        }
        let first = match (asked.first as usize).checked_sub(1) {
            Some(first) if first < there => first,
            _ => ((u128::from(chance) * there as u128) >> 64) as usize,
        };
        let mut spread = Self {
            template: region,
            origin: Origin::Given,
            head: 0,
            tail_len: 0,
            in_head: [false; MAX_TARGETS as usize],
            granules: [0; MAX_TARGETS as usize],
            first,
        };
        let mut cycle = 0;
        for (place, target, width) in spread.turned().take(count) {
            let width = if asked.width_bytes == 0 { width } else { asked.width_bytes };
            let granules = width.div_ceil(GRANULE).min(WIDEST);
            if room(target) < granules * GRANULE {
                return Err(NotAsked::NoRoom);
            }
            if let Some(taken) = spread.granules.get_mut(place) {
                *taken = granules as u32;
            }
            cycle += granules * GRANULE;
        }
        let turns = region.len.div_ceil(cycle.max(1));
        spread.tail_len = cycle.checked_mul(turns).filter(|len| (1..=MAX_LOGICAL / 4).contains(len)).ok_or(NotAsked::Shaped)?;
        Ok(spread)
    }

    /// The stripes of a file in one region, in their order: targets and widths in bytes.
    pub fn stripes(&self) -> impl Iterator<Item = (u32, u64)> + use<'_, 'a> {
        self.tail_stripes()
    }

    /// The cycle of the tail: granules in proportion to the room, as few as lose little of it by rounding.
    fn weigh(&mut self, room_of: impl Fn(u32) -> u64, whole: u128, most: u64) {
        let mut widest = self.template.stripes().map(|(_, width)| width / GRANULE).max().unwrap_or(1).clamp(1, WIDEST);
        loop {
            let mut kept = 0u128;
            for ((target, _), granules) in self.template.stripes().zip(&mut self.granules) {
                *granules = (u128::from(room_of(target)) * u128::from(widest) / u128::from(most)).min(u128::from(widest)) as u32;
                kept += u128::from(*granules) * u128::from(most) / u128::from(widest);
            }
            if widest >= WIDEST || whole.saturating_sub(kept) * 100 <= whole * LOST_PERCENT {
                return;
            }
            widest = (widest * 4).min(WIDEST);
        }
    }

    /// The head, where there is room for heads, and it is not what the tail would be.
    fn begin(&mut self, room_of: impl Fn(u32) -> u64) {
        let mut turns = u64::MAX;
        for ((target, width), is_in) in self.template.stripes().zip(&mut self.in_head) {
            let fit = room_of(target) / HEADS / width;
            *is_in = fit > 0;
            turns = if *is_in { turns.min(fit) } else { turns };
        }
        let cycle: u64 = self.head_stripes().map(|(_, width)| width).sum();
        if cycle > 0 && !self.head_stripes().eq(self.tail_stripes()) {
            self.head = cycle * turns.min(MAX_LOGICAL / 4 / cycle);
        }
    }

    /// Stripes of the template from the first one on, with their numbers.
    fn turned(&self) -> impl Iterator<Item = (usize, u32, u64)> + use<'a> {
        let (stripes, first) = (self.template, self.first);
        let numbered = move || stripes.stripes().enumerate().map(|(i, (target, width))| (i, target, width));
        numbered().skip(first).chain(numbered().take(first))
    }

    fn head_stripes(&self) -> impl Iterator<Item = (u32, u64)> + use<'_, 'a> {
        self.turned().filter(|(i, _, _)| self.in_head.get(*i) == Some(&true)).map(|(_, target, width)| (target, width))
    }

    fn tail_stripes(&self) -> impl Iterator<Item = (u32, u64)> + use<'_, 'a> {
        self.turned().filter_map(|(i, target, _)| {
            let granules = self.granules.get(i).copied().unwrap_or(0);
            (granules > 0).then_some((target, u64::from(granules) * GRANULE))
        })
    }

    /// Bytes of its layout file.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let (regions, stripes) = self.counts();
        HEADER + regions * (REGION + PLACEMENT) + stripes * STRIPE + 4 * self.index_entries(regions)
    }

    fn counts(&self) -> (usize, usize) {
        let head = if self.head > 0 { self.head_stripes().count() } else { 0 };
        (1 + usize::from(self.head > 0), head + self.tail_stripes().count())
    }

    /// Entries of the bucket index, and its shift: [`crate::encode`]'s rule for a list whose last region starts where the head ends.
    fn index_shift(&self, regions: usize) -> u32 {
        (12..62).find(|shift| (self.head >> shift) < 4 * regions as u64).unwrap_or(62)
    }

    fn index_entries(&self, regions: usize) -> usize {
        (self.head >> self.index_shift(regions)) as usize + 1
    }

    /// Writes its layout file, a template whose id [`crate::stamp`] writes, into zeros of [`Spread::bytes`] bytes.
    pub fn encode(&self, into: &mut [u8]) {
        let ((regions, stripes), has_head) = (self.counts(), self.head > 0);
        let shift = self.index_shift(regions);
        let mut at = Cursor { into, at: HEADER };
        if has_head {
            at.u64s(&[0, self.head]).u32s(&[self.template.generation, 0, 0, 0]);
        }
        at.u64s(&[self.head, self.tail_len]).u32s(&[self.template.generation, u32::from(has_head), REPEATS, 0]);
        let head_stripes = stripes - self.tail_stripes().count();
        if has_head {
            at.placement(self.head_stripes(), 0);
        }
        at.placement(self.tail_stripes(), head_stripes);
        if has_head {
            at.stripes(self.head_stripes());
        }
        at.stripes(self.tail_stripes());
        for entry in 0..self.index_entries(regions) as u64 {
            at.u32s(&[u32::from(has_head && entry << shift >= self.head)]);
        }
        let bytes = at.at as u64;
        let largest =
            self.turned().filter(|(i, _, _)| self.granules.get(*i).is_some_and(|g| *g > 0) || (has_head && self.in_head.get(*i) == Some(&true)));
        let targets = largest.map(|(_, target, _)| target + 1).max().unwrap_or(0);
        let into = at.into;
        put(into, 0, MAGIC);
        let counts = [regions as u32, 0, 0, regions as u32, stripes as u32, 0, 0, 0, self.index_entries(regions) as u32, shift, 0, targets];
        Cursor { into, at: 8 }.u32s(&[VERSION, 0]).u64s(&[bytes, 0]).u32s(&counts);
        put(into, ORIGIN_AT, &(self.origin as u32).to_le_bytes());
        let crc = checksum(into);
        put(into, CRC_AT, &crc.to_le_bytes());
    }
}

/// A place in the bytes that are written.
struct Cursor<'m> {
    into: &'m mut [u8],
    at: usize,
}

impl Cursor<'_> {
    fn u64s(&mut self, values: &[u64]) -> &mut Self {
        for value in values {
            put(self.into, self.at, &value.to_le_bytes());
            self.at += 8;
        }
        self
    }

    fn u32s(&mut self, values: &[u32]) -> &mut Self {
        for value in values {
            put(self.into, self.at, &value.to_le_bytes());
            self.at += 4;
        }
        self
    }

    fn placement(&mut self, stripes: impl Iterator<Item = (u32, u64)>, first: usize) {
        let (mut cycle, mut count, mut equal) = (0, 0, None);
        for (_, width) in stripes {
            equal = if count == 0 { Some(width) } else { equal.filter(|known| *known == width) };
            cycle += width;
            count += 1;
        }
        self.u64s(&[cycle]).u32s(&[first as u32, count, 0, placement_flags(equal, cycle)]);
    }

    fn stripes(&mut self, stripes: impl Iterator<Item = (u32, u64)>) {
        let mut start = 0;
        for (target, width) in stripes {
            self.u64s(&[width, start]).u32s(&[target, 0]);
            start += width;
        }
    }
}
