//! What is gone of a file, by what is known of its objects without reading any, and beside what checksums were kept of: a move would copy zeros in its place.

use std::collections::BTreeMap;

use stripewise_layout::{GRANULE, Table};

use super::link::{called, word};
use super::publish::{objects_of, objects_reached};
use super::ranges::joined;
use super::reader::{layout_bytes, view};
use super::sums::{Rest, Stamp, Sums, load, save};
use crate::admin::error::{Context, Result};
use crate::admin::info::size_at_least;
use crate::admin::objects::{self, ObjectId};
use crate::admin::store::Store;

/// So many ranges of a file are told; JSON has all.
const RANGES_SHOWN: usize = 8;

/// What is gone of a file, each as a sentence and its cure, by what its targets tell of its objects, none of which is read: objects that are missing,
/// whose sentence has its cure, and ends of objects that the last scrub saw and nobody has cut. Nothing of targets that are away.
///
/// # Errors
/// What keeps it from being looked at.
pub fn lost(store: &Store<'_>, id: u64) -> Result<Vec<(String, String)>> {
    let _session = store.lock_shared()?;
    let layout = store.layout(id)?;
    let bytes = layout_bytes(store, id)?;
    let table = view(store, id, &bytes)?.home();
    let size = size_at_least(store, id, &layout)?;
    let (kept, reached) = (load(store, id)?, objects_reached(store, id, &layout, size)?);
    let is_unwritten = kept.rest.is_some() && kept.rest == Some(rest(store, id, layout.generation)?);
    let mut found = Vec::new();
    for object in objects_of(&layout) {
        if store.away(object.0 as usize).is_some() {
            continue;
        }
        let Some(facts) = objects::look(store, id, object)? else {
            if reached.contains(&object) {
                found.push((objects::missing(store, id, object.0, &store.object(object.0, id, object.1)?).to_string(), String::new()));
            }
            continue;
        };
        let before = kept.objects.get(&object).filter(|before| is_unwritten && facts.len < before.stamp.size);
        if let Some((_, what)) = before.and_then(|before| cut(&table, object, before.stamp.size, facts.len, size)) {
            let cure = format!("restore it from a copy, or take it out as it is: stripewise store export {}", word(store, id));
            found.push((format!("{} on target {}: {what}", called(store, id), store.target(object.0)?.name), cure));
        }
    }
    Ok(found)
}

/// The bytes of a file of `size` that are gone where one of its objects, of `had` bytes, has so many now; nothing where that held none of the file.
pub fn cut(table: &Table<'_>, object: ObjectId, had: u64, now: u64, size: u64) -> Option<(Vec<(u64, u64)>, String)> {
    let ranges = logical(table, object, granules(now, had - now), size);
    let what = format!("bytes {} are gone though nobody wrote the file: its object was cut to {now} bytes", text_of(&ranges));
    (!ranges.is_empty()).then_some((ranges, what))
}

/// The file's rest as it is now.
///
/// # Errors
/// `Io`.
pub fn rest(store: &Store<'_>, id: u64, generation: u64) -> Result<Rest> {
    let head = store.part(id, "head");
    let found = store.medium.stat(&head).doing("look at", &head)?;
    Ok(Rest { head_mtime_ns: found.map_or(0, |found| found.mtime_ns), generation })
}

/// What checksums were kept of a file that no program has written since, and the stamps that its objects have now.
pub struct Known {
    sums: Sums,
    rest: Rest,
    stamps: BTreeMap<ObjectId, Stamp>,
}

impl Known {
    /// Before a move of a file with a layout of this generation; `None` where nothing is known.
    ///
    /// # Errors
    /// `Io`, `Newer`.
    pub fn of(store: &Store<'_>, id: u64, generation: u64) -> Result<Option<Self>> {
        let sums = load(store, id)?;
        let Some(rest) = sums.rest.filter(|kept| rest(store, id, generation).is_ok_and(|now| now == *kept)) else { return Ok(None) };
        let stamps = stamps(store, id, &sums)?;
        Ok(Some(Self { sums, rest, stamps }))
    }

    /// After the move, whose layout has this generation: what was known of objects that it left as they were is known still, unless a program has written the
    /// file meanwhile.
    ///
    /// # Errors
    /// `Io`.
    pub fn carry(mut self, store: &Store<'_>, id: u64, generation: u64) -> Result<()> {
        let rest = rest(store, id, generation)?;
        if rest.head_mtime_ns != self.rest.head_mtime_ns || generation == self.rest.generation {
            return Ok(());
        }
        let now = stamps(store, id, &self.sums)?;
        self.sums.objects.retain(|object, _| now.get(object).is_some_and(|stamp| self.stamps.get(object) == Some(stamp)));
        self.sums.rest = Some(rest);
        save(store, id, &self.sums)
    }
}

/// Those of a file's objects, of which sums were kept, that are there.
fn stamps(store: &Store<'_>, id: u64, sums: &Sums) -> Result<BTreeMap<ObjectId, Stamp>> {
    let mut found = BTreeMap::new();
    for object in sums.objects.keys().filter(|object| store.away(object.0 as usize).is_none()) {
        if let Some(facts) = objects::look(store, id, *object)? {
            found.insert(*object, Stamp::of(&facts));
        }
    }
    Ok(found)
}

/// The granules of an object that a range of it touches.
pub fn granules(at: u64, len: u64) -> impl Iterator<Item = u64> {
    (at / GRANULE..(at + len).div_ceil(GRANULE)).map(|granule| granule * GRANULE)
}

/// The bytes of the file that lie in granules of an object.
pub fn logical(table: &Table<'_>, (target, plane): ObjectId, granules: impl Iterator<Item = u64>, size: u64) -> Vec<(u64, u64)> {
    let found = granules.filter_map(|granule| table.inverse(target, plane, granule)).filter(|at| *at < size);
    joined(found.map(|at| (at, (at + GRANULE).min(size))).collect())
}

/// Ranges for people: first and last byte of each, of many the first ones.
pub fn text_of(ranges: &[(u64, u64)]) -> String {
    let shown = ranges.iter().take(RANGES_SHOWN).map(|(from, to)| format!("{from}-{}", to - 1)).collect::<Vec<_>>().join(", ");
    if ranges.len() > RANGES_SHOWN { format!("{shown} and {} more ranges", ranges.len() - RANGES_SHOWN) } else { shown }
}
