//! The marks of a managed file's copies ([`crate::marks`]): made, announced to its writers, and looked at.

use std::path::Path;
use std::sync::atomic::Ordering;

use super::marks_path;
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::medium::{Attributes, FsyncPoint, Open, put_file, read_small};
use crate::admin::metadata::container::parse_name;
use crate::admin::store::Store;
use crate::copies::{MANAGED_DEV, Original};
use crate::ctl::boot_words;
use crate::marks::{self, BOOT_AT, Blocks, Marks, head_bytes};

/// How long one look at the programs that are inside an I/O lasts.
const PATIENCE_NS: u64 = 100_000_000;
/// After so many nobody waits any longer.
const LOOKS: u32 = 300;

/// Writes clear marks, durably.
pub(super) fn make(store: &Store<'_>, name: &str, original: &Original, container: u64, like: &Attributes) -> Result<()> {
    let path = marks_path(store, name);
    // All of them, so that each has its block: a mark in a hole on a full disk would be a SIGBUS in the program that writes.
    let mut bytes = vec![0; Blocks::of(original.size).bytes()];
    let head = head_bytes(original.size, container);
    bytes.iter_mut().zip(head).for_each(|(byte, of)| *byte = of);
    put_file(store.medium, &path, &bytes, Some(like), (FsyncPoint::CopyMarks, FsyncPoint::CopyDir)).doing("write", &path)
}

/// Tells all who have file `id` open, and will have it, of its copies; waits until everybody has left whatever he was writing without knowing.
///
/// # Errors
/// `InUse` for a file that programs have mapped: what they write there nobody marks. `Io`.
pub(super) fn announce(store: &Store<'_>, id: u64, path: &Path, container: u64, go_on: &mut dyn FnMut() -> bool) -> Result<()> {
    let (medium, ctl) = (store.medium, store.part(id, "ctl"));
    let map = medium.ctl(&ctl, true).doing("map", &ctl)?;
    map.ctl().header().copies.store(container, Ordering::SeqCst);
    // What a power cut leaves of the word must not be that of copies before these.
    medium.open(&ctl, Open::Read).and_then(|file| file.sync(FsyncPoint::CopyWord)).doing("flush", &ctl)?;
    let run = store.run_dir();
    let mut looks = 0;
    while !medium.grace(&run, PATIENCE_NS).doing("wait for the programs in", &run)? {
        if !go_on() {
            return Err(StoreError::Stopped(format!("{}: stopped; nothing of its copies is left", path.display())));
        }
        looks += 1;
        if looks == LOOKS {
            let path = path.display();
            return Err(StoreError::InUse(format!(
                "a program of the store is stopped inside an I/O, so {path} gets no copies; let it go on, or end it"
            )));
        }
    }
    if medium.is_pinned(&ctl).doing("look at the maps of", &ctl)? {
        return Err(StoreError::InUse(format!("a program has {} mapped; make its copies when it is not", path.display())));
    }
    Ok(())
}

/// Before copies are dropped: a power cut may bring back the word that says that they count, and who has seen them dropped marks nothing. Those that do not
/// count in this boot stay so.
pub(super) fn note_boot(store: &Store<'_>, name: &str) -> Result<()> {
    let path = marks_path(store, name);
    let Ok(file) = store.medium.open(&path, Open::Write) else { return Ok(()) };
    let mut head = [0; BOOT_AT + 24];
    if file.read_at(&mut head, 0).doing("read", &path)? < head.len() {
        return Ok(());
    }
    let [first, second] = boot_words(&store.boot_id()?);
    let mut boot = [0; 16];
    boot.iter_mut().zip(first.to_ne_bytes().into_iter().chain(second.to_ne_bytes())).for_each(|(byte, of)| *byte = of);
    let (noted, is_durable) = (head.get(BOOT_AT..BOOT_AT + 16).unwrap_or(&[]), head.get(BOOT_AT + 16..).unwrap_or(&[]));
    if is_durable.iter().any(|byte| *byte != 0) || (noted != [0; 16] && noted != boot) {
        return Ok(());
    }
    file.write_at(&boot, BOOT_AT as u64).doing("write", &path)?;
    file.sync(FsyncPoint::CopyDropped).doing("flush", &path)
}

/// After copies were dropped: whoever has the file open need not look for them any more.
pub(super) fn forget(store: &Store<'_>, name: &str, container: u64) {
    let Some((MANAGED_DEV, id)) = parse_name(name.as_bytes()) else { return };
    if let Ok(map) = store.medium.ctl(&store.part(id, "ctl"), false) {
        let _ = map.ctl().header().copies.compare_exchange(container, 0, Ordering::SeqCst, Ordering::SeqCst);
    }
}

/// Bytes that the copies of a managed file do not answer for any more; `None` where they do not count at all.
pub(super) fn stale_bytes(store: &Store<'_>, name: &str, original: &Original, container: u64) -> Result<Option<u64>> {
    let ctl = store.part(original.ino, "ctl");
    let word = match store.medium.ctl(&ctl, false) {
        Ok(map) => map.ctl().header().copies.load(Ordering::SeqCst),
        Err(_) => return Ok(None),
    };
    let blocks = Blocks::of(original.size);
    let Ok(mut bytes) = read_small(store.medium, &marks_path(store, name), blocks.bytes() as u64) else { return Ok(None) };
    if word != container || bytes.len() != blocks.bytes() {
        return Ok(None);
    }
    let mut words: Vec<u64> = bytes.chunks_exact_mut(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default())).collect();
    // SAFETY: as long as those blocks need, aligned, and used in here alone.
    let marks = unsafe { Marks::from_mapping(words.as_mut_ptr().cast(), original.size, container) };
    let counts = |marks: &Marks| Ok::<_, StoreError>(marks.count_in(boot_words(&store.boot_id()?)));
    Ok(match marks {
        Some(marks) if counts(&marks)? => Some(marks::stale_bytes(&marks)),
        _ => None,
    })
}
