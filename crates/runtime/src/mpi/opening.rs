//! Opens of MPI files: their names, who opens them together, which layers are recorded of them.

use super::files::{self, Opened, layers};
use super::hints;
use super::library::{self, Handle, Library};
use super::{Call, LAYERS, is_traced, layers_of, leave};
use crate::base::{sys, tls};
use crate::copies::managed;
use crate::names;
use crate::open::another;
use crate::trace;
use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::Ordering::Relaxed;
use stripewise_store::copies::MANAGED_DEV;
use stripewise_store::names::parse_link;
use stripewise_target::text::PATH_MAX;
use stripewise_trace::clock::now_ticks;
use stripewise_trace::format::{NOTE_BYTES_MAX, entry_kind};

/// MPI_MODE_SEQUENTIAL, as `Library::access_mode` has it.
pub(super) const SEQUENTIAL: u64 = 256;

/// What MPI_File_open was given, without the name of a file system's driver (`ufs:`) that ROMIO takes off.
pub(super) fn without_driver(name: &CStr) -> &CStr {
    const DRIVERS: [&[u8]; 14] = [
        b"ufs:",
        b"nfs:",
        b"lustre:",
        b"gpfs:",
        b"panfs:",
        b"pvfs2:",
        b"testfs:",
        b"xfs:",
        b"daos:",
        b"ime:",
        b"quobyte:",
        b"gfs:",
        b"zoidfs:",
        b"noncontig:",
    ];
    let bytes = name.to_bytes_with_nul();
    let path = DRIVERS.iter().find_map(|driver| bytes.strip_prefix(*driver)).unwrap_or(bytes);
    CStr::from_bytes_with_nul(path).unwrap_or(name)
}

/// The trace's id of the absolute name.
pub(super) fn file_id(name: &CStr) -> u32 {
    let path = without_driver(name).to_bytes();
    let absolute = names::absolute(libc::AT_FDCWD, path).ok();
    trace::file_id(absolute.as_ref().map_or(path, |name| name.as_bytes()), 0, 0)
}

/// Whether the managed file behind a descriptor that was opened for reading has copies.
pub(super) fn has_copies(fd: i32) -> bool {
    another(fd).is_ok_and(|open| {
        open.readable().is_ok_and(|file| {
            managed::refresh(file);
            managed::has_any(file)
        })
    })
}

/// The descriptor that the call has opened, if it leads to the named file and that has copies; and which file it is.
fn copied(name: &CStr) -> Option<(i32, (u64, u64))> {
    // SAFETY: this thread's own block.
    let fd = i32::try_from(unsafe { (*tls::thread()).mpi_copied }.checked_sub(1)?).ok()?;
    if let Ok(open) = another(fd) {
        let mut text = [0; PATH_MAX];
        let (_, id) = parse_link(sys::readlinkat(libc::AT_FDCWD, without_driver(name), &mut text).ok()?)?;
        return open.file().is_ok_and(|file| file.id() == id).then_some((fd, (MANAGED_DEV, id)));
    }
    let (named, open) = (sys::stat(without_driver(name), 0).ok()?, sys::fstat(fd).ok()?);
    let id = |st: &libc::stat| (st.st_dev, st.st_ino);
    (id(&named) == id(&open)).then_some((fd, id(&open)))
}

/// Ends MPI_File_open.
///
/// # Safety
/// As above; `name` is the program's string and `file` what the call has filled in.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_opened(call: *mut Call, result: i32, comm: Handle, name: *const c_char, info: Handle, file: *const c_void) {
    let end = now_ticks();
    // SAFETY: the caller's promise.
    let call = unsafe { &*call };
    if let Some(library) = library::get()
        && !name.is_null()
    {
        let is_traced = is_traced();
        // SAFETY: the caller's promise.
        let name = unsafe { CStr::from_ptr(name) };
        let trace_id = if is_traced { file_id(name) } else { 0 };
        let mut opened = Opened { number: 0, trace_id, comm_size: 0, layers: LAYERS.load(Relaxed), notes_hints: false, copied: None };
        if let Some(seat) = call.seat {
            // SAFETY: the call has filled it in where it did well; a file's handle is a pointer in all families.
            let handle = (result == 0).then(|| unsafe { file.cast::<Handle>().read() });
            // SAFETY: this thread's own block.
            let managed = unsafe { (*tls::thread()).mpi_managed }.checked_sub(1).map(|fd| fd as i32);
            seat.opened(library, handle, managed, end.saturating_sub(call.start));
        }
        if result == 0 {
            if is_traced {
                let mut text = [0; 64];
                opened.layers = library.value(info, c"stripewise_trace", &mut text).and_then(layers_of).unwrap_or(opened.layers);
                opened.number = files::new_number();
                let (size, rank) = members(library, comm, opened.number);
                opened.comm_size = size;
                opened.notes_hints = rank == 0 && opened.layers & layers::MPI != 0;
            }
            let is_sequential = library.access_mode(call.at) & SEQUENTIAL != 0;
            opened.copied = if is_sequential { None } else { copied(name) };
            // SAFETY: the call has filled it in; a file's handle is a pointer in all families.
            let handle = unsafe { file.cast::<Handle>().read() };
            if is_traced || opened.copied.is_some() {
                files::insert(handle, &opened);
            } else {
                files::forget(handle);
            }
            if opened.notes_hints {
                hints::note(library, handle, info, trace_id, opened.comm_size);
            }
        }
        if opened.layers & layers::MPI != 0 && is_traced {
            call.put_as(result, end, Some(0), library.access_mode(call.at), 0, trace_id, opened.number, opened.comm_size);
        }
    }
    leave();
}

/// Notes who is in a communicator; its size, and the rank in it.
fn members(library: &Library, comm: Handle, number: u32) -> (u32, i32) {
    let (mut size, mut rank) = (0, 0);
    // SAFETY: MPI's prototypes; the open has taken the communicator for valid.
    unsafe {
        (library.comm_size)(comm, &raw mut size);
        (library.comm_rank)(comm, &raw mut rank);
    }
    let n = usize::try_from(size).unwrap_or(0);
    // Ranks in, ranks out, then words of the note; a process of a million has 16 MiB of them.
    if n == 0 || n >= NOTE_BYTES_MAX / 8 {
        return (size as u32, rank);
    }
    let bytes = 16 * n + 16;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let Ok(base) = crate::base::sys::mmap(-1, bytes, libc::PROT_READ | libc::PROT_WRITE, flags) else { return (size as u32, rank) };
    let (mut group, mut world): (Handle, Handle) = (0, 0);
    // SAFETY: the rooms lie one behind the other in the mapping; MPI's prototypes.
    unsafe {
        let words = base.cast::<u64>();
        let (from, to) = (words.add(n + 1).cast::<i32>(), words.add(n + 1).cast::<i32>().add(n));
        for place in 0..n {
            from.add(place).write(place as i32);
        }
        let known = (library.comm_group)(comm, &raw mut group) == 0
            && (library.comm_group)(library.world, &raw mut world) == 0
            && (library.group_translate_ranks)(group, size, from, world, to) == 0;
        if known {
            words.write(rank as u64);
            for place in 0..n {
                words.add(1 + place).write(i64::from(to.add(place).read()) as u64);
            }
            trace::note(entry_kind::COMMUNICATOR, number, core::slice::from_raw_parts(words, n + 1));
        }
        for mut one in [group, world] {
            if one != 0 {
                (library.group_free)(&raw mut one);
            }
        }
    }
    let _ = crate::base::sys::call(syscalls::Sysno::munmap, [base as usize, bytes, 0, 0, 0, 0]);
    (size as u32, rank)
}
