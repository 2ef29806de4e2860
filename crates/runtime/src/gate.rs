//! The gate before every use of a managed file's objects: enter the epoch, respect a move that is under way, take the layout in force; those who write
//! also look for a truncate that drains (`extending.rs`). This is the programs' half of the protocol in ARCHITECTURE.md. The order matters: the move word is
//! looked at first and the layout after it, or a write could go to a home that was left in between.

pub mod cutting;
pub mod epoch;
pub mod extending;

use self::epoch::Inside;
use crate::base::log;
use crate::base::sys::{self, Errno, Sys};
use crate::file::{File, Loaded};
use crate::store::part;
use stripewise_store::ctl::Ctl;
use stripewise_store::moving::{self, Publication, Turn, Words};
use stripewise_store::names;
use stripewise_store::run::MOVER_LOCK;
use stripewise_target::time::{now_ns, sleep_until};
use stripewise_target::within::{self, Expected};

/// How often a waiter looks again.
const LOOK_NS: u64 = 50_000;
/// Further ahead no mover sets a deadline: somebody else has written there.
const DEADLINE_NS_MAX: u64 = 600_000_000_000;
/// How late a mover may be with its last steps before one who maps the file and cannot help gives up.
const LATE_NS: u64 = 2_000_000_000;
/// How late he may be though somebody has the mover's lock, which everybody may take.
const LATE_NS_MAX: u64 = 60_000_000_000;

/// Inside an I/O with the layout in force.
pub struct Passed {
    /// The layout.
    pub loaded: &'static Loaded,
    /// Control words.
    pub ctl: Ctl,
    /// Held until the I/O is done.
    _inside: Inside,
}

impl Passed {
    /// For one who has entered the epoch, and whose turn it is if he changes anything.
    #[inline(always)]
    pub fn with(inside: Inside, file: &'static File, ctl: Ctl) -> Sys<Self> {
        Ok(Self { loaded: file.current()?, ctl, _inside: inside })
    }
}

/// Enters for a read, or for anything else that needs the objects of the layout in force to stay.
#[inline(always)] // What a Result returns of this size goes through memory, in parts that the processor cannot forward.
pub fn for_read(file: &'static File) -> Sys<Passed> {
    let inside = epoch::enter(file.store()?)?;
    let ctl = file.ctl().ok_or(Errno(libc::EIO))?;
    Passed::with(inside, file, ctl)
}

/// Enters for a change of the size that takes or shows `[at, at + len)`, under the exclusive lock: a cut keeps all others out by `FLAG_TRUNCATING`.
pub fn for_resize(file: &'static File, at: u64, len: u64) -> Sys<Passed> {
    loop {
        let inside = epoch::enter(file.store()?)?;
        let ctl = file.ctl().ok_or(Errno(libc::EIO))?;
        match moving::turn(&ctl, at, len, now_ns) {
            Turn::Go => return Passed::with(inside, file, ctl),
            turn => {
                drop(inside);
                wait(file, &ctl, turn)?;
            }
        }
    }
}

/// For one who has pinned the file: calls off a move that is under way. Who may not write ctl cannot: he waits where the mover may already have looked for
/// pins, and `EAGAIN` says that the mover does not come out of there.
pub fn call_off_move(file: &'static File) -> Sys<()> {
    let ctl = file.ctl().ok_or(Errno(libc::EIO))?;
    loop {
        let turn = if file.may_write() { moving::call_off(&ctl, now_ns()) } else { moving::look_on(&ctl) };
        match turn {
            Turn::Go => return Ok(()),
            Turn::Wait if !file.may_write() && now_ns() > ctl.deadline_ns().saturating_add(LATE_NS) => return Err(Errno(libc::EAGAIN)),
            turn => wait(file, &ctl, turn)?,
        }
    }
}

/// Does what `turn` asks of one who is not inside the epoch (any more).
#[cold]
pub fn wait(file: &'static File, ctl: &Ctl, turn: Turn) -> Sys<()> {
    if ctl.deadline_ns() > now_ns().saturating_add(DEADLINE_NS_MAX) {
        log::say(b"its words tell of a move that no mover makes; run stripewise store fsck", file.part(b"ctl")?.as_bytes());
        return Err(Errno(libc::EIO));
    }
    let is_late = |by_ns| now_ns() > ctl.deadline_ns().saturating_add(by_ns);
    if let Turn::Publish(publication) = turn {
        match moving::publish(ctl, publication, |_| put_in_place(file, publication)) {
            Ok(()) => return Ok(()),
            // One who may not rename in the store waits for another who may. With the mover dead there may be none.
            Err(_) if is_late(LATE_NS) && (is_late(LATE_NS_MAX) || !mover_lives(file)?) => {
                log::say(b"a mover died in its last step; run stripewise store fsck --repair as the owner of", file.part(b"layout")?.as_bytes());
                return Err(Errno(libc::EIO));
            }
            Err(_) => {}
        }
    }
    sleep_until(now_ns() + LOOK_NS);
    Ok(())
}

/// Whether a process has the store's mover lock; where that cannot be asked, it is taken to live.
#[inline(never)] // As below.
fn mover_lives(file: &'static File) -> Sys<bool> {
    let run = part::borrow(file.store()?.run_dir()?);
    let Ok((fd, _)) = within::open_file(run, MOVER_LOCK, within::OpenFlags::RDONLY, Expected::of(&[])) else { return Ok(true) };
    let fd = part::Held::new(fd);
    Ok(sys::flock(fd.fd(), libc::LOCK_SH | libc::LOCK_NB).is_err())
}

/// The mover's last step, taken for one that was stopped or killed in it: the layout that it had made durable gets its name.
#[inline(never)] // Its buffers would lie on the stack below the I/O that follows.
fn put_in_place(file: &'static File, publication: Publication) -> Sys<()> {
    let next = names::next_layout_name(publication.generation);
    let at = file.at()?;
    match sys::renameat(at.dir, part::c(&next)?, at.dir, c"layout") {
        Err(Errno(libc::ENOENT)) => {}
        renamed => {
            renamed?;
        }
    }
    at.sync()
}
