//! What a stat of a managed file shows: head's own, with the file's size, its names, and the blocks of its objects. A file that this process has open, or had
//! open until just now, tells by its control words; of another the words are read, and nothing of it is opened for good: a directory's listing asks for each
//! file once.

use super::Managed;
use crate::base::sys::{self, Errno, Sys};
use crate::file::{self, File};
use crate::store::Attached;
use crate::store::part::{self, Held, Seen};
use core::ffi::CStr;
use core::sync::atomic::Ordering;
use stripewise_layout::{MAX_LOGICAL, View};
use stripewise_store::ctl::{CTL_MAGIC, FLAG_TRUNCATING, FLAG_UNLINKED, Glance};
use stripewise_target::interface::Facts;

/// Longest layout that is read for a mere look.
const LAYOUT_BYTES: usize = 2048;

/// What head does not show.
#[derive(Clone, Copy)]
pub struct Shown {
    /// Logical size in bytes.
    pub size: u64,
    /// Names (hard links).
    pub names: u64,
    /// Blocks of 512 bytes that its objects have.
    pub blocks: i64,
}

impl Shown {
    /// That of a file that is open, or idle under the table's lock.
    pub fn of(file: &'static File) -> Sys<Self> {
        let ctl = file.ctl().ok_or(Errno(libc::EIO))?;
        let header = ctl.header();
        let (flags, more) = (header.flags.load(Ordering::Acquire), header.more_names.load(Ordering::Relaxed));
        Ok(Self { size: file.size()?, names: names_of(flags, more), blocks: blocks(file)? })
    }

    /// Corrects a stat of head.
    pub fn put(self, st: &mut libc::stat) {
        st.st_size = self.size as i64;
        st.st_nlink = self.names;
        st.st_blocks = self.blocks;
    }

    /// Corrects a statx of head.
    pub fn put_x(self, st: &mut libc::statx) {
        st.stx_size = self.size;
        st.stx_nlink = self.names as u32;
        st.stx_blocks = self.blocks as u64;
    }
}

fn names_of(flags: u64, more: u64) -> u64 {
    // The name may be gone though head is still there.
    if flags & FLAG_UNLINKED != 0 { 0 } else { more.wrapping_add(1) }
}

/// Blocks as stat counts them.
fn blocks_of(facts: &Facts) -> i64 {
    (facts.used_bytes / 512) as i64
}

fn blocks(file: &'static File) -> Sys<i64> {
    let passed = crate::gate::for_read(file)?;
    let (size, mut sum) = (file.size()?, 0);
    // In one that the file does not reach lies nothing.
    for (target, plane, _) in passed.loaded.firsts().filter(|(_, _, first)| *first < size) {
        match file.object_facts(target, plane)? {
            Some(facts) => sum += blocks_of(&facts),
            None => file.check_reached(passed.loaded, (target, plane), size)?,
        }
    }
    Ok(sum)
}

impl Managed {
    /// What a stat shows beside head. `ask` has head's stat put where the program wants it, given a directory and head's name below it, and tells what
    /// it is. `None`: this user may not open the file before its owner has (a power cut came in between), or another keeps it locked; head has the size of
    /// the last close.
    pub fn shown(&self, mut ask: impl FnMut(i32, &CStr) -> Sys<Seen>) -> Sys<Option<Shown>> {
        let (store, id) = (self.store, self.id);
        let name = part::name_below(id, c"head");
        let (files, name) = (store.files_dir()?, part::c(&name)?);
        let idle = file::look_at_idle(store, id, |file| match ask(files, name) {
            Ok(head) => file.is_what_it_was(&head).then(|| Shown::of(file)),
            Err(errno) => Some(Err(errno)),
        });
        let shown = match idle {
            Some(shown) => shown,
            // Nobody else has put anything in its place.
            None if !store.is_common() => {
                let head = ask(files, name)?;
                part::check_head(store, id, &head, None)?;
                self.of_open_file().or_else(|| at_a_glance(store, id)).unwrap_or_else(|| self.with(Shown::of))
            }
            None => self.with(|file| {
                let at = file.at()?;
                part::check_head(store, id, &ask(at.dir, c"head")?, at.head)?;
                Shown::of(file)
            }),
        };
        match shown {
            Err(Errno(libc::EACCES | libc::EAGAIN)) => {
                let at = self.at()?;
                part::check_head(store, id, &ask(at.dir, c"head")?, None).map(|()| None)
            }
            // The names of the link that led there are what its own stat shows.
            shown => shown.map(|shown| Some(if self.names > 0 { Shown { names: self.names, ..shown } } else { shown })),
        }
    }

    fn of_open_file(&self) -> Option<Sys<Shown>> {
        let index = file::acquire_if_open(self.store, self.id)?;
        let shown = file::get(index).ok_or(Errno(libc::EIO)).and_then(Shown::of);
        file::release(index);
        Some(shown)
    }
}

/// A file that this process has not open, of a store in which nobody else writes: its words and its layout read once. `None` where they are not those of a
/// file at rest, or do not agree with each other: then it is opened.
#[inline(never)] // Its buffer would lie on the stack below what is done instead.
fn at_a_glance(store: &'static Attached, id: u64) -> Option<Sys<Shown>> {
    let mut bytes = [0u8; LAYOUT_BYTES];
    let read = |part: &CStr, bytes: &mut [u8]| {
        let fd = sys::openat(store.files_dir().ok()?, part::name_below(id, part).as_c_str()?, libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_CLOEXEC, 0)
            .ok()?;
        sys::read(Held::from_raw(fd).fd(), bytes).ok()
    };
    read(c"ctl", bytes.get_mut(..Glance::BYTES)?).filter(|got| *got == Glance::BYTES)?;
    let words = Glance::of(bytes.get(..Glance::BYTES)?)?;
    if words.magic != CTL_MAGIC || words.boot_id != store.boot_id() || words.flags & FLAG_TRUNCATING != 0 || words.size >= MAX_LOGICAL {
        return None;
    }
    let len = read(c"layout", &mut bytes).filter(|len| *len < LAYOUT_BYTES)?;
    let view = View::parse(bytes.get(..len)?).ok()?;
    if view.file_id()[0] != id || view.generation() != words.generation || view.target_count() as usize > store.view().ok()?.target_count() {
        return None;
    }
    let mut blocks = 0;
    for (target, plane) in (0..view.target_count()).flat_map(|target| [(target, 0), (target, 1)]) {
        if view.first_byte(target, plane).is_some_and(|first| first < words.size) {
            blocks += blocks_of(&part::object_facts(store, id, (target, plane)).ok()??);
        }
    }
    Some(Ok(Shown { size: words.size, names: names_of(words.flags, words.more_names), blocks }))
}
