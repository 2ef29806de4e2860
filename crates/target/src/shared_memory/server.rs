//! The process that has the objects. It takes all requests that wait and serves the last one first. Its objects are files of a disk in memory.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::io::Errno;

use super::link::{NAMES_MAX, name_of, words_of};
use super::remote::link_to;
use super::segment::{ASKED, Call, DONE, SLOTS, Segment, WINDOW_BYTES, set_state, sleep_while};
use crate::batch::{read_at, write_at};
use crate::fake::{Disk, FakeObject};
use crate::interface::Object;
use crate::names::ObjectName;

/// How often it looks whether its client lives, ms.
const LOOK_MS: u64 = 200;

struct Server {
    segment: Segment,
    disk: Disk,
    objects: Vec<Arc<FakeObject>>,
    names: BTreeMap<ObjectName, usize>,
    identity: Vec<u8>,
}

/// Serves the segment that the environment names, until its client is gone. Does nothing where none is named.
pub fn serve() {
    let Some(path) = std::env::var_os("STRIPEWISE_TEST_SEGMENT") else { return };
    let client = rustix::process::getppid();
    serve_until(Path::new(&path), &[], || rustix::process::getppid() != client);
}

/// Serves the segment at a path, of a target that has this identity, until `is_over`.
pub fn serve_until(path: &Path, identity: &[u8], is_over: impl Fn() -> bool) {
    let segment = *link_to(File::options().read(true).write(true).open(path).unwrap()).segment();
    let mut server = Server { segment, disk: Disk::new(), objects: Vec::new(), names: BTreeMap::new(), identity: identity.to_vec() };
    while !is_over() {
        let rung = server.segment.header().doorbell.load(Ordering::SeqCst);
        if !server.serve_all() {
            sleep_while(&server.segment.header().doorbell, rung, LOOK_MS);
        }
    }
}

impl Server {
    fn serve_all(&mut self) -> bool {
        let state = |slot: usize| self.segment.slot(slot).state.load(Ordering::SeqCst);
        let mut waiting: Vec<usize> = (0..SLOTS).filter(|slot| state(*slot) == ASKED).collect();
        waiting.sort_by_key(|slot| std::cmp::Reverse(self.segment.slot(*slot).turn.load(Ordering::SeqCst)));
        for slot in &waiting {
            self.serve(*slot);
        }
        self.segment.header().overtakings.fetch_add(waiting.len().saturating_sub(1) as u32, Ordering::SeqCst);
        !waiting.is_empty()
    }

    fn serve(&mut self, slot: usize) {
        let shared = self.segment.slot(slot);
        let call = Call::ALL[shared.call.load(Ordering::SeqCst) as usize];
        let arguments = shared.arguments.each_ref().map(|word| word.load(Ordering::SeqCst));
        let done = self.answer(slot, call, arguments);
        let shared = self.segment.slot(slot);
        shared.error.store(done.err().map_or(0, |errno| errno.raw_os_error() as u32), Ordering::SeqCst);
        for (word, value) in shared.results.iter().zip(done.unwrap_or_default()) {
            word.store(value, Ordering::SeqCst);
        }
        set_state(shared, DONE);
    }

    fn answer(&mut self, slot: usize, call: Call, [one, two, three]: [u64; 3]) -> Result<[u64; 3], Errno> {
        let mut window = vec![0; WINDOW_BYTES];
        match call {
            Call::Make => {
                let path = format!("/{}", self.objects.len());
                self.objects.push(Arc::new(self.disk.make_file(Path::new(&path))?));
                Ok([self.objects.len() as u64 - 1, 0, 0])
            }
            Call::Name if self.names.contains_key(&name_of(two, three)) => Err(Errno::EXIST),
            Call::Name => {
                self.names.insert(name_of(two, three), one as usize);
                Ok([0; 3])
            }
            Call::Open => self.names.get(&name_of(one, two)).map(|number| [*number as u64, 0, 0]).ok_or(Errno::NOENT),
            Call::Remove => self.names.remove(&name_of(one, two)).map(|_| [0; 3]).ok_or(Errno::NOENT),
            Call::Look => {
                let number = *self.names.get(&name_of(one, two)).ok_or(Errno::NOENT)?;
                let facts = self.objects[number].facts()?;
                Ok([facts.len, facts.used_bytes, facts.changed_ns as u64])
            }
            Call::List => {
                let from = if three == 0 { Bound::Unbounded } else { Bound::Excluded(name_of(one, two)) };
                let names: Vec<ObjectName> = self.names.range((from, Bound::Unbounded)).map(|(name, _)| *name).take(NAMES_MAX).collect();
                let words = names.iter().map(|name| words_of(*name));
                let bytes: Vec<u8> = words.flat_map(|(file, role)| [file.to_le_bytes(), role.to_le_bytes()].concat()).collect();
                self.segment.put(slot, &bytes)?;
                Ok([names.len() as u64, 0, 0])
            }
            Call::Used => Ok([self.names.values().map(|number| self.objects[*number].facts().map_or(0, |facts| facts.used_bytes)).sum(), 0, 0]),
            Call::SyncNames => Ok([0; 3]),
            Call::Identity => {
                self.segment.put(slot, &self.identity)?;
                Ok([self.identity.len() as u64, 0, 0])
            }
            Call::Identify => {
                window.truncate(one as usize);
                self.segment.get(slot, &mut window)?;
                self.identity = window;
                Ok([0; 3])
            }
            _ => self.answer_for(slot, call, &Arc::clone(&self.objects[one as usize]), two, three, &mut window),
        }
    }

    fn answer_for(&self, slot: usize, call: Call, object: &FakeObject, at: u64, len: u64, window: &mut [u8]) -> Result<[u64; 3], Errno> {
        match call {
            Call::Read => {
                let got = read_at(object, &mut window[..len as usize], at)?;
                self.segment.put(slot, &window[..got])?;
                Ok([got as u64, 0, 0])
            }
            Call::Write => {
                self.segment.get(slot, &mut window[..len as usize])?;
                write_at(object, &window[..len as usize], at)?;
                Ok([len, 0, 0])
            }
            Call::Punch => object.punch(at, len).map(|()| [0; 3]),
            Call::SetLen => object.set_len(at).map(|()| [0; 3]),
            Call::Len => object.len().map(|len| [len, 0, 0]),
            Call::NextData => object.next_data(at).map(|found| found.map_or([0; 3], |(start, end)| [1, start, end])),
            Call::Sync => object.sync().map(|()| [0; 3]),
            _ => Err(Errno::NOSYS),
        }
    }
}
