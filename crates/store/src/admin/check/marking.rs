//! The mark of a target's directory, written anew where it is lost: in the very directory that had it.
//!
//! All targets of a file have objects of the same names, and what is in them does not tell whose they are: a backup has what was there once, and what is zero
//! is zero everywhere. So verbs note which directory each target has, by inode and time of birth, while the mark is there.

use std::collections::BTreeMap;
use std::path::Path;

use crate::admin::create::{Users, is_tombstone, share_identity, users_of};
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::identity;
use crate::admin::info::size_at_least;
use crate::admin::medium::{Attributes, FsyncPoint, Medium, Root, put_file, read_small};
use crate::admin::metadata::publish::objects_reached;
use crate::admin::store::Store;

/// Beside store.bin: a line for each target, `<index> <inode> <birth, ns since 1970, or 0> <device>`.
pub const SEEN_FILE: &str = "targets.seen";
const SEEN_BYTES_MAX: u64 = 1 << 20;

/// Which directory it is. A device's number may change at boot, so it counts only where the file system knows no time of birth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    ino: u64,
    born_ns: u64,
    dev: u64,
}

impl Place {
    fn of(medium: &dyn Medium, dir: &Path) -> Result<Option<Self>> {
        let Some(stat) = medium.stat(dir).doing("look at", dir)? else { return Ok(None) };
        Ok(Some(Self { ino: stat.ino, born_ns: medium.born_ns(dir).doing("look at", dir)?, dev: stat.dev }))
    }

    fn is(self, other: Self) -> bool {
        (self.ino, self.born_ns) == (other.ino, other.born_ns) && (self.born_ns != 0 || self.dev == other.dev)
    }
}

/// What was noted; lines that are none count for nothing.
fn parsed(bytes: &[u8]) -> BTreeMap<usize, Place> {
    let line = |line: &str| {
        let mut numbers = line.split(' ').map(str::parse::<u64>);
        let mut next = || numbers.next()?.ok();
        let found = (usize::try_from(next()?).ok()?, Place { ino: next()?, born_ns: next()?, dev: next()? });
        numbers.next().is_none().then_some(found)
    };
    std::str::from_utf8(bytes).unwrap_or_default().lines().filter_map(line).collect()
}

fn seen(medium: &dyn Medium, root: &Path) -> BTreeMap<usize, Place> {
    read_small(medium, &root.join(SEEN_FILE), SEEN_BYTES_MAX).map(|bytes| parsed(&bytes)).unwrap_or_default()
}

/// Notes which directories the targets have whose marks are there; of the others what was noted stays.
///
/// # Errors
/// `Io`, and what keeps the store from being opened.
pub fn note_seen(medium: &dyn Medium, root: &Path) -> Result<()> {
    let store = Store::open(medium, root)?;
    let before = seen(medium, root);
    let mut now = before.clone();
    now.retain(|index, _| *index < store.targets.len());
    for (index, target) in store.targets.iter().enumerate().filter(|(_, target)| !is_tombstone(root, &target.path)) {
        if identity::mismatch(medium, &target.path, &store.uuid, index).is_none()
            && let Some(place) = Place::of(medium, &target.path)?
        {
            now.insert(index, place);
        }
    }
    if now == before {
        return Ok(());
    }
    let text: String = now.iter().map(|(index, place)| format!("{index} {} {} {}\n", place.ino, place.born_ns, place.dev)).collect();
    let Some(owner) = medium.stat(root).doing("look at", root)? else { return Ok(()) };
    let mode = if users_of(&store)? == Users::All { 0o644 } else { 0o600 };
    let like = Attributes { mode, uid: owner.uid, gid: owner.gid, ..Attributes::default() };
    let path = root.join(SEEN_FILE);
    put_file(medium, &path, text.as_bytes(), Some(&like), (FsyncPoint::Identity, FsyncPoint::Identity)).doing("write", &path)
}

/// Writes the mark of a target's directory anew, which is lost, or that of another target whose own is in its place; tells whether it had to. Nothing else is
/// changed.
///
/// # Errors
/// `Invalid` where the directory is not the one that the target had; `InUse` when programs hold the store.
pub fn mark(medium: &dyn Medium, root: &Path, name: &str) -> Result<bool> {
    let store = Store::open(medium, root)?;
    let Some(index) = store.targets.iter().position(|target| target.name == name) else {
        let known = store.targets.iter().map(|target| target.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(StoreError::Invalid(format!("--mark: the store has no target '{name}'; it has {known}")));
    };
    let dir = &store.target(index as u32)?.path;
    medium.hold(dir, Root::Target { store: root }).doing("open the target directory", dir)?;
    let Some(why) = identity::mismatch(medium, dir, &store.uuid, index) else { return Ok(false) };
    let not = |why: String| Err(StoreError::Invalid(format!("--mark: target {name}: {why}")));
    let by_hand = "where you know that its objects are this target's, write its mark by hand (docs/formats.md, stripewise-target)";
    match identity::marked(medium, dir)? {
        Some((uuid, _)) if uuid != store.uuid => return not(why.told(root, name)),
        Some((_, other)) => match store.targets.get(other) {
            Some(theirs) if theirs.path != *dir && identity::mismatch(medium, &theirs.path, &store.uuid, other).is_none() => {}
            theirs => {
                let theirs = theirs.map_or_else(|| format!("number {other}"), |target| target.name.clone());
                return not(format!(
                    "{} says that it is target {theirs}'s, whose own path leads to no such directory; where paths are swapped, or tables in store.toml change \
                     places, put that right there",
                    dir.display()
                ));
            }
        },
        None => {}
    }
    let _lock = store.lock_exclusive()?;
    identity::check_owner(medium, root, dir)?;
    match (seen(medium, root).get(&index), Place::of(medium, dir)?) {
        (Some(known), Some(here)) if known.is(here) => {}
        (Some(_), _) => {
            return not(format!(
                "{} is not the directory that this target had, but a copy or another one; put the right one there; {by_hand}",
                dir.display()
            ));
        }
        (None, _) => return not(format!("no verb has noted yet which directory is this target's; {by_hand}")),
    }
    if !has_objects(&store, index)? {
        return not(format!("{} has no object of the files that lie on it; put the right directory there", dir.display()));
    }
    identity::write(medium, root, dir, &store.uuid, index)?;
    share_identity(medium, root, dir, (&store.uuid, index), users_of(&store)?)?;
    Ok(true)
}

/// Whether an object is there of one file that lies on a target, or none does.
fn has_objects(store: &Store<'_>, index: usize) -> Result<bool> {
    let mut is_wanted = false;
    for id in store.ids()? {
        store.go_on()?;
        let layout = match store.layout(id) {
            Ok(layout) => layout,
            Err(StoreError::NotFound(_) | StoreError::Damaged(_)) => continue,
            Err(e) => return Err(e),
        };
        for (target, plane) in objects_reached(store, id, &layout, size_at_least(store, id, &layout)?)? {
            let object = store.object(target, id, plane)?;
            if target as usize == index {
                is_wanted = true;
                if store.medium.stat(&object).doing("look at", &object)?.is_some() {
                    return Ok(true);
                }
            }
        }
    }
    Ok(!is_wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_line_counts_for_nothing() {
        let place = Place { ino: 7, born_ns: 8, dev: 9 };
        assert_eq!(parsed(b"0 7 8 9\n"), BTreeMap::from([(0, place)]));
        for junk in [&b""[..], b"\xff", b"0 7 8", b"0 7 8 9 10", b"-1 7 8 9", b"0  7 8 9", b"x 7 8 9", b"18446744073709551616 7 8 9"] {
            assert_eq!(parsed(junk), BTreeMap::new());
            assert_eq!(parsed(&[junk, b"\n0 7 8 9"].concat()).len(), usize::from(std::str::from_utf8(junk).is_ok()));
        }
    }

    #[test]
    fn a_device_counts_where_no_birth_is_known() {
        let (one, other) = (Place { ino: 7, born_ns: 8, dev: 9 }, Place { ino: 7, born_ns: 8, dev: 1 });
        assert!(one.is(other) && !one.is(Place { born_ns: 9, ..one }));
        let (one, other) = (Place { born_ns: 0, ..one }, Place { born_ns: 0, ..other });
        assert!(!one.is(other) && one.is(one));
    }
}
