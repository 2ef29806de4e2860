//! The library's own messages: they go to the file that `STRIPEWISE_LOG` names, and nowhere else.

use crate::sys;
use stripewise_store::names::FixedPath;

/// One line: what is wrong and what to do, and the path it is about.
#[cold]
pub fn say(what: &[u8], path: &[u8]) {
    let Some(log) = crate::env::log_path() else { return };
    let Ok(fd) = sys::open(log, libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND, 0o644) else { return };
    let mut line = FixedPath::from_bytes(b"stripewise[");
    line.push_decimal(u64::from(sys::getpid())).push(b"]: ").push(path).push(b": ").push(what).push(b"\n");
    let _ = sys::write(fd, line.as_bytes());
    sys::close(fd);
}
