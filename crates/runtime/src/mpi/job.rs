//! Which processes belong together: those of one MPI job on this machine, of them those of a communicator, and which of their opens of a file is which.

use super::library::{Handle, Library};
use super::room::Room;
use crate::base::log::hash;
use crate::base::sys;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use stripewise_engine::shared::board::PROCESSOR_WORDS;
use stripewise_target::text::FixedText;

/// The members of a communicator and a file of theirs, in a word.
pub struct Members {
    pub key: u64,
    pub size: u32,
}

/// Programs that start the processes of a job, all of them as descendants of the same one; the nearest is the job's.
const STARTERS: [&[u8]; 7] = [b"mpiexec", b"mpirun", b"orterun", b"prterun", b"srun", b"slurmstepd", b"prun"];
/// Ancestors that are looked at.
const ANCESTORS_MAX: usize = 32;
/// Files and groups that were opened in this process at some time; of others nothing is decided.
const OPENINGS: usize = 1024;

/// Of the process that started the job; 0: not known yet, 1: none.
static JOB: AtomicU64 = AtomicU64::new(0);

struct Opening {
    key: AtomicU64,
    /// Opens begun, and those that are under way.
    begun: AtomicU32,
    inside: AtomicU32,
}

static OPENED: [Opening; OPENINGS] = [const { Opening { key: AtomicU64::new(0), begun: AtomicU32::new(0), inside: AtomicU32::new(0) } }; OPENINGS];

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
    let job = job()?;
    if !library.has_world() {
        return None;
    }
    let mut size = 0;
    // SAFETY: MPI's prototypes; where the communicator is none, the open says so.
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

/// Begins an open; none: there is no room to count it.
pub fn begin_opening(key: u64) -> Option<Begun> {
    let opening = opening(key)?;
    let overlaps = opening.inside.fetch_add(1, AcqRel) > 0;
    Some(Begun { number: opening.begun.fetch_add(1, AcqRel), overlaps })
}

/// Ends it.
pub fn end_opening(key: u64) {
    if let Some(opening) = opening(key) {
        opening.inside.fetch_sub(1, AcqRel);
    }
}

/// The job that this process belongs to: its starter's number, and when that began.
fn job() -> Option<u64> {
    let known = JOB.load(Relaxed);
    let found = if known == 0 { starter().unwrap_or(1) } else { known };
    JOB.store(found, Relaxed);
    Some(found).filter(|job| *job != 1)
}

fn starter() -> Option<u64> {
    let mut pid = sys::getpid();
    for _ in 0..ANCESTORS_MAX {
        let mut path = FixedText::<64>::new();
        path.push(b"/proc/").push_decimal(u64::from(pid)).push(b"/stat");
        let mut text = [0; 1024];
        let stat = Stat::parse(sys::read_file(path.as_c_str()?, &mut text).ok()?)?;
        if STARTERS.iter().any(|name| stat.name == *name || stat.name.strip_prefix(*name).is_some_and(|rest| rest.starts_with(b"."))) {
            return Some(hash([&pid.to_le_bytes(), &stat.began.to_le_bytes()]).max(2));
        }
        if stat.parent <= 1 {
            return None;
        }
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
