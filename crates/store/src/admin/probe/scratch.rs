//! Probing a real directory: requests on a scratch file in it that no name leads to, so that the kernel takes it away with the process, however that
//! ends. The page cache is kept out by O_DIRECT where the file system takes it; else each write is flushed before it counts as done, and what is
//! read is dropped from the cache before the clock starts.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{Advice, CWD, Mode, OFlags};
use rustix::io::Errno;
use stripewise_target::time::now_ns;

use super::{PROBE_GRANULE, Request, SCRATCH_IN_FLIGHT_MAX, Series, Timed};
use crate::admin::error::{Context, Result, StoreError};

/// A scratch file takes at most one part in so many of what is free in its file system.
pub const FREE_SHARE: u64 = 16;
/// The smallest scratch file that is of use.
const BYTES_MIN: u64 = 4 << 20;
/// Bytes written at once while the file is filled.
const FILL_BYTES: usize = 4 << 20;
/// Where the file system makes no files without names, a name that begins so exists for the moment between making it and removing it.
const NAME: &str = ".stripewise-probe-";

/// How the page cache is kept out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheControl {
    /// O_DIRECT.
    Direct,
    /// fdatasync after each write, posix_fadvise(DONTNEED) before each read.
    Fadvise,
}

impl CacheControl {
    /// As it stands in cluster.toml.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Fadvise => "fadvise",
        }
    }
}

/// A scratch file without a name.
pub struct Scratch {
    dir: PathBuf,
    file: File,
    cache: CacheControl,
    bytes: u64,
    filled: u64,
    content: Vec<u8>,
}

/// A buffer whose bytes begin at a multiple of the granule, as O_DIRECT wants it.
struct Aligned {
    memory: Vec<u8>,
    skew: usize,
}

impl Aligned {
    fn new(bytes: usize) -> Self {
        let memory = noise(bytes + PROBE_GRANULE as usize);
        let skew = memory.as_ptr().align_offset(PROBE_GRANULE as usize);
        Self { memory, skew }
    }

    fn bytes(&mut self, bytes: u64) -> &mut [u8] {
        self.memory.get_mut(self.skew..self.skew + bytes as usize).unwrap_or_default()
    }
}

/// Bytes that no device compresses or finds twice (xorshift64).
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = now_ns() | 1;
    let mut words = Vec::with_capacity(bytes + 8);
    while words.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        words.extend_from_slice(&state.to_le_bytes());
    }
    words.truncate(bytes);
    words
}

impl Scratch {
    /// Makes an empty scratch file in `dir` for at most `bytes_wanted` bytes, and at most a sixteenth of what is free there.
    ///
    /// # Errors
    /// `Io` when the directory takes no file, `NoSpace` when a sixteenth of what is free is too little.
    pub fn new(dir: &Path, bytes_wanted: u64) -> Result<Self> {
        let bytes = bytes_wanted.min(free_bytes(dir)? / FREE_SHARE) / PROBE_GRANULE * PROBE_GRANULE;
        if bytes < BYTES_MIN {
            return Err(StoreError::NoSpace(format!(
                "{}: a scratch file of {bytes} bytes, a sixteenth of what is free there or what was asked for, is smaller than {BYTES_MIN}; free space \
                 there, or ask for more",
                dir.display()
            )));
        }
        sweep(dir);
        Self::with(dir, bytes, CacheControl::Direct).or_else(|e| match e.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::INVAL | Errno::OPNOTSUPP) => {
                Self::with(dir, bytes, CacheControl::Fadvise).map_err(|e| failed("make a scratch file in", dir, e))
            }
            _ => Err(failed("make a scratch file in", dir, e)),
        })
    }

    /// An empty scratch file; an error of EINVAL where the file system does not take this `cache`.
    fn with(dir: &Path, bytes: u64, cache: CacheControl) -> io::Result<Self> {
        let file = nameless(dir, if cache == CacheControl::Direct { OFlags::DIRECT } else { OFlags::empty() })?;
        // Some file systems take the flag and refuse the request.
        file.write_all_at(Aligned::new(PROBE_GRANULE as usize).bytes(PROBE_GRANULE), 0)?;
        Ok(Self { dir: dir.to_path_buf(), file, cache, bytes, filled: 0, content: noise(FILL_BYTES + PROBE_GRANULE as usize) })
    }

    /// How the page cache is kept out.
    pub fn cache(&self) -> CacheControl {
        self.cache
    }

    /// Bytes that the file is to have.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes what is missing of the file, so that requests meet allocated blocks, for at most `limit_ns`; returns the bytes that it has now.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub fn fill(&mut self, limit_ns: u64) -> Result<u64> {
        let begin_ns = now_ns();
        let skew = self.content.as_ptr().align_offset(PROBE_GRANULE as usize);
        while self.filled < self.bytes && now_ns().saturating_sub(begin_ns) < limit_ns {
            let part = (self.bytes - self.filled).min(FILL_BYTES as u64);
            let content = self.content.get(skew..skew + part as usize).unwrap_or_default();
            self.file.write_all_at(content, self.filled).map_err(|e| failed("fill the scratch file in", &self.dir, e))?;
            self.filled += part;
        }
        self.file.sync_data().map_err(|e| failed("flush the scratch file in", &self.dir, e))?;
        if self.cache == CacheControl::Fadvise {
            self.drop_cached(0, self.filled);
        }
        Ok(self.filled)
    }

    fn drop_cached(&self, offset: u64, bytes: u64) {
        // Advice: where it is not taken, as on tmpfs, memory is the device.
        let _ = rustix::fs::fadvise(self.file.as_fd(), offset, std::num::NonZeroU64::new(bytes), Advice::DontNeed);
    }

    /// Makes a series; returns the times of those that were begun within its limit, at least one, in the order of the requests.
    ///
    /// # Errors
    /// `Invalid` for requests outside the filled range, `NoSpace`, `Io`.
    pub fn run(&self, series: &Series<'_>) -> Result<Vec<Timed>> {
        series.check(self.filled, SCRATCH_IN_FLIGHT_MAX)?;
        let shared = Shared { next: AtomicUsize::new(0), failed: AtomicBool::new(false), begin_ns: now_ns() };
        let parts = if series.in_flight == 1 {
            vec![self.worker(series, &shared)]
        } else {
            std::thread::scope(|scope| {
                let workers: Vec<_> = (0..series.in_flight).map(|_| scope.spawn(|| self.worker(series, &shared))).collect();
                workers.into_iter().map(|w| w.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the probe ended")))).collect()
            })
        };
        let mut done = Vec::with_capacity(series.requests.len());
        for part in parts {
            done.extend(part.map_err(|e| failed("time requests on the scratch file in", &self.dir, e))?);
        }
        done.sort_unstable_by_key(|(place, _)| *place);
        Ok(done.into_iter().map(|(_, timed)| timed).collect())
    }

    /// Takes requests one after the other until none is left, the time is over or one failed.
    fn worker(&self, series: &Series<'_>, shared: &Shared) -> io::Result<Vec<(usize, Timed)>> {
        let mut buffer = Aligned::new(series.requests.iter().map(|r| r.bytes).max().unwrap_or(0) as usize);
        let mut done = Vec::with_capacity(series.requests.len() / series.in_flight + 1);
        while !shared.failed.load(Ordering::Relaxed) {
            let place = shared.next.fetch_add(1, Ordering::Relaxed);
            let Some(request) = series.requests.get(place) else { break };
            if place > 0 && now_ns().saturating_sub(shared.begin_ns) > series.limit_ns {
                break;
            }
            let timed = self.one(*request, series.write, buffer.bytes(request.bytes));
            done.push((place, timed.inspect_err(|_| shared.failed.store(true, Ordering::Relaxed))?));
        }
        Ok(done)
    }

    fn one(&self, request: Request, write: bool, buffer: &mut [u8]) -> io::Result<Timed> {
        if !write && self.cache == CacheControl::Fadvise {
            self.drop_cached(request.offset, request.bytes);
        }
        let start_ns = now_ns();
        if write {
            self.file.write_all_at(buffer, request.offset)?;
            if self.cache == CacheControl::Fadvise {
                self.file.sync_data()?;
            }
        } else {
            self.file.read_exact_at(buffer, request.offset)?;
        }
        Ok(Timed { start_ns, end_ns: now_ns() })
    }
}

struct Shared {
    next: AtomicUsize,
    failed: AtomicBool,
    begin_ns: u64,
}

/// An open file in `dir` that has no name.
fn nameless(dir: &Path, more: OFlags) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | more;
    match rustix::fs::openat(CWD, dir, flags | OFlags::TMPFILE, Mode::RUSR | Mode::WUSR) {
        Ok(fd) => return Ok(File::from(fd)),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT) if dir.is_dir() => {}
        Err(e) => return Err(e.into()),
    }
    let path = dir.join(format!("{NAME}{}-{}", std::process::id(), now_ns()));
    let file = File::from(rustix::fs::openat(CWD, &path, flags | OFlags::CREATE | OFlags::EXCL, Mode::RUSR | Mode::WUSR)?);
    match std::fs::remove_file(&path) {
        // Another probe's sweep was faster.
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(file),
    }
}

/// Removes names that probes left that were killed between making and removing one; such files are empty.
fn sweep(dir: &Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(NAME) && entry.metadata().is_ok_and(|m| m.is_file() && m.len() == 0) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Bytes free in the file system of a directory; without end where it does not count them.
fn free_bytes(dir: &Path) -> Result<u64> {
    let found = rustix::fs::statvfs(dir).map_err(io::Error::from).doing("look at the file system of", dir)?;
    Ok(if found.f_blocks == 0 { u64::MAX } else { found.f_bavail.saturating_mul(found.f_frsize) })
}

/// The error of a system call on the scratch file; a full disk or quota is `NoSpace`.
fn failed(doing: &'static str, dir: &Path, e: io::Error) -> StoreError {
    match Errno::from_io_error(&e) {
        Some(Errno::NOSPC | Errno::DQUOT) => {
            StoreError::NoSpace(format!("{}: is full, no room for a scratch file ({e}); free space there or give --scratch less", dir.display()))
        }
        _ => StoreError::io(doing, dir, e),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn requests(count: u64) -> Vec<Request> {
        (0..count).map(|i| Request { offset: i * 8192, bytes: 8192 }).collect()
    }

    #[test]
    fn each_request_ends_after_it_began_and_no_name_shows() {
        let dir = tempfile::tempdir().unwrap();
        let best = Scratch::new(dir.path(), 4 << 20).unwrap().cache();
        for cache in [best, CacheControl::Fadvise] {
            let mut scratch = Scratch::with(dir.path(), 4 << 20, cache).unwrap();
            assert_eq!(scratch.fill(u64::MAX).unwrap(), 4 << 20);
            for (write, in_flight) in [(true, 1), (false, 1), (true, 4), (false, 4)] {
                let requests = requests(64);
                let done = scratch.run(&Series { requests: &requests, write, in_flight, limit_ns: u64::MAX }).unwrap();
                assert_eq!(done.len(), 64);
                assert!(done.iter().all(|t| t.end_ns > t.start_ns));
            }
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_series_whose_time_is_over_still_makes_one_request() {
        let dir = tempfile::tempdir().unwrap();
        let mut scratch = Scratch::new(dir.path(), 4 << 20).unwrap();
        scratch.fill(u64::MAX).unwrap();
        let requests = requests(100);
        let done = scratch.run(&Series { requests: &requests, write: false, in_flight: 1, limit_ns: 0 }).unwrap();
        assert_eq!(done.len(), 1);
    }

    #[test]
    fn requests_behind_what_was_filled_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(dir.path(), 4 << 20).unwrap();
        assert!(scratch.run(&Series { requests: &requests(1), write: false, in_flight: 1, limit_ns: 0 }).is_err());
    }

    #[test]
    fn a_name_that_a_killed_probe_left_is_removed_and_other_files_are_not() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(format!("{NAME}1-2")), b"").unwrap();
        std::fs::write(dir.path().join(format!("{NAME}data")), b"x").unwrap();
        let _scratch = Scratch::new(dir.path(), 4 << 20).unwrap();
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, [std::ffi::OsString::from(format!("{NAME}data"))]);
    }

    #[test]
    fn a_directory_that_is_missing_is_named() {
        let error = Scratch::new(Path::new("/no/such/directory"), 4 << 20).err().unwrap().to_string();
        assert!(error.contains("/no/such/directory"), "{error}");
    }
}
