//! Programs that shed the library: statically linked ones, those with more rights than their caller (setuid, setgid, file capabilities), and those for
//! another architecture. They find managed files to be links to nowhere; where a log is kept, it says which program that was and what to do.

use crate::log;
use crate::sys::{self, Errno, Sys};
use core::ffi::CStr;
use libc::c_char;
use stripewise_store::names::FixedPath;

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// Says so when the program that is about to start is out of the library's reach.
///
/// # Safety
/// `name` is null or a C string.
pub unsafe fn hint(name: *const c_char, search: bool) {
    if name.is_null() || crate::env::log_path().is_none() {
        return;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    if !search || name.to_bytes().contains(&b'/') {
        look_at(name);
        return;
    }
    // SAFETY: the C library's environment.
    let path = unsafe { crate::env::variable(environ, b"PATH") }.unwrap_or(b"/bin:/usr/bin");
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
        _ => None,
    }
}

enum Linkage {
    Dynamic,
    Static,
    Foreign,
}

fn word<const N: usize>(bytes: &[u8], at: usize) -> Sys<[u8; N]> {
    bytes.get(at..at + N).and_then(|b| b.try_into().ok()).ok_or(Errno(libc::ENOEXEC))
}

/// Reads the program's header; scripts count as what they are: programs whose interpreter is looked at by nobody.
fn linkage(file: &CStr) -> Sys<Linkage> {
    const ELF64_LITTLE: &[u8] = b"\x7fELF\x02\x01";
    const MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    const INTERPRETER: u32 = 3;
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
        // The loader itself, called as a program, has no interpreter and loads the library all the same.
        let loader = file.to_bytes().rsplit(|c| *c == b'/').next().is_some_and(|name| name.starts_with(b"ld-") || name.starts_with(b"ld."));
        Ok(if has || loader { Linkage::Dynamic } else { Linkage::Static })
    })();
    sys::close(fd);
    result
}
