//! The memory that the processes of a run share: posts, of which each open of a file has one while it lasts, and notes, of which each file has one for its
//! reads and one for its writes, for what was known before the run and what became of it. The file is as long as [`Board`] and of zeros at first.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

use super::lane::{Lane, Made, Own};
use super::site::{Begin, Decider, Policy, mode_of};
use super::views::Views;
use crate::decision::{Mode, Operation};

pub const POSTS: usize = 256;
pub const NOTES: usize = 1024;
/// Processors are told apart up to 64 times this.
pub const PROCESSOR_WORDS: usize = 16;
/// Bytes of a file's name that are kept.
pub const NAME_BYTES_MAX: usize = 400;
/// In place of a version: another layout of the memory is another number.
pub const MAGIC: u64 = 0x5357_454e_4731_0003;

/// What [`Post::state`] is.
const GATHERING: u32 = 0;
const OFF: u32 = 1;
/// All take part; with the lanes' bits ([`lane_bit`]) whose calls are left alone.
const ON: u32 = 2;

/// The bit of a lane in words that have one for each.
#[must_use]
pub const fn lane_bit(operation: Operation) -> u32 {
    match operation {
        Operation::Read => 1 << 8,
        Operation::Write => 1 << 9,
    }
}

/// An open of a file, by all of its processes.
#[repr(C)]
pub struct Post {
    /// 0: free.
    key: AtomicU64,
    size: AtomicU32,
    arrived: AtomicU32,
    state: AtomicU32,
    closed: AtomicU32,
    /// Lanes whose calls the program has given hints for meanwhile.
    given: AtomicU32,
    unused: AtomicU32,
    /// Processors on which some process of it may run, a bit each.
    processors: [AtomicU64; PROCESSOR_WORDS],
    pub views: Views,
    pub reads: Lane<Decider>,
    pub writes: Lane<Decider>,
}

/// What is known of one operation on a file by so many processes. Sums are over all of these, and opens and jobs of the run.
#[repr(C)]
pub struct Note {
    /// Of name and operation; 0: free.
    key: AtomicU64,
    /// Before the run: the mode to begin with (1 collective, 2 independent), and in `f64` bits what the other one costs over it; 0: unknown.
    pub known_mode: AtomicU32,
    pub operation: AtomicU32,
    pub known_ratio: AtomicU64,
    pub processes: AtomicU32,
    pub opens: AtomicU32,
    /// Collective calls of the program, those of them that were made independently, and their bytes.
    pub calls: AtomicU64,
    pub independent: AtomicU64,
    pub bytes: AtomicU64,
    pub contests: AtomicU32,
    pub changes: AtomicU32,
    /// Of the last open: the mode at its end, a [`Reason`], and in `f64` bits ticks for a byte in either mode, and what the
    /// other mode cost over this one in the last contest; 0: not measured.
    pub mode: AtomicU32,
    pub reason: AtomicU32,
    pub ratio: AtomicU64,
    pub price: [AtomicU64; 2],
    /// 1: most windows were strided, 2: most were not.
    pub pattern: AtomicU32,
    /// Of reads behind the last view with gaps on which that was chosen.
    pub sieving: NotedSieving,
    name_bytes: AtomicU32,
    name: [AtomicU64; NAME_BYTES_MAX / 8],
}

/// Whether reads behind a view with gaps were sieved, and by what that was chosen.
#[repr(C)]
pub struct NotedSieving {
    /// 1: they were, 2: they were not; 0: nothing was chosen.
    pub way: AtomicU32,
    /// Targets whose figures were known; 0: none.
    pub servers: AtomicU32,
    /// Bytes of a piece, and from the beginning of one to that of the next.
    pub piece_bytes: AtomicU64,
    pub stride_bytes: AtomicU64,
    /// What one request takes by these figures, ns.
    pub sieved_ns: AtomicU64,
    pub unsieved_ns: AtomicU64,
}

/// All of it.
#[repr(C)]
pub struct Board {
    pub magic: AtomicU64,
    /// How calls are decided, as a number.
    pub policy: AtomicU32,
    /// Hints that the program gives do not count.
    pub overrides: AtomicU32,
    /// The same moment by the ticks of the library and in ns, when the board was made.
    pub ticks: AtomicU64,
    pub ns: AtomicU64,
    /// Opens that found no post, and files that found no note.
    pub unposted: AtomicU32,
    pub unnoted: AtomicU32,
    posts: [Post; POSTS],
    notes: [Note; NOTES],
}

impl Post {
    /// Bit of the state, beside the lanes': calls are left alone since aggregators alone have opened the file.
    pub const DEFERRED: u32 = 1 << 10;
    /// The file is ROMIO's, which sieves independent writes unless a hint says that it shall not.
    pub const ROMIO: u32 = 1 << 11;
    /// As the file was opened its independent reads are not sieved.
    pub const READS_UNSIEVED: u32 = 1 << 12;
    /// Whether they are is given by a hint.
    pub const SIEVING_GIVEN: u32 = 1 << 13;

    /// A number that other files of the same processes hardly have.
    pub fn tag(&self) -> u16 {
        self.key.load(Relaxed) as u16
    }

    pub fn size(&self) -> u32 {
        self.size.load(Relaxed)
    }

    /// Processors for all processes that have arrived.
    pub fn processors(&self) -> u32 {
        self.processors.iter().map(|word| word.load(Relaxed).count_ones()).sum()
    }

    /// Whether one of the bits beside the lanes' was set when the file was opened.
    pub fn has(&self, bit: u32) -> bool {
        self.state.load(Relaxed) & bit != 0
    }

    pub fn lane(&self, operation: Operation) -> &Lane<Decider> {
        match operation {
            Operation::Read => &self.reads,
            Operation::Write => &self.writes,
        }
    }

    /// Nothing is decided for this open: where it is not too late for that.
    pub fn refuse(&self) {
        let _ = self.state.compare_exchange(GATHERING, OFF, AcqRel, Acquire);
    }

    /// After the open, which no process leaves before all have begun it: whether all have arrived here. `left` asks which lanes are left alone.
    pub fn is_on(&self, left: impl FnOnce() -> u32) -> bool {
        let mut state = self.state.load(Acquire);
        if state == GATHERING {
            let next = if self.arrived.load(Acquire) == self.size.load(Acquire) { ON | left() } else { OFF };
            state = self.state.compare_exchange(GATHERING, next, AcqRel, Acquire).map_or_else(|now| now, |_| next);
        }
        state & ON != 0
    }

    /// Whether the calls of a lane are left alone from the open on.
    pub fn is_left(&self, operation: Operation) -> bool {
        self.state.load(Relaxed) & lane_bit(operation) != 0
    }

    /// The program has given hints for the calls of these lanes.
    pub fn give(&self, lanes: u32) {
        self.given.fetch_or(lanes, Relaxed);
    }

    pub fn is_given(&self, operation: Operation) -> bool {
        self.given.load(Relaxed) & lane_bit(operation) != 0
    }

    /// One process is through with it; whether it was the last one, who calls [`Board::free`] then.
    pub fn close(&self) -> bool {
        self.closed.fetch_add(1, AcqRel) + 1 == self.size.load(Acquire)
    }
}

impl Board {
    /// Of the file that `run` makes.
    pub const BYTES: usize = size_of::<Self>();

    /// It, in memory of its own: what was read of a board, or zeros. None: it is shorter.
    pub fn of(words: &mut [u64]) -> Option<&Self> {
        // SAFETY: long enough, aligned as words are, lent for as long as it is used; and any bits are a board.
        (size_of_val(words) >= Self::BYTES).then(|| unsafe { &*words.as_mut_ptr().cast::<Self>() })
    }

    /// Makes zeros a board, at a moment by both clocks.
    pub fn begin(&self, policy: Policy, overrides: bool, ticks: u64, ns: u64) {
        self.policy.store(policy as u32, Relaxed);
        self.overrides.store(u32::from(overrides), Relaxed);
        self.ticks.store(ticks, Relaxed);
        self.ns.store(ns, Relaxed);
        self.magic.store(MAGIC, Release);
    }

    /// The post of an open, in which `size` processes take part; none: there is no room. Two processes that come at once may get two: then nobody is
    /// complete. `processors` are those that this process may run on.
    pub fn arrive(&self, key: u64, size: u32, processors: &[u64]) -> Option<&Post> {
        let post = self.post(key).or_else(|| self.take(key));
        let Some(post) = post else {
            self.unposted.fetch_add(1, Relaxed);
            return None;
        };
        if post.size.compare_exchange(0, size, AcqRel, Acquire).is_err_and(|there| there != size) {
            post.refuse();
        }
        for (word, mine) in post.processors.iter().zip(processors) {
            word.fetch_or(*mine, Relaxed);
        }
        post.arrived.fetch_add(1, AcqRel);
        Some(post)
    }

    /// The post that has a key.
    pub fn post(&self, key: u64) -> Option<&Post> {
        self.posts.iter().find(|post| post.key.load(Acquire) == key)
    }

    fn take(&self, key: u64) -> Option<&Post> {
        let mut free = self.posts.iter();
        // Whoever looks for the key finds the first one that has it, so places are taken in order.
        free.find(|post| post.key.compare_exchange(0, key, AcqRel, Acquire).is_ok_and(|_| true) || post.key.load(Acquire) == key)
    }

    /// Frees a post that all processes have closed, or none can any more.
    pub fn free(&self, post: &Post) {
        for word in [&post.size, &post.arrived, &post.state, &post.closed, &post.given] {
            word.store(0, Relaxed);
        }
        post.processors.iter().for_each(|word| word.store(0, Relaxed));
        post.views.clear();
        post.reads.clear();
        post.writes.clear();
        post.key.store(0, Release);
    }

    /// The note of an operation on a file by so many processes, which is made where there is none.
    pub fn note(&self, name: &[u8], operation: Operation, processes: u32) -> Option<&Note> {
        let key = hash(name, operation, processes);
        let first = key as usize % NOTES;
        for place in (first..NOTES).chain(0..first) {
            let note = self.notes.get(place)?;
            match note.key.compare_exchange(0, key, AcqRel, Acquire) {
                Ok(_) => {
                    note.operation.store(operation as u32, Relaxed);
                    note.processes.store(processes, Relaxed);
                    note.keep_name(name);
                    return Some(note);
                }
                Err(there) if there == key => return Some(note),
                Err(_) => {}
            }
        }
        self.unnoted.fetch_add(1, Relaxed);
        None
    }

    /// Notes that are used.
    pub fn notes(&self) -> impl Iterator<Item = &Note> {
        self.notes.iter().filter(|note| note.key.load(Acquire) != 0)
    }
}

impl Note {
    fn keep_name(&self, name: &[u8]) {
        let name = name.get(..NAME_BYTES_MAX).unwrap_or(name);
        for (word, bytes) in self.name.iter().zip(name.chunks(8)) {
            let mut padded = [0; 8];
            for (to, from) in padded.iter_mut().zip(bytes) {
                *to = *from;
            }
            word.store(u64::from_le_bytes(padded), Relaxed);
        }
        self.name_bytes.store(name.len() as u32, Release);
    }

    /// Its bytes, and how many of them count: of a longer one the first.
    pub fn name(&self) -> ([u8; NAME_BYTES_MAX], usize) {
        let mut name = [0; NAME_BYTES_MAX];
        for (word, bytes) in self.name.iter().zip(name.chunks_mut(8)) {
            bytes.copy_from_slice(&word.load(Relaxed).to_le_bytes());
        }
        (name, (self.name_bytes.load(Acquire) as usize).min(NAME_BYTES_MAX))
    }

    /// What was known before the run: the mode to begin with, and the ratio of prices.
    pub fn known(&self) -> Option<(Mode, Option<f64>)> {
        let mode = mode_of(self.known_mode.load(Relaxed))?;
        let ratio = f64::from_bits(self.known_ratio.load(Relaxed));
        Some((mode, Some(ratio).filter(|ratio| ratio.is_finite() && *ratio > 0.0)))
    }
}

/// FNV-1a; never 0.
#[must_use]
fn hash(name: &[u8], operation: Operation, processes: u32) -> u64 {
    let (last, count) = ([operation as u8], processes.to_le_bytes());
    let bytes = name.iter().chain(&last).chain(&count);
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)) | 1
}

/// One process's call of a site, from its begin to its end.
impl Post {
    /// Begins a call; its mode.
    pub fn begin(&self, own: &mut Own, begin: impl FnOnce() -> Begin, operation: Operation) -> Mode {
        self.lane(operation).begin(own, |decider| {
            let (made, step) = Decider::first(&begin());
            // SAFETY: of who decides first alone.
            unsafe { decider.write(made) };
            step
        })
    }

    /// After the call: where it ends a window for all processes, the next one is decided on.
    pub fn end(&self, own: &mut Own, made: Made, operation: Operation) {
        let size = self.size.load(Relaxed);
        self.lane(operation).end(own, size, made, |decider, window| {
            // SAFETY: of the last process that is through alone.
            unsafe { &mut *decider }.next(window, size, self.is_given(operation))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: Begin = Begin {
        operation: Operation::Write,
        policy: Policy::Price,
        strided: false,
        crowded: false,
        scattered: None,
        left: None,
        known: None,
        floor_ticks: 0,
    };

    fn memory() -> Vec<u64> {
        vec![0; Board::BYTES.div_ceil(8)]
    }

    #[test]
    fn an_open_is_on_when_all_have_arrived() {
        let mut words = memory();
        let board = Board::of(&mut words).unwrap();
        let post = board.arrive(7, 2, &[3]).unwrap();
        assert!(!post.is_on(|| 0), "one of two");
        // That is final.
        assert!(!board.arrive(7, 2, &[3]).unwrap().is_on(|| 0));
        let post = board.arrive(8, 2, &[3]).unwrap();
        assert!(std::ptr::eq(post, board.arrive(8, 2, &[3]).unwrap()));
        assert!(post.is_on(|| lane_bit(Operation::Write)) && post.is_on(|| panic!("it is decided")));
        assert_eq!(board.arrive(8, 2, &[4, 1]).unwrap().processors(), 4);
        assert!(post.is_left(Operation::Write) && !post.is_left(Operation::Read) && !post.has(Post::DEFERRED));
        let post = board.arrive(9, 2, &[3]).unwrap();
        post.refuse();
        board.arrive(9, 2, &[3]).unwrap();
        assert!(!post.is_on(|| 0));
        // Of another size.
        let post = board.arrive(10, 2, &[3]).unwrap();
        board.arrive(10, 3, &[3]).unwrap();
        assert!(!post.is_on(|| 0));
    }

    #[test]
    fn posts_are_used_again_as_new_ones() {
        let mut words = memory();
        let board = Board::of(&mut words).unwrap();
        for key in 1..=3 * POSTS as u64 {
            let post = board.arrive(key, 2, &[3]).unwrap();
            board.arrive(key, 2, &[3]).unwrap();
            assert!(post.is_on(|| Post::DEFERRED) && post.has(Post::DEFERRED) && !post.is_given(Operation::Write));
            post.give(lane_bit(Operation::Write));
            let mut own = Own::NEW;
            assert_eq!(post.begin(&mut own, || WRITE, Operation::Write), Mode::Independent);
            assert!(!post.close() && post.close());
            board.free(post);
        }
        for key in 1..=POSTS as u64 {
            assert!(board.arrive(key, 2, &[3]).is_some());
        }
        assert!(board.arrive(POSTS as u64 + 1, 2, &[3]).is_none() && board.unposted.load(Relaxed) == 1);
        assert!(board.arrive(1, 2, &[3]).is_some());
    }

    #[test]
    fn notes_are_found_by_name_and_operation() {
        let mut words = memory();
        let board = Board::of(&mut words).unwrap();
        let long = [b'x'; NAME_BYTES_MAX + 5];
        for (count, name) in [(&b"/a"[..], 1u64), (b"/b", 2), (&long, 3)].into_iter().map(|(name, n)| (n, name)) {
            let note = board.note(name, Operation::Write, 2).unwrap();
            note.calls.store(count, Relaxed);
            assert_eq!(board.note(name, Operation::Read, 2).unwrap().calls.load(Relaxed), 0);
            let (kept, length) = board.note(name, Operation::Write, 2).unwrap().name();
            assert_eq!(kept[..length], name[..name.len().min(NAME_BYTES_MAX)]);
        }
        assert_eq!(board.notes().count(), 6);
        for number in 6..NOTES {
            assert!(board.note(&number.to_le_bytes(), Operation::Read, 2).is_some());
        }
        assert!(board.note(b"/c", Operation::Read, 2).is_none() && board.unnoted.load(Relaxed) == 1);
        assert_eq!(board.note(b"/b", Operation::Write, 2).unwrap().calls.load(Relaxed), 2);
    }
}
