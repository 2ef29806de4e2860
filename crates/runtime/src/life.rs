//! The process's life under the library: start, descriptors inherited across exec, fork, the end of a thread.

pub mod companions;
pub mod exec;
pub mod rings;
pub mod unreached;

use crate::base::config;
use crate::base::lock::Lock;
use crate::base::process;
use crate::base::sys;
use crate::base::tls;
use crate::copies;
use crate::fds;
use crate::file;
use crate::gate::epoch;
use crate::io::limit;
use crate::map;
use crate::mpi;
use crate::open;
use crate::store;
use crate::store::heads::{head_of, is_programs, named_head};
use crate::trace;

unsafe fn number(environ: *const *const libc::c_char, names: &[&[u8]]) -> i32 {
    // SAFETY: the caller's promise.
    let text = names.iter().find_map(|name| unsafe { config::variable(environ, name) });
    text.and_then(|t| core::str::from_utf8(t).ok()?.parse().ok()).unwrap_or(-1)
}

/// The constructor, with the environment that the process was started with.
///
/// # Safety
/// `environ` is the null-terminated array of C strings that the loader passes to constructors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_start(environ: *const *const libc::c_char) {
    if config::is_read() {
        return;
    }
    // A program with more rights than whoever started it believes none of his environment (the loader would not even have loaded us by it).
    // SAFETY: no preconditions.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return;
    }
    process::start();
    // The first look at the clock looks for the vDSO, through the loader: not later in a signal handler or in a fork's child.
    let _ = stripewise_target::time::now_ns();
    process::note_pid();
    process::when_forked(forked);
    // SAFETY: the caller's promise.
    let variable = |name: &[u8]| unsafe { config::variable(environ, name) };
    if let Some(bytes) = variable(b"STRIPEWISE_MMAP_COPY_BYTES") {
        map::limit_copies(bytes);
    }
    // SAFETY: the caller's promise, and nothing else runs yet.
    if !unsafe { config::read(environ) } {
        return;
    }
    if variable(b"STRIPEWISE_SECCOMP") == Some(b"1") {
        rings::filter();
    }
    limit::sw_limit_changed();
    if let Some(dir) = config::trace_dir() {
        // SAFETY: the caller's promise.
        let number = |names: &[&[u8]]| unsafe { number(environ, names) };
        let rank = number(&[b"PMI_RANK", b"PMIX_RANK", b"OMPI_COMM_WORLD_RANK", b"SLURM_PROCID"]);
        let world = number(&[b"PMI_SIZE", b"OMPI_COMM_WORLD_SIZE", b"SLURM_NTASKS"]);
        let mut command = [0u8; 1024];
        let command = sys::read_file(c"/proc/self/cmdline", &mut command).unwrap_or(&[]);
        let layers = mpi::Layers::named(variable(b"STRIPEWISE_TRACE_LAYERS"));
        if trace::start(dir, rank, world, command, layers.has_posix()) {
            mpi::start(layers);
        }
    }
    inherit();
    trace::inherit();
}

/// Finds managed descriptors that came across exec: by what the kernel knows of them, no table has to be handed on.
fn inherit() {
    const MOST: usize = 1024;
    let mut found: [(i32, bool); MOST] = [(-1, false); MOST];
    let mut used = 0;
    let _ = sys::for_each_name(c"/proc/self/fd", |name| {
        let Some(fd) = core::str::from_utf8(name).ok().and_then(|n| n.parse::<i32>().ok()) else { return };
        let mut text = [0u8; 4096];
        let programs = is_programs(fd);
        // A companion bears its mark; without one it is a plain descriptor, of a head or not, that the program was given.
        if !programs && open::tag_of(fd) == 0 || head_of(fd, &mut text).is_none() {
            return;
        }
        if let Some(slot) = found.get_mut(used) {
            *slot = (fd, programs);
            used += 1;
        }
    });
    let found = found.get_mut(..used).unwrap_or(&mut []);
    // Those without a tag (O_PATH, where a right is missing) take what companions the others leave.
    for tagged in [true, false] {
        for i in 0..found.len() {
            let Some(&(fd, true)) = found.get(i) else { continue };
            if fds::entry(fd) == 0 && (open::tag_of(fd) != 0) == tagged {
                adopt(fd, found);
            }
        }
    }
    // Companions whose descriptors did not come along; those of a store that this process does not use are left alone.
    for &(fd, programs) in found.iter() {
        let mut text = [0u8; 4096];
        if !programs && fds::entry(fd) == 0 && named_head(fd, &mut text).is_some_and(|(path, _)| store::attach(path).is_ok()) {
            sys::close(fd);
        }
    }
}

/// Takes over one of the program's descriptors, with its dups and its companion (equal tags on the same head).
fn adopt(fd: i32, found: &[(i32, bool)]) {
    let mut text = [0u8; 4096];
    let Some((path, id)) = named_head(fd, &mut text) else { return };
    let Ok(store) = store::attach(path) else { return };
    let tag = open::tag_of(fd);
    let same = |other: i32| {
        let mut text = [0u8; 4096];
        named_head(other, &mut text) == Some((path, id)) && (tag == 0 || open::tag_of(other) == tag)
    };
    let fits = |other: i32| fds::entry(other) == 0 && open::flags_agree(fd, other) && same(other);
    let companion = found.iter().find(|(other, programs)| !programs && fits(*other)).map(|(other, _)| *other);
    if tag == 0 && companion.is_none() {
        // A dup of one that was adopted before: its companion is theirs.
        let twin = |other: &&(i32, bool)| other.1 && fds::entry(other.0) != 0 && open::tag_of(other.0) == 0 && same(other.0);
        if let Some((twin, _)) = found.iter().find(twin) {
            let place = fds::entry(*twin);
            open::retain(place);
            fds::set_entry(fd, place);
            return;
        }
    }
    let Ok(place) = open::inherit(store, id, fd, companion) else { return };
    for (other, programs) in found {
        let dup = || sys::same_open_file(fd, *other).unwrap_or(tag != 0);
        if *programs && *other != fd && fds::entry(*other) == 0 && same(*other) && dup() {
            open::retain(place);
            fds::set_entry(*other, place);
        }
    }
}

/// Locks that a fork holds, in the order in which they are taken.
fn held_by_forks() -> [&'static Lock; 3] {
    [map::records::table_lock(), copies::table_lock(), file::table_lock()]
}

/// Before a fork that runs no handlers, in the parent.
#[unsafe(no_mangle)]
pub extern "C" fn sw_fork_bare() {
    open::share_all();
    file::before_fork();
}

/// Before fork, in the parent: no other thread is in the middle of changing a table that the child gets.
#[unsafe(no_mangle)]
pub extern "C" fn sw_fork_prepare() {
    open::share_all();
    file::before_fork();
    let held = held_by_forks().iter().enumerate().fold(0, |held, (bit, lock)| held | u64::from(lock.hold()) << bit);
    // SAFETY: only this thread touches its block.
    unsafe { (*tls::thread()).held = held };
}

/// After fork, in the parent.
#[unsafe(no_mangle)]
pub extern "C" fn sw_fork_parent() {
    // SAFETY: only this thread touches its block.
    let held = unsafe { core::mem::take(&mut (*tls::thread()).held) };
    held_by_forks().iter().enumerate().filter(|(bit, _)| held >> bit & 1 != 0).for_each(|(_, lock)| lock.go_on());
}

/// After fork, in the child: threads, slots and logs of the parent are not ours.
#[unsafe(no_mangle)]
pub extern "C" fn sw_fork_child() {
    process::note_pid();
    epoch::after_fork();
    file::after_fork();
    copies::after_fork();
    open::after_fork();
    store::after_fork();
    map::after_fork();
    trace::after_fork();
}

/// The child's part of a fork that nobody has told us of.
fn forked() {
    if config::is_read() {
        open::share_all();
        sw_fork_child();
    } else {
        process::note_pid();
    }
}

/// When a thread ends.
#[unsafe(no_mangle)]
pub extern "C" fn sw_thread_exit() {
    trace::at_thread_exit();
    open::thread_exit();
    epoch::thread_exit();
}
