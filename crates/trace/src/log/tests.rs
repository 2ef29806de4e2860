//! What the log promises when its disk is full, when handlers nest, and at the edges of its chunks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use super::start::tests::ALLOCATIONS_LEFT;
use super::*;
use crate::format::FIRST_SLOT;
use std::ffi::CString;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

struct Rig {
    dir: tempfile::TempDir,
    process: Box<Process>,
    log: Box<ThreadLog>,
}

impl Rig {
    fn new() -> Rig {
        let dir = tempfile::tempdir().unwrap();
        let process = Box::new(Process::new());
        process.start(&CString::new(dir.path().to_str().unwrap()).unwrap(), 3, 8, b"prog\0arg\0").unwrap();
        Rig { dir, process, log: Box::new(ThreadLog::new()) }
    }

    fn write(&mut self, offsets: std::ops::Range<u64>) {
        for offset in offsets {
            // SAFETY: the test's own log.
            unsafe { record(&mut *self.log, &self.process, &Record { offset, op: 3, ..Record::default() }) };
        }
    }

    fn exit(&mut self) {
        // SAFETY: as above.
        unsafe { thread_exit(&mut *self.log, &self.process) };
    }

    fn logs(&self) -> Vec<PathBuf> {
        let mut logs: Vec<_> = std::fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        logs.retain(|path| path.extension().is_some_and(|extension| extension == "swt"));
        logs.sort();
        logs
    }

    /// Offsets of the complete records of one log, and the drops its header tells of.
    fn read(&self, path: &PathBuf) -> (Vec<u64>, u64) {
        let bytes = std::fs::read(path).unwrap();
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let slots = FIRST_SLOT..bytes.len() as u64 / 64;
        let records = slots.map(|slot| (slot, Record::from_words(std::array::from_fn(|i| word(slot as usize * 64 + 8 * i)))));
        let offsets = records.filter(|(slot, record)| record.is_complete(*slot)).map(|(_, record)| record.offset).collect();
        (offsets, word(core::mem::offset_of!(Header, dropped)))
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.exit();
    }
}

#[test]
fn records_cross_chunks_without_a_gap_and_the_file_ends_behind_the_last() {
    let mut rig = Rig::new();
    rig.write(0..50_000);
    rig.exit();
    let logs = rig.logs();
    assert_eq!(logs.len(), 1);
    assert_eq!(std::fs::metadata(&logs[0]).unwrap().len(), 4096 + 50_000 * 64);
    assert_eq!(rig.read(&logs[0]), ((0..50_000).collect(), 0));
}

#[test]
fn a_record_after_the_threads_end_begins_another_log() {
    let mut rig = Rig::new();
    rig.write(0..10);
    rig.exit();
    rig.write(10..20);
    rig.exit();
    let logs = rig.logs();
    let mut offsets: Vec<u64> = logs.iter().flat_map(|log| rig.read(log).0).collect();
    offsets.sort_unstable();
    assert_eq!((logs.len(), offsets), (2, (0..20).collect()));
}

#[test]
fn a_full_disk_drops_and_counts_and_recording_goes_on_when_there_is_room() {
    let mut rig = Rig::new();
    ALLOCATIONS_LEFT.with(|left| left.store(1, Ordering::Relaxed));
    // 960 records fit behind the header in the first 64 KiB.
    rig.write(0..5_000);
    let path = rig.logs()[0].clone();
    let (kept, dropped) = rig.read(&path);
    assert_eq!(kept, (0..960).collect::<Vec<_>>());
    assert_eq!(dropped, 5_000 - 960);
    ALLOCATIONS_LEFT.with(|left| left.store(u64::MAX, Ordering::Relaxed));
    rig.write(5_000..90_000);
    let (kept, dropped) = rig.read(&path);
    assert_eq!(kept.len() as u64 + dropped, 90_000);
    assert_eq!(*kept.last().unwrap(), 89_999);
}

#[test]
fn records_without_any_log_are_counted_in_the_first_log_that_can_be_begun() {
    let mut rig = Rig::new();
    ALLOCATIONS_LEFT.with(|left| left.store(0, Ordering::Relaxed));
    rig.write(0..100);
    assert_eq!(rig.process.unlogged_drops(), 100);
    let [empty] = &rig.logs()[..] else { panic!("one file, however many attempts") };
    assert_eq!(std::fs::metadata(empty).unwrap().len(), 0, "the empty file tells that records were lost");
    ALLOCATIONS_LEFT.with(|left| left.store(u64::MAX, Ordering::Relaxed));
    rig.write(100..1_000);
    assert_eq!(rig.process.unlogged_drops(), 0);
    assert_eq!(rig.logs().len(), 1);
    let (kept, dropped) = rig.read(&rig.logs()[0]);
    assert_eq!(kept.len() as u64 + dropped, 1_000);
}

#[test]
fn a_vanished_directory_costs_records_and_nothing_else() {
    let mut rig = Rig::new();
    std::fs::remove_dir(rig.dir.path()).unwrap();
    rig.write(0..10);
    assert_eq!(rig.process.unlogged_drops(), 10);
    assert!(rig.process.file_id(b"/f", 1, 2) > 0);
    assert_eq!(rig.process.names_lost(), 1);
    std::fs::create_dir(rig.dir.path()).unwrap();
}

#[test]
fn a_record_interrupted_for_more_than_a_window_is_noticed_and_costs_one_other_at_most() {
    let mut rig = Rig::new();
    rig.write(0..1);
    let slot = take_slot(&rig.log.used);
    rig.write(1..40_001);
    // SAFETY: the window is mapped; the slot's place in it now shows another chunk.
    unsafe { store(rig.log.window.load(Ordering::Relaxed), slot, &Record { offset: 77, ..Record::default() }) };
    let (kept, _) = rig.read(&rig.logs()[0]);
    assert_eq!(kept.len(), 40_000);
}

#[test]
fn a_cut_record_is_not_complete() {
    let mut rig = Rig::new();
    rig.write(0..3);
    let path = rig.logs()[0].clone();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[0; 4], 4096 + 2 * 64 + 60).unwrap();
    assert_eq!(rig.read(&path).0, [0, 1]);
}

#[test]
fn a_name_has_one_id_and_another_inode_makes_it_another_name() {
    let rig = Rig::new();
    let first = rig.process.file_id(b"/a", 1, 2);
    assert_eq!(rig.process.file_id(b"/a", 1, 2), first);
    assert_ne!(rig.process.file_id(b"/a", 1, 3), first);
    assert_ne!(rig.process.file_id(b"/b", 1, 2), first);
    assert_eq!(Process::new().file_id(b"/a", 1, 2), 0, "tracing is off");
}

#[test]
fn a_full_table_of_names_still_gives_every_name_an_id() {
    let rig = Rig::new();
    let known = rig.process.file_id(b"/known", 1, 1);
    rig.process.fill_table_for_test();
    let other = rig.process.file_id(b"/other", 1, 1);
    assert!(other > known && rig.process.file_id(b"/other", 1, 1) > other, "each open a new id");
    assert_eq!(rig.process.file_id(b"/known", 1, 1), known);
}

#[test]
fn a_relative_or_endless_directory_is_refused() {
    let process = Process::new();
    assert!(process.start(c"relative", 0, 1, b"").is_err());
    assert!(process.start(&CString::new(vec![b'/'; 5000]).unwrap(), 0, 1, b"").is_err());
    assert!(!process.enabled());
}
