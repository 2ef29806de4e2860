//! Which processes belong together: those of one MPI job on this machine, of them those of a communicator, and which of their opens of a file is which.

use super::library::{Family, Handle, Library};
use super::room::Room;
use crate::base::log::hash;
use crate::base::{config, sys};
use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, Ordering::*};
use stripewise_engine::shared::board::PROCESSOR_WORDS;
use stripewise_target::text::{FixedPath, FixedText, PATH_MAX};

/// The members of a communicator and a file of theirs, in a word.
pub struct Members {
    pub key: u64,
    pub size: u32,
}

/// MPICH's process manager on a machine, a child of the job's `mpiexec`, and that of Slurm, of which each job step has one: parents of a job's processes.
const HYDRA: [&[u8]; 2] = [b"hydra_pmi_proxy", b"hydra_bstrap_pr"];
const SLURM: &[u8] = b"slurmstepd";
/// Who may stand between them and starts one program.
const SHELLS: [&[u8]; 7] = [b"sh", b"bash", b"dash", b"ash", b"zsh", b"ksh", b"node-sh"];
/// Ancestors that are looked at.
const ANCESTORS_MAX: usize = 16;
/// Files and groups that were opened in this process at some time; of others nothing is decided.
const OPENINGS: usize = 1 << 14;

/// The job's number; 0: not known yet, 1: it has none.
static JOB: AtomicU64 = AtomicU64::new(0);

struct Opening {
    key: AtomicU64,
    /// Opens begun; whether some overlapped, of those that are under way; how many these are: see [`Count`].
    count: AtomicU64,
}

static OPENED: [Opening; OPENINGS] = [const { Opening { key: AtomicU64::new(0), count: AtomicU64::new(0) } }; OPENINGS];

/// In one word, so that of two opens at once one comes first and the other knows.
#[derive(Clone, Copy)]
struct Count {
    begun: u32,
    inside: u32,
    overlaps: bool,
}

impl Count {
    fn parse(word: u64) -> Self {
        Self { begun: word as u32, inside: (word >> 32) as u32 & 0xffff, overlaps: word >> 63 != 0 }
    }

    fn bits(self) -> u64 {
        u64::from(self.begun) | u64::from(self.inside & 0xffff) << 32 | u64::from(self.overlaps) << 63
    }
}

impl Opening {
    fn update(&self, f: impl Fn(Count) -> Count) -> Count {
        let next = |word: u64| Some(f(Count::parse(word)).bits());
        let (Ok(before) | Err(before)) = self.count.fetch_update(SeqCst, SeqCst, next);
        Count::parse(before)
    }
}

/// An open that begins: how many were before it, and whether one of them is still under way.
pub struct Begun {
    pub number: u32,
    pub overlaps: bool,
}

/// A word of two; never 0.
pub fn mixed(key: u64, number: u32) -> u64 {
    hash([&key.to_le_bytes(), &number.to_le_bytes()])
}

/// The members of a communicator who open a file together; none: they cannot be told from others'.
pub fn members(library: &Library, comm: Handle, path: &[u8]) -> Option<Members> {
    if !library.has_world() || library.is_no_comm(comm) {
        return None;
    }
    let job = job(library.family)?;
    let mut size = 0;
    // SAFETY: MPI's prototypes, and a communicator.
    if unsafe { (library.comm_size)(comm, &raw mut size) } != 0 {
        return None;
    }
    let n = usize::try_from(size).ok().filter(|n| (1..1 << 20).contains(n))?;
    let room = Room::new(n.div_ceil(2) * 2)?;
    let (mut group, mut world): (Handle, Handle) = (0, 0);
    let ranks = room.as_ptr().cast::<i32>();
    // SAFETY: the room has two rows of `n` ints; MPI's prototypes.
    let key = unsafe {
        let (from, to) = (ranks, ranks.add(n));
        for place in 0..n {
            from.add(place).write(place as i32);
        }
        let is_known = (library.comm_group)(comm, &raw mut group) == 0
            && (library.comm_group)(library.world, &raw mut world) == 0
            && (library.group_translate_ranks)(group, size, from, world, to) == 0;
        for mut one in [group, world] {
            if one != 0 {
                (library.group_free)(&raw mut one);
            }
        }
        let of = core::slice::from_raw_parts(to, n);
        // A process of another world has no rank in ours.
        (is_known && of.iter().all(|rank| *rank >= 0)).then(|| of.iter().fold(job, |sum, rank| mixed(sum, *rank as u32)))
    }?;
    Some(Members { key: hash([&key.to_le_bytes(), path]), size: n as u32 })
}

fn opening(key: u64) -> Option<&'static Opening> {
    let first = key as usize % OPENINGS;
    for place in 0..32 {
        let opening = OPENED.get((first + place) % OPENINGS)?;
        match opening.key.compare_exchange(0, key, AcqRel, Acquire) {
            Ok(_) => return Some(opening),
            Err(there) if there == key => return Some(opening),
            Err(_) => {}
        }
    }
    None
}

/// A file's name without links, by which processes that name it differently know that it is the same; of one that is not there yet, its directory's.
pub fn real_name(path: &FixedPath) -> Option<FixedPath> {
    let of = |path: &CStr| {
        let fd = sys::open(path, libc::O_PATH | libc::O_CLOEXEC, 0).ok()?;
        let mut shown = FixedPath::from_bytes(b"/proc/self/fd/");
        shown.push_decimal(fd as u64);
        let mut text = [0; PATH_MAX];
        let found = shown.as_c_str().and_then(|shown| sys::readlinkat(libc::AT_FDCWD, shown, &mut text).ok().map(FixedPath::from_bytes));
        sys::close(fd);
        found
    };
    if let Some(name) = of(path.as_c_str()?) {
        return Some(name);
    }
    let bytes = path.as_bytes();
    let last = bytes.iter().rposition(|c| *c == b'/')?;
    let directory = FixedPath::from_bytes(if last == 0 { b"/" } else { bytes.get(..last)? });
    let mut name = of(directory.as_c_str()?)?;
    name.push(bytes.get(last..)?);
    Some(name)
}

/// Begins an open; none: there is no room to count it.
pub fn begin_opening(key: u64) -> Option<Begun> {
    let begin = |count: Count| Count { begun: count.begun.wrapping_add(1), inside: count.inside + 1, overlaps: count.overlaps || count.inside > 0 };
    let before = opening(key)?.update(begin);
    Some(Begun { number: before.begun, overlaps: before.inside > 0 })
}

/// Whether another open has begun while one was under way.
pub fn overlaps(key: u64) -> bool {
    opening(key).is_none_or(|opening| Count::parse(opening.count.load(SeqCst)).overlaps)
}

/// After the open.
pub fn end_opening(key: u64) {
    if let Some(opening) = opening(key) {
        let end = |count: Count| Count { inside: count.inside.saturating_sub(1), overlaps: count.overlaps && count.inside > 1, ..count };
        opening.update(end);
    }
}

/// The job that this process belongs to: those of one world alone have the same.
fn job(family: Family) -> Option<u64> {
    let known = JOB.load(Relaxed);
    let found = if known == 0 { found(family).unwrap_or(1) } else { known };
    JOB.store(found, Relaxed);
    Some(found).filter(|job| *job != 1)
}

fn found(family: Family) -> Option<u64> {
    if family == Family::Open {
        // A job of another MPI's that one of Open MPI's has started has it, too.
        return config::namespace().map(|name| hash([name, b"pmix"]).max(2));
    }
    if config::is_spawned() { None } else { starter() }
}

/// The `mpiexec` of MPICH's that this process's manager is a child of, by whatever name, or the manager itself where it is Slurm's.
fn starter() -> Option<u64> {
    let (mut pid, mut is_next) = (sys::getpid(), false);
    for place in 0..ANCESTORS_MAX {
        let mut path = FixedText::<64>::new();
        path.push(b"/proc/").push_decimal(u64::from(pid)).push(b"/stat");
        let mut text = [0; 1024];
        let stat = Stat::parse(sys::read_file(path.as_c_str()?, &mut text).ok()?)?;
        let is_shell = place == 0 || SHELLS.contains(&stat.name);
        let is_hydra = HYDRA.contains(&stat.name);
        let is_shared = [&b"sshd"[..], b"systemd"].iter().any(|name| stat.name.starts_with(name));
        if !is_shell && !is_shared && (is_next && !is_hydra || !is_next && stat.name == SLURM) {
            return Some(hash([&pid.to_le_bytes(), &stat.began.to_le_bytes()]).max(2));
        }
        // Any other program may have started several jobs, as one connection of ssh's or a service manager has.
        if stat.parent <= 1 || !is_shell && !is_hydra {
            return None;
        }
        is_next |= is_hydra;
        pid = stat.parent;
    }
    None
}

/// Of a line of /proc/PID/stat.
struct Stat<'a> {
    name: &'a [u8],
    parent: u32,
    began: u64,
}

impl<'a> Stat<'a> {
    /// The name is between the first bracket and the last one, and may have some itself.
    fn parse(line: &'a [u8]) -> Option<Self> {
        let (open, close) = (line.iter().position(|c| *c == b'(')?, line.iter().rposition(|c| *c == b')')?);
        let rest = core::str::from_utf8(line.get(close + 1..)?).ok()?;
        let mut words = rest.split_ascii_whitespace();
        let parent = words.nth(1)?.parse().ok()?;
        // Field 22 of the line, the parent being the 4th.
        let began = words.nth(17)?.parse().ok()?;
        Some(Self { name: line.get(open + 1..close)?, parent, began })
    }
}

/// The processors that this process may run on, a bit each.
pub fn processors() -> [u64; PROCESSOR_WORDS] {
    let mut mask = [0u64; PROCESSOR_WORDS];
    let bytes = size_of_val(&mask);
    // Beyond that many processors the kernel refuses the call, and none is known.
    let _ = sys::call(syscalls::Sysno::sched_getaffinity, [0, bytes, mask.as_mut_ptr() as usize, 0, 0, 0]);
    mask
}

#[cfg(test)]
mod tests {
    use super::Stat;

    #[test]
    fn a_process_is_told_by_its_line() {
        let line = b"812 (mpi (x) y) S 77 812 812 34816 812 4194304 1 2 3 4 5 6 7 8 20 0 1 0 9876543 1 2";
        let told = Stat::parse(line).map(|stat| (stat.name, stat.parent, stat.began));
        assert_eq!(told, Some((&b"mpi (x) y"[..], 77, 9_876_543)));
        assert!(Stat::parse(b"812 (sh) S 77").is_none() && Stat::parse(b"").is_none() && Stat::parse(b") (").is_none());
    }
}
