//! Whose stores a process uses. A link is a request, not a permission: anybody can make one that names a store of his own. The rule is the same for
//! the preloaded library and the verbs; docs/security.md says why. Nothing here allocates.

use core::ffi::CStr;

/// The site's list of stores that everybody on this machine uses, one absolute path a line; root's, and writable by nobody else.
pub const SITE_LIST: &CStr = c"/etc/stripewise/trust";
/// Longest list that is read.
pub const LIST_BYTES_MAX: usize = 64 << 10;
/// Uid that the kernel shows for owners whom a user namespace, or a squashing file server, does not know: it proves nothing.
pub const OVERFLOW_UID: u32 = 65_534;

/// Whether the owner of a store's directory is reason enough for a process of effective user `euid` to use it: himself or root. `overflow` is
/// [`OVERFLOW_UID`] or what /proc/sys/kernel/overflowuid says.
#[must_use]
pub const fn owner_is_trusted(owner: u32, euid: u32, overflow: u32) -> bool {
    (owner == euid || owner == 0) && owner != overflow
}

/// Whether a list names a store. Entries are absolute paths between `separator`s; blanks around them and lines that begin with `#` do not count. An
/// entry that ends in `/*` names all stores below that directory, however deep.
#[must_use]
pub fn is_listed(list: &[u8], separator: u8, store: &[u8]) -> bool {
    list.split(|byte| *byte == separator).map(<[u8]>::trim_ascii).filter(|entry| entry.first() == Some(&b'/')).any(|entry| names(entry, store))
}

fn names(entry: &[u8], store: &[u8]) -> bool {
    match entry.strip_suffix(b"/*") {
        // `..` would lead out again.
        Some(above) => {
            store.strip_prefix(above).is_some_and(|rest| rest.first() == Some(&b'/')) && !store.split(|byte| *byte == b'/').any(|part| part == b"..")
        }
        None => entry == store || entry.strip_suffix(b"/") == Some(store),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_user_himself_and_root_are_reason_enough() {
        assert!(owner_is_trusted(1000, 1000, OVERFLOW_UID) && owner_is_trusted(0, 1000, OVERFLOW_UID) && owner_is_trusted(0, 0, OVERFLOW_UID));
        assert!(!owner_is_trusted(1000, 0, OVERFLOW_UID), "root follows no user's store");
        assert!(!owner_is_trusted(1001, 1000, OVERFLOW_UID));
    }

    #[test]
    fn the_overflow_uid_proves_nothing_even_to_itself() {
        assert!(!owner_is_trusted(OVERFLOW_UID, OVERFLOW_UID, OVERFLOW_UID));
        assert!(!owner_is_trusted(99, 99, 99));
    }

    #[test]
    fn a_list_names_stores_and_what_lies_below_a_directory() {
        let list = b"# site\n /projects/a/store \n/scratch/*\nrelative\n/slash/\n";
        for store in [&b"/projects/a/store"[..], b"/scratch/x", b"/scratch/x/y", b"/slash"] {
            assert!(is_listed(list, b'\n', store), "{}", String::from_utf8_lossy(store));
        }
        for store in [&b"/projects/a/store2"[..], b"/projects/a", b"/scratch", b"/scratch2/x", b"/scratch/../evil", b"relative", b"", b"/", b"# site"]
        {
            assert!(!is_listed(list, b'\n', store), "{}", String::from_utf8_lossy(store));
        }
        assert!(is_listed(b"/a:/b", b':', b"/b") && !is_listed(b"/a:/b", b':', b"/a:/b") && !is_listed(b"", b':', b""));
    }
}
