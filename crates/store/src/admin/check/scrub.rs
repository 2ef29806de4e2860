//! Reading every byte of a file's objects and comparing it with the checksums kept since: a block that changed though nobody wrote the
//! object is bit rot, and so is an end that is gone though nobody wrote the file. Objects that were written are summed anew. Programs may
//! run; an object that is written meanwhile is left for the next time.

use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;
use stripewise_checksum::crc32c;
use stripewise_target::interface::{Object, Opening};

use crate::admin::error::{Context, Result, StoreError};
use crate::admin::ids::id_text;
use crate::admin::info::{link_path, size_at_least};
use crate::admin::metadata::container::is_container;
use crate::admin::metadata::lost::{cut, granules, logical, rest, text_of};
use crate::admin::metadata::publish::{objects_of, objects_reached};
use crate::admin::metadata::reader::{layout_bytes, view};
use crate::admin::metadata::sums::{BLOCK_BYTES, ObjectSums, Rest, Stamp, Sums, load, save, zero_block};
use crate::admin::objects::{self, ObjectId};
use crate::admin::store::Store;

/// Of an object that changed while the file's times stayed.
const AGAINST_TIMES: &str = "it changed since the last scrub, though the file's times tell of no write: a killed writer's, that of a map which was \
                             left at exit, or somebody else's; summed anew";
/// Of an object that is shorter than it was, of a file that was written, or whose times were set.
const SHORTER: &str = "read as zeros, for its object is shorter than at the last scrub: a program cut the file and made it longer again, or they are gone; summed \
                       anew";
/// A stamp tells of later writes only once the clock of the file system has moved on from it.
const STAMP_AGE_NS: i64 = 60_000_000;
/// The same where times are whole seconds.
const COARSE_STAMP_AGE_NS: i64 = 2_100_000_000;

/// Part of a file that is not what it was.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Rot {
    /// Its id.
    pub file: String,
    /// Its name.
    pub path: String,
    /// The target that holds the bytes.
    pub target: String,
    /// The object there.
    pub object: String,
    /// The bytes of the file concerned: [from, to) each; empty when the object could not be opened.
    pub ranges: Vec<(u64, u64)>,
    /// One sentence.
    pub message: String,
}

/// What a scrub found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Scrubbed {
    /// Files looked at.
    pub files: usize,
    /// Objects whose sums were compared.
    pub verified: usize,
    /// Objects that were summed for the first time, or anew because they had been written.
    pub summed: usize,
    /// Objects that were written meanwhile.
    pub busy: usize,
    /// Bytes read.
    pub bytes: u64,
    /// What is wrong.
    pub rot: Vec<Rot>,
    /// Objects that were written, though the times of their file do not tell of it, each in a sentence: killed writers, and maps that are left as they
    /// are at exit, leave such ones; so does who writes an object itself.
    pub suspect: Vec<String>,
    /// Targets that are away, each in a sentence: their objects were not looked at.
    pub away: Vec<String>,
}

/// Limits how fast is read.
pub struct Pace {
    begin: Instant,
    bytes_per_s: u64,
}

impl Pace {
    /// At most so many bytes per second; 0 = as fast as it goes.
    pub fn new(bytes_per_s: u64) -> Self {
        Self { begin: Instant::now(), bytes_per_s }
    }

    /// Waits where so many bytes since the beginning are more than that.
    pub fn keep(&self, bytes: u64) {
        if self.bytes_per_s > 0 {
            let due = Duration::from_secs_f64(bytes as f64 / self.bytes_per_s as f64);
            std::thread::sleep(due.saturating_sub(self.begin.elapsed()));
        }
    }
}

/// Scrubs files, but for those that are removed meanwhile; one that cannot be looked at is a finding.
///
/// # Errors
/// `Stopped`, `Newer`, `Io`.
pub fn scrub_files(store: &Store<'_>, ids: &[u64], pace: &Pace) -> Result<Scrubbed> {
    let mut done = Scrubbed::default();
    for id in ids {
        let (files, rot, suspect) = (done.files, done.rot.len(), done.suspect.len());
        let result = scrub_file(store, *id, pace, &mut done);
        if let Err(e @ (StoreError::Stopped(_) | StoreError::Newer(_))) = result {
            return Err(e);
        }
        if result.is_ok() && (rot, suspect) == (done.rot.len(), done.suspect.len()) {
            continue;
        }
        let dir = store.file_dir(*id);
        if store.medium.stat(&dir).doing("look at", &dir)?.is_some() {
            if let Err(error) = result {
                // The others are to be compared all the same.
                let path = link_path(store, *id).map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
                let message = format!("{path} (file {}): it cannot be compared: {error}", id_text(*id));
                done.rot.push(Rot { file: id_text(*id), path, target: String::new(), object: String::new(), ranges: Vec::new(), message });
            }
            continue;
        }
        done.files = files;
        done.rot.truncate(rot);
        done.suspect.truncate(suspect);
    }
    Ok(done)
}

/// Scrubs one file.
///
/// # Errors
/// What keeps it from being looked at; unreadable objects are findings.
pub fn scrub_file(store: &Store<'_>, id: u64, pace: &Pace, done: &mut Scrubbed) -> Result<()> {
    let _session = store.lock_shared()?;
    let layout = store.layout(id)?;
    let bytes = layout_bytes(store, id)?;
    let table = view(store, id, &bytes)?.home();
    let size = size_at_least(store, id, &layout)?;
    let before = load(store, id)?;
    let mut after = before.clone();
    let (objects, reached) = (objects_of(&layout), objects_reached(store, id, &layout, size)?);
    after.objects.retain(|object, _| objects.contains(object));
    // What is written to copies moves no times of their container.
    after.rest = if is_container(store, id)? { None } else { Some(rest(store, id, layout.generation)?) };
    let is_unwritten = before.rest.is_some() && before.rest == after.rest;
    let is_unmoved = before.rest.zip(after.rest).is_some_and(|(before, after)| before.generation == after.generation);
    done.files += 1;
    for object in objects {
        if let Some(why) = store.away(object.0 as usize) {
            if !done.away.contains(&why) {
                done.away.push(why);
            }
            after.rest = None;
            continue;
        }
        if !reached.contains(&object) && !objects::is_there(store, id, object)? {
            after.objects.remove(&object);
            continue;
        }
        let path = store.object(object.0, id, object.1)?;
        let target = store.target(object.0)?.name.clone();
        let name = || link_path(store, id).map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
        let sentence = |what: &str| format!("{} (file {}) on target {target}: {what}", name(), id_text(id));
        let mut report = |ranges: Vec<(u64, u64)>, what: String| {
            let (name, message) = (name(), sentence(&what));
            done.rot.push(Rot {
                file: id_text(id),
                path: name,
                target: target.clone(),
                object: path.to_string_lossy().into_owned(),
                ranges,
                message,
            });
        };
        match sum_object(store, id, object, pace, &mut done.bytes) {
            Err(e @ StoreError::Stopped(_)) => return Err(e),
            Err(e) => report(Vec::new(), format!("it cannot be read: {e}")),
            Ok(None) => {
                done.busy += 1;
                after.rest = None;
            }
            Ok(Some(now)) => match before.objects.get(&object) {
                Some(kept) if kept.stamp == now.stamp => {
                    done.verified += 1;
                    let bad: Vec<u64> = (0..).zip(kept.blocks.iter().zip(&now.blocks)).filter(|(_, (a, b))| a != b).map(|(n, _)| n).collect();
                    if !bad.is_empty() {
                        let ranges = logical(&table, object, bad.iter().flat_map(|block| granules(block * BLOCK_BYTES, BLOCK_BYTES)), size);
                        report(ranges.clone(), format!("bytes {} changed though nobody wrote them", text_of(&ranges)));
                    }
                }
                Some(kept) if is_unwritten && now.stamp.size < kept.stamp.size => {
                    let Some((ranges, what)) = cut(&table, object, kept.stamp.size, now.stamp.size, size) else {
                        done.summed += 1;
                        after.objects.insert(object, now);
                        continue;
                    };
                    // The sums of what was there stay: the next scrub says the same.
                    done.verified += 1;
                    report(ranges, what);
                }
                kept => {
                    if is_unwritten && kept.is_some_and(|kept| kept.blocks != now.blocks) {
                        done.suspect.push(sentence(AGAINST_TIMES));
                    }
                    let shorter = kept.filter(|kept| is_unmoved && !is_unwritten && now.stamp.size < kept.stamp.size);
                    if let Some((ranges, _)) = shorter.and_then(|kept| cut(&table, object, kept.stamp.size, now.stamp.size, size)) {
                        done.suspect.push(sentence(&format!("bytes {} {SHORTER}", text_of(&ranges))));
                    }
                    done.summed += 1;
                    after.objects.insert(object, now);
                }
            },
        }
    }
    if after != before { save(store, id, &after) } else { Ok(()) }
}

/// Takes the checksums of a new file, which has this `rest` from then on.
///
/// # Errors
/// `Io`.
pub fn sum_new_file(store: &Store<'_>, id: u64, objects: &std::collections::BTreeSet<ObjectId>, rest: Option<Rest>) -> Result<()> {
    let mut sums = Sums { rest, ..Sums::default() };
    for object in objects {
        match sum_object(store, id, *object, &Pace::new(0), &mut 0)? {
            Some(found) => drop(sums.objects.insert(*object, found)),
            None => sums.rest = None,
        }
    }
    save(store, id, &sums)
}

/// Sums an object; `None` when it is being written.
fn sum_object(store: &Store<'_>, id: u64, object: ObjectId, pace: &Pace, read: &mut u64) -> Result<Option<ObjectSums>> {
    let path = &store.object(object.0, id, object.1)?;
    let handle = objects::open(store, id, object, Opening::READ)?;
    let stamp = || objects::look(store, id, object)?.map(|facts| Stamp::of(&facts)).ok_or_else(|| objects::missing(store, id, object.0, path));
    let before = stamp()?;
    let now_ns = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i64);
    let ripe_ns = if before.ctime_ns % 1_000_000_000 == 0 { COARSE_STAMP_AGE_NS } else { STAMP_AGE_NS };
    let young_ns = before.ctime_ns.saturating_add(ripe_ns).saturating_sub(now_ns);
    if young_ns > 0 && young_ns <= ripe_ns {
        store.medium.pause(young_ns as u64 / 1_000_000 + 1);
    }
    let mut zeros = None;
    let mut blocks = Vec::new();
    let mut buf = vec![0u8; BLOCK_BYTES.min(before.size) as usize];
    let mut at = 0;
    while at < before.size {
        store.go_on()?;
        let len = BLOCK_BYTES.min(before.size - at);
        let hole = handle.next_data(at).doing("read", path)?.is_none_or(|(from, _)| from >= at + len);
        blocks.push(match buf.get_mut(..len as usize) {
            _ if hole && len == BLOCK_BYTES => *zeros.get_or_insert_with(|| zero_block(BLOCK_BYTES)),
            Some(part) => {
                part.fill(0);
                *read += objects::read_at(&handle, part, at, path)? as u64;
                pace.keep(*read);
                crc32c(part)
            }
            None => 0,
        });
        at += len;
    }
    Ok((stamp()? == before).then_some(ObjectSums { stamp: before, blocks }))
}
