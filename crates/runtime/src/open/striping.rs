//! The stripes that whoever opens a file asks for, should it be made by that: of this file alone, for others may be made meanwhile, by a helper of the MPI
//! library or a signal handler, or after a call that was left by a jump.

use crate::base::log;
use crate::base::tls;
use crate::names;
use stripewise_engine::{Intent, Regions};
use stripewise_layout::{NotAsked, Striping};
use stripewise_target::text::FixedText;

/// What was asked for.
#[derive(Clone, Copy)]
pub struct Asked {
    pub striping: Striping,
    /// How the file will be used: from that its stripe size follows, where it is not asked for.
    pub intended: Option<Intended>,
    /// Some hint was no number.
    pub is_odd: bool,
    /// The one that says how the file will be used was not understood.
    pub is_unclear: bool,
}

/// How a file will be used, by its user; bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Intended {
    pub intent: Intent,
    pub request: u64,
    pub region: u64,
}

impl Asked {
    /// Whether it asks for any stripes.
    pub fn is_something(&self) -> bool {
        self.striping != Striping::default() || self.intended.is_some()
    }

    /// The stripes, of a file that would else have some of `own_bytes`.
    pub fn stripes(&self, own_bytes: u64) -> Striping {
        let meant = self.intended.filter(|_| self.striping.width_bytes == 0);
        let sizes = meant.and_then(|meant| {
            let Intended { intent, request, region } = meant;
            intent.stripe_bytes(Regions { request, region, stripe: own_bytes })
        });
        Striping { width_bytes: sizes.unwrap_or(self.striping.width_bytes), ..self.striping }
    }
}

/// What became of it.
#[derive(Clone, Copy)]
pub enum Told {
    Nothing,
    /// So many stripes of so many bytes.
    Got(u32, u64),
    /// A kept plan or a rule says how the file lies.
    Given,
    Refused(NotAsked),
}

/// Asks for them, for a file by this name, until the call of this thread ends, which takes it back.
pub fn ask(name: &[u8], asked: &Asked) {
    let striping = &asked.striping;
    let intended = asked.intended.map_or([0; 3], |meant| [if meant.intent == Intent::Read { 1 } else { 2 }, meant.request, meant.region]);
    let words = match names::absolute(libc::AT_FDCWD, name) {
        Ok(path) if asked.is_something() || asked.is_odd || asked.is_unclear => [
            u64::from(striping.count) | u64::from(striping.first) << 32,
            striping.width_bytes,
            log::hash([path.as_bytes(), &[]]),
            u64::from(asked.is_odd) | u64::from(asked.is_unclear) << 1,
            intended[0],
            intended[1],
            intended[2],
        ],
        _ => [0; 7],
    };
    // SAFETY: this thread's own block.
    unsafe { (*tls::thread()).striping = words };
}

/// What was asked for of the file with this absolute name; none: nothing.
pub fn asked(path: &[u8]) -> Option<Asked> {
    // SAFETY: this thread's own block.
    let [numbers, width_bytes, hash, odd, intent, request, region] = unsafe { (*tls::thread()).striping };
    let striping = Striping { count: numbers as u32, width_bytes, first: (numbers >> 32) as u32 };
    let intent = [Intent::Read, Intent::Write].get((intent as usize).wrapping_sub(1)).copied();
    let intended = intent.map(|intent| Intended { intent, request, region });
    let asked = Asked { striping, intended, is_odd: odd & 1 != 0, is_unclear: odd & 2 != 0 };
    (hash != 0 && hash == log::hash([path, &[]])).then_some(asked)
}

/// Says what became of it, of a file that was made: once for each kind of outcome, by the store.
#[cold]
#[inline(never)] // Its line would lie on the stack below what is done after it.
pub fn say(store: &[u8], asked: &Asked, told: Told) {
    let mut line = FixedText::<256>::new();
    if asked.is_odd {
        log::say(b"a hint of MPI for the stripes of new files is no whole number, and was ignored", store);
    }
    if asked.is_unclear {
        log::say(b"stripewise_intent is not as RS=64KiB RE=16MiB read=90, and was ignored", store);
    }
    match told {
        Told::Nothing => return,
        Told::Got(count, width_bytes) => {
            line.push(b"new files have ").push_decimal(u64::from(count)).push(b" stripe(s) of ").push_decimal(width_bytes);
            line.push(b" bytes, as hints of MPI ask for");
            if asked.striping.count > count {
                line.push(b" (of more there are no targets)");
            }
        }
        Told::Given => {
            line.push(b"new files have not the stripes that hints of MPI ask for: a kept plan or a rule of the store says how they lie");
        }
        Told::Refused(why) => {
            line.push(b"new files have not the stripes that hints of MPI ask for: ").push(match why {
                NotAsked::Shaped => b"the store's own layout has several regions".as_slice(),
                NotAsked::Unlike => b"its targets have unlike room, so they are spread by that",
                NotAsked::NoRoom => b"a target of them has no room for a stripe",
            });
        }
    }
    log::say(line.as_bytes(), store);
}
