//! The check of one file: its parts, its layout, its control words, its name, and every allocated byte of its objects.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering;

use stripewise_layout::{Layout, MAX_LOGICAL, MovePhase, View};
use stripewise_target::batch::read_at;
use stripewise_target::interface::{Object, Opening};
use stripewise_target::within::TEXT_BYTES_MAX;

use super::findings::Severity;
use super::owners::check_parts;
use super::state::Check;
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::ids::{id_text, quoted};
use crate::admin::info::size_at_least;
use crate::admin::medium::{FsyncPoint, Kind, read_small};
use crate::admin::metadata::container::is_container;
use crate::admin::metadata::journal::{self, Found};
use crate::admin::metadata::link::{called, parse_link_record};
use crate::admin::metadata::publish::{make_objects, may_lack, objects_in, objects_of, objects_reached, remove_objects, targets_of};
use crate::admin::metadata::ranges::stretches;
use crate::admin::metadata::size::{head_size, open_ctl, size_by_what_is_there};
use crate::admin::metadata::trash::{remove_file, to_trash};
use crate::admin::objects::{self, ObjectId};
use crate::admin::store::{Store, layout_error};
use crate::ctl::{FLAG_UNLINKED, boot_words};
use crate::moving::{MoveState, Words};
use crate::names::parse_link;
use crate::rights::Part;
use crate::sizing;

/// Bytes that are read at once to see whether a range holds anything but zeros.
const LOOK_BYTES: u64 = 1 << 20;

/// Checks one file of the store.
///
/// # Errors
/// What keeps it from being checked further; the caller reports it.
pub fn check_file(check: &mut Check<'_>, id: u64) -> Result<()> {
    let store = check.store;
    if !check_parts(check, id)? || !settled(check, id)? || never_finished(check, id)? {
        return Ok(());
    }
    let mut layout = store.layout(id)?;
    if layout.file_id != [id, 0] {
        return Err(StoreError::Damaged(format!("{} belongs to another file; restore it from a copy", store.part(id, "layout").display())));
    }
    if let Some(target) = targets_of(&layout).into_iter().find(|t| *t as usize >= store.targets.len()) {
        store.target(target)?;
    }
    if layout.regions.iter().any(|r| crate::admin::spec::stripes_of(&r.placement).is_empty()) {
        return Err(StoreError::Damaged(format!("{}: a region lies in a plain file; restore it from a copy", store.part(id, "layout").display())));
    }
    if missing_objects(check, id, &layout)? {
        return Ok(());
    }
    if layout.phase != MovePhase::None && check.idle {
        if check.repair {
            crate::admin::moves::apply::recover(store, id)?;
            layout = store.layout(id)?;
        }
        let text = format!("{}: a move was interrupted", called(store, id));
        check.found(
            Severity::Warning,
            "move-interrupted",
            id,
            text,
            &format!("{}, or the next apply, finishes or undoes it", store.repair_command()),
            check.repair,
        );
    }
    let size = check_ctl(check, id, &layout)?;
    check_link(check, id, size)?;
    check_attributes(check, id, &layout)?;
    let path = store.part(id, "layout");
    let bytes = layout.encode().map_err(|e| layout_error(&path, e))?;
    let view = View::parse(&bytes).map_err(|e| layout_error(&path, e))?;
    let used = objects_of(&layout);
    for target in 0..store.targets.len() as u32 {
        if check.sound.get(target as usize).copied().unwrap_or(false) {
            for plane in [0, 1] {
                if used.contains(&(target, plane)) {
                    check_object(check, id, &view, (target, plane), size)?;
                } else {
                    check_unused(check, id, (target, plane))?;
                }
            }
        }
    }
    check_intent(check, id)
}

/// A cut that its maker did not live to end, and what killed writers noted. Last of all: once they are gone nobody looks for what lies behind the size.
fn check_intent(check: &mut Check<'_>, id: u64) -> Result<()> {
    let path = check.store.part(id, "ctl");
    if !check.idle || check.sound.contains(&false) || check.store.medium.stat(&path).doing("look at", &path)?.is_none() {
        return Ok(());
    }
    let Ok(map) = check.store.medium.ctl(&path, check.repair) else { return Ok(()) };
    let ctl = map.ctl();
    if !ctl.is_valid() || !sizing::is_unsettled(&ctl, u64::MAX, |_| false) {
        return Ok(());
    }
    if check.repair {
        sizing::forget(&ctl);
    }
    let text = format!("{}: a program was killed while it cut or extended it", called(check.store, id));
    let cure = format!("whoever next extends or flushes the file ends it; {} does it now", check.store.repair_command());
    check.found(Severity::Info, "size-unsettled", id, text, &cure, check.repair);
    Ok(())
}

/// An adoption or export that was killed is finished or undone. False when there is nothing more to check.
fn settled(check: &mut Check<'_>, id: u64) -> Result<bool> {
    let dir = check.store.file_dir(id);
    let way = match journal::find(check.store, &dir)? {
        Found::Nothing => return Ok(true),
        Found::Blank(way) => way,
        Found::Whole(journal) => journal.way,
    };
    let done = check.repair && crate::admin::metadata::settle::recover(check.store, id)?;
    let severity = if check.idle { Severity::Warning } else { Severity::Info };
    let text = format!("file {}: {} it was interrupted, or is under way", id_text(id), way.part());
    check.found(
        severity,
        "journal",
        id,
        text,
        &format!("{}, gc, or the same command again finishes or undoes it", check.store.repair_command()),
        done,
    );
    Ok(done && check.store.medium.stat(&dir).doing("look at", &dir)?.is_some())
}

/// A creation that was killed: no name ever stood, or a part is missing, and no object holds data. Not touched while programs run.
fn never_finished(check: &mut Check<'_>, id: u64) -> Result<bool> {
    let store = check.store;
    let look = |part: &str| {
        let path = store.part(id, part);
        store.medium.stat(&path).doing("look at", &path)
    };
    let parts = (look("layout")?.is_some(), look("head")?.is_some());
    // A record is empty until it is written.
    if parts == (true, true) && look("link")?.is_some_and(|stat| stat.size > 0) {
        return Ok(false);
    }
    if data_bytes(check, id)? > 0 {
        if parts == (true, true) {
            return Ok(false);
        }
        let part = if parts.0 { "head" } else { "layout" };
        let path = store.part(id, part);
        return Err(StoreError::NotFound(format!("{} is missing but its objects hold data; restore it from a copy", path.display())));
    }
    let mend = check.repair;
    if mend {
        remove_file(store, id, &store.file_dir(id))?;
    }
    let severity = if check.idle { Severity::Warning } else { Severity::Info };
    let text = format!("file {}: its creation was never finished; it holds nothing", id_text(id));
    check.found(severity, "creation-unfinished", id, text, &format!("{} removes it when no program runs", check.store.repair_command()), mend);
    Ok(true)
}

/// Bytes allocated in all objects of a file; those of unsound targets count as some, because nobody can tell.
fn data_bytes(check: &Check<'_>, id: u64) -> Result<u64> {
    let mut sum = 0;
    for target in 0..check.store.targets.len() as u32 {
        if !check.sound.get(target as usize).copied().unwrap_or(false) {
            return Ok(1);
        }
        for plane in [0, 1] {
            sum += objects::look(check.store, id, (target, plane))?.map_or(0, |facts| facts.used_bytes.max(facts.len));
        }
    }
    Ok(sum)
}

/// Objects are made when the file first reaches them, or with the move that brings a target or plane in: one that a file reaches and is not there is a loss.
/// Where others may write the file, who could not make them, all are to be there.
fn missing_objects(check: &mut Check<'_>, id: u64, layout: &Layout) -> Result<bool> {
    let store = check.store;
    let mut missing = BTreeSet::new();
    for (target, plane) in objects_in(&layout.regions) {
        if check.sound.get(target as usize).copied().unwrap_or(false) && !objects::is_there(store, id, (target, plane))? {
            missing.insert((target, plane));
        }
    }
    if missing.is_empty() {
        return Ok(false);
    }
    let reached = objects_reached(store, id, layout, size_at_least(store, id, layout)?)?;
    let reachable = objects_reached(store, id, layout, MAX_LOGICAL)?;
    let lost: Vec<ObjectId> = missing.intersection(&reached).copied().collect();
    for (target, plane) in &lost {
        let cure = format!("{}; its bytes are not guessed", objects::missing_cure(store, "FILE"));
        let text = format!("{}: its object {} is missing", called(store, id), store.object(*target, id, *plane)?.display());
        check.found(Severity::Error, "object-missing", id, text, &cure, false);
    }
    // Not those in which no size has a byte.
    missing.retain(|object| reachable.contains(object));
    if lost.is_empty() && !missing.is_empty() && !may_lack(store, id)? {
        if check.repair {
            make_objects(store, id, &missing, &missing)?;
        }
        let text = format!("{}: objects are missing that who may write it cannot make", called(store, id));
        let cure = format!("{}, as the owner of the store, makes them", check.store.repair_command());
        check.found(Severity::Warning, "object-unmade", id, text, &cure, check.repair);
    }
    Ok(!lost.is_empty())
}

/// Checks the control words and returns the size.
fn check_ctl(check: &mut Check<'_>, id: u64, layout: &Layout) -> Result<u64> {
    let store = check.store;
    let path = store.part(id, "ctl");
    let boot = boot_words(&store.boot_id()?);
    // Of a size that is recovered no object may be missing because its target is away.
    let mends = check.repair && check.sound.iter().all(|sound| *sound);
    let valid = match store.medium.ctl(&path, false) {
        Ok(map) => map.ctl().is_valid(),
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::InvalidData) => false,
        Err(e) => return Err(StoreError::io("map", &path, e)),
    };
    if !valid {
        let text = format!("{} is missing or damaged; the size is known from head and the objects", path.display());
        check.found(Severity::Info, "ctl-damaged", id, text, &format!("{}, or the next open, makes it anew", check.store.repair_command()), mends);
    }
    if !valid && !mends {
        return size_by_what_is_there(store, id, layout);
    }
    let current = if valid { store.medium.ctl(&path, false).doing("map", &path)?.ctl().boot_is(boot) } else { false };
    if !current && !mends {
        return size_by_what_is_there(store, id, layout);
    }
    let map = open_ctl(store, id, layout)?;
    let ctl = map.ctl();
    let head = head_size(store, id)?;
    if ctl.size() >= stripewise_layout::MAX_LOGICAL {
        let size = size_by_what_is_there(store, id, layout)?;
        let text = format!("{}: the size {} is past every layout", path.display(), ctl.size());
        if mends {
            ctl.set_size(size);
        }
        check.found(Severity::Error, "size-insane", id, text, &format!("{} takes it from head and the objects", check.store.repair_command()), mends);
        return Ok(size);
    }
    if check.idle {
        let generation = ctl.header().generation.load(Ordering::SeqCst);
        if generation != layout.generation {
            let text = format!("{}: it names generation {generation}, the layout is {}", path.display(), layout.generation);
            if check.repair {
                ctl.header().generation.store(layout.generation, Ordering::SeqCst);
            }
            check.found(Severity::Warning, "ctl-generation", id, text, &format!("{} corrects it", check.store.repair_command()), check.repair);
        }
        // Of a move that the layout has too, that was said already.
        if MoveState::of(ctl.word()) != MoveState::Idle && layout.phase == MovePhase::None {
            if check.repair {
                crate::admin::moves::apply::recover(store, id)?;
            }
            check.found(
                Severity::Warning,
                "ctl-move",
                id,
                format!("{}: a mover died", path.display()),
                &format!("{} ends its move", check.store.repair_command()),
                check.repair,
            );
        }
        if head != ctl.size() {
            if check.repair {
                crate::admin::metadata::size::mirror_size(store, id, ctl)?;
            }
            let text = format!("{}: head says {head} bytes, the file has {} (a program was killed)", called(store, id), ctl.size());
            check.found(Severity::Info, "head-size", id, text, "the next close mirrors it", check.repair);
        }
        if ctl.header().flags.load(Ordering::SeqCst) & FLAG_UNLINKED != 0 {
            let text = format!("{} was unlinked and its last user was killed", called(store, id));
            if check.repair {
                to_trash(store, id)?;
            }
            check.found(Severity::Warning, "unlinked", id, text, &format!("{} moves it to the trash", check.store.repair_command()), check.repair);
        }
    }
    Ok(ctl.size())
}

/// Compares the record of the link with the link. Nothing is ever deleted for a missing name.
fn check_link(check: &mut Check<'_>, id: u64, size: u64) -> Result<()> {
    let store = check.store;
    let path = store.part(id, "link");
    if store.medium.stat(&store.file_dir(id)).doing("look at", &path)?.is_none() {
        return Ok(());
    }
    let record = match read_small(store.medium, &path, TEXT_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::InvalidData) => Vec::new(),
        Err(e) => return Err(StoreError::io("read", &path, e)),
    };
    let orphan = format!(
        "relink it where it is now, save its bytes (stripewise store cat --store {0} ID >FILE, with the file's id), or free it: stripewise store gc {0} --purge --older-than 0s; \
         nothing is deleted for a missing name",
        quoted(&store.root)
    );
    let Some((dev, ino, name)) = parse_link_record(&record) else {
        let text = format!("file {} ({size} bytes) has no record of its name", id_text(id));
        let found =
            format!("'stripewise store gc {}' looks for its name, which 'stripewise store relink' records; nothing is deleted", quoted(&store.root));
        check.found(Severity::Warning, "orphaned", id, text, &found, false);
        return Ok(());
    };
    let is_copies = is_container(store, id)?;
    let lost = |check: &mut Check<'_>, code: &'static str, what: &str| {
        if is_copies {
            let text = format!("file {} ({size} bytes) held copies that were dropped or never finished", id_text(id));
            check.found(Severity::Info, "copies-left", id, text, "'stripewise store gc' removes it", false);
            return;
        }
        let text = format!("file {} ({size} bytes): its name {} is {what}", id_text(id), name.display());
        match check.link_beside(name, id) {
            Some(there) => {
                let text = format!("{text}, but {} leads to it", there.display());
                check.found(Severity::Warning, code, id, text, "relink that: stripewise store relink LINK", false);
            }
            None => check.found(Severity::Warning, code, id, text, &orphan, false),
        }
    };
    let Some(stat) = store.medium.stat(name).doing("look at", name)? else {
        lost(check, "orphaned", "gone");
        return Ok(());
    };
    let ours = stat.kind == Kind::Link && {
        let text = store.medium.read_link(name).doing("read", name)?;
        parse_link(text.as_os_str().as_bytes()) == Some((store.root.as_os_str().as_bytes(), id))
    };
    if !ours {
        lost(check, "name-taken", "taken by something else");
    } else if (stat.dev, stat.ino) != (dev, ino) {
        let text = format!("file {}: {} is not the link it was made with, perhaps a copy", id_text(id), name.display());
        check.found(Severity::Info, "link-copied", id, text, "nothing, unless another name should be the file's", false);
    }
    Ok(())
}

/// Mode, owner, group and ACL.
type Rights = (u32, u32, u32, Vec<u8>);

/// Owner, mode and ACL of head are the file's; what holds its bytes must follow them, or somebody is let in or kept out wrongly.
fn check_attributes(check: &mut Check<'_>, id: u64, layout: &Layout) -> Result<()> {
    let store = check.store;
    let head = store.part(id, "head");
    let of = |path: &Path| -> Result<Option<Rights>> {
        let Some(stat) = store.medium.stat(path).doing("look at", path)? else { return Ok(None) };
        Ok(Some((stat.mode & 0o777, stat.uid, stat.gid, store.medium.acl(path).doing("look at", path)?)))
    };
    let Some(head_has) = of(&head)? else { return Ok(()) };
    let dir = store.file_dir(id);
    let mut parts = vec![(Part::Ctl, store.part(id, "ctl")), (Part::Dir, dir.clone())];
    for (target, plane) in objects_in(&layout.regions) {
        if check.sound.get(target as usize).copied().unwrap_or(false) {
            parts.push((Part::Object, store.object(target, id, plane)?));
        }
    }
    for (part, path) in parts {
        let (mode, uid, gid, mut acl) = head_has.clone();
        if !part.adapt_acl(mode, &mut acl) {
            acl.clear();
        }
        // The directory's group matters where it may do something there.
        let is_any_group = part == Part::Dir && part.mode(mode) & 0o040 == 0;
        if of(&path)?.is_none_or(|found| found == (part.mode(mode), uid, if is_any_group { found.2 } else { gid }, acl)) {
            continue;
        }
        if check.repair {
            let follow = if part == Part::Dir { store.medium.dir_follows_head(&dir) } else { store.medium.follow_head(&head, &path, part) };
            follow.doing("give the owner of head to", &path)?;
        }
        let text = format!("{} has another owner, mode or ACL than {}", path.display(), called(store, id));
        check.found(Severity::Warning, "attributes", id, text, &format!("{} takes them from head", check.store.repair_command()), check.repair);
    }
    Ok(())
}

/// An object of a plane that no region of the layout uses: what a kill left of a move. No byte of the file lies in it.
fn check_unused(check: &mut Check<'_>, id: u64, object: ObjectId) -> Result<()> {
    let path = check.store.object(object.0, id, object.1)?;
    let Some(facts) = objects::look(check.store, id, object)? else { return Ok(()) };
    if check.repair {
        remove_objects(check.store, id, &BTreeSet::from([object]))?;
    }
    let text = format!("{} ({} bytes) is used by no region of {}", path.display(), facts.used_bytes, called(check.store, id));
    let severity = if check.idle { Severity::Warning } else { Severity::Info };
    check.found(severity, "object-unused", id, text, &format!("{}, or the next apply, removes it", check.store.repair_command()), check.repair);
    Ok(())
}

/// Every allocated range of an object must lie in a live slice, below the size.
fn check_object(check: &mut Check<'_>, id: u64, view: &View<'_>, (target, plane): ObjectId, size: u64) -> Result<()> {
    let store = check.store;
    if !objects::is_there(store, id, (target, plane))? {
        return Ok(());
    }
    let path = store.object(target, id, plane)?;
    let object = objects::open(store, id, (target, plane), if check.repair { Opening::BOTH } else { Opening::READ })?;
    let end = view.end_of(target, plane, size);
    let (mut foreign, mut beyond, mut live) = (Vec::new(), Vec::new(), 0);
    let mut at = 0;
    while let Some((from, to)) = object.next_data(at).doing("read", &path)? {
        at = to;
        stretches(view.home(), (target, plane), from, to, |s| {
            let moving = view.pending().inverse(target, plane, s.from).is_some() || view.retired().inverse(target, plane, s.from).is_some();
            if s.owner.is_none() && !moving {
                foreign.push((s.from, s.to));
            } else if s.owner.is_some() && s.to > end {
                beyond.push((s.from.max(end), s.to));
                live += end.saturating_sub(s.from);
            } else {
                live += s.to - s.from;
            }
            Ok(())
        })
        .doing("read", &path)?;
    }
    check.report.data_bytes += live;
    let bytes = take_away(store, &path, &object, foreign, check.repair)?;
    if bytes > 0 {
        let text = format!("{}: {bytes} bytes lie outside every slice of {}", path.display(), called(store, id));
        check.found(Severity::Error, "foreign-bytes", id, text, &format!("{} punches them", check.store.repair_command()), check.repair);
    }
    // In a file that is being written they may be a living writer's.
    let len = object.len().doing("look at", &path)?;
    let is_long = view.logical_end(target, plane, len) > size;
    if !check.idle || !is_long && beyond.is_empty() {
        return Ok(());
    }
    let bytes = take_away(store, &path, &object, beyond, check.repair)?;
    if check.repair && is_long {
        // A power cut's recovery takes the longest object for the file's end. What a move has in the object stays.
        object.set_len(view.end_with_copies(target, plane, size)).doing("cut", &path)?;
        objects::sync(store, &path, &object, FsyncPoint::PunchData)?;
    }
    if bytes > 0 || is_long {
        let text = format!(
            "{}: it reaches past the end of {}, and {bytes} bytes there are not zero (a program was killed)",
            path.display(),
            called(store, id)
        );
        let cure = format!("whoever next extends or flushes the file takes them away; {} does it now", check.store.repair_command());
        check.found(Severity::Warning, "beyond-size", id, text, &cure, check.repair);
    }
    Ok(())
}

/// How many bytes of some ranges are in parts that hold any; with `mend` they become holes.
fn take_away(store: &Store<'_>, path: &Path, object: &dyn Object, ranges: Vec<(u64, u64)>, mend: bool) -> Result<u64> {
    let mut bytes = 0;
    for (from, to) in ranges {
        if holds_bytes(object, from, to).doing("read", path)? {
            bytes += to - from;
            if mend {
                object.punch(from, to - from).doing("punch", path)?;
            }
        }
    }
    if bytes > 0 && mend {
        objects::sync(store, path, object, FsyncPoint::PunchData)?;
    }
    Ok(bytes)
}

/// Whether a range holds anything but zeros: allocation alone may be the file system's coarser block.
fn holds_bytes(object: &dyn Object, from: u64, to: u64) -> std::result::Result<bool, rustix::io::Errno> {
    let mut at = from;
    let mut buf = vec![0u8; LOOK_BYTES.min(to - from) as usize];
    while at < to {
        let want = LOOK_BYTES.min(to - at) as usize;
        let Some(part) = buf.get_mut(..want) else { break };
        part.fill(0);
        let got = read_at(object, part, at)?;
        if part.iter().any(|b| *b != 0) {
            return Ok(true);
        }
        if got == 0 {
            break;
        }
        at += got as u64;
    }
    Ok(false)
}
