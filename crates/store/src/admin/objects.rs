//! A store's objects as the verbs reach them: each on its target, by file and plane, through the one interface of targets. What goes wrong is told with the
//! object's name.

use std::io;
use std::path::Path;

use stripewise_target::any::{Any, AnyObject};
use stripewise_target::batch;
use stripewise_target::devices::Devices;
use stripewise_target::emulated::Clock;
use stripewise_target::interface::{Facts, Object, Opening, Target};
use stripewise_target::names::{ObjectName, Role};
use stripewise_target::time::{now_ns, sleep_until};
use stripewise_target::within::Refusal;

use super::error::{Context, Result, StoreError};
use super::ids::quoted;
use super::medium::FsyncPoint;
use super::metadata::link::{called, word};
use super::refused::{Refused, refused};
use super::store::Store;
use crate::rights::{OWNER_LOOK_NS, OWNER_LOOKS};

/// An object of a file: target and plane.
pub type ObjectId = (u32, u32);

/// The target of an index, as a place of objects.
///
/// # Errors
/// `Damaged` when the store has fewer; `Io` where it is away or another's.
pub fn target(store: &Store<'_>, index: u32) -> Result<Any> {
    let dir = &store.target(index)?.path;
    store.medium.target(dir).doing("open", dir).map_err(|e| store.away(index as usize).map_or(e, StoreError::Damaged))
}

/// The same where one that is missing, or another's, holds nothing of this store's.
fn target_if_there(store: &Store<'_>, index: u32) -> Result<Option<Any>> {
    let dir = &store.target(index)?.path;
    match store.medium.target(dir) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) || is_foreign(&e) => Ok(None),
        opened => opened.doing("open", dir).map(Some),
    }
}

fn is_foreign(e: &io::Error) -> bool {
    Refused::of(e).is_some_and(|refused| refused.why == Refusal::Foreign)
}

/// Opens an object, which belongs to its file's owner.
///
/// # Errors
/// `Io`, of kind NotFound where it is missing.
pub fn open(store: &Store<'_>, id: u64, object: ObjectId, opening: Opening<'_>) -> Result<AnyObject> {
    open_on(store, &target(store, object.0)?, id, object, opening)
}

/// The same, behind the clock of its device: its operations are counted, and take an emulated device's time.
///
/// # Errors
/// As [`open`].
pub fn open_behind(store: &Store<'_>, devices: Devices, id: u64, object: ObjectId, opening: Opening<'_>) -> Result<AnyObject> {
    let info = store.target(object.0)?;
    let (mut place, model) = (target(store, object.0)?, info.kind.is_emulated().then_some(info.model));
    if let Some(line) = devices.line(object.0) {
        place = place.behind(Clock { line, model });
    }
    open_on(store, &place, id, object, opening)
}

fn open_on(store: &Store<'_>, place: &Any, id: u64, (index, plane): ObjectId, opening: Opening<'_>) -> Result<AnyObject> {
    let path = store.object(index, id, plane)?;
    let mut looks = OWNER_LOOKS;
    loop {
        let owners = store.medium.object_owners(&path).doing("open", &path)?;
        match place.open(ObjectName::of_plane(id, plane), opening.of(&owners)) {
            // A change of the owner, of head first and then of the objects, may be under way.
            Err(Refusal::Owner) if looks > 0 => {
                looks -= 1;
                sleep_until(now_ns() + OWNER_LOOK_NS);
            }
            opened => return opened.map_err(|why| refused(&path, why)).doing("open", &path),
        }
    }
}

/// What there is to say of an object; `None` where it is missing.
///
/// # Errors
/// `Io`.
pub fn look(store: &Store<'_>, id: u64, (index, plane): ObjectId) -> Result<Option<Facts>> {
    let Some(place) = target_if_there(store, index)? else { return Ok(None) };
    place.look(ObjectName::of_plane(id, plane)).doing("look at", &store.object(index, id, plane)?)
}

/// Whether an object is there.
///
/// # Errors
/// `Io`.
pub fn is_there(store: &Store<'_>, id: u64, object: ObjectId) -> Result<bool> {
    Ok(look(store, id, object)?.is_some())
}

/// Makes an object, prepared by `ready` before anybody finds it; `None` where there is one by now.
///
/// # Errors
/// `Io`, and those of `ready`.
pub fn create(store: &Store<'_>, id: u64, (index, plane): ObjectId, mut ready: impl FnMut(&dyn Object) -> Result<()>) -> Result<Option<AnyObject>> {
    let path = store.object(index, id, plane)?;
    let mut failed = None;
    let made = target(store, index)?.create(
        ObjectName::of_plane(id, plane),
        0o600,
        Some(&mut |object| {
            ready(object).map_err(|e| {
                failed = Some(e);
                rustix::io::Errno::CANCELED
            })
        }),
    );
    match (made, failed) {
        (_, Some(e)) => Err(e),
        (Err(rustix::io::Errno::EXIST), None) => Ok(None),
        (made, None) => made.doing("make the object", &path).map(Some),
    }
}

/// Removes an object of one of `owners` (none: anybody's); false where there is none.
///
/// # Errors
/// `Io`, also for one of somebody else.
pub fn remove(store: &Store<'_>, id: u64, (index, role): (u32, Role), owners: &[u32]) -> Result<bool> {
    let Some(place) = target_if_there(store, index)? else { return Ok(false) };
    let name = ObjectName { file: id, role };
    match place.look(name) {
        Ok(None) => Ok(false),
        looked => looked.map_err(Refusal::Os).and_then(|_| place.remove(name, owners)).map(|()| true),
    }
    .map_err(|why| refused(&store.target(index).map_or_else(|_| store.root.clone(), |t| t.path.clone()), why))
    .doing("remove an object from", &store.target(index)?.path)
}

/// Makes durable which objects a target has.
///
/// # Errors
/// `Io`.
pub fn sync_target(store: &Store<'_>, index: u32, point: FsyncPoint) -> Result<()> {
    let dir = &store.target(index)?.path;
    if store.medium.flushes(dir, point).doing("flush", dir)? { target(store, index)?.sync().doing("flush", dir) } else { Ok(()) }
}

/// Makes an object's content and length durable.
///
/// # Errors
/// `Io`.
pub fn sync(store: &Store<'_>, path: &Path, object: &dyn Object, point: FsyncPoint) -> Result<()> {
    if store.medium.flushes(path, point).doing("flush", path)? { object.sync().doing("flush", path) } else { Ok(()) }
}

/// Names of all objects on a target that is this store's.
///
/// # Errors
/// `Io`.
pub fn list(store: &Store<'_>, index: u32) -> Result<Vec<ObjectName>> {
    let mut names = Vec::new();
    let listed = target(store, index)?.list(&mut |name| {
        names.push(name);
        Ok(())
    });
    listed.doing("list", &store.target(index)?.path)?;
    names.sort_unstable();
    Ok(names)
}

/// Bytes that the objects on a target take; 0 where the directory is another's.
///
/// # Errors
/// `Io`.
pub fn used_bytes(store: &Store<'_>, index: u32) -> Result<u64> {
    let dir = &store.target(index)?.path;
    match store.medium.target(dir) {
        Err(e) if is_foreign(&e) => Ok(0),
        opened => opened.doing("open", dir)?.used_bytes().doing("list", dir),
    }
}

/// Reads into a buffer; short only at the end of the object.
///
/// # Errors
/// `Io`.
pub fn read_at(object: &dyn Object, buf: &mut [u8], at: u64, path: &Path) -> Result<usize> {
    batch::read_at(object, buf, at).doing("read", path)
}

/// Writes all of a buffer.
///
/// # Errors
/// `Io`.
pub fn write_at(object: &dyn Object, buf: &[u8], at: u64, path: &Path) -> Result<()> {
    batch::write_at(object, buf, at).doing("write", path)
}

/// What helps where an object is missing of the file called `name`, in quotes, and its target is there.
pub fn missing_cure(store: &Store<'_>, name: &str) -> String {
    format!("restore it from a copy, or remove the file: stripewise run --store {} -- rm {name}", quoted(&store.root))
}

/// The error of a target that is away, or that is missing an object of file `id`.
pub fn missing(store: &Store<'_>, id: u64, target: u32, path: &Path) -> StoreError {
    if let Some(why) = store.away(target as usize) {
        return StoreError::Damaged(format!("{}: {why}", called(store, id)));
    }
    StoreError::NotFound(format!("{}: its object {} is missing; {}", called(store, id), path.display(), missing_cure(store, &word(store, id))))
}
