//! Whose stores this process uses: the rule of `stripewise_store::trust`, asked with the rights that the calling thread has now. A store that was fine
//! for root is asked about again by the user that the process has become.

use crate::base::config;
use crate::base::log;
use crate::base::sys::{self, Errno, Sys};
use stripewise_store::trust::{LIST_BYTES_MAX, OVERFLOW_UID, SITE_LIST, is_listed, owner_is_trusted};
use stripewise_target::text::FixedPath;

/// Whether the process uses a store of this owner that lies at `path`; `is_own`: it is the one that it was started with. An emulator uses
/// none: the program that it runs does.
pub fn judge(path: &[u8], owner: u32, euid: u32, is_own: bool) -> Sys<()> {
    if config::is_emulator() {
        return Err(Errno(libc::EACCES));
    }
    // Lists name paths, which mean something else once the process has another root directory.
    let is_named = || crate::base::process::root_moves_seen() == 0 && (is_listed(config::trusted(), b':', path) || is_listed_by_site(path));
    if is_own || owner_is_trusted(owner, euid, overflow_uid()) || is_named() {
        return Ok(());
    }
    refuse(path, owner);
    Err(Errno(libc::EACCES))
}

#[cold]
#[inline(never)] // Its text would lie on the stack below every way to open.
fn refuse(path: &[u8], owner: u32) {
    let mut why = FixedPath::from_bytes(b"this store was not used: it belongs to uid ");
    why.push_decimal(u64::from(owner)).push(b", neither you nor root; if you trust its owner, type: stripewise store trust '");
    // To be pasted into a shell whatever a stranger has called it.
    for (number, part) in path.split(|byte| *byte == b'\'').enumerate() {
        why.push(if number > 0 { b"'\\''" } else { b"" }).push(part);
    }
    why.push(b"'");
    log::say(why.as_bytes(), path);
}

/// The uid of owners that this user namespace does not know.
fn overflow_uid() -> u32 {
    let mut text = [0u8; 16];
    let text = sys::read_file(c"/proc/sys/kernel/overflowuid", &mut text).unwrap_or(&[]);
    core::str::from_utf8(text).ok().and_then(|text| text.trim_ascii().parse().ok()).unwrap_or(OVERFLOW_UID)
}

/// Whether root has listed the store for everybody. A list that is not root's alone counts for nothing.
#[inline(never)] // As above.
fn is_listed_by_site(path: &[u8]) -> bool {
    let Ok(fd) = sys::open(SITE_LIST, libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK, 0) else { return false };
    let listed = sys::fstat(fd).and_then(|st| {
        let is_roots = st.st_mode & libc::S_IFMT == libc::S_IFREG && st.st_uid == 0 && st.st_mode & 0o022 == 0;
        if !is_roots || st.st_size as usize > LIST_BYTES_MAX {
            log::say(b"is not used: it must be a file of root's, writable by nobody else, of at most 64 KiB", SITE_LIST.to_bytes());
            return Ok(false);
        }
        let memory = sys::mmap(-1, LIST_BYTES_MAX, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)?;
        // SAFETY: fresh memory of that size, unmapped below.
        let list = unsafe { core::slice::from_raw_parts_mut(memory, LIST_BYTES_MAX) };
        let listed = sys::read(fd, list).map(|len| is_listed(list.get(..len).unwrap_or(&[]), b'\n', path));
        // SAFETY: as above.
        unsafe { sys::munmap(memory, LIST_BYTES_MAX) };
        listed
    });
    sys::close(fd);
    listed.unwrap_or(false)
}
