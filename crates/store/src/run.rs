//! Names in `<store>/run`, where the processes that use a store meet. The directory is made with the store and is its owner's, sticky where the store
//! is shared, so that nobody owns it by being first and nobody removes another's files there. What lies in it is of one boot, whose id begins each
//! slot's name. Nothing here allocates.

use core::ffi::CStr;
use stripewise_target::text::FixedText;

/// Locked shared by programs and movers, exclusively by verbs that need the store for themselves; made with the store.
pub const SESSION_LOCK: &CStr = c"session.lock";
/// Locked exclusively by a mover; made with the store.
pub const MOVER_LOCK: &CStr = c"mover.lock";
/// What slots' names end in.
pub const SLOT_SUFFIX: &[u8] = b".slot";
/// Longest name of a slot: boot id, process id, 16 digits that nobody guesses.
pub type SlotName = FixedText<96>;

/// `<boot-id>.<pid>-<16 hexadecimal digits>.slot`.
#[must_use]
pub fn slot_name(boot: &[u8], pid: u32, chance: u64) -> SlotName {
    let mut name = SlotName::from_bytes(boot);
    name.push(b".").push_decimal(u64::from(pid)).push(b"-").push_id(chance).push(SLOT_SUFFIX);
    name
}

/// The boot whose slot has this name; `None` for any other file.
#[must_use]
pub fn boot_of_slot(name: &[u8]) -> Option<&[u8]> {
    let stem = name.strip_suffix(SLOT_SUFFIX)?;
    let dot = stem.iter().position(|byte| *byte == b'.')?;
    let (boot, rest) = stem.split_at_checked(dot)?;
    let (pid, chance) = rest.get(1..)?.split_at_checked(rest.get(1..)?.iter().position(|byte| *byte == b'-')?)?;
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_hexdigit);
    (digits(pid) && digits(chance.get(1..)?) && !boot.is_empty()).then_some(boot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_s_name_tells_its_boot() {
        let name = slot_name(b"0b1c-2d", 4711, 0xfeed);
        assert_eq!(name.as_bytes(), b"0b1c-2d.4711-000000000000feed.slot");
        assert_eq!(boot_of_slot(name.as_bytes()), Some(&b"0b1c-2d"[..]));
        for other in [&b"session.lock"[..], b".slot", b"a.slot", b"a.1.slot", b"a.-1.slot", b".1-2.slot", b"a.1-2.slotx", b"1-1.slot"] {
            assert_eq!(boot_of_slot(other), None, "{}", String::from_utf8_lossy(other));
        }
    }
}
