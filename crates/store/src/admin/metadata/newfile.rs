//! Making a managed file from outside a program: the same parts in the same order as the preloaded library makes them. The name
//! comes last, so that whoever can open the file finds it whole.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::link::link_record;
use super::publish::{make_objects, objects_at_first, publish_layout, sync_dir};
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::ids::path_of;
use crate::admin::medium::{FsyncPoint, Open};
use crate::admin::spec::plain_layout;
use crate::admin::store::Store;
use crate::ctl::boot_words;
use crate::names::link_text;
use crate::rights::Part;
use stripewise_layout::{Layout, Region};

/// Makes an empty managed file with the store's default layout (or `regions`) and the symbolic link at `path`.
///
/// # Errors
/// `Exists` when the id or the path is taken, `Io`.
pub fn create_file(store: &Store<'_>, id: u64, path: &Path, regions: Option<Vec<Region>>) -> Result<()> {
    let medium = store.medium;
    let dir = store.file_dir(id);
    let taken = |what: &Path| StoreError::Exists(format!("{} exists already; choose another name", what.display()));
    if medium.stat(path).doing("look at", path)?.is_some() {
        return Err(taken(path));
    }
    let layout = match regions {
        Some(regions) => plain_layout(regions, 1, [id, 0]),
        None => {
            let template = Layout::decode(&store.default_layout).map_err(|e| crate::admin::store::layout_error(&store.root.join("store.bin"), e))?;
            Layout { generation: 1, file_id: [id, 0], ..template }
        }
    };
    medium.mkdir(&dir).map_err(|e| if e.kind() == std::io::ErrorKind::AlreadyExists { taken(&dir) } else { StoreError::io("make", &dir, e) })?;
    let head = dir.join("head");
    medium.open(&head, Open::CreateNew).doing("make", &head)?.sync(FsyncPoint::NewFileParts).doing("flush", &head)?;
    make_objects(store, id, &objects_at_first(store, id, &layout, 0)?, &std::collections::BTreeSet::new())?;
    {
        let ctl = dir.join("ctl");
        let map = medium.ctl(&ctl, true).doing("make", &ctl)?;
        medium.follow_head(&head, &ctl, Part::Ctl).doing("give the owner of head to", &ctl)?;
        medium.dir_follows_head(&dir).doing("give the owner of head to", &dir)?;
        map.ctl().initialise(boot_words(&store.boot_id()?), 0, layout.generation);
    }
    publish_layout(store, id, &layout)?;
    sync_dir(store, &store.files_dir(), FsyncPoint::FilesDir)?;
    let text = path_of(link_text(store.root.as_os_str().as_bytes(), id).as_bytes());
    medium.symlink(&text, path).doing("make the link", path)?;
    let stat =
        medium.stat(path).doing("look at", path)?.ok_or_else(|| StoreError::NotFound(format!("{} vanished; who removes it?", path.display())))?;
    let record = dir.join("link");
    let file = medium.open(&record, Open::CreateNew).doing("make", &record)?;
    file.write_at(&link_record(stat.dev, stat.ino, path), 0).doing("write", &record)?;
    file.sync(FsyncPoint::NewFileParts).doing("flush", &record)?;
    sync_dir(store, &dir, FsyncPoint::NewFileDir)?;
    if let Some(parent) = path.parent() {
        sync_dir(store, parent, FsyncPoint::LinkDir)?;
    }
    Ok(())
}
