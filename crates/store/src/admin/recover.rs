//! What adoptions and exports that were killed left: finished or undone, by fsck, gc, or the next command on the same file.

use super::error::{Context, Result};
use super::journal::{self, Found, Way};
use super::store::{Store, id_text};
use crate::locks::How;

/// Finishes or undoes what the journal of file `id` says; false when there is none or its maker lives.
///
/// # Errors
/// As [`super::adopt::settle`] and [`super::export::settle`].
pub fn recover(store: &Store<'_>, id: u64) -> Result<bool> {
    let dir = store.file_dir(id);
    let found = journal::find(store, &dir)?;
    let way = match &found {
        Found::Nothing => return Ok(false),
        Found::Blank(way) => *way,
        Found::Whole(journal) => journal.way,
    };
    let path = dir.join(way.part());
    let Some(_held) = store.medium.try_lock(&path, true).doing("lock", &path)? else { return Ok(false) };
    // An export replaces its journal, and with it the lock, but has the file to itself.
    let ctl = store.part(id, "ctl");
    let _alone = if way == Way::Out && store.medium.stat(&ctl).doing("look at", &ctl)?.is_some() {
        let Some(lock) = store.medium.try_presence(&ctl, How::Exclusive).doing("lock", &ctl)? else { return Ok(false) };
        Some(lock)
    } else {
        None
    };
    match (found, way) {
        (Found::Whole(journal), Way::In) => super::adopt::settle(store, id, &journal).map(|_| true),
        (Found::Whole(journal), Way::Out) => super::export::settle(store, id, &journal).map(|_| true),
        // Nothing had been done yet: of an adoption only the directory is there.
        (_, Way::In) => {
            let to = store.trash_dir().join(id_text(id));
            store.medium.rename(&dir, &to).doing("move to the trash", &to)?;
            super::fsck_file::remove_file(store, id, &to).map(|()| true)
        }
        (_, Way::Out) => store.medium.unlink(&path).doing("remove", &path).map(|()| true),
    }
}
