//! The bytes of a replica in their order of access, read from the plain file: blocks that lie one behind the other there are one request.

use std::io;

use stripewise_layout::{ReplicaOffset, ReplicaRef};

use crate::admin::medium::Handle;

/// Fills `buf` with the bytes of a replica from its byte `at` on; what is behind its end is zero. False when the plain file ends before.
///
/// # Errors
/// Those of reading.
pub(super) fn fill(source: &dyn Handle, replica: &ReplicaRef<'_>, at: u64, buf: &mut [u8]) -> io::Result<bool> {
    let end = replica.total().min(at + buf.len() as u64);
    // Where the run that is not read yet begins in the plain file and in the buffer, and its bytes.
    let (mut from, mut place, mut len) = (0, 0, 0);
    let mut offset = at;
    while offset < end {
        let Some(logical) = replica.inverse(ReplicaOffset(offset)) else { break };
        let part = (replica.block - offset % replica.block).min(end - offset);
        if len > 0 && from + len == logical.0 {
            len += part;
        } else {
            if !read(source, buf, from, place, len)? {
                return Ok(false);
            }
            (from, place, len) = (logical.0, offset - at, part);
        }
        offset += part;
    }
    if let Some(rest) = buf.get_mut(end.saturating_sub(at) as usize..) {
        rest.fill(0);
    }
    read(source, buf, from, place, len)
}

fn read(source: &dyn Handle, buf: &mut [u8], from: u64, place: u64, len: u64) -> io::Result<bool> {
    match buf.get_mut(place as usize..(place + len) as usize) {
        Some(part) if len > 0 => Ok(source.read_at(part, from)? == part.len()),
        _ => Ok(true),
    }
}
