//! Names of files that are being written and take another's place when they are whole: such that nobody guesses them, who could put something there
//! first, and such that what a kill left of one is recognised.

use std::ffi::OsStr;
use std::hash::{BuildHasher, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stripewise_target::text::{ID_DIGITS, parse_id};

const SUFFIX: &[u8] = b".tmp";
/// Names under which earlier versions wrote what takes another's place.
const OLD: [&[u8]; 5] = [b"layout.tmp", b"sums.tmp", b"link.tmp", b"store.bin.tmp", b"stripewise-target.tmp"];

/// A number that nobody guesses: the hasher's keys are the kernel's random bytes.
#[must_use]
pub fn chance() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

/// `.<name>.<16 hexadecimal digits>.tmp` beside `path`; `None` for a path without a name.
#[must_use]
pub fn name_for(path: &Path) -> Option<PathBuf> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name()?);
    name.push(format!(".{:016x}.tmp", chance()));
    Some(path.with_file_name(name))
}

/// Whether a name is one of these, or one that an earlier version would have used.
#[must_use]
pub fn is_temporary(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    let made = || {
        let stem = bytes.strip_prefix(b".")?.strip_suffix(SUFFIX)?;
        let (rest, digits) = stem.split_at_checked(stem.len().checked_sub(ID_DIGITS)?)?;
        (rest.len() > 1 && rest.ends_with(b".")).then_some(())?;
        parse_id(digits)
    };
    made().is_some() || OLD.contains(&bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn no_two_names_are_the_same_and_all_are_recognised() {
        let names: std::collections::BTreeSet<_> = (0..100).filter_map(|_| name_for(Path::new("/s/store.bin"))).collect();
        assert_eq!(names.len(), 100);
        assert!(names.iter().all(|name| name.parent() == Some(Path::new("/s")) && is_temporary(name.file_name().unwrap())));
        for other in ["layout", "layout.0123456789abcdef", ".0123456789abcdef.tmp", "store.toml", ".x.tmp", "my.layout.tmp"] {
            assert!(!is_temporary(OsStr::new(other)), "{other}");
        }
    }
}
