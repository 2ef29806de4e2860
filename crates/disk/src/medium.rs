//! A medium of times only: what a scheme asks of it moves a simulated disk, and a clock tells how long that takes.

use stripewise_swd::{Extent, Geometry, Medium, MediumError, Purpose, Spare};

use crate::counts::accounts::Accounts;
use crate::drive::ahead::{Ahead, Lookup, ReadCache};
use crate::drive::areas::{Area, Areas, geometry, sectors};
use crate::drive::behind::WriteCache;
use crate::drive::layout::Place;
use crate::drive::mechanics::{Mechanics, Motion, transfer_ns};
use crate::drive::spec::DiskSpec;
use crate::error::Error;

/// How the disk's memory is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Reads fill segments, which are read ahead.
    pub reads: bool,
    /// Writes wait in memory until the disk is idle, the cache full, or a flush comes.
    pub write_back: bool,
}

/// A simulated disk under a scheme; carries no data. Buffers are empty, and no spare area is remembered.
#[derive(Clone, Debug)]
pub struct TimedMedium {
    mechanics: Mechanics,
    geometry: Geometry,
    main: Area,
    random_access: Area,
    now_ns: u64,
    purpose: Purpose,
    accounts: Accounts,
    reads: Option<ReadCache>,
    writes: Option<WriteCache>,
    /// The block after the last access, and when that ended.
    next_block: u64,
    ended_ns: u64,
}

impl TimedMedium {
    /// The `main` area of a disk with `areas`, written by heads `head_tracks` wide.
    ///
    /// # Errors
    /// A disk, areas or a head that cannot be.
    pub fn new(spec: &DiskSpec, mechanics: Mechanics, areas: &Areas, main: Area, head_tracks: u32, cache: CacheUse) -> Result<Self, Error> {
        let geometry = geometry(mechanics.layout(), main, areas.random_access, head_tracks)?;
        let none = |key| Error::key(key, "is 0 though the cache is to be used", "give the disk segments, or leave the cache off");
        let reads = cache.reads.then(|| ReadCache::new(spec.cache_segments, spec.cache_segment_blocks));
        let writes = cache.write_back.then(|| WriteCache::new(spec.cache_write_segments, spec.cache_segment_blocks));
        if reads.is_some() && spec.cache_segments == 0 {
            return Err(none("disk.cache_segments"));
        }
        if writes.is_some() && spec.cache_write_segments == 0 {
            return Err(none("disk.cache_write_segments"));
        }
        Ok(Self {
            mechanics,
            geometry,
            main,
            random_access: areas.random_access,
            now_ns: 0,
            purpose: Purpose::Own,
            accounts: Accounts::default(),
            reads,
            writes,
            next_block: u64::MAX,
            ended_ns: 0,
        })
    }

    /// The clock, ns.
    #[inline]
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// What was done so far.
    #[must_use]
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// The moving parts.
    #[must_use]
    pub fn mechanics(&self) -> &Mechanics {
        &self.mechanics
    }

    /// Forgets the accounts, not the state of the disk.
    pub fn clear_accounts(&mut self) {
        self.accounts = Accounts::default();
    }

    /// Sets the clock and the accounts to nothing: what was done before a run begins.
    pub fn begin(&mut self) {
        self.clear_accounts();
        self.now_ns = 0;
        self.ended_ns = 0;
        self.next_block = u64::MAX;
        self.purpose = Purpose::Own;
    }

    /// Nobody asks for anything until `ns`: what the cache holds goes to the medium, as long as its writes begin before that.
    pub fn idle_until(&mut self, ns: u64) {
        while self.now_ns < ns && self.destage() {}
        self.now_ns = self.now_ns.max(ns);
    }

    /// Time passes in which the arm waits for a command.
    #[inline]
    pub fn wait_until(&mut self, ns: u64) {
        self.now_ns = self.now_ns.max(ns);
    }

    /// Where an extent is.
    #[inline]
    #[must_use]
    pub fn place(&self, at: Extent) -> Option<Place> {
        self.mechanics.layout().place(at.track.checked_add(self.main.first_track)?)
    }

    /// How long the arm and the disk would take until a place, ns, beginning now.
    #[inline]
    #[must_use]
    pub fn positioning_ns(&self, place: &Place, sector: u32, write: bool) -> u64 {
        self.mechanics.positioning_ns(self.now_ns, place, sector, write)
    }

    /// Whether the cache would serve a read of `sectors` from there.
    #[must_use]
    pub fn holds(&self, place: &Place, sector: u32, sectors: u64) -> bool {
        let block = place.first_block + u64::from(sector);
        let kept = |writes: &WriteCache| writes.holds(block, sectors);
        self.writes.as_ref().is_some_and(kept) || self.reads.as_ref().is_some_and(|reads| reads.holds(block, sectors))
    }

    /// Whether the cache keeps what is read.
    #[must_use]
    pub fn caches_reads(&self) -> bool {
        self.reads.is_some()
    }

    /// Whether the cache takes writes.
    #[must_use]
    pub fn takes_writes(&self) -> bool {
        self.writes.is_some()
    }

    /// Sectors of the main area.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        sectors(self.mechanics.layout(), self.main)
    }

    fn find(&self, track: u32, sector: u32, count: u32) -> Result<Place, MediumError> {
        let place = self.place(Extent { track, sector, sectors: count }).filter(|_| track < self.main.tracks);
        let inside = |place: &Place| sector.checked_add(count).is_some_and(|end| end <= place.sectors);
        place.filter(inside).ok_or(MediumError::Range { track, sector })
    }

    /// Moves the disk and the clock.
    #[inline]
    fn access(&mut self, purpose: Purpose, place: &Place, sector: u32, count: u32, write: bool) {
        let mut motion = self.mechanics.access(self.now_ns, place, sector, count, write);
        let block = place.first_block + u64::from(sector);
        // In the middle of a transfer the wait for the next track is part of it.
        if block == self.next_block && self.now_ns == self.ended_ns {
            motion.transfer_ns += core::mem::take(&mut motion.rotation_ns);
        }
        self.spend(purpose, count, &motion);
        self.next_block = block + u64::from(count);
    }

    #[inline]
    fn spend(&mut self, purpose: Purpose, count: u32, motion: &Motion) {
        self.now_ns += motion.ns();
        self.ended_ns = self.now_ns;
        self.accounts.access(purpose, count, motion);
    }

    fn read_at(&mut self, place: &Place, sector: u32, count: u32) {
        let (block, blocks) = (place.first_block + u64::from(sector), u64::from(count));
        if self.writes.as_ref().is_some_and(|writes| writes.holds(block, blocks)) {
            self.accounts.hit(self.purpose);
            return;
        }
        while self.writes.as_ref().is_some_and(|writes| writes.touches(block, blocks)) {
            self.destage();
        }
        if self.reads.is_none() {
            return self.access(self.purpose, place, sector, count, false);
        }
        self.go_ahead(self.now_ns, u64::MAX);
        match self.reads.as_mut().map_or(Lookup::Miss, |reads| reads.look_up(block, blocks)) {
            Lookup::Hit => self.accounts.hit(self.purpose),
            Lookup::Coming => self.wait_for(block + blocks, count),
            Lookup::Miss => {
                self.access(self.purpose, place, sector, count, false);
                let blocks_max = self.mechanics.layout().blocks();
                if let Some(reads) = self.reads.as_mut() {
                    reads.insert(block, blocks, self.now_ns, blocks_max);
                }
            }
        }
    }

    /// Reads on ahead until `until_ns` or the block `end`, whichever comes first.
    fn go_ahead(&mut self, until_ns: u64, end: u64) {
        let Some(mut ahead) = self.reads.as_ref().and_then(ReadCache::ahead) else { return };
        while ahead.block < ahead.limit.min(end) && ahead.ready_ns < until_ns {
            let Some(place) = self.mechanics.layout().place(self.mechanics.layout().track_of(ahead.block)) else { break };
            let sector = (ahead.block - place.first_block) as u32;
            let count = u64::from(place.sectors - sector).min(ahead.limit.min(end) - ahead.block) as u32;
            let positioning_ns = self.mechanics.positioning_ns(ahead.ready_ns, &place, sector, false);
            if ahead.ready_ns + positioning_ns >= until_ns {
                break;
            }
            self.mechanics.access(ahead.ready_ns, &place, sector, count, false);
            ahead.ready_ns += positioning_ns;
            let done = (u128::from(until_ns - ahead.ready_ns) << 20) / u128::from(place.sector_fixed.max(1));
            let done = u32::try_from(done).unwrap_or(u32::MAX).min(count);
            ahead.block += u64::from(done);
            ahead.ready_ns += transfer_ns(&place, done);
            if done < count {
                break;
            }
        }
        if let Some(reads) = self.reads.as_mut() {
            reads.set_ahead(Some(ahead));
        }
    }

    /// A read that continues what is being read ahead: it waits for its last block, and reading ahead goes on.
    fn wait_for(&mut self, end: u64, count: u32) {
        let blocks_max = self.mechanics.layout().blocks();
        if let Some(reads) = self.reads.as_mut()
            && let Some(ahead) = reads.ahead()
        {
            let limit = reads.further(end, blocks_max).max(end);
            reads.set_ahead(Some(Ahead { limit, ..ahead }));
        }
        self.go_ahead(u64::MAX, end);
        let ready_ns = self.reads.as_ref().and_then(ReadCache::ahead).map_or(self.now_ns, |ahead| ahead.ready_ns);
        let motion = Motion { transfer_ns: ready_ns.saturating_sub(self.now_ns), ..Motion::default() };
        self.spend(self.purpose, count, &motion);
    }

    fn write_at(&mut self, place: &Place, sector: u32, count: u32) {
        let (block, blocks) = (place.first_block + u64::from(sector), u64::from(count));
        if let Some(reads) = self.reads.as_mut() {
            reads.forget(block, blocks);
        }
        if self.writes.as_ref().is_some_and(|writes| writes.fits(blocks)) {
            while self.writes.as_ref().is_some_and(|writes| !writes.has_room(block, blocks)) && self.destage() {}
            if let Some(writes) = self.writes.as_mut() {
                writes.put(block, blocks, self.purpose);
            }
            self.accounts.hit(self.purpose);
            return;
        }
        while self.destage() {}
        self.stop_ahead();
        self.access(self.purpose, place, sector, count, true);
    }

    /// The arm is where reading ahead has brought it, and is now wanted elsewhere.
    fn stop_ahead(&mut self) {
        if self.reads.is_some() {
            self.go_ahead(self.now_ns, u64::MAX);
        }
        if let Some(reads) = self.reads.as_mut() {
            reads.set_ahead(None);
        }
    }

    /// Writes the oldest run of the cache to the medium; false when there is none.
    fn destage(&mut self) -> bool {
        let Some(dirty) = self.writes.as_mut().and_then(WriteCache::take) else { return false };
        self.stop_ahead();
        let mut block = dirty.start;
        while block < dirty.end {
            let Some(place) = self.mechanics.layout().place(self.mechanics.layout().track_of(block)) else { break };
            let sector = (block - place.first_block) as u32;
            let count = u64::from(place.sectors - sector).min(dirty.end - block) as u32;
            self.access(dirty.purpose, &place, sector, count, true);
            block += u64::from(count);
        }
        true
    }

    /// Sectors of the random access zone, track by track.
    fn random(&mut self, sector: u32, count: u32, write: bool) -> Result<(), MediumError> {
        let range = MediumError::Range { track: self.geometry.tracks(), sector };
        let end = sector.checked_add(count).filter(|&end| end <= self.geometry.random_access_sectors()).ok_or(range)?;
        let first = self.mechanics.layout().place(self.random_access.first_track).map_or(0, |place| place.first_block);
        let (mut block, end) = (first + u64::from(sector), first + u64::from(end));
        while block < end {
            let place = self.mechanics.layout().place(self.mechanics.layout().track_of(block)).ok_or(range)?;
            let from = (block - place.first_block) as u32;
            let count = u64::from(place.sectors - from).min(end - block) as u32;
            if write {
                self.write_at(&place, from, count);
            } else {
                self.read_at(&place, from, count);
            }
            block += u64::from(count);
        }
        Ok(())
    }
}

impl Medium for TimedMedium {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    #[inline]
    fn purpose(&mut self, purpose: Purpose) {
        self.purpose = purpose;
    }

    #[inline]
    fn read(&mut self, at: Extent, _into: &mut [u8]) -> Result<(), MediumError> {
        let place = self.find(at.track, at.sector, at.sectors)?;
        self.read_at(&place, at.sector, at.sectors);
        Ok(())
    }

    #[inline]
    fn write(&mut self, at: Extent, _from: &[u8], _spare: Option<&Spare>) -> Result<(), MediumError> {
        let place = self.find(at.track, at.sector, at.sectors)?;
        self.write_at(&place, at.sector, at.sectors);
        Ok(())
    }

    /// The spare area passes under the head before the first sector; what it held is not known.
    fn read_spare(&mut self, track: u32) -> Result<Option<Spare>, MediumError> {
        let place = self.find(track, 0, 1)?;
        self.read_at(&place, 0, 1);
        Ok(None)
    }

    fn read_random(&mut self, sector: u32, sectors: u32, _into: &mut [u8]) -> Result<(), MediumError> {
        self.random(sector, sectors, false)
    }

    fn write_random(&mut self, sector: u32, sectors: u32, _from: &[u8]) -> Result<(), MediumError> {
        self.random(sector, sectors, true)
    }

    fn flush(&mut self) -> Result<(), MediumError> {
        while self.destage() {}
        Ok(())
    }
}
