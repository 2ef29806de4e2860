//! The two logs at work: pieces of requests, and the collectors `group_destage`, `cache_buffer_defrag` and `S_block_buffer_defrag` (chapter 5.3.2).

use super::cached::Run;
use super::{Indirection, NO_BLOCK, NO_SECTOR};
use crate::error::SwdError;
use crate::medium::{Medium, Purpose};

impl<M: Medium> Indirection<M> {
    /// Where the stored copy of a sector's S-block has it, in sectors of the S-block buffer.
    pub(super) fn stored_at(&self, lba: u64) -> Option<u64> {
        let slot = self.stored.get((lba / self.s_block_sectors) as usize).copied().filter(|&slot| slot != NO_BLOCK)?;
        Some(u64::from(slot) * self.s_block_sectors + lba % self.s_block_sectors)
    }

    /// An S-block's stored copy is in this slot.
    pub(super) fn link(&mut self, block: usize, slot: u64) {
        if let Some(owner) = self.stored_by.get_mut(slot as usize) {
            *owner = block as u32;
        }
        if let Some(stored) = self.stored.get_mut(block) {
            *stored = slot as u32;
        }
    }

    /// Reads sectors of one S-block: its stored copy, then what the cache has of it.
    pub(super) fn read_piece(&mut self, lba: u64, sectors: u64, into: &mut [u8]) -> Result<(), SwdError> {
        let (block, offset) = ((lba / self.s_block_sectors) as usize, lba % self.s_block_sectors);
        let stored_at = self.stored_at(lba);
        // Runs of sectors that lie in a row in the cache, and what is between.
        let (mut runs, mut done) = (Vec::new(), 0);
        for run in self.cached.runs(block, offset, offset + sectors) {
            runs.push((done, run.from - offset, None));
            runs.push((run.from - offset, run.to - offset, Some(run.at)));
            done = run.to - offset;
        }
        runs.push((done, sectors, None));
        runs.retain(|(from, to, _)| from < to);
        for (from, to, cached) in runs {
            let (start, end) = (self.bytes(from), self.bytes(to));
            let part = into.get_mut(start..end).unwrap_or_default();
            match (cached, stored_at) {
                (Some(at), _) => self.transfer(true, at, to - from, part)?,
                (None, Some(at)) => self.transfer(false, at + from, to - from, part)?,
                (None, None) => part.fill(0),
            }
        }
        Ok(())
    }

    fn transfer(&mut self, from_cache: bool, at: u64, sectors: u64, into: &mut [u8]) -> Result<(), SwdError> {
        let region = if from_cache { &self.cache.region } else { &self.store.region };
        let mut rest = into;
        for extent in region.extents(at, sectors) {
            let bytes = self.medium.geometry().bytes(u64::from(extent.sectors)) as usize;
            let (part, after) = rest.split_at_mut(bytes.min(rest.len()));
            rest = after;
            self.medium.read(extent, part)?;
        }
        Ok(())
    }

    /// Appends sectors to the cache, after the collectors have made room; the number of requests that took.
    pub(super) fn write_piece(&mut self, lba: u64, sectors: u64, from: &[u8], purpose: Purpose) -> Result<u64, SwdError> {
        self.medium.purpose(Purpose::Collection);
        let reserve = self.cache.gap() + 2 * self.longest_track;
        while self.cache.size() - self.cached.sectors() < sectors + reserve {
            self.group_destage()?;
        }
        while self.cache.writable() < sectors + self.longest_track {
            self.cache_buffer_defrag()?;
        }
        self.medium.purpose(purpose);
        self.append(lba, sectors, from)
    }

    /// Writes sectors at the head of the cache.
    fn append(&mut self, lba: u64, sectors: u64, from: &[u8]) -> Result<u64, SwdError> {
        let (mut done, mut requests) = (0, 0);
        while done < sectors {
            let at = self.cache.head();
            let count = (sectors - done).min(self.cache.size() - at);
            for extent in self.cache.region.extents(at, count) {
                let (start, end) = (self.bytes(done), self.bytes(done + u64::from(extent.sectors)));
                self.medium.write(extent, from.get(start..end).unwrap_or_default(), None)?;
                requests += 1;
                self.remember(lba + done, u64::from(extent.sectors), self.cache.head());
                self.cache.advance_head(u64::from(extent.sectors));
                done += u64::from(extent.sectors);
            }
        }
        Ok(requests)
    }

    fn remember(&mut self, lba: u64, sectors: u64, at: u64) {
        let mut done = 0;
        while done < sectors {
            let (block, from) = ((lba + done) / self.s_block_sectors, (lba + done) % self.s_block_sectors);
            let to = (from + sectors - done).min(self.s_block_sectors);
            let before = self.cached.insert(block as usize, Run { from, to, at: at + done });
            self.disown(&before);
            done += to - from;
        }
        for (owner, lba) in self.owner.get_mut(at as usize..(at + sectors) as usize).unwrap_or_default().iter_mut().zip(lba..) {
            *owner = lba;
        }
    }

    fn disown(&mut self, runs: &[Run]) {
        for run in runs {
            self.owner.get_mut(run.at as usize..(run.at + run.to - run.from) as usize).unwrap_or_default().fill(NO_SECTOR);
        }
    }

    /// Drops sectors of one S-block from the cache.
    pub(super) fn forget(&mut self, lba: u64, sectors: u64) {
        let from = lba % self.s_block_sectors;
        let before = self.cached.remove((lba / self.s_block_sectors) as usize, from, from + sectors);
        self.disown(&before);
    }

    /// Drops an S-block's stored copy.
    pub(super) fn drop_block(&mut self, block: usize) {
        let Some(slot) = self.stored.get_mut(block) else { return };
        if let Some(owner) = self.stored_by.get_mut(*slot as usize) {
            *owner = NO_BLOCK;
        }
        *slot = NO_BLOCK;
    }

    /// Frees the tail's track: valid sectors go to the head.
    fn cache_buffer_defrag(&mut self) -> Result<(), SwdError> {
        let tail = self.cache.tail();
        let end = self.cache.region.track_end(tail).min(tail + self.cache.row_from_tail());
        let owners: Vec<u64> = self.owner.get(tail as usize..end as usize).unwrap_or_default().to_vec();
        let mut index = 0;
        while let Some(&first) = owners.get(index) {
            let follows = |(step, &owner): (usize, &u64)| owner == first + step as u64;
            let run = owners.iter().skip(index).enumerate().take_while(|&pair| first != NO_SECTOR && follows(pair)).count();
            if run > 0 {
                let mut bytes = vec![0; self.bytes(run as u64)];
                self.transfer(true, tail + index as u64, run as u64, &mut bytes)?;
                let requests = self.append(first, run as u64, &bytes)?;
                self.count_extra(1, requests, 2 * run as u64);
            }
            index += run.max(1);
        }
        self.counters.collections += 1;
        self.cache.advance_tail(end - tail);
        Ok(())
    }

    /// The logical sector that has been in the cache for longest.
    fn oldest_sector(&mut self) -> Option<u64> {
        let (from, to) = self.cache.range();
        self.oldest = self.oldest.max(from);
        while self.oldest < to {
            let owner = self.owner.get((self.oldest % self.cache.size()) as usize).copied().filter(|&owner| owner != NO_SECTOR);
            if owner.is_some() {
                return owner;
            }
            self.oldest += 1;
        }
        None
    }

    /// Brings the S-block of the oldest valid sector, with all that the cache has of it, to the S-block buffer.
    fn group_destage(&mut self) -> Result<(), SwdError> {
        let Some(oldest) = self.oldest_sector() else { return Ok(()) };
        let block = (oldest / self.s_block_sectors) as usize;
        while self.store.writable() < 2 {
            self.s_block_buffer_defrag()?;
        }
        let first = block as u64 * self.s_block_sectors;
        let mut bytes = vec![0; self.bytes(self.s_block_sectors)];
        self.read_piece(first, self.s_block_sectors, &mut bytes)?;
        self.forget(first, self.s_block_sectors);
        self.drop_block(block);
        self.counters.collections += 1;
        self.store_block(block, &bytes)
    }

    /// Frees the tail's S-block; a valid one goes to the head.
    fn s_block_buffer_defrag(&mut self) -> Result<(), SwdError> {
        if self.store.is_empty() {
            return Ok(());
        }
        let slot = self.store.tail();
        if let Some(block) = self.stored_by.get(slot as usize).copied().filter(|&block| block != NO_BLOCK) {
            let mut bytes = vec![0; self.bytes(self.s_block_sectors)];
            self.transfer(false, slot * self.s_block_sectors, self.s_block_sectors, &mut bytes)?;
            self.drop_block(block as usize);
            self.store_block(block as usize, &bytes)?;
        }
        self.counters.collections += 1;
        self.store.advance_tail(1);
        Ok(())
    }

    /// Writes an S-block at the head of the S-block buffer.
    fn store_block(&mut self, block: usize, from: &[u8]) -> Result<(), SwdError> {
        let slot = self.store.head();
        let mut done = 0;
        let extents = self.store.region.extents(slot * self.s_block_sectors, self.s_block_sectors);
        self.count_extra(1, extents.len() as u64, 2 * self.s_block_sectors);
        for extent in extents {
            let (start, end) = (self.bytes(done), self.bytes(done + u64::from(extent.sectors)));
            self.medium.write(extent, from.get(start..end).unwrap_or_default(), None)?;
            done += u64::from(extent.sectors);
        }
        self.link(block, slot);
        self.store.advance_head(1);
        Ok(())
    }

    fn count_extra(&mut self, reads: u64, writes: u64, sectors: u64) {
        self.counters.extra_reads += reads;
        self.counters.extra_writes += writes;
        self.counters.extra_sectors += sectors;
    }
}
