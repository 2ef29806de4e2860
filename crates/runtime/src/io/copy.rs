//! Copies between descriptors of which at least one is managed: read into a buffer, written from it. Nothing is consumed that was not written:
//! positions and offsets move by what arrived at the other end, and a pipe is emptied only of what has been stored.

use crate::base::sys::{self, Sys, call};
use crate::io::endpoint::End;
use syscalls::Sysno;

/// Most bytes in flight between files.
const BUFFER_BYTES_MAX: u64 = 1 << 20;
/// The same into a stream, which may take little at a time: the rest has been read in vain.
const STREAM_BYTES_MAX: u64 = 128 << 10;
/// What the default pipe holds, ours too.
const PIPE_BYTES: u64 = 65_536;

/// Anonymous memory, gone when dropped.
struct Buffer {
    base: *mut u8,
    len: usize,
}

impl Buffer {
    fn new(bytes: u64) -> Sys<Self> {
        let len = bytes as usize;
        let base = sys::mmap(-1, len, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)?;
        Ok(Self { base, len })
    }

    fn bytes(&mut self, most: u64) -> &mut [u8] {
        // SAFETY: a mapping of that length, which only this value refers to.
        unsafe { core::slice::from_raw_parts_mut(self.base, self.len.min(usize::try_from(most).unwrap_or(usize::MAX))) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: nothing refers to it any more.
        unsafe { sys::munmap(self.base, self.len) };
    }
}

/// Moves up to `len` bytes, at most `chunk_max` of them at a time: `write` gets a chunk and how many bytes went before. Ends at the
/// source's end, at a chunk that was taken in part, and at an error, which counts only when nothing was moved before.
fn pump(len: u64, chunk_max: u64, mut read: impl FnMut(&mut [u8], u64) -> Sys<usize>, mut write: impl FnMut(&[u8], u64) -> Sys<usize>) -> Sys<u64> {
    let mut moved = 0;
    if len == 0 {
        return Ok(0);
    }
    let mut buffer = Buffer::new(len.min(chunk_max))?;
    while moved < len {
        let chunk = buffer.bytes(len - moved);
        let step = read(chunk, moved).and_then(|got| match chunk.get(..got) {
            Some(full) if got > 0 => Ok((got, write(full, moved)?)),
            _ => Ok((0, 0)),
        });
        match step {
            Ok((got, put)) => {
                moved += put as u64;
                if put < got || got == 0 {
                    break;
                }
            }
            Err(_) if moved > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(moved)
}

/// From one file into another at explicit offsets.
pub fn between(from: &End, from_at: u64, to: &End, to_at: u64, len: u64) -> Sys<u64> {
    let read = |chunk: &mut [u8], moved: u64| from.read_at(chunk, from_at + moved);
    pump(len, BUFFER_BYTES_MAX, read, |chunk, moved| to.write_at(chunk, to_at + moved))
}

/// From a file into a stream that takes bytes in order. Into a pipe no more is moved than has room, or a program that empties its own pipe would wait
/// for ever.
pub fn into_stream(from: &End, from_at: u64, to: &End, len: u64, nonblocking: bool) -> Sys<u64> {
    let is_pipe = to.is_pipe();
    let read = |chunk: &mut [u8], moved: u64| from.read_at(chunk, from_at + moved);
    let write = |chunk: &[u8], _: u64| if is_pipe { to.feed(chunk, nonblocking) } else { sys::write(to.fd, chunk) };
    pump(if is_pipe { len.min(STREAM_BYTES_MAX) } else { len }, STREAM_BYTES_MAX, read, write)
}

/// A pipe of our own, which holds a copy of what lies in the program's.
struct Mirror {
    ends: [i32; 2],
}

impl Mirror {
    fn new() -> Sys<Self> {
        let mut ends = [-1i32; 2];
        call(Sysno::pipe2, [ends.as_mut_ptr() as usize, libc::O_CLOEXEC as usize, 0, 0, 0, 0])?;
        Ok(Self { ends })
    }

    /// Copies what `pipe` holds, at most the size of `into`; waits for the first byte unless `nonblocking`.
    fn peek(&self, pipe: i32, into: &mut [u8], nonblocking: bool) -> Sys<usize> {
        let [out, input] = self.ends;
        let flags = if nonblocking { libc::SPLICE_F_NONBLOCK } else { 0 };
        let seen = call(Sysno::tee, [pipe as usize, input as usize, into.len(), flags as usize, 0, 0])? as usize;
        let mut got = 0;
        while got < seen {
            let Some(rest) = into.get_mut(got..seen) else { break };
            match sys::read(out, rest)? {
                0 => break,
                n => got += n,
            }
        }
        Ok(got)
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        for end in self.ends {
            sys::close(end);
        }
    }
}

/// From a pipe into a managed file. The bytes are copied first and taken out of the pipe only when they are stored.
pub fn out_of_pipe(from: &End, to: &End, to_at: u64, len: u64, nonblocking: bool) -> Sys<u64> {
    let mirror = Mirror::new()?;
    let read = |chunk: &mut [u8], moved: u64| mirror.peek(from.fd, chunk, nonblocking || moved > 0);
    let write = |chunk: &[u8], moved: u64| {
        let stored = to.write_at(chunk, to_at + moved)?;
        discard(from.fd, stored)?;
        Ok(stored)
    };
    pump(len, PIPE_BYTES, read, write)
}

/// Takes bytes out of a pipe that have been stored.
fn discard(pipe: i32, mut bytes: usize) -> Sys<()> {
    let mut sink = [0u8; 4096];
    while bytes > 0 {
        let most = bytes.min(sink.len());
        match sys::read(pipe, sink.get_mut(..most).unwrap_or(&mut []))? {
            0 => break,
            n => bytes -= n,
        }
    }
    Ok(())
}
