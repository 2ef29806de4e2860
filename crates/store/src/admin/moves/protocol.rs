//! The mover's half of the protocol in [`crate::moving`]: copying, passes over the dirty bitmap, freeze, publish. Everything that is not one of the
//! shared words (objects, layout files, slots, time) is behind [`Work`], which the real mover implements on files and the model checker and the
//! simulation on arrays.
//!
//! Why nothing is lost. Who entered an epoch before the word said `Copying` is waited for before the first byte is copied; who entered later marks its
//! chunk before it writes. A pass takes the bits, then waits until those who set them have left, then copies: a bit set later is the next pass's. The last
//! pass is frozen first, waits until everybody has left, and takes the bits only then: whoever still found `Copying` may set its bit until it leaves. When a
//! waiter calls the freeze off meanwhile, writers go on, and bits that were taken after that are not copied yet: the next pass has them.

use crate::moving::{MoveState, Publication, Words, publish, with_state};

/// How often and how long.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Dirty chunks at which the span is frozen and the rest copied.
    pub few_chunks: usize,
    /// Passes after which it is frozen however many are dirty: the writers are faster than the copy.
    pub passes: usize,
    /// How long writers may be kept waiting before one of them aborts the freeze, ns.
    pub freeze_ns: u64,
    /// Freezes that may be aborted before the move is given up.
    pub freezes: usize,
}

/// What a move does besides touching the shared words.
pub trait Work {
    /// Why it cannot go on.
    type Error;
    /// The shared words.
    type Words: Words;
    /// The shared words.
    fn words(&self) -> Self::Words;
    /// CLOCK_MONOTONIC, ns.
    fn now_ns(&self) -> u64;
    /// Waits until every live thread has left the epoch that it is in now. With `until_ns` false when one has not by then; without it only an error
    /// (the move was called off) ends the waiting.
    fn grace(&mut self, until_ns: Option<u64>) -> Result<bool, Self::Error>;
    /// An error when the move should not go on: the file is pinned by a map, or somebody told the mover to stop.
    fn may_go_on(&mut self) -> Result<(), Self::Error>;
    /// Whether a map pins the file.
    fn is_pinned(&mut self) -> Result<bool, Self::Error>;
    /// Copies all of the span that holds data.
    fn copy_all(&mut self) -> Result<(), Self::Error>;
    /// Takes and clears the dirty bits; returns how many chunks are to be copied now, with those that were taken before and not copied.
    fn take(&mut self) -> usize;
    /// Copies the chunks that were taken.
    fn copy_taken(&mut self) -> Result<(), Self::Error>;
    /// Makes the new slices durable.
    fn sync(&mut self) -> Result<(), Self::Error>;
    /// Makes the layout that is to be published durable beside the present one; returns its generation.
    fn prepare(&mut self) -> Result<u64, Self::Error>;
    /// Gives it the present one's place, durably; nothing to do when somebody else has.
    fn put_in_place(&mut self, generation: u64) -> Result<(), Self::Error>;
    /// Told how long writers were kept out, ns, and whether that was the last time.
    fn was_frozen(&mut self, ns: u64, published: bool);
    /// The error for a move whose writers would not wait.
    fn gave_up(&self) -> Self::Error;
    /// The error for a move that somebody ended by mapping the file.
    fn was_called_off(&self) -> Self::Error;
}

/// Clears the bitmap, sets the span and begins a move; returns its word.
pub fn begin(words: &impl Words, start: u64, len: u64, chunk_shift: u32) -> u64 {
    end(words);
    for index in 0..words.bits().div_ceil(64) {
        if words.dirty(index) != 0 {
            words.take(index);
        }
    }
    words.set_span(start, len, chunk_shift);
    let before = words.word();
    let word = with_state(before.wrapping_add(8), MoveState::Copying);
    words.exchange(before, word);
    word
}

/// Calls a move off, or what a dead mover left of one, unless it is being published already: then the publication that is owed.
pub fn end(words: &impl Words) -> Option<Publication> {
    loop {
        let word = words.word();
        match MoveState::of(word) {
            MoveState::Idle => return None,
            MoveState::Publishing => return Some(Publication { word, generation: words.next_generation() }),
            _ => {
                words.exchange(word, with_state(word, MoveState::Idle));
            }
        }
    }
}

/// Runs a move that [`begin`] has begun until it is published and the word idle again. What the old slices held may be punched after one more grace.
///
/// # Errors
/// Those of the work. The new slices are then to be dropped, after [`end`].
pub fn run<W: Work>(work: &mut W, word: u64, limits: Limits) -> Result<(), W::Error> {
    work.may_go_on()?;
    work.grace(None)?;
    work.copy_all()?;
    for attempt in 0..limits.freezes {
        passes(work, word, limits)?;
        // Both now, so that little is left to be flushed while writers wait.
        work.sync()?;
        let generation = work.prepare()?;
        work.words().set_next_generation(generation);
        // What a device needs for the rest is not known: each freeze may take longer than the one before.
        if freeze(work, word, generation, limits.freeze_ns << attempt.min(3))? {
            return Ok(());
        }
        work.may_go_on()?;
    }
    Err(work.gave_up())
}

fn passes<W: Work>(work: &mut W, word: u64, limits: Limits) -> Result<(), W::Error> {
    let mut before = usize::MAX;
    for _ in 0..limits.passes {
        work.may_go_on()?;
        if work.words().word() != word {
            return Err(work.was_called_off());
        }
        let taken = work.take();
        if taken == 0 {
            break;
        }
        work.grace(None)?;
        work.copy_taken()?;
        // As many as in the pass before: more passes would gain nothing.
        if taken <= limits.few_chunks || taken >= before {
            break;
        }
        before = taken;
    }
    // Whoever stays inside for long is waited for now, and not while writers are kept out.
    work.grace(None).map(drop)
}

/// Freezes, copies the rest and publishes; false when the freeze was aborted, and writers go on as before it.
fn freeze<W: Work>(work: &mut W, copying: u64, generation: u64, freeze_ns: u64) -> Result<bool, W::Error> {
    let begun = work.now_ns();
    let deadline = begun.saturating_add(freeze_ns);
    let frozen = with_state(copying, MoveState::Frozen);
    let publishing = with_state(copying, MoveState::Publishing);
    work.words().set_deadline_ns(deadline);
    if !work.words().exchange(copying, frozen) {
        return resume(work, copying);
    }
    // Half of the time for those inside, one of whom may have been stopped just now; half for the copy.
    if work.grace(Some(begun.saturating_add(freeze_ns / 2)))? {
        // Whoever could not end the move, for want of rights, has pinned before the span was frozen or waits until it no longer is.
        if work.is_pinned()? {
            return Err(work.was_called_off());
        }
        work.take();
        // Called off before the bits were taken: whoever set one since may be inside and yet to write. The next pass waits for him, and copies them then.
        if work.words().word() == frozen {
            work.copy_taken()?;
            work.sync()?;
        }
        if work.words().exchange(frozen, publishing) {
            publish(&work.words(), Publication { word: publishing, generation }, |g| work.put_in_place(g))?;
            let ns = work.now_ns().saturating_sub(begun);
            work.was_frozen(ns, true);
            return Ok(true);
        }
    }
    let resumed = resume(work, copying);
    let ns = work.now_ns().saturating_sub(begun);
    work.was_frozen(ns, false);
    resumed
}

/// Back to copying (false: not published), from a freeze of our own or one that a waiter aborted; an error when somebody has ended the move.
fn resume<W: Work>(work: &mut W, copying: u64) -> Result<bool, W::Error> {
    let words = work.words();
    let from = |state| words.exchange(with_state(copying, state), copying);
    if from(MoveState::Frozen) || from(MoveState::Aborted) { Ok(false) } else { Err(work.was_called_off()) }
}
