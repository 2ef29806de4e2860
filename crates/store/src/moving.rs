//! Moving a span of a file while programs use it: the words that mover and writers share, and the writers' half of the protocol. The mover's
//! half is `admin::moves::protocol`. Both halves are written against [`Words`], so that what model checkers and simulations explore is the code that runs.
//!
//! Every access to the words is sequentially consistent: each side stores one word and then loads the other's (slot and move word, pin and move
//! word, dirty bit and slot), and only one order of all these accesses lets at least one of them see the other.

/// State of a move as writers see it (low three bits of the move word).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum MoveState {
    /// No move.
    Idle = 0,
    /// New slices are being filled: writers set dirty bits before they write.
    Copying = 1,
    /// Writers to the span wait.
    Frozen = 2,
    /// The new layout is being made durable: writers to the span wait, and may no longer abort.
    Publishing = 3,
    /// A writer waited past the deadline: the mover must start another pass or give up.
    Aborted = 4,
}

impl MoveState {
    /// The state in a move word; an unknown one counts as publishing, so that writers wait and never race.
    pub fn of(word: u64) -> Self {
        match word & 7 {
            0 => Self::Idle,
            1 => Self::Copying,
            2 => Self::Frozen,
            4 => Self::Aborted,
            _ => Self::Publishing,
        }
    }
}

/// The shared words of one file's move. All accesses are sequentially consistent.
pub trait Words {
    /// State in bits 0-2, number of the move above.
    fn word(&self) -> u64;
    /// Replaces the move word if it still is `from`.
    fn exchange(&self, from: u64, to: u64) -> bool;
    /// First byte, length, and log2 of the bytes per dirty bit of the span that moves.
    fn span(&self) -> (u64, u64, u32);
    /// Sets them; nobody relies on them before the move word says that a move is under way.
    fn set_span(&self, start: u64, len: u64, chunk_shift: u32);
    /// Dirty bits that there are.
    fn bits(&self) -> u64;
    /// The 64 dirty bits of an index.
    fn dirty(&self, index: u64) -> u64;
    /// Sets some of them.
    fn mark(&self, index: u64, mask: u64);
    /// Takes and clears them.
    fn take(&self, index: u64) -> u64;
    /// CLOCK_MONOTONIC ns from which on a waiter need not wait any more.
    fn deadline_ns(&self) -> u64;
    fn set_deadline_ns(&self, deadline_ns: u64);
    /// Generation of the layout that is published when the move word says so.
    fn next_generation(&self) -> u64;
    /// Sets it, before the move word says so.
    fn set_next_generation(&self, generation: u64);
    /// Raises the generation in force.
    fn raise_generation(&self, generation: u64);
}

/// The layout that waits to be put in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The move word that asked for it.
    pub word: u64,
    /// Its generation: it lies in the file's directory under the name that [`crate::names::next_layout`] gives.
    pub generation: u64,
}

/// What a change of some bytes may do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Go ahead, with the layout in force.
    Go,
    /// Leave the epoch, sleep a little, ask again.
    Wait,
    /// The mover is late with the last step: leave the epoch, take the step for it ([`publish`]), ask again.
    Publish(Publication),
}

/// A move word of the same number in another state.
pub const fn with_state(word: u64, state: MoveState) -> u64 {
    (word & !7) | state as u64
}

/// The 64 dirty bits and the masks in them that `[at, at + len)` touches.
fn chunks(words: &impl Words, at: u64, len: u64, mut each: impl FnMut(u64, u64)) {
    let (start, span_len, shift) = words.span();
    let end = start.saturating_add(span_len);
    let (from, to) = (at.max(start), at.saturating_add(len).min(end));
    if from >= to {
        return;
    }
    let most = words.bits() - 1;
    let shift = shift & 63;
    let (first, last) = (((from - start) >> shift).min(most), ((to - 1 - start) >> shift).min(most));
    for index in first / 64..=last / 64 {
        let low = first.max(index * 64) % 64;
        let high = last.min(index * 64 + 63) % 64;
        each(index, (u64::MAX << low) & (u64::MAX >> (63 - high)));
    }
}

/// Whether `[at, at + len)` meets the span that moves.
pub fn in_span(words: &impl Words, at: u64, len: u64) -> bool {
    let (start, span_len, _) = words.span();
    at < start.saturating_add(span_len) && at.saturating_add(len) > start
}

/// Sets the dirty bits of the chunks that `[at, at + len)` touches in the span.
pub fn mark_dirty(words: &impl Words, at: u64, len: u64) {
    chunks(words, at, len, |index, mask| {
        // Looking first keeps the line shared between writers that go over the same chunk.
        if words.dirty(index) & mask != mask {
            words.mark(index, mask);
        }
    });
}

/// The writers' half, asked inside the epoch and before the layout in force is looked up: may `[at, at + len)` be changed now? While the span is copied its
/// chunks are marked, before any byte is written; while it is frozen the writer waits, but not longer than the deadline; and a mover that was stopped or
/// killed in the last step is not waited for.
pub fn turn(words: &impl Words, at: u64, len: u64, now_ns: impl FnOnce() -> u64) -> Turn {
    let word = words.word();
    let state = MoveState::of(word);
    // A span read beside the word may be a later move's: that move waits for this epoch before it copies anything.
    if state == MoveState::Idle || !in_span(words, at, len) {
        return Turn::Go;
    }
    match state {
        MoveState::Frozen => {
            if now_ns() > words.deadline_ns() {
                words.exchange(word, with_state(word, MoveState::Aborted));
            }
            Turn::Wait
        }
        MoveState::Publishing => publishing(words, word, now_ns()),
        _ => {
            mark_dirty(words, at, len);
            Turn::Go
        }
    }
}

fn publishing(words: &impl Words, word: u64, now_ns: u64) -> Turn {
    if now_ns <= words.deadline_ns() {
        return Turn::Wait;
    }
    let generation = words.next_generation();
    // Read while the word stood still, it is this move's.
    if words.word() == word { Turn::Publish(Publication { word, generation }) } else { Turn::Wait }
}

/// The last step, taken by the mover or by whoever will not wait for it, once `put_in_place` has renamed the layout and flushed the directory (it may
/// find that somebody else has: then there is nothing to rename). Taking it twice, or late, changes nothing.
///
/// # Errors
/// Those of `put_in_place`; then nothing has changed.
pub fn publish<E>(words: &impl Words, publication: Publication, put_in_place: impl FnOnce(u64) -> Result<(), E>) -> Result<(), E> {
    put_in_place(publication.generation)?;
    words.raise_generation(publication.generation);
    words.exchange(publication.word, with_state(publication.word, MoveState::Idle));
    Ok(())
}

/// For one who maps the file, after it has pinned it: ends a move that is under way, so that the layout stays as it is as long as the pin, and so that
/// no copy is published that lacks what was written through the map, be it unmapped by the time the mover looks for pins. `Wait` and `Publish` as in
/// [`turn`], after which it asks again.
pub fn call_off(words: &impl Words, now_ns: u64) -> Turn {
    let word = words.word();
    match MoveState::of(word) {
        MoveState::Idle => Turn::Go,
        MoveState::Publishing => publishing(words, word, now_ns),
        _ if words.exchange(word, with_state(word, MoveState::Idle)) => Turn::Go,
        _ => Turn::Wait,
    }
}

/// As [`call_off`] for one who may only read the words: `Go` when the mover is sure to see the pin before it publishes, `Wait` otherwise.
pub fn look_on(words: &impl Words) -> Turn {
    match MoveState::of(words.word()) {
        MoveState::Frozen | MoveState::Publishing => Turn::Wait,
        _ => Turn::Go,
    }
}
