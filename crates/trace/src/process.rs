//! What all threads of a traced process share: where logs go, who we are, and the ids of file names.
//!
//! One static of this type lives in the preloaded library. All of it is plain memory, valid before constructors run. The few
//! words that change together (the identity, the names file) are changed under a lock of our own with signals blocked; the lock
//! names its holder's process, so a child forked while another thread held it takes it over.

use crate::clock;
use crate::format::{COMMAND_BYTES, Fixed, HEADER_BYTES, Identity};
use crate::record::RECORD_BYTES;
use crate::signals::Blocked;
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::time::ClockId;

/// Longest trace directory, the final zero included.
pub const DIR_BYTES: usize = 4096;

const OFF: u32 = 0;
const STARTING: u32 = 1;
const ON: u32 = 2;

/// The state of tracing in this process; use one `static`.
pub struct Process {
    state: AtomicU32,
    /// Pid of the process whose thread holds the lock, 0 when free.
    lock: AtomicU32,
    rank: AtomicI32,
    world: AtomicI32,
    /// Next file id to give; ids begin at 1.
    pub(crate) next_file: AtomicU32,
    /// Names that could not be written.
    pub(crate) names_lost: AtomicU64,
    /// Records dropped while their thread had no log; moved into the header of the next log that starts.
    pub(crate) unlogged_drops: AtomicU64,
    /// Table of known names, mapped at first use.
    pub(crate) table: AtomicPtr<u8>,
    /// Under the lock.
    identity: UnsafeCell<Identity>,
    /// Written once, before `state` becomes ON.
    facts: UnsafeCell<Facts>,
}

/// What is learnt once per process.
pub(crate) struct Facts {
    dir: [u8; DIR_BYTES],
    pub(crate) command: [u8; COMMAND_BYTES],
    pub(crate) command_bytes: u32,
    pub(crate) host: [u8; 64],
    pub(crate) boot_id: [u8; 16],
    pub(crate) pair: [u64; 2],
    pub(crate) nominal_hz: u64,
}

// SAFETY: `identity` is touched under `lock` only; `facts` is written before ON is published and never after.
unsafe impl Sync for Process {}

impl Default for Process {
    fn default() -> Self {
        Self::new()
    }
}

impl Process {
    /// Tracing switched off.
    #[must_use]
    pub const fn new() -> Process {
        Process {
            state: AtomicU32::new(OFF),
            lock: AtomicU32::new(0),
            rank: AtomicI32::new(-1),
            world: AtomicI32::new(-1),
            next_file: AtomicU32::new(1),
            names_lost: AtomicU64::new(0),
            unlogged_drops: AtomicU64::new(0),
            table: AtomicPtr::new(core::ptr::null_mut()),
            identity: UnsafeCell::new(Identity { start_id: 0, parent_start_id: 0, pid: 0, parent_pid: 0, first_file_id: 1, reserved: 0 }),
            facts: UnsafeCell::new(Facts {
                dir: [0; DIR_BYTES],
                command: [0; COMMAND_BYTES],
                command_bytes: 0,
                host: [0; 64],
                boot_id: [0; 16],
                pair: [0; 2],
                nominal_hz: 0,
            }),
        }
    }

    /// Begins tracing into `dir`, an absolute path of an existing directory. `rank` and `world` are -1 when unknown, `command_line` is in the form of
    /// /proc/self/cmdline and cut at [`COMMAND_BYTES`]. Creates no file: each thread's log is begun by its first record.
    ///
    /// A second call changes nothing. Reads the clocks for the first time, so call it where allocation is allowed (rustix may
    /// allocate once to find the vDSO on kernels before 6.4).
    ///
    /// # Errors
    /// `INVAL` for a relative path, `NAMETOOLONG` for one of 4,096 bytes and more.
    pub fn start(&self, dir: &CStr, rank: i32, world: i32, command_line: &[u8]) -> Result<(), Errno> {
        let bytes = dir.to_bytes();
        if bytes.first() != Some(&b'/') {
            return Err(Errno::INVAL);
        }
        if bytes.len() >= DIR_BYTES {
            return Err(Errno::NAMETOOLONG);
        }
        let _blocked = Blocked::all();
        if self.state.compare_exchange(OFF, STARTING, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return Ok(());
        }
        // SAFETY: STARTING is ours alone and nobody reads `facts` before ON.
        let facts = unsafe { &mut *self.facts.get() };
        copy(&mut facts.dir, bytes);
        facts.command_bytes = copy(&mut facts.command, command_line) as u32;
        let (ticks, wall_ns) = clock::calibrate();
        facts.pair = [ticks, wall_ns];
        facts.nominal_hz = clock::nominal_hz();
        copy(&mut facts.host, rustix::system::uname().nodename().to_bytes());
        facts.boot_id = boot_id();
        self.set_rank(rank, world);
        self.state.store(ON, Ordering::Release);
        Ok(())
    }

    /// Rank and size of MPI_COMM_WORLD, for logs begun from now on.
    pub fn set_rank(&self, rank: i32, world: i32) {
        self.rank.store(rank, Ordering::Relaxed);
        self.world.store(world, Ordering::Relaxed);
    }

    /// Is tracing on? One load: call it before taking ticks.
    #[inline(always)]
    #[must_use]
    pub fn enabled(&self) -> bool {
        self.state.load(Ordering::Relaxed) == ON
    }

    /// Records of this process that no log could be begun for, so far; the library reports them at exit.
    #[must_use]
    pub fn unlogged_drops(&self) -> u64 {
        self.unlogged_drops.load(Ordering::Relaxed)
    }

    /// Names that could not be written, so far.
    #[must_use]
    pub fn names_lost(&self) -> u64 {
        self.names_lost.load(Ordering::Relaxed)
    }

    /// The facts, once tracing is on.
    pub(crate) fn facts(&self) -> Option<&Facts> {
        if self.state.load(Ordering::Acquire) != ON {
            return None;
        }
        // SAFETY: after ON nobody writes them.
        Some(unsafe { &*self.facts.get() })
    }

    /// Runs `f` with the identity of this very process, under the lock and with signals blocked. Notices a fork.
    pub(crate) fn with_identity<T>(&self, f: impl FnOnce(&Identity) -> T) -> T {
        let _blocked = Blocked::all();
        let pid = rustix::process::getpid().as_raw_nonzero().get() as u32;
        self.take_lock(pid);
        // SAFETY: the lock is ours.
        let identity = unsafe { &mut *self.identity.get() };
        if identity.pid != pid {
            *identity = Identity {
                start_id: clock::clock_ns(ClockId::Realtime),
                parent_start_id: identity.start_id,
                pid,
                parent_pid: identity.pid,
                first_file_id: self.next_file.load(Ordering::Relaxed),
                reserved: 0,
            };
            if identity.parent_pid != 0 {
                // What the parent lost is the parent's to report.
                self.unlogged_drops.store(0, Ordering::Relaxed);
                self.names_lost.store(0, Ordering::Relaxed);
            }
        }
        let result = f(identity);
        self.lock.store(0, Ordering::Release);
        result
    }

    fn take_lock(&self, pid: u32) {
        loop {
            match self.lock.compare_exchange(0, pid, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return,
                // Held by a thread of our parent when it forked us: that thread does not exist here.
                Err(holder) if holder != pid => {
                    if self.lock.compare_exchange(holder, pid, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                        return;
                    }
                }
                Err(_) => rustix::thread::sched_yield(),
            }
        }
    }

    /// Opens the trace directory, for openat.
    pub(crate) fn open_dir(&self) -> Result<rustix::fd::OwnedFd, Errno> {
        let facts = self.facts().ok_or(Errno::INVAL)?;
        let dir = CStr::from_bytes_until_nul(&facts.dir).map_err(|_| Errno::INVAL)?;
        rustix::fs::open(dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
    }

    /// The write-once part of a log's header.
    pub(crate) fn header(&self, identity: &Identity, tid: u32) -> Result<Fixed, Errno> {
        let facts = self.facts().ok_or(Errno::INVAL)?;
        Ok(Fixed {
            header_bytes: HEADER_BYTES as u32,
            record_bytes: RECORD_BYTES as u32,
            clock_kind: clock::kind(),
            tid,
            identity: *identity,
            rank: self.rank.load(Ordering::Relaxed),
            world: self.world.load(Ordering::Relaxed),
            nominal_hz: facts.nominal_hz,
            boot_id: facts.boot_id,
            host: facts.host,
            process_pair: facts.pair,
            command_bytes: facts.command_bytes,
            reserved: 0,
            command: facts.command,
        })
    }
}

/// Copies what fits; the number of bytes copied.
fn copy(to: &mut [u8], from: &[u8]) -> usize {
    to.iter_mut().zip(from).map(|(to, from)| *to = *from).count()
}

/// The kernel's boot id (/proc/sys/kernel/random/boot_id), zeros when it cannot be read.
fn boot_id() -> [u8; 16] {
    let mut text = [0u8; 64];
    let length = clock::read_small(c"/proc/sys/kernel/random/boot_id", &mut text);
    let mut id = [0u8; 16];
    let digits = text.iter().take(length).filter_map(|&byte| (byte as char).to_digit(16));
    for (position, digit) in digits.take(32).enumerate() {
        if let Some(byte) = id.get_mut(position / 2) {
            *byte = *byte << 4 | digit as u8;
        }
    }
    id
}
