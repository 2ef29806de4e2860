//! Turning a plain file into a managed one in place. Everything of the managed file is durable before its link and the plain file change
//! places in one step, so that the path is always one of the two, whole; a kill leaves a journal that says what to finish or undo.

use std::collections::BTreeSet;
use std::path::Path;

use stripewise_layout::{Layout, Origin, Region, Span, spans};
use stripewise_target::interface::Opening;

use crate::admin::capacity::check_room;
use crate::admin::check::scrub::sum_new_file;
use crate::admin::copies::remove;
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::ids::{id_text, path_of};
use crate::admin::info::{current_size, resolve};
use crate::admin::medium::{CHUNK_BYTES, FsyncPoint, Kind, Leased, Lock, Medium, Open, Others, Root};
use crate::admin::metadata::journal::{self, Found, Journal, Way};
use crate::admin::metadata::link::link_record;
use crate::admin::metadata::publish::{make_objects, objects_at_first, publish_layout, rights_of_new_part, sync_dir, sync_slices};
use crate::admin::metadata::reader::Objects;
use crate::admin::metadata::settle::{settle_adoption, third_name};
use crate::admin::metadata::sums::Rest;
use crate::admin::moves::apply::forget_usage;
use crate::admin::spec::plain_layout;
use crate::admin::store::{Store, layout_error};
use crate::copies::Original;
use crate::ctl::boot_words;
use crate::names::link_text;
use crate::rights::Part;

/// How long the plain file is watched once its name leads to the managed one: whoever had found it by then is at its lease by now.
const WATCH_MS: u64 = 40;
const WATCH_STEP_MS: u64 = 10;

/// What an adoption did.
#[derive(Clone, Debug, Default, serde::Serialize, PartialEq, Eq)]
pub struct Adopted {
    /// The new file.
    pub id: String,
    pub size: u64,
    /// Bytes of data that were copied.
    pub data_bytes: u64,
    /// Whether it was a file of this store already: nothing was done.
    pub was_managed: bool,
    /// Whether the store had copies of the plain file, which went with it.
    pub dropped_copies: bool,
}

/// Makes the plain file at `path` (absolute, its directory resolved) file `id` of the store, laid out as `regions` or the default. A file of the store stays
/// as it is.
///
/// # Errors
/// `Invalid` for what cannot be adopted, `InUse` when somebody has it open or opens it meanwhile, `NoSpace` before anything is changed.
/// The file is then plain as before.
pub fn adopt(store: &Store<'_>, id: u64, path: &Path, layout: Option<(Vec<Region>, Origin)>, lease: bool) -> Result<Adopted> {
    let _session = store.lock_shared()?;
    let place = path.parent().unwrap_or(Path::new("/"));
    store.medium.hold(place, Root::Place).doing("open", place)?;
    finish_earlier(store, path)?;
    if let Some(adopted) = managed_already(store, path, layout.as_ref().map(|(regions, _)| regions.as_slice()))? {
        return Ok(adopted);
    }
    check_path(store, path)?;
    let source = open_source(store.medium, path, lease)?;
    let layout = match layout {
        Some((regions, origin)) => plain_layout(regions, 1, [id, 0], origin),
        None => {
            let template = Layout::decode(&store.default_layout).map_err(|e| layout_error(&store.root.join("store.bin"), e))?;
            Layout { generation: 1, file_id: [id, 0], ..template }
        }
    };
    let bytes = layout.encode().map_err(|e| layout_error(&store.part(id, "layout"), e))?;
    let view = crate::admin::metadata::reader::view(store, id, &bytes)?;
    let was = source.stat().doing("look at", path)?;
    // Another name may have come since it was looked at, and then the file is somebody's who gave it this one.
    if was.links != 1 {
        return Err(changed(path));
    }
    let data = data_of(source.as_ref(), path)?;
    check_room(store, path, view.home(), was.size, &data, ("it", "free space there or choose another --layout"))?;
    let dir = store.file_dir(id);
    store.medium.mkdir(&dir).doing("make", &dir)?;
    let journal = Journal { way: Way::In, ino: was.ino, size: was.size, mtime_ns: was.mtime_ns, path: path.to_path_buf() };
    let mut adoption = Adoption { store, id, source, journal, _held: None, ctl: None };
    let result = adoption.run(&layout, &view, &data);
    let run = store.run_dir();
    forget_usage(store, store.medium.devices(&run, store.targets.len(), false).unwrap_or(None).as_deref());
    match result {
        Ok(()) => {
            let data_bytes = data.iter().map(|(a, b)| b - a).sum();
            let plain = Original { dev: was.dev, ino: was.ino, ..Original::default() };
            // Copies of it count no more. Those that are another user's, or that a kill leaves here, go with the next gc.
            let dropped_copies = remove::clear(store, &String::from_utf8_lossy(plain.record_name().as_bytes())).unwrap_or(false);
            Ok(Adopted { id: id_text(id), size: was.size, data_bytes, was_managed: false, dropped_copies })
        }
        Err(e) => {
            // The first error is the one to report; what cannot be undone now is undone by fsck, gc or the next try.
            let _ = settle_adoption(store, id, &adoption.journal);
            Err(e)
        }
    }
}

struct Adoption<'a> {
    store: &'a Store<'a>,
    id: u64,
    source: Box<dyn Leased>,
    journal: Journal,
    _held: Option<Box<dyn Lock>>,
    ctl: Option<Box<dyn Lock>>,
}

impl Adoption<'_> {
    fn run(&mut self, layout: &Layout, view: &stripewise_layout::View<'_>, data: &[(u64, u64)]) -> Result<()> {
        let (store, id) = (self.store, self.id);
        self._held = Some(self.journal.begin(store, id)?);
        let before = self.source.stat().doing("look at", &self.journal.path)?;
        let head = store.part(id, "head");
        let new = store.medium.open(&head, Open::CreateNew).doing("make", &head)?;
        new.set_len(before.size).doing("set the length of", &head)?;
        let like = self.source.attributes().doing("look at", &self.journal.path)?;
        new.give_all(&like).doing("give the attributes of the file to", &head)?;
        let objects = objects_at_first(store, id, layout, before.size)?;
        make_objects(store, id, &objects, &BTreeSet::new())?;
        self.copy(view, data)?;
        sync_slices(store, id, &objects, Span::to_end(0), FsyncPoint::SliceData)?;
        let ctl = store.part(id, "ctl");
        store.medium.ctl(&ctl, true).doing("make", &ctl)?.ctl().initialise(boot_words(&store.boot_id()?), before.size, layout.generation);
        store.medium.follow_head(&head, &ctl, Part::Ctl).doing("give the owner of head to", &ctl)?;
        let dir = store.file_dir(id);
        store.medium.dir_follows_head(&dir).doing("give the owner of head to", &dir)?;
        let rest = Rest { head_mtime_ns: before.mtime_ns, generation: layout.generation };
        sum_new_file(store, id, &objects, Some(rest))?;
        publish_layout(store, id, layout)?;
        // Once more: writing set its times.
        let like = self.source.attributes().doing("look at", &self.journal.path)?;
        new.give_all(&like).doing("give the attributes of the file to", &head)?;
        new.sync(FsyncPoint::HeadSize).doing("flush", &head)?;
        self.ctl = Some(store.lock_file(id, &self.journal.path)?);
        self.make_link()?;
        self.swap(&before)
    }

    fn copy(&self, view: &stripewise_layout::View<'_>, data: &[(u64, u64)]) -> Result<()> {
        let path = &self.journal.path;
        let mut objects = Objects::new(self.store, self.id, *view, Opening::BOTH);
        let mut buf = Vec::new();
        for &(from, to) in data {
            let mut at = from;
            while at < to {
                self.store.go_on()?;
                self.still_alone()?;
                buf.resize(CHUNK_BYTES.min(to - at) as usize, 0);
                let got = self.source.read_at(&mut buf, at).doing("read", path)?;
                if got < buf.len() {
                    return Err(changed(path));
                }
                objects.write(at, &buf)?;
                at += got as u64;
            }
        }
        Ok(())
    }

    fn still_alone(&self) -> Result<()> {
        if self.source.is_wanted().doing("watch the lease of", &self.journal.path)? { Err(wanted(&self.journal.path)) } else { Ok(()) }
    }

    /// The link under its temporary name, and its record.
    fn make_link(&self) -> Result<()> {
        let (store, id) = (self.store, self.id);
        let link = self.journal.temporary(id);
        let text = path_of(link_text(store.root.as_os_str().as_encoded_bytes(), id).as_bytes());
        store.medium.symlink(&text, &link).doing("make the link", &link)?;
        let like = self.source.attributes().doing("look at", &self.journal.path)?;
        store.medium.own_link(&link, &text, like.uid, like.gid).doing("give the owner of the file to", &link)?;
        let stat = store.medium.stat(&link).doing("look at", &link)?.ok_or_else(|| changed(&link))?;
        let record = store.part(id, "link");
        let file = store.medium.open(&record, Open::CreateNew).doing("make", &record)?;
        file.write_at(&link_record(stat.dev, stat.ino, &self.journal.path), 0).doing("write", &record)?;
        file.give_rights(&rights_of_new_part(store, id)?, None).doing("give the owner of the file to", &record)?;
        file.sync(FsyncPoint::NewFileParts).doing("flush", &record)?;
        sync_dir(store, &store.file_dir(id), FsyncPoint::NewFileDir)
    }

    /// File and link change places; while somebody may have found the plain file just before, they can change back.
    fn swap(&self, before: &crate::admin::medium::Stat) -> Result<()> {
        let (store, path, temporary) = (self.store, &self.journal.path, self.journal.temporary(self.id));
        let parent = path.parent().unwrap_or(Path::new("/"));
        self.still_alone()?;
        let now = self.source.stat().doing("look at", path)?;
        let named = store.medium.stat(path).doing("look at", path)?.map(|s| s.ino);
        let same = |a: &crate::admin::medium::Stat| (a.size, a.mtime_ns, a.ctime_ns, a.links);
        if same(&now) != same(before) || named != Some(before.ino) {
            return Err(changed(path));
        }
        exchange(store.medium, path, &temporary)?;
        for _ in 0..WATCH_MS / WATCH_STEP_MS {
            store.medium.pause(WATCH_STEP_MS);
            let linked = self.source.stat().doing("look at", path)?.links != 1;
            if linked || self.source.is_wanted().doing("watch the lease of", path)? {
                put_back(store, path, &temporary)?;
                return Err(if linked { changed(path) } else { wanted(path) });
            }
        }
        store.medium.unlink(&temporary).doing("remove", &temporary)?;
        sync_dir(store, parent, FsyncPoint::Swapped)?;
        self.journal.end(store, self.id)
    }
}

/// The plain file's names change places; without the system's help by a second name for the old file.
fn exchange(medium: &dyn Medium, path: &Path, temporary: &Path) -> Result<()> {
    match medium.exchange(path, temporary) {
        Err(e) if e.kind() == std::io::ErrorKind::Unsupported => {
            let third = &third_name(temporary);
            medium.hard_link(path, third).doing("give a second name to", path)?;
            medium.rename(temporary, path).doing("put the link in the place of", path)?;
            medium.rename(third, temporary).doing("rename", third)
        }
        result => result.doing("change places with the link", path),
    }
}

/// Undoes the exchange, in one step: the plain file takes its name again.
fn put_back(store: &Store<'_>, path: &Path, temporary: &Path) -> Result<()> {
    store.medium.rename(temporary, path).doing("put the file back at", path)?;
    sync_dir(store, path.parent().unwrap_or(Path::new("/")), FsyncPoint::Swap)
}

/// An earlier adoption of the same path that was killed is finished or undone first.
fn finish_earlier(store: &Store<'_>, path: &Path) -> Result<()> {
    for id in store.ids()? {
        if let Found::Whole(journal) = journal::find(store, &store.file_dir(id))?
            && journal.path == path
        {
            crate::admin::metadata::settle::recover(store, id)?;
        }
    }
    Ok(())
}

/// The file of the store that `path` leads to; `None` for any other that may become one.
///
/// # Errors
/// `Invalid` for a file of another store, and for one that lies otherwise than in the regions that are asked for.
fn managed_already(store: &Store<'_>, path: &Path, regions: Option<&[Region]>) -> Result<Option<Adopted>> {
    let Some((root, id)) = resolve(store.medium, path)? else { return Ok(None) };
    let invalid = |why: &str| Err(StoreError::Invalid(format!("{}: is a managed file already, {why}", path.display())));
    if root != store.root {
        return invalid(&format!("of the store {}; take it out of that one first, with `stripewise store export`", root.display()));
    }
    let layout = store.layout(id)?;
    let size = current_size(store, id, &layout)?;
    if regions.is_some_and(|wanted| !spans(&layout.regions, wanted, size).is_empty()) {
        return invalid("in another layout; `stripewise store set-layout FILE --layout LAYOUT` changes that");
    }
    Ok(Some(Adopted { id: id_text(id), size, was_managed: true, ..Adopted::default() }))
}

fn check_path(store: &Store<'_>, path: &Path) -> Result<()> {
    let invalid = |why: &str| Err(StoreError::Invalid(format!("{}: {why}", path.display())));
    let Some(stat) = store.medium.stat(path).doing("look at", path)? else {
        return Err(StoreError::NotFound(format!("{} does not exist; name a plain file", path.display())));
    };
    if stat.kind == Kind::Link {
        return invalid("is a symbolic link; name the file it leads to");
    }
    if stat.kind != Kind::File {
        return invalid("is not a regular file; only those can be adopted");
    }
    if stat.links != 1 {
        return invalid(&format!(
            "has {} hard links, of which a managed file can be only one; remove the others, or copy the file and adopt the copy",
            stat.links
        ));
    }
    let inside = std::iter::once(&store.root).chain(store.targets.iter().map(|t| &t.path)).find(|dir| path.starts_with(dir));
    match inside {
        Some(dir) => invalid(&format!("lies in {}, which belongs to the store; move it elsewhere first", dir.display())),
        None => Ok(()),
    }
}

fn open_source(medium: &dyn Medium, path: &Path, lease: bool) -> Result<Box<dyn Leased>> {
    match medium.open_leased(path, Others::None, lease) {
        Ok(Some(file)) => Ok(file),
        Ok(None) => Err(StoreError::InUse(format!("{} is open in a program; close it there, then adopt it", path.display()))),
        Err(e) if e.kind() == std::io::ErrorKind::Unsupported => Err(StoreError::Invalid(format!(
            "{}: its file system knows no leases, so that nobody can tell who has it open; stop all programs that use it and add --without-lease",
            path.display()
        ))),
        Err(e) => Err(StoreError::io("open", path, e)),
    }
}

fn data_of(source: &dyn Leased, path: &Path) -> Result<Vec<(u64, u64)>> {
    let mut data = Vec::new();
    let mut at = 0;
    while let Some((from, to)) = source.next_data(at).doing("read", path)? {
        data.push((from, to));
        at = to;
    }
    Ok(data)
}

fn wanted(path: &Path) -> StoreError {
    StoreError::InUse(format!("a program opened {} while it was being adopted; it is plain as before, try again later", path.display()))
}

fn changed(path: &Path) -> StoreError {
    StoreError::InUse(format!("{} was changed while it was being adopted; it is plain as before, try again later", path.display()))
}
