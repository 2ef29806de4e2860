//! The bytes of a replica in their order of access, read from the file: blocks that lie one behind the other there are one request.

use stripewise_layout::{ReplicaOffset, ReplicaRef};

use crate::admin::error::Result;

/// Reads bytes of the file from one on; false when it ends before.
pub(super) type Read<'a> = dyn FnMut(&mut [u8], u64) -> Result<bool> + 'a;

/// Fills `buf` with the bytes of a replica from its byte `at` on; what is behind its end is zero. False when the file ends before.
///
/// # Errors
/// Those of reading.
pub(super) fn fill(source: &mut Read<'_>, replica: &ReplicaRef<'_>, at: u64, buf: &mut [u8]) -> Result<bool> {
    let end = replica.total().min(at + buf.len() as u64);
    // Where the run that is not read yet begins in the file and in the buffer, and its bytes.
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

fn read(source: &mut Read<'_>, buf: &mut [u8], from: u64, place: u64, len: u64) -> Result<bool> {
    match buf.get_mut(place as usize..(place + len) as usize) {
        Some(part) if len > 0 => source(part, from),
        _ => Ok(true),
    }
}
