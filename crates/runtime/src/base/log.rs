//! The library's own messages: they go to the file that `STRIPEWISE_LOG` names, and nowhere else. Each is one write to the end of the file, so
//! that lines of many processes do not mix, and each process says a thing once.

use crate::base::sys;
use core::sync::atomic::{AtomicU64, Ordering};
use stripewise_target::text::FixedPath;

/// Hashes of what this process has said; a table that is full says everything.
static SAID: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];
/// Of a path so many of the last bytes are shown: the line must fit.
const PATH_SHOWN: usize = 3000;

/// FNV-1a; never 0.
pub fn hash(parts: [&[u8]; 2]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)) | 1
}

fn said_before(hash: u64) -> bool {
    for word in &SAID {
        match word.compare_exchange(0, hash, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return false,
            Err(seen) if seen == hash => return true,
            Err(_) => {}
        }
    }
    false
}

/// A path may be a stranger's: it makes no line of its own, and tells a terminal nothing.
fn push_printable(line: &mut FixedPath, text: &[u8]) {
    for part in text.split_inclusive(u8::is_ascii_control) {
        match part.split_last() {
            Some((last, rest)) if last.is_ascii_control() => line.push(rest).push(b"?"),
            _ => line.push(part),
        };
    }
}

/// One line: what is wrong and what to do, and the path it is about.
#[cold]
#[inline(never)]
pub fn say(what: &[u8], path: &[u8]) {
    let Some(log) = crate::base::config::log_path() else { return };
    if said_before(hash([what, path])) {
        return;
    }
    let Ok(fd) = sys::open(log, libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND, 0o644) else { return };
    let path = path.get(path.len().saturating_sub(PATH_SHOWN)..).unwrap_or(path);
    let mut line = FixedPath::from_bytes(b"stripewise[");
    line.push_decimal(u64::from(sys::getpid())).push(b"]: ");
    push_printable(&mut line, path);
    line.push(b": ");
    push_printable(&mut line, what);
    line.push(b"\n");
    let _ = sys::write(fd, line.as_bytes());
    sys::close(fd);
}
