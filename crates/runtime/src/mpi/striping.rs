//! The stripes that a program asks for by MPI's reserved hints (MPI 4.1, section 14.2.8) when it opens a file: where that makes one in a store, it has them.

use super::intent::{self, decimal};
use super::library::{self, Handle, Library};
use super::opening::without_driver;
use crate::base::config;
use crate::open::striping::{self, Asked, Intended};
use crate::trace;
use core::ffi::{CStr, c_char};
use stripewise_layout::Striping;

/// Keys of how many targets, of bytes, and of the first target, the older ones of ROMIO behind MPI's own.
const COUNT: &[&CStr] = &[c"striping_factor"];
const WIDTH: &[&CStr] = &[c"striping_unit"];
const FIRST: &[&CStr] = &[c"start_iodevice", c"romio_lustre_start_iodevice"];
/// How the file will be used, of ours.
const INTENT: &CStr = c"stripewise_intent";

/// Notes what an open asks for, until it ends, in place of what was noted before: by one that was left by a jump, say.
///
/// # Safety
/// `name` and `info` are the program's, for an open that is about to begin.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_opening(name: *const c_char, info: Handle) {
    if !config::has_engine() || name.is_null() {
        return;
    }
    let Some(library) = library::get() else { return };
    let saved = trace::c_errno();
    // SAFETY: the caller's promise.
    let name = without_driver(unsafe { CStr::from_ptr(name) }).to_bytes();
    let mut is_odd = false;
    let mut number = |keys: &[&CStr]| keys.iter().find_map(|key| number(library, info, key, &mut is_odd));
    let (count, width_bytes) = (number(COUNT).unwrap_or(0), number(WIDTH).unwrap_or(0));
    // From 1 on in a Striping.
    let first = number(FIRST).map_or(0, |first| first.saturating_add(1));
    let [count, first] = [count, first].map(|number| number.min(u64::from(u32::MAX)) as u32);
    let (intended, is_unclear) = intended(library, info);
    striping::ask(name, &Asked { striping: Striping { count, width_bytes, first }, intended, is_odd, is_unclear });
    trace::set_c_errno(saved);
}

/// A hint's value, if it is a decimal number; -1 stands for none. `is_odd` is set where it is something else.
fn number(library: &Library, info: Handle, key: &CStr, is_odd: &mut bool) -> Option<u64> {
    library.value_length(info, key)?;
    let mut text = [0; 32];
    let text = library.value(info, key, &mut text).unwrap_or(b"too long").trim_ascii();
    let found = decimal(text);
    *is_odd |= found.is_none() && text != b"-1";
    found
}

/// How the file will be used, if that is said, and whether what is said is not understood.
fn intended(library: &Library, info: Handle) -> (Option<Intended>, bool) {
    if library.value_length(info, INTENT).is_none() {
        return (None, false);
    }
    let mut text = [0; 128];
    let found = library.value(info, INTENT, &mut text).and_then(intent::parse);
    (found, found.is_none())
}
