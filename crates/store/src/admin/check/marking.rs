//! The mark of a target's directory, written anew where it is lost: where the objects there are this target's and no other's.
//!
//! All targets of a file have objects of the same names. What tells a target's own directory from another's, or from a copy of it, is how long they are, and
//! in the end what they hold. Whoever marks a wrong one has every byte of it served for another.

use std::collections::BTreeSet;
use std::path::Path;

use stripewise_layout::View;
use stripewise_target::identity::IDENTITY_FILE;

use crate::admin::create::{is_tombstone, share_identity, users_of};
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::identity;
use crate::admin::info::size_at_least;
use crate::admin::medium::{Kind, Medium, Open, Root};
use crate::admin::metadata::publish::objects_of;
use crate::admin::store::{Store, layout_error};

/// Objects whose bytes are compared with those of another target, at most, and bytes of each.
const COMPARED: usize = 64;
const COMPARED_BYTES: usize = 64 << 10;

/// A target that the directory may be, as far as its objects tell.
struct Candidate<'s> {
    index: u32,
    name: &'s str,
    dir: &'s Path,
    /// Whether it has its own directory, by the mark there.
    is_in_place: bool,
    /// Objects that are as long as this target's should be, less those that are not, or are missing.
    fit: i64,
}

/// Writes the mark of a target's directory anew, which is lost, or that of another target whose own is in its place; tells whether it had to. By the
/// caller's word the directory is the right one: what lies there must not speak against it. Nothing else is changed.
///
/// # Errors
/// `Invalid` where the directory is not the target's, or may be another's; `InUse` when programs hold the store.
pub fn mark(medium: &dyn Medium, root: &Path, name: &str) -> Result<bool> {
    let store = Store::open(medium, root)?;
    let Some(index) = store.targets.iter().position(|target| target.name == name) else {
        let known = store.targets.iter().map(|target| target.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(StoreError::Invalid(format!("--mark: the store has no target '{name}'; it has {known}")));
    };
    let dir = &store.target(index as u32)?.path;
    medium.hold(dir, Root::Target { store: root }).doing("open the target directory", dir)?;
    let Some(why) = identity::mismatch(medium, dir, &store.uuid, index) else { return Ok(false) };
    let not = |why: String| StoreError::Invalid(format!("--mark: target {name}: {why}"));
    match identity::marked(medium, dir)? {
        Some((uuid, _)) if uuid != store.uuid => return Err(not(why)),
        Some((_, other)) => match store.targets.get(other) {
            Some(theirs) if theirs.path != *dir && identity::mismatch(medium, &theirs.path, &store.uuid, other).is_none() => {}
            theirs => {
                let theirs = theirs.map_or_else(|| format!("number {other}"), |target| target.name.clone());
                return Err(not(format!(
                    "{} says that it is target {theirs}'s, whose own path leads to no such directory; where paths are swapped, or tables in store.toml change \
                     places, put that right there",
                    dir.display()
                )));
            }
        },
        None => {}
    }
    let _lock = store.lock_exclusive()?;
    identity::check_owner(medium, root, dir)?;
    check_objects(&store, index, dir).map_err(|e| if let StoreError::Invalid(why) = e { not(why) } else { e })?;
    identity::write(medium, root, dir, &store.uuid, index)?;
    share_identity(medium, dir, users_of(&store)?)?;
    Ok(true)
}

/// An error where a directory is another target's, or may be, by what is in it.
fn check_objects(store: &Store<'_>, index: usize, dir: &Path) -> Result<()> {
    let mut mine = Candidate { index: index as u32, name: "", dir, is_in_place: false, fit: 0 };
    let mut rivals = rivals(store, index, dir)?;
    let (mut is_wanted, mut there) = (false, Vec::new());
    for id in store.ids()? {
        store.go_on()?;
        let layout = match store.layout(id) {
            Ok(layout) => layout,
            Err(StoreError::NotFound(_) | StoreError::Damaged(_)) => continue,
            Err(e) => return Err(e),
        };
        let size = size_at_least(store, id, &layout)?;
        let path = store.part(id, "layout");
        let bytes = layout.encode().map_err(|e| layout_error(&path, e))?;
        let view = View::parse(&bytes).map_err(|e| layout_error(&path, e))?;
        let planes: BTreeSet<u32> = objects_of(&layout).into_iter().map(|(_, plane)| plane).collect();
        for plane in planes {
            let object = store.object(mine.index, id, plane)?;
            let len = match store.medium.stat(&object).doing("look at", &object)? {
                Some(stat) if stat.kind == Kind::File => Some(stat.size),
                Some(_) => return Err(StoreError::Invalid(format!("{} is no regular file; put the right directory there", object.display()))),
                None => None,
            };
            is_wanted |= view.end_with_copies(mine.index, plane, size) > 0;
            if len.is_some_and(|len| len > 0) {
                there.push((id, plane));
            }
            for each in std::iter::once(&mut mine).chain(&mut rivals) {
                let wanted = view.end_with_copies(each.index, plane, size);
                each.fit += match len.unwrap_or(0) {
                    0 if wanted == 0 => 0,
                    len if len == wanted => 1,
                    _ => -1,
                };
            }
        }
    }
    if !is_wanted {
        return check_empty(store, dir);
    }
    if there.is_empty() {
        return Err(StoreError::Invalid(format!("{} has no object of the files that lie on it; put the right directory there", dir.display())));
    }
    for rival in &rivals {
        let found = dir.display();
        if rival.fit > mine.fit {
            return Err(StoreError::Invalid(format!(
                "the objects in {found} have the lengths of target {}'s; put the right directory there",
                rival.name
            )));
        }
        if rival.fit == mine.fit && !rival.is_in_place {
            return Err(StoreError::Invalid(format!(
                "the objects in {found} may as well be those of target {}, which has not its own directory either: put that right first; where both lost their \
                 marks, only who knows which is which can write them (docs/formats.md, stripewise-target)",
                rival.name
            )));
        }
        if rival.fit == mine.fit && is_copy(store, &mine, rival, &there)? {
            return Err(StoreError::Invalid(format!(
                "the objects in {found} hold the same bytes as those of target {}: it is a copy of that one; put the right directory there",
                rival.name
            )));
        }
    }
    Ok(())
}

/// The other targets; an error where one of them has this very directory.
fn rivals<'s>(store: &'s Store<'_>, index: usize, dir: &Path) -> Result<Vec<Candidate<'s>>> {
    let of = |path: &Path| store.medium.stat(path).ok().flatten().map(|stat| (stat.dev, stat.ino));
    let here = of(dir);
    let others = store.targets.iter().enumerate().filter(|(number, other)| *number != index && !is_tombstone(&store.root, &other.path));
    others
        .map(|(number, other)| {
            if here.is_some() && of(&other.path) == here {
                return Err(StoreError::Invalid(format!(
                    "{} is the directory of target {} as well; put the right directory there",
                    dir.display(),
                    other.name
                )));
            }
            let is_in_place = identity::mismatch(store.medium, &other.path, &store.uuid, number).is_none();
            Ok(Candidate { index: number as u32, name: &other.name, dir: &other.path, is_in_place, fit: 0 })
        })
        .collect()
}

/// An error where a directory on which no file lies has something in it: then it is somebody's.
fn check_empty(store: &Store<'_>, dir: &Path) -> Result<()> {
    let names = store.medium.list(dir).doing("list", dir)?;
    let Some(name) = names.iter().find(|name| *name != IDENTITY_FILE) else { return Ok(()) };
    Err(StoreError::Invalid(format!(
        "{} holds {}, and no file of the store lies on it; put the right directory there, or empty this one",
        dir.display(),
        Path::new(name).display()
    )))
}

/// Whether all objects that are compared begin with the same bytes on both, and not with zeros alone.
fn is_copy(store: &Store<'_>, mine: &Candidate<'_>, rival: &Candidate<'_>, there: &[(u64, u32)]) -> Result<bool> {
    let mut is_told = false;
    for (id, plane) in there.iter().take(COMPARED) {
        let begins = |of: &Candidate<'_>| -> Result<Option<Vec<u8>>> {
            let path = store.object(of.index, *id, *plane)?;
            debug_assert!(path.starts_with(of.dir));
            if store.medium.stat(&path).doing("look at", &path)?.is_none() {
                return Ok(None);
            }
            let file = store.medium.open(&path, Open::Read).doing("open", &path)?;
            let mut bytes = vec![0; COMPARED_BYTES];
            let at = file.next_data(0).doing("read", &path)?.map_or(0, |(at, _)| at);
            let got = file.read_at(&mut bytes, at).doing("read", &path)?;
            bytes.truncate(got);
            Ok(Some(bytes))
        };
        let (Some(here), Some(other)) = (begins(mine)?, begins(rival)?) else { return Ok(false) };
        if here != other {
            return Ok(false);
        }
        is_told |= here.iter().any(|byte| *byte != 0);
    }
    Ok(is_told)
}
