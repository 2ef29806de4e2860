//! The size of a file and what may lie behind it: the order of the steps by which a file is cut and extended, so that a kill between any two of them leaves
//! nothing that shows later. Programs, store verbs and the simulations of the tests all take these steps from here.
//!
//! Objects are longer than the size asks for only while someone cuts (the intent stands in the flags) or extends (a note stands in a line of ctl). Both stay
//! when their maker dies, and whoever would let the file grow over such bytes first takes them away ([`settle`]).

use core::ops::ControlFlow;

/// Lines for notes in ctl. The first belongs to whoever has the file's exclusive lock.
pub const LINES: usize = 120;
/// Bit of a note's end: its maker lives, and says that he has left bytes there.
pub const ABANDONED: u64 = 1 << 63;

/// What an extending writer has said before it writes: bytes of `[start, end)` may lie behind the size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Note {
    /// First byte.
    pub start: u64,
    /// First byte after it, perhaps with [`ABANDONED`]; 0 = no note.
    pub end: u64,
}

impl Note {
    /// Whether it says anything of `[from, to)`.
    fn concerns(self, from: u64, to: u64) -> bool {
        self.end & !ABANDONED > from && self.start < to
    }
}

/// The shared words of one file's size. All accesses are sequentially consistent.
pub trait Sizes {
    /// Bytes in the file.
    fn size(&self) -> u64;
    /// Raises the size to at least `end`.
    fn raise_size(&self, end: u64);
    /// Sets it: only a cut does.
    fn set_size(&self, size: u64);
    /// Whether a cut is intended, and not done yet: writers and whoever lets the file grow wait, or do it.
    fn is_cut_intended(&self) -> bool;
    /// Says so.
    fn intend_cut(&self, is_intended: bool);
    /// Lines that have ever been used; at most [`LINES`].
    fn lines_used(&self) -> usize;
    /// The note of a line.
    fn note(&self, line: usize) -> Note;
    /// Sets it. A note counts from the moment its end is there, and so the start is set before.
    fn set_note(&self, line: usize, note: Note);
}

/// The steps of a cut, under the file's exclusive lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CutStep {
    /// From here on nobody begins to write, and whoever finds us dead ends the cut.
    Intend,
    /// Whoever wrote has ended.
    Drain,
    /// Before any object is cut: readers must not find zeros inside the size.
    Resize,
    /// Every object ends where the size says.
    Trim,
    /// No note tells of anything any more.
    Forget,
    /// Writers go on.
    Conclude,
}

/// All of them, in their order.
pub const CUT: [CutStep; 6] = [CutStep::Intend, CutStep::Drain, CutStep::Resize, CutStep::Trim, CutStep::Forget, CutStep::Conclude];

/// What a cut needs from whoever makes it.
pub trait Cutter {
    /// Why a step failed.
    type Error;
    type Words: Sizes;
    /// The file's.
    fn words(&self) -> Self::Words;
    /// Waits until nobody is inside an I/O that began before the intent.
    fn drain(&mut self) -> Result<(), Self::Error>;
    /// Cuts the objects to a size of the file.
    fn trim(&mut self, size: u64) -> Result<(), Self::Error>;
    /// Whether an object may be shorter than before.
    fn has_cut(&self) -> bool;
}

/// Takes one step of a cut to `size`, or to the size in force: that is known only when nobody is inside who might raise it.
///
/// # Errors
/// Those of the cutter.
pub fn take_cut<C: Cutter>(step: CutStep, cutter: &mut C, size: Option<u64>) -> Result<(), C::Error> {
    let words = cutter.words();
    match step {
        CutStep::Intend => words.intend_cut(true),
        CutStep::Drain => return cutter.drain(),
        CutStep::Resize => size.into_iter().for_each(|size| words.set_size(size)),
        CutStep::Trim => return cutter.trim(words.size()),
        CutStep::Forget => forget_notes(&words),
        CutStep::Conclude => words.intend_cut(false),
    }
    Ok(())
}

/// Cuts the file to `size`, under its exclusive lock; without one, only what lies behind the size in force goes. A cut that fails before it took anything has
/// changed nothing. One that fails later stands: the size is the new one, and the intent stays until somebody can end it.
///
/// # Errors
/// Those of the cutter.
pub fn cut<C: Cutter>(cutter: &mut C, size: Option<u64>) -> Result<(), C::Error> {
    let words = cutter.words();
    let (mut before, was_intended) = (words.size(), words.is_cut_intended());
    for step in CUT {
        if step == CutStep::Resize {
            before = words.size();
        }
        let Err(error) = take_cut(step, cutter, size) else { continue };
        if !cutter.has_cut() {
            if step == CutStep::Trim && size.is_some() {
                words.set_size(before);
            }
            words.intend_cut(was_intended);
            return Err(error);
        }
        return if size.is_some() { Ok(()) } else { Err(error) };
    }
    Ok(())
}

fn forget_notes(words: &impl Sizes) {
    (0..words.lines_used().min(LINES)).filter(|line| words.note(*line).end != 0).for_each(|line| words.set_note(line, Note::default()));
}

/// For one who has the file for himself and has cut all objects: nothing is intended or noted any more.
pub fn forget(words: &impl Sizes) {
    forget_notes(words);
    words.intend_cut(false);
}

/// Whether something lies, or may lie, behind the size that nobody will take away: an intended cut, under the exclusive lock or with nobody who has it, or
/// the note of a dead writer about `[size, to)`. `is_alive` tells whether the owner of a line lives.
pub fn is_unsettled(words: &impl Sizes, to: u64, is_alive: impl FnMut(usize) -> bool) -> bool {
    words.is_cut_intended() || exposes(words, words.size(), to, is_alive)
}

/// Whether growth over `[from, to)` would show what a dead writer left there.
pub fn exposes(words: &impl Sizes, from: u64, to: u64, mut is_alive: impl FnMut(usize) -> bool) -> bool {
    (0..words.lines_used().min(LINES)).any(|line| {
        let note = words.note(line);
        note.concerns(from, to) && (note.end & ABANDONED != 0 || !is_alive(line))
    })
}

/// Whether a line that nobody has may be taken, under the exclusive lock. A dead one's stays his as long as it tells of something behind the size: with
/// another's lock its note would pass for a living one's.
pub fn is_claimable(words: &impl Sizes, line: usize) -> bool {
    let end = words.note(line).end;
    end == 0 || end & !ABANDONED <= words.size()
}

/// Ends what dead ones began, under the exclusive lock: their cuts, and what their extending writes left. `is_alive` as above.
///
/// # Errors
/// Those of the cutter.
pub fn settle<C: Cutter>(cutter: &mut C, is_alive: impl FnMut(usize) -> bool) -> Result<(), C::Error> {
    let words = cutter.words();
    if is_unsettled(&words, u64::MAX, is_alive) { cut(cutter, None) } else { Ok(()) }
}

/// The steps of a write or an allocation that extends the file, inside the epoch and with a line of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExtendStep {
    /// The objects that the file is going to reach are there before its size says so.
    Make,
    /// Does growing show what a dead writer left? Then that goes first.
    Look,
    /// From here on a kill leaves word of what may lie behind the size.
    Note,
    /// Bytes go into objects.
    Write,
    /// They become the file's.
    Raise,
    /// Nothing lies behind the size any more.
    Forget,
}

/// All of them, in their order.
pub const EXTEND: [ExtendStep; 6] = [ExtendStep::Make, ExtendStep::Look, ExtendStep::Note, ExtendStep::Write, ExtendStep::Raise, ExtendStep::Forget];

/// First byte and length of what a change is to tell a move of before it looks what is there: its own bytes and, where the file grows behind a gap, the gap, in
/// which it shows what others have left who die meanwhile. A move that has copied to the end looks there again. `reach` is 0 where the file is not to grow.
#[must_use]
pub fn touched(size: u64, at: u64, len: u64, reach: u64) -> (u64, u64) {
    let from = if reach == 0 { at } else { at.min(size) };
    (from, at - from + len)
}

/// What an extension touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extension {
    pub line: usize,
    /// What it writes.
    pub note: Note,
    /// Up to here it shows bytes that it does not write itself: where it begins behind the end.
    pub shows: u64,
}

/// What a write has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Written {
    /// All before it has been written.
    pub reached: u64,
    /// Bytes may lie behind it.
    pub leaves_bytes: bool,
}

/// What an extension needs from whoever makes it.
pub trait Extender {
    /// Why objects could not be made.
    type Error;
    /// Makes the objects that a file of `size` bytes reaches, where they are not there yet.
    fn make(&mut self, size: u64) -> Result<(), Self::Error>;
    /// Whether the owner of a line lives.
    fn is_alive(&mut self, line: usize) -> bool;
    fn write(&mut self) -> Written;
}

/// Takes one step of an extension. Breaks off where the file must be settled first, outside of the epoch.
///
/// # Errors
/// Those of the extender; nothing is noted then, and nothing written.
pub fn take_extend<E: Extender>(
    step: ExtendStep,
    words: &impl Sizes,
    extension: &Extension,
    written: &mut Written,
    extender: &mut E,
) -> Result<ControlFlow<()>, E::Error> {
    match step {
        ExtendStep::Make => extender.make(extension.note.end)?,
        ExtendStep::Look if exposes(words, words.size(), extension.shows, |line| extender.is_alive(line)) => return Ok(ControlFlow::Break(())),
        ExtendStep::Look => {}
        ExtendStep::Note => words.set_note(extension.line, extension.note),
        ExtendStep::Write => *written = extender.write(),
        ExtendStep::Raise => words.raise_size(written.reached),
        // Whoever leaves bytes trims the file; until then the note stands.
        ExtendStep::Forget if written.leaves_bytes => {}
        ExtendStep::Forget => words.set_note(extension.line, Note::default()),
    }
    Ok(ControlFlow::Continue(()))
}

/// Extends the file by what the extender writes; `None` when it must be settled first.
///
/// # Errors
/// Those of the extender.
pub fn extend<E: Extender>(words: &impl Sizes, extension: &Extension, extender: &mut E) -> Result<Option<Written>, E::Error> {
    let mut written = Written::default();
    for step in EXTEND {
        if take_extend(step, words, extension, &mut written, extender)?.is_break() {
            return Ok(None);
        }
    }
    Ok(Some(written))
}
