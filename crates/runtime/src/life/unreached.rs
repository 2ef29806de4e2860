//! Programs that shed the library: statically linked ones, those with more rights than their caller (setuid, setgid, file capabilities), those for
//! another architecture, and Go's, whose runtime calls the kernel itself. They find managed files to be links to nowhere; where a log is kept, it says which
//! program that was and what to do.

use crate::base::log;
use crate::base::sys::{self, Errno, Sys};
use core::ffi::CStr;
use libc::c_char;
use stripewise_target::text::FixedPath;

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// Says so when the program that is about to start is out of the library's reach.
///
/// # Safety
/// `name` is null or a C string.
pub unsafe fn hint(name: *const c_char, search: bool) {
    if name.is_null() || crate::base::config::log_path().is_none() {
        return;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    if !search || name.to_bytes().contains(&b'/') {
        look_at(name);
        return;
    }
    // SAFETY: the C library's environment.
    let path = unsafe { crate::base::config::variable(environ, b"PATH") }.unwrap_or(b"/bin:/usr/bin");
    for dir in path.split(|c| *c == b':') {
        let mut file = FixedPath::from_bytes(if dir.is_empty() { b"." } else { dir });
        file.push(b"/").push(name.to_bytes());
        // SAFETY: a valid C string.
        if let Some(file) = file.as_c_str()
            && unsafe { sys::faccessat_raw(libc::AT_FDCWD, file.as_ptr(), libc::X_OK, 0) }.is_ok()
        {
            look_at(file);
            return;
        }
    }
}

#[cold]
fn look_at(file: &CStr) {
    if let Some(why) = reason(file) {
        log::say(why, file.to_bytes());
    }
}

fn reason(file: &CStr) -> Option<&'static [u8]> {
    let mut text = [0u8; 64];
    if sys::readlinkat(libc::AT_FDCWD, file, &mut text).is_ok_and(|t| t.starts_with(stripewise_store::names::LINK_PREFIX)) {
        return Some(b"this program is itself a managed file, which the kernel cannot start; keep programs outside managed directories");
    }
    let st = sys::stat(file, 0).ok()?;
    let (uid, gid) = sys::effective_ids();
    if st.st_mode & libc::S_ISUID != 0 && st.st_uid != uid || st.st_mode & libc::S_ISGID != 0 && st.st_gid != gid {
        return Some(b"this program is setuid or setgid, so the loader ignores the library; it does not see managed files: run it as its owner, or export them");
    }
    if uid != 0 && sys::has_xattr(file, c"security.capability") {
        return Some(b"this program has file capabilities, so the loader ignores the library; it does not see managed files: export them");
    }
    match linkage(file) {
        Ok(Linkage::Static) => Some(
            b"this program is statically linked, so the library cannot be loaded; it does not see managed files: link it dynamically, or export them",
        ),
        Ok(Linkage::Foreign) => Some(
            b"this program is for another architecture than the library; it does not see managed files: use a build for this machine, or export them",
        ),
        Ok(Linkage::Go) => Some(
            b"this program is written in Go, whose os package calls the kernel itself; it does not see managed files (ENOENT, EBADF) and may pass over them in silence: use another one, or export them",
        ),
        _ => None,
    }
}

enum Linkage {
    Dynamic,
    Static,
    Foreign,
    Go,
}

fn word<const N: usize>(bytes: &[u8], at: usize) -> Sys<[u8; N]> {
    bytes.get(at..at + N).and_then(|b| b.try_into().ok()).ok_or(Errno(libc::ENOEXEC))
}

/// Reads the program's header; scripts count as what they are: programs whose interpreter is looked at by nobody.
fn linkage(file: &CStr) -> Sys<Linkage> {
    const ELF64_LITTLE: &[u8] = b"\x7fELF\x02\x01";
    const MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    const INTERPRETER: u32 = 3;
    const NOTE: u32 = 4;
    const ENTRY_BYTES: usize = 56;
    let fd = sys::open(file, libc::O_RDONLY, 0)?;
    let mut header = [0u8; 64];
    let mut table = [0u8; ENTRY_BYTES * 32];
    let result = (|| {
        sys::read(fd, &mut header)?;
        if !header.starts_with(b"\x7fELF") {
            return Ok(Linkage::Dynamic);
        }
        if !header.starts_with(ELF64_LITTLE) || u16::from_le_bytes(word(&header, 18)?) != MACHINE {
            return Ok(Linkage::Foreign);
        }
        let at = u64::from_le_bytes(word(&header, 32)?);
        let entries = usize::from(u16::from_le_bytes(word(&header, 56)?)).min(32);
        // SAFETY: the buffer holds that many entries.
        let got = unsafe { sys::pread(fd, table.as_mut_ptr(), entries * ENTRY_BYTES, at)? };
        let table = table.get(..got).unwrap_or(&[]);
        let has = table.chunks_exact(ENTRY_BYTES).any(|entry| word(entry, 0).map(u32::from_le_bytes) == Ok(INTERPRETER));
        // Some have no interpreter and load the library all the same: the loader itself, called as a program; valgrind's tools and QEMU for their guests.
        let mut parts = file.to_bytes().rsplit(|c| *c == b'/');
        let name = parts.next().unwrap_or(b"");
        let loader = name.starts_with(b"ld-") || name.starts_with(b"ld.") || parts.next() == Some(b"valgrind");
        let loader = loader || crate::base::config::emulates_this_machine(name);
        let go = table.chunks_exact(ENTRY_BYTES).filter(|entry| word(entry, 0).map(u32::from_le_bytes) == Ok(NOTE)).any(|entry| is_go(fd, entry));
        Ok(match (has || loader, go) {
            (false, _) => Linkage::Static,
            (true, true) => Linkage::Go,
            (true, false) => Linkage::Dynamic,
        })
    })();
    sys::close(fd);
    result
}

/// Whether a table's entry is of notes, of which one is that of Go's linker (`.note.go.buildid`): name `Go`, type 4.
fn is_go(fd: i32, entry: &[u8]) -> bool {
    let mut notes = [0u8; 1024];
    let (Ok(at), Ok(length)) = (word(entry, 8).map(u64::from_le_bytes), word(entry, 32).map(u64::from_le_bytes)) else { return false };
    let length = notes.len().min(usize::try_from(length).unwrap_or(notes.len()));
    // SAFETY: the buffer is that long.
    let got = unsafe { sys::pread(fd, notes.as_mut_ptr(), length, at) }.unwrap_or(0);
    let mut rest = notes.get(..got).unwrap_or(&[]);
    // Each is three lengths and what they count, rounded to four.
    while let (Ok(name), Ok(description), Ok(kind)) = (word(rest, 0), word(rest, 4), word(rest, 8)) {
        if rest.get(12..16) == Some(b"Go\0\0") && u32::from_le_bytes(kind) == 4 {
            return true;
        }
        let [name, description] = [name, description].map(|n| u32::from_le_bytes(n) as usize);
        let Some(next) = name.checked_next_multiple_of(4).zip(description.checked_next_multiple_of(4)).map(|(n, d)| n + d + 12) else { return false };
        rest = rest.get(next..).unwrap_or(&[]);
    }
    false
}
