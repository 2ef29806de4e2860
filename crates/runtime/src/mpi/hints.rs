//! Hints of MPI files: what a program gives in an MPI_Info, and what is in force by the MPI's own word. Noted once for each file and set of hints, by the
//! first process of those that opened it: hints are the same on all, and where they are not, an MPI goes by the first one's.

use super::files::MpiFile;
use super::library::{Asking, Handle, Library};
use super::room::Room;
use super::{Call, leave, library};
use crate::trace;
use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use stripewise_trace::format::{HINT_BYTES_MAX, HINTS_MAX, entry_kind};

/// Sets of hints that a process notes; of others nothing is known.
const NOTES_MAX: usize = 1024;
/// Places that one may have.
const PROBES: usize = 16;
/// Room for a key: MPI_MAX_INFO_KEY is 255 at most.
const KEY_BYTES: usize = 264;
/// Room for two full sets.
const WORDS: usize = 2 + 2 * HINTS_MAX * (KEY_BYTES + HINT_BYTES_MAX + 1) / 8;

/// Hashes of what has been noted; 0 none.
static NOTED: [AtomicU64; NOTES_MAX] = [const { AtomicU64::new(0) }; NOTES_MAX];

/// A note in the making: see [`entry_kind::HINTS`].
struct Note {
    room: Room,
    /// Bytes of text.
    used: usize,
}

impl Note {
    fn push(&mut self, text: &[u8]) -> Option<()> {
        let at = 16 + self.used;
        // SAFETY: any eight bytes are a word.
        let bytes = unsafe { core::slice::from_raw_parts_mut(self.room.as_ptr().cast::<u8>(), WORDS * 8) };
        bytes.get_mut(at..at + text.len())?.copy_from_slice(text);
        // The room is of zeros, so each text ends by one.
        self.used += text.len() + 1;
        Some(())
    }

    /// Writes the hints of an info down; how many.
    fn write(&mut self, library: &Library, asking: &Asking, info: Handle) -> u64 {
        let (mut n, mut written) = (0, 0);
        // SAFETY: MPI's prototype; an info that MPI has taken for valid.
        if unsafe { (asking.keys)(info, &raw mut n) } != 0 {
            return 0;
        }
        for place in 0..n.min(HINTS_MAX as i32) {
            let (mut key, mut value) = ([0u8; KEY_BYTES], [0u8; HINT_BYTES_MAX + 1]);
            // SAFETY: as above; the room is as long as any MPI's keys, and its last byte stays zero.
            if unsafe { (asking.key)(info, place, key.as_mut_ptr().cast()) } != 0 {
                return written;
            }
            let Ok(key) = CStr::from_bytes_until_nul(&key) else { return written };
            let before = self.used;
            let whole = !key.is_empty()
                && library.value(info, key, &mut value).is_some_and(|value| self.push(key.to_bytes()).and_then(|()| self.push(value)).is_some());
            if whole {
                written += 1;
            } else {
                self.used = before;
            }
        }
        written
    }
}

/// Whether a set of hints is noted for the first time; no where there is no place for it.
fn is_new(words: &[u64], trace_id: u32) -> bool {
    let mix = |state: u64, word: &u64| (state ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let hash = words.iter().fold(u64::from(trace_id) + 1, mix).max(1);
    for place in 0..PROBES {
        let Some(noted) = NOTED.get((hash as usize).wrapping_add(place) % NOTES_MAX) else { return false };
        match noted.compare_exchange(0, hash, Relaxed, Relaxed) {
            Ok(_) => return true,
            Err(there) if there == hash => return false,
            Err(_) => {}
        }
    }
    false
}

/// Notes the hints of a file that is open: those of `info`, which the program has just given, and those in force.
#[cold]
pub fn note(library: &Library, file: Handle, info: Handle, trace_id: u32, comm_size: u32) {
    let Some(asking) = &library.asking else { return };
    let saved = trace::c_errno();
    if let Some(room) = Room::new(WORDS) {
        let mut note = Note { room, used: 0 };
        let given = if library.is_info(info) { note.write(library, asking, info) } else { 0 };
        let mut in_force: Handle = 0;
        // The standard lets every process ask by itself, and gives it an info of its own.
        // SAFETY: MPI's prototype; the file is open.
        if unsafe { (asking.of_file)(file, &raw mut in_force) } == 0 && library.is_info(in_force) {
            note.write(library, asking, in_force);
            // SAFETY: as above.
            unsafe { (asking.free)(&raw mut in_force) };
        }
        let used = 2 + note.used.div_ceil(8);
        if let [size, count, ..] = note.room.words_mut() {
            (*size, *count) = (u64::from(comm_size), given);
        }
        if let Some(words) = note.room.words().get(..used)
            && is_new(words, trace_id)
        {
            trace::note(entry_kind::HINTS, trace_id, words);
        }
    }
    trace::set_c_errno(saved);
}

/// Notes the hints that were given for a file that is open already.
pub fn note_given(library: &Library, file: &MpiFile, info: Handle) {
    let take = |looks: u32| looks.checked_sub(1);
    if library.is_info(info) && file.looks.fetch_update(Relaxed, Relaxed, take).is_ok() {
        note(library, file.handle(), info, file.trace_id.load(Relaxed), file.comm_size.load(Relaxed));
    }
}

/// Ends MPI_File_set_info, of which no record is kept.
///
/// # Safety
/// `call` was begun and the call has returned; `info` is the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_informed(call: *mut Call, result: i32, info: Handle) {
    // SAFETY: the caller's promise.
    let call = unsafe { &*call };
    if let (Some(library), Some(seat), 0) = (library::get(), call.seat, result) {
        seat.informed_alone(library, info);
    }
    if let (Some(library), Some(file), 0) = (library::get(), call.file, result)
        && call.is_recorded()
    {
        note_given(library, file, info);
    }
    leave();
}
