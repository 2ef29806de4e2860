//! The memory that the processes of the run share, and what is asked of MPI for it.

use super::library::{Handle, Library};
use super::meet::{READ_SIEVING, WRITE_SIEVING};
use crate::base::{config, sys};
use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, Ordering::*};
use stripewise_engine::shared::board::{Board, MAGIC, Note, Post, lane_bit};
use stripewise_engine::shared::site::{Decider, Policy, mode_number};
use stripewise_engine::{Mode, Operation};

/// Hints that say how collective calls are carried out.
pub(super) const GIVEN: [(&CStr, u32); 2] = [(c"romio_cb_read", lane_bit(Operation::Read)), (c"romio_cb_write", lane_bit(Operation::Write))];

/// Null: not mapped yet; [`NO_BOARD`]: there is none.
static BOARD: AtomicPtr<Board> = AtomicPtr::new(core::ptr::null_mut());
const NO_BOARD: *mut Board = core::ptr::without_provenance_mut(8);

/// The run's board.
pub(super) fn board() -> Option<&'static Board> {
    let mut there = BOARD.load(Acquire);
    if there.is_null() {
        let found = config::engine_board().and_then(map).unwrap_or(NO_BOARD);
        there = match BOARD.compare_exchange(core::ptr::null_mut(), found, AcqRel, Acquire) {
            Ok(_) => found,
            // Another thread's stays; ours is left mapped.
            Err(first) => first,
        };
    }
    // SAFETY: mapped for good, and made of atomics and of cells with rules of their own.
    (there != NO_BOARD).then(|| unsafe { &*there })
}

/// A file that is this user's alone, as `run` makes it.
fn map(path: &CStr) -> Option<*mut Board> {
    let fd = sys::open(path, libc::O_RDWR | libc::O_NOFOLLOW | libc::O_CLOEXEC, 0).ok()?;
    let size = size_of::<Board>();
    let is_ours = |st: &libc::stat| {
        st.st_mode & libc::S_IFMT == libc::S_IFREG && st.st_mode & 0o077 == 0 && st.st_uid == sys::geteuid() && st.st_size as u64 == size as u64
    };
    let mapped = sys::fstat(fd).ok().filter(is_ours).and_then(|_| sys::mmap(fd, size, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED).ok());
    sys::close(fd);
    let board = mapped?.cast::<Board>();
    // SAFETY: as long as the type, and of words alone.
    (unsafe { &*board }.magic.load(Relaxed) == MAGIC).then_some(board)
}

/// Whether a hint's value is one of these; ROMIO takes them in capitals, too.
pub(super) fn is_one_of(value: &[u8], values: &[&[u8]]) -> bool {
    values.iter().any(|one| one.eq_ignore_ascii_case(value))
}

/// Whether a filetype leaves gaps, or one of its copies lies among those of the next one; none: MPI does not say.
pub(super) fn has_gaps(library: &Library, filetype: Handle) -> Option<bool> {
    let (mut bytes, mut lower, mut extent, mut first, mut span) = (0, 0, 0, 0, 0);
    // SAFETY: MPI's prototypes.
    let is_known = unsafe {
        (library.type_size_x)(filetype, &raw mut bytes) == 0
            && (library.type_get_extent_x)(filetype, &raw mut lower, &raw mut extent) == 0
            && (library.type_get_true_extent_x)(filetype, &raw mut first, &raw mut span) == 0
    };
    is_known.then_some(bytes != extent || bytes != span)
}

/// Whether processes wait for turns on processors.
pub(super) fn is_crowded(post: &Post) -> bool {
    (1..post.size()).contains(&post.processors())
}

/// The lanes of a file that its hints in force have decided on, and what else they say: those of its user, of whatever origin.
pub(super) fn left(library: &Library, file: Handle) -> u32 {
    let (Some(asking), Some(board)) = (&library.asking, board()) else { return 0 };
    let (mut info, mut lanes, mut text): (Handle, u32, [u8; 16]) = (0, 0, [0; 16]);
    // SAFETY: MPI's prototype; the file is open.
    if unsafe { (asking.of_file)(file, &raw mut info) } != 0 || !library.is_info(info) {
        return 0;
    }
    let mut is = |key: &CStr, values: &[&[u8]]| library.value(info, key, &mut text).is_some_and(|value| is_one_of(value, values));
    if is(c"romio_no_indep_rw", &[b"true"]) {
        lanes |= Post::DEFERRED;
    }
    if is(WRITE_SIEVING, &[b"automatic", b"disable", b"enable"]) {
        lanes |= Post::ROMIO;
    }
    if is(WRITE_SIEVING, &[b"enable"]) && board.overrides.load(Relaxed) == 0 {
        lanes |= lane_bit(Operation::Write);
    }
    if is(READ_SIEVING, &[b"disable"]) {
        lanes |= Post::READS_UNSIEVED;
    }
    // The rules of the thesis say nothing of it.
    let is_priced = Policy::of(board.policy.load(Relaxed)) == Policy::Price;
    if !is_priced || is(READ_SIEVING, &[b"enable", b"disable"]) && board.overrides.load(Relaxed) == 0 {
        lanes |= Post::SIEVING_GIVEN;
    }
    if board.overrides.load(Relaxed) == 0 {
        for (key, lane) in GIVEN {
            if is(key, &[b"enable", b"disable"]) {
                lanes |= lane;
            }
        }
    }
    // SAFETY: as above.
    unsafe { (asking.free)(&raw mut info) };
    lanes
}

/// Writes down what became of a site, of one who knows that nobody decides any more.
pub(super) fn write_down(note: &Note, decider: &Decider) {
    let contest = &decider.contest;
    note.opens.fetch_add(1, Relaxed);
    note.contests.fetch_add(contest.contests, Relaxed);
    note.changes.fetch_add(contest.changes, Relaxed);
    note.mode.store(mode_number(contest.mode()), Relaxed);
    note.reason.store(decider.reason, Relaxed);
    note.ratio.store(contest.ratio().unwrap_or(0.0).to_bits(), Relaxed);
    for (price, mode) in note.price.iter().zip([Mode::Collective, Mode::Independent]) {
        price.store(contest.price(mode).unwrap_or(0.0).to_bits(), Relaxed);
    }
    note.pattern.store(if decider.strided > decider.contiguous { 1 } else { 2 }, Relaxed);
}
