//! Freeing what nobody can reach any more: trash, files unlinked by programs that died with them open, creations and adoptions that
//! were killed, slots of the dead. A missing name is no proof that a file is unwanted, because tools without the library rename and
//! copy links: such files are listed, and go only when asked for, by age, and when no link is found near where the name was.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::copies::list::{State, list};
use super::copies::remove::clear;
use super::error::{Context, Result, StoreError};
use super::ids::id_text;
use super::info::{links_in, resolve, size_at_least};
use super::medium::{Kind, Lock};
use super::metadata::container::{copies_dir, is_container};
use super::metadata::journal::{self, Found};
use super::metadata::leftovers;
use super::metadata::link::recorded;
use super::metadata::settle::empty_trash_of;
use super::metadata::trash::to_trash;
use super::metadata::unlinked::{alone, has_name, was_unlinked};
use super::objects;
use super::store::Store;
use super::transfer::relink::walk;
use crate::locks::How;
use crate::slot::SLOT_BYTES;

/// Age from which on a creation that holds nothing is taken for dead whatever else runs.
const UNFINISHED_AGE_S: i64 = 3600;

/// What to do.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Remove files whose name is gone.
    pub purge: bool,
    /// Only those unchanged for so long, seconds.
    pub older_than_s: i64,
    /// Directories to look for their links in, beside the one where each name was.
    pub search: Vec<PathBuf>,
    /// What lies on targets that are away stays there for good: the store goes, and nobody comes back for it.
    pub leave_away: bool,
}

/// A file whose name is gone or taken.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Orphan {
    pub id: String,
    /// Its last known name, empty when there is no record.
    pub path: String,
    /// A link to it that was found elsewhere.
    pub found: Option<String>,
    /// Its size in bytes.
    pub size: u64,
    /// Seconds since it was last changed.
    pub age_s: i64,
    /// Whether it was removed.
    pub purged: bool,
}

/// What was done.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub struct Collected {
    /// Trash entries freed.
    pub trash: usize,
    /// Unlinked files that nobody has open any more.
    pub unlinked: usize,
    /// Creations that were never finished.
    pub unfinished: usize,
    /// Adoptions and exports that were finished or undone.
    pub journals: usize,
    /// Slots of dead processes.
    pub slots: usize,
    /// Files that killed verbs were writing to replace others.
    pub temporary: usize,
    /// Copies of plain files that do not count any more, or were never finished.
    pub copies: usize,
    /// Files whose name was not found.
    pub orphans: Vec<Orphan>,
    /// What could not be done, each as a sentence.
    pub problems: Vec<String>,
}

/// Collects what is free to go; programs may run.
///
/// # Errors
/// `Damaged` when a target is not there (its objects would be left behind), `InUse` during an offline change or on another machine.
pub fn gc(store: &Store<'_>, options: &Options) -> Result<Collected> {
    store.check_other_machines(false)?;
    let (_lock, idle): (Option<Box<dyn Lock>>, bool) = match store.lock_exclusive() {
        Ok(lock) => (Some(lock), true),
        Err(StoreError::InUse(_)) => (store.lock_shared()?, false),
        Err(e) => return Err(e),
    };
    if !options.leave_away
        && let Some(why) = (0..store.targets.len()).find_map(|index| store.away(index))
    {
        return Err(StoreError::Damaged(format!("{why}; nothing was changed")));
    }
    let mut gc = Gc { store, options, idle, done: Collected::default(), searched: None };
    gc.slots()?;
    gc.copies()?;
    for id in store.ids()? {
        store.go_on()?;
        // One that cannot be looked at keeps nobody else from being collected.
        if let Err(e) = gc.file(id) {
            gc.done.problems.push(e.to_string());
        }
    }
    if gc.done.journals > 0 {
        // Those of files that are plain by that.
        gc.copies()?;
    }
    for id in store.ids_in(&store.trash_dir())? {
        store.go_on()?;
        if let Err(e) = gc.trash(id) {
            gc.done.problems.push(e.to_string());
        }
    }
    gc.temporaries()?;
    Ok(gc.done)
}

struct Gc<'a> {
    store: &'a Store<'a>,
    options: &'a Options,
    idle: bool,
    done: Collected,
    /// What is linked below the directories that are to be searched, once that was needed.
    searched: Option<BTreeMap<u64, PathBuf>>,
}

impl Gc<'_> {
    /// What killed verbs were writing, beside what it was to replace.
    fn temporaries(&mut self) -> Result<()> {
        let store = self.store;
        let is_left = |index| self.options.leave_away && store.away(index).is_some();
        let targets = store.targets.iter().enumerate().filter(|(index, _)| !is_left(*index)).map(|(_, target)| target.path.clone());
        let dirs: Vec<PathBuf> = [store.root.clone(), store.run_dir()].into_iter().chain(targets).collect();
        let copies = Some(copies_dir(store)).filter(|dir| matches!(store.medium.stat(dir), Ok(Some(_))));
        for dir in dirs.into_iter().chain(copies) {
            self.done.temporary += leftovers::temporaries(store, &dir, self.idle)?;
        }
        Ok(())
    }

    /// Copies that nobody may use, and what is left of others.
    fn copies(&mut self) -> Result<()> {
        let store = self.store;
        for copies in list(store)?.into_iter().filter(|copies| copies.state != State::InUse) {
            match clear(store, &copies.name) {
                Ok(dropped) => self.done.copies += usize::from(dropped),
                // They are being made.
                Err(StoreError::InUse(_)) => {}
                Err(e) => self.done.problems.push(e.to_string()),
            }
        }
        Ok(())
    }

    fn file(&mut self, id: u64) -> Result<()> {
        let store = self.store;
        self.done.temporary += leftovers::temporaries(store, &store.file_dir(id), self.idle)?;
        if !matches!(journal::find(store, &store.file_dir(id))?, Found::Nothing) {
            if super::metadata::settle::recover(store, id)? {
                self.done.journals += 1;
            }
            return Ok(());
        }
        if was_unlinked(store, id)? {
            if let Some(_alone) = alone(store, id)? {
                self.done.unlinked += usize::from(to_trash(store, id)?);
            }
            return Ok(());
        }
        // Its name went with its record.
        if is_container(store, id)? && !has_name(store, id)? {
            if let Some(_alone) = alone(store, id)? {
                self.done.copies += usize::from(to_trash(store, id)?);
            }
            return Ok(());
        }
        if self.is_unfinished(id)? {
            if let Some(_alone) = alone(store, id)? {
                self.done.unfinished += usize::from(to_trash(store, id)?);
            }
            return Ok(());
        }
        self.orphan(id)
    }

    fn trash(&mut self, id: u64) -> Result<()> {
        let store = self.store;
        if store.medium.stat(&store.file_dir(id)).doing("look at", &store.file_dir(id))?.is_some() {
            let entry = store.trash_dir().join(id_text(id));
            return Err(StoreError::Damaged(format!(
                "{}: a file of this id is there; what somebody has put here is none of it: remove it by hand",
                entry.display()
            )));
        }
        let ctl = store.trash_dir().join(id_text(id)).join("ctl");
        // Whoever is removing it right now, or has it open still, holds this.
        let _alone = match store.medium.stat(&ctl).doing("look at", &ctl)? {
            None => None,
            Some(_) => match store.medium.try_presence(&ctl, How::Exclusive) {
                Ok(Some(lock)) => Some(lock),
                Ok(None) => return Ok(()),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
                Err(e) => return Err(StoreError::io("lock", &ctl, e)),
            },
        };
        empty_trash_of(store, id, self.options.leave_away)?;
        self.done.trash += 1;
        Ok(())
    }

    /// A creation without its record of a name, or without a part, that holds nothing, and whose creator is gone.
    fn is_unfinished(&self, id: u64) -> Result<bool> {
        let store = self.store;
        let look = |path: &Path| store.medium.stat(path).doing("look at", path);
        let mut missing = false;
        for part in ["layout", "head"] {
            missing |= look(&store.part(id, part))?.is_none();
        }
        // A record is empty until it is written.
        missing |= look(&store.part(id, "link"))?.is_none_or(|stat| stat.size == 0);
        if !missing || look(&store.part(id, "head"))?.is_some_and(|s| s.size > 0) {
            return Ok(false);
        }
        for target in 0..store.targets.len() as u32 {
            for plane in [0, 1] {
                if objects::look(store, id, (target, plane))?.is_some_and(|facts| facts.len > 0 || facts.used_bytes > 0) {
                    return Ok(false);
                }
            }
        }
        if let Ok(map) = store.medium.ctl(&store.part(id, "ctl"), false)
            && map.ctl().is_valid()
            && map.ctl().size() > 0
        {
            return Ok(false);
        }
        let made_s = look(&store.file_dir(id))?.map_or(0, |s| s.mtime_s);
        Ok(self.idle || store.medium.now_s() - made_s >= UNFINISHED_AGE_S)
    }

    fn orphan(&mut self, id: u64) -> Result<()> {
        let store = self.store;
        if has_name(store, id)? {
            return Ok(());
        }
        let name = recorded(store, id)?.map(|(_, _, name)| name);
        let head = store.part(id, "head");
        let stat = store.medium.stat(&head).doing("look at", &head)?;
        let changed_s = stat.map_or(i64::MAX, |s| s.mtime_s.max(s.ctime_ns / 1_000_000_000));
        let size = store.layout(id).and_then(|layout| size_at_least(store, id, &layout)).unwrap_or(0);
        let found = self.elsewhere(id, name.as_deref())?;
        let age_s = store.medium.now_s().saturating_sub(changed_s);
        let mut orphan = Orphan {
            id: id_text(id),
            path: name.map(|n| n.to_string_lossy().into_owned()).unwrap_or_default(),
            found: found.map(|p| p.to_string_lossy().into_owned()),
            size,
            age_s,
            purged: false,
        };
        if self.options.purge
            && orphan.found.is_none()
            && age_s >= self.options.older_than_s
            && let Some(_alone) = alone(store, id)?
        {
            orphan.purged = to_trash(store, id)?;
        }
        self.done.orphans.push(orphan);
        Ok(())
    }

    /// A link to the file in the directory where its name was, or below those to be searched.
    fn elsewhere(&mut self, id: u64, name: Option<&Path>) -> Result<Option<PathBuf>> {
        let beside = name.and_then(Path::parent).map(|dir| links_in(self.store, dir)).transpose()?;
        if let Some(link) = beside.and_then(|mut links| links.remove(&id)) {
            return Ok(Some(link));
        }
        if self.searched.is_none() {
            self.searched = Some(self.search()?);
        }
        Ok(self.searched.as_ref().and_then(|links| links.get(&id).cloned()))
    }

    /// The links to the store's files below the directories that are to be searched: looked for once, for there may be many files without a name.
    fn search(&self) -> Result<BTreeMap<u64, PathBuf>> {
        let store = self.store;
        let (mut links, mut unseen, mut found) = (Vec::new(), Vec::new(), BTreeMap::new());
        for dir in &self.options.search {
            walk(store, dir, 0, &mut links, &mut unseen)?;
        }
        // Where not all was looked at a file may have a name that was not found.
        if let Some((_, e)) = unseen.into_iter().next() {
            return Err(e);
        }
        for link in links {
            let is_link = store.medium.stat(&link).doing("look at", &link)?.is_some_and(|s| s.kind == Kind::Link);
            if is_link && let Some((_, id)) = resolve(store.medium, &link).ok().flatten().filter(|(root, _)| *root == store.root) {
                found.entry(id).or_insert(link);
            }
        }
        Ok(found)
    }

    /// Slots whose process is gone. One that is not full yet may belong to a process that is just starting.
    fn slots(&mut self) -> Result<()> {
        let store = self.store;
        let boot = store.boot_id()?;
        for (_, path) in store.slots()?.into_iter().filter(|(of, _)| *of == boot) {
            let Some(stat) = store.medium.stat(&path).doing("look at", &path)? else { continue };
            if stat.size < SLOT_BYTES as u64 && !self.idle && store.medium.now_s() - stat.mtime_s < UNFINISHED_AGE_S {
                continue;
            }
            // Somebody else's that cannot be removed is no reason to leave the rest.
            let dead = store
                .medium
                .try_lock(&path, true)
                .and_then(|lock| if lock.is_some() { store.medium.unlink(&path).map(|()| true) } else { Ok(false) });
            match dead.doing("remove", &path) {
                Ok(dead) => self.done.slots += usize::from(dead),
                Err(e) => self.done.problems.push(e.to_string()),
            }
        }
        Ok(())
    }
}
