//! A datatype as words (`stripewise_trace::datatype`), asked of the MPI that made it; those of views are noted, once.

use super::library::{Handle, Library};
use super::room::Room;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use stripewise_trace::datatype::{DEPTH_MAX, Tile, combiner, compile, room_for};
use stripewise_trace::format::NOTE_BYTES_MAX;

/// A type's words.
pub struct Described(Arena);

/// Memory for the words and, behind them, for what MPI answers on the way.
struct Arena {
    room: Room,
    /// Words written.
    used: usize,
    /// Words lent, from the end.
    lent: usize,
    /// Words that it may have.
    most: usize,
}

const HALF_WORDS: usize = NOTE_BYTES_MAX / 8;

impl Arena {
    fn new(most: usize) -> Option<Arena> {
        Some(Arena { room: Room::new(2 * HALF_WORDS)?, used: 0, lent: 0, most })
    }

    fn push(&mut self, word: u64) -> Option<()> {
        *self.room.words_mut().get_mut(..self.most)?.get_mut(self.used)? = word;
        self.used += 1;
        Some(())
    }

    /// Room for so many words, until `lent` is set back.
    fn lend(&mut self, words: usize) -> Option<*mut u64> {
        let lent = self.lent.checked_add(words).filter(|lent| *lent <= HALF_WORDS)?;
        self.lent = lent;
        // SAFETY: inside the second half.
        Some(unsafe { self.room.as_ptr().add(2 * HALF_WORDS - lent) })
    }

    fn words(&self) -> &[u64] {
        self.room.words().get(..self.used).unwrap_or(&[])
    }
}

/// How many numbers a type has.
#[derive(Clone, Copy, Default)]
struct Envelope {
    integers: usize,
    addresses: usize,
    counts: usize,
    types: usize,
    combiner: i32,
}

fn envelope(library: &Library, datatype: Handle) -> Option<Envelope> {
    let mut combiner = 0;
    if let (Some(ask), Some(_)) = (library.envelope_c, library.contents_c) {
        let (mut i, mut a, mut c, mut t) = (0i64, 0i64, 0i64, 0i64);
        // SAFETY: MPI's prototype, a valid type.
        let result = unsafe { ask(datatype, &raw mut i, &raw mut a, &raw mut c, &raw mut t, &raw mut combiner) };
        let size = |n: i64| usize::try_from(n).ok();
        return (result == 0).then_some(Envelope { integers: size(i)?, addresses: size(a)?, counts: size(c)?, types: size(t)?, combiner });
    }
    let (mut i, mut a, mut t) = (0i32, 0i32, 0i32);
    // SAFETY: as above.
    let result = unsafe { (library.envelope)(datatype, &raw mut i, &raw mut a, &raw mut t, &raw mut combiner) };
    let size = |n: i32| usize::try_from(n).ok();
    (result == 0).then_some(Envelope { integers: size(i)?, addresses: size(a)?, counts: 0, types: size(t)?, combiner })
}

/// Writes a type down; none where it is too long, too deep or of a kind that we do not know.
fn write(library: &Library, arena: &mut Arena, datatype: Handle, depth: usize) -> Option<()> {
    let has = envelope(library, datatype)?;
    let kind = library.combiner(has.combiner)?;
    if depth > DEPTH_MAX {
        return None;
    }
    let (mut size, mut lower, mut extent) = (0, 0, 0);
    // SAFETY: MPI's prototypes, a valid type.
    let told = unsafe { (library.type_size_x)(datatype, &raw mut size) | (library.type_get_extent_x)(datatype, &raw mut lower, &raw mut extent) };
    if told != 0 {
        return None;
    }
    let named = kind == combiner::NAMED;
    let numbers = if named { [1, 0, 0, 0] } else { [has.integers as u64, has.addresses as u64, has.counts as u64, has.types as u64] };
    for word in [kind].into_iter().chain(numbers).chain([lower as u64, extent as u64]) {
        arena.push(word)?;
    }
    if named {
        return arena.push(size as u64);
    }
    // Before MPI is asked for them: there may be millions.
    let all = numbers.iter().try_fold(arena.used as u64, |sum, n| sum.checked_add(*n))?;
    if all > arena.most as u64 {
        return None;
    }
    let lent = arena.lent;
    let integers = arena.lend(has.integers.div_ceil(2))?.cast::<i32>();
    let addresses = arena.lend(has.addresses)?.cast::<isize>();
    let counts = arena.lend(has.counts)?.cast::<i64>();
    let types = arena.lend(has.types)?.cast::<Handle>();
    // SAFETY: MPI's prototypes; the rooms are as long as MPI said.
    let result = unsafe {
        match library.contents_c {
            Some(ask) => {
                ask(datatype, has.integers as i64, has.addresses as i64, has.counts as i64, has.types as i64, integers, addresses, counts, types)
            }
            None => (library.contents)(datatype, has.integers as i32, has.addresses as i32, has.types as i32, integers, addresses, types),
        }
    };
    if result != 0 {
        return None;
    }
    // SAFETY: MPI has filled these in.
    let (integers, addresses, counts) = unsafe {
        (
            core::slice::from_raw_parts(integers, has.integers),
            core::slice::from_raw_parts(addresses, has.addresses),
            core::slice::from_raw_parts(counts, has.counts),
        )
    };
    for (place, &number) in integers.iter().enumerate() {
        arena.push(constant(library, kind, integers, has.counts > 0, place, number))?;
    }
    for &number in addresses {
        arena.push(number as u64)?;
    }
    for &number in counts {
        arena.push(number as u64)?;
    }
    let mut whole = Some(());
    for place in 0..has.types {
        // SAFETY: as above.
        let inner = unsafe { library.at(types.cast(), place) };
        whole = whole.and_then(|()| write(library, arena, inner, depth + 1));
        free(library, inner);
    }
    arena.lent = lent;
    whole
}

/// An integer of a type's contents with MPI's own constants made one MPI's like another's.
fn constant(library: &Library, kind: u64, integers: &[i32], has_counts: bool, place: usize, number: i32) -> u64 {
    let dims = |at: usize| integers.get(at).and_then(|n| usize::try_from(*n).ok()).unwrap_or(0);
    let last = integers.len().saturating_sub(1);
    match kind {
        // dims, sizes, subsizes, starts, order
        combiner::SUBARRAY if place == last => library.order(number),
        // size, rank, dims, gsizes (among the counts where they are large), distributions, arguments, processes, order
        combiner::DARRAY if place == last => library.order(number),
        combiner::DARRAY => {
            let n = dims(2);
            let first = if has_counts { 3 } else { 3 + n };
            if (first..first + n).contains(&place) {
                library.distribution(number)
            } else if (first + n..first + 2 * n).contains(&place) {
                library.distribution_argument(number)
            } else {
                number as u64
            }
        }
        _ => i64::from(number) as u64,
    }
}

/// Views that were noted, by a hash of their words.
const KNOWN: usize = 1024;
/// Each the upper part of its hash, then its number.
static VIEWS: [AtomicU64; KNOWN] = [const { AtomicU64::new(0) }; KNOWN];
const NUMBER_MASK: u64 = (1 << 24) - 1;
static NUMBERS: AtomicU32 = AtomicU32::new(0);

/// A type's words; none where they could not be told.
pub fn describe(library: &Library, datatype: Handle) -> Option<Described> {
    describe_within(library, datatype, HALF_WORDS)
}

/// The same of a type that has so many words at most.
pub fn describe_within(library: &Library, datatype: Handle, most: usize) -> Option<Described> {
    let mut arena = Arena::new(most.min(HALF_WORDS))?;
    write(library, &mut arena, datatype, 0)?;
    Some(Described(arena))
}

/// Whether elements of a type are bytes as they lie, one behind the other.
pub fn is_dense(library: &Library, datatype: Handle) -> bool {
    let (mut size, mut lower, mut extent) = (0, 0, -1);
    // SAFETY: MPI's prototypes, a valid type.
    let told = unsafe { (library.type_size_x)(datatype, &raw mut size) | (library.type_get_extent_x)(datatype, &raw mut lower, &raw mut extent) };
    if told != 0 || lower != 0 || size != extent {
        return false;
    }
    let Some(has) = envelope(library, datatype) else { return false };
    match library.combiner(has.combiner) {
        Some(combiner::NAMED) => true,
        Some(combiner::DUP | combiner::CONTIGUOUS) => inner_is_dense(library, datatype, &has),
        _ => describe(library, datatype).and_then(|described| described.compiled(0)).is_some_and(|room| Tile::open(room.words()).is_dense()),
    }
}

/// The same of a type that is made of one other.
fn inner_is_dense(library: &Library, datatype: Handle, has: &Envelope) -> bool {
    let (mut integers, mut addresses, mut counts, mut types) = ([0i32; 1], [0isize; 1], [0i64; 1], [0 as Handle; 1]);
    if has.integers > 1 || has.addresses > 0 || has.counts > 1 || has.types != 1 {
        return false;
    }
    // SAFETY: MPI's prototypes; there is room for as much as it has.
    let told = unsafe {
        match library.contents_c {
            Some(ask) => ask(
                datatype,
                has.integers as i64,
                0,
                has.counts as i64,
                1,
                integers.as_mut_ptr(),
                addresses.as_mut_ptr(),
                counts.as_mut_ptr(),
                types.as_mut_ptr(),
            ),
            None => (library.contents)(datatype, has.integers as i32, 0, 1, integers.as_mut_ptr(), addresses.as_mut_ptr(), types.as_mut_ptr()),
        }
    };
    // SAFETY: as above.
    let inner = unsafe { library.at(types.as_ptr().cast(), 0) };
    let dense = told == 0 && is_dense(library, inner);
    if told == 0 {
        free(library, inner);
    }
    dense
}

/// Gives back a type that was handed out as part of another; predefined ones are nobody's to free.
fn free(library: &Library, mut datatype: Handle) {
    if envelope(library, datatype).and_then(|has| library.combiner(has.combiner)).is_some_and(|kind| kind != combiner::NAMED) {
        // SAFETY: MPI's prototype.
        unsafe { (library.type_free)(&raw mut datatype) };
    }
}

impl Described {
    /// Whether it is a predefined type without a gap.
    pub fn is_plain(&self) -> bool {
        matches!(self.0.words(), [combiner::NAMED, 1, 0, 0, 0, 0, extent, size] if size == extent)
    }

    /// Compiles it behind the first `before` words of a room of its own (`datatype::compile`); none where it is too large for that, or shows nothing.
    pub fn compiled(&self, before: usize) -> Option<Room> {
        let words = self.0.words();
        let mut room = Room::new(before.checked_add(room_for(words.len()))?)?;
        let used = compile(words, room.words_mut().get_mut(before..)?)?;
        room.shrink(before + used);
        Some(room)
    }

    /// The number of a filetype's description: 0 for bytes as they lie; none where it could not be noted.
    pub fn number(&self) -> Option<u32> {
        if self.is_plain() {
            return Some(0);
        }
        let words = self.0.words();
        let hash = words.iter().fold(words.len() as u64 | 1, |hash, word| {
            let product = u128::from(hash ^ word) * 0x9e37_79b9_7f4a_7c15u128;
            (product as u64 ^ (product >> 64) as u64).wrapping_add(0x632b_e59b_d9b4_e019)
        });
        let slot = VIEWS.get((hash % KNOWN as u64) as usize)?;
        let known = slot.load(Relaxed);
        if known & NUMBER_MASK != 0 && (known ^ hash) & !NUMBER_MASK == 0 {
            return Some((known & NUMBER_MASK) as u32);
        }
        let number = NUMBERS.fetch_add(1, Relaxed) + 1;
        if !crate::trace::note(stripewise_trace::format::entry_kind::VIEW, number, words) {
            return None;
        }
        // Two views at one place take turns: each is noted again.
        if u64::from(number) <= NUMBER_MASK {
            slot.store(hash & !NUMBER_MASK | u64::from(number), Relaxed);
        }
        Some(number)
    }
}
