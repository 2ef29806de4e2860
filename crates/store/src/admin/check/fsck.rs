//! The check of a whole store: every byte has one home, no slices overlap, no object is missing or orphaned, capacities hold.
//! With repair it mends what can be mended without losing a byte: interrupted moves, leaked slices, control words, leftovers.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;

use stripewise_target::interface::Target;
use stripewise_target::text::parse_id;

use super::file::check_file;
use super::findings::{Finding, Options, Report, Severity};
use super::owners::{check_common, check_leftovers};
use super::state::Check;
use crate::admin::capacity::used_bytes;
use crate::admin::error::{Context, Result, StoreError};
use crate::admin::ids::{id_text, quoted};
use crate::admin::metadata::container::copies_dir;
use crate::admin::metadata::link::{called, word};
use crate::admin::objects;
use crate::admin::refused::Refused;
use crate::admin::store::Store;

/// Checks a store.
///
/// # Errors
/// `InUse` when it is to be repaired while programs use it, and what keeps the store from being opened at all.
pub fn fsck(store: &Store<'_>, options: Options) -> Result<Report> {
    let mut report = Report::default();
    check_common(store, options.repair)?.into_iter().for_each(|finding| report.add(finding));
    let lock = match store.lock_exclusive() {
        Ok(lock) => Some(lock),
        Err(e @ StoreError::InUse(_)) if !options.repair => {
            let cure = "findings about files that are being written may be passing; check again when the store is idle";
            report.add(Finding::new(Severity::Info, "in-use", e.to_string(), cure));
            None
        }
        // The check above has named it.
        Err(StoreError::Io { source, .. }) if Refused::of(&source).is_some() => None,
        Err(e) => return Err(e),
    };
    let sound = check_targets(store, &mut report);
    let mut check = Check { store, repair: options.repair && lock.is_some(), idle: lock.is_some(), sound, report, links: BTreeMap::new() };
    let ids = store.ids()?;
    for id in &ids {
        store.go_on()?;
        check.report.files += 1;
        let checked = check_file(&mut check, *id);
        if let Err(StoreError::Io { source, .. }) = &checked
            && source.kind() == std::io::ErrorKind::PermissionDenied
            && Refused::of(source).is_none()
        {
            let text = format!("{} was not checked: this user may not look at all of it", called(store, *id));
            let finding = Finding::new(Severity::Error, "not-permitted", text, "check the store as root");
            check.report.add(finding.of_file(*id).at(&store.file_dir(*id)));
        } else if let Err(e) = checked {
            let name = super::super::info::link_path(store, *id).map(|path| format!("{}: ", path.display())).unwrap_or_default();
            let rm = word(store, *id);
            let cure = format!(
                "restore {} from a copy of the store, or give the file up: rm {rm}, then 'stripewise store gc {1} --purge --older-than 0s' frees it, \
                 and all else that 'stripewise store gc {1}' lists",
                store.file_dir(*id).display(),
                quoted(&store.root)
            );
            let said = e.to_string();
            let text = format!("{name}{}", said.strip_suffix("; restore it").unwrap_or(&said));
            let finding = Finding::new(Severity::Error, code_of(&e), text, &cure);
            check.report.add(finding.of_file(*id).at(&store.file_dir(*id)));
        }
    }
    let trash: BTreeSet<u64> = store.ids_in(&store.trash_dir())?.into_iter().collect();
    for id in &trash {
        let finding = Finding::new(
            Severity::Info,
            "in-trash",
            format!("{} was unlinked and waits in the trash", id_text(*id)),
            "'stripewise store gc' frees it",
        );
        check.report.add(finding.of_file(*id));
    }
    check_names(&mut check)?;
    let known: BTreeSet<u64> = ids.into_iter().chain(trash).collect();
    check_orphans(&mut check, &known, options.purge)?;
    check_capacities(&mut check)?;
    let dirs: Vec<_> =
        [store.root.clone(), store.run_dir(), copies_dir(store)].into_iter().chain(store.targets.iter().map(|t| t.path.clone())).collect();
    check_leftovers(&mut check, &dirs)?;
    let mut report = check.report;
    report.sum_up();
    Ok(report)
}

fn code_of(e: &StoreError) -> &'static str {
    match e {
        StoreError::Damaged(_) => "layout-damaged",
        StoreError::Newer(_) => "layout-newer",
        StoreError::NotFound(_) => "part-missing",
        StoreError::Io { source, .. } if Refused::of(source).is_some() => "part-refused",
        _ => "unreadable",
    }
}

/// A target whose directory is not the right one is reported once, and its objects are not looked at.
fn check_targets(store: &Store<'_>, report: &mut Report) -> Vec<bool> {
    let mut sound = Vec::new();
    for (index, target) in store.targets.iter().enumerate() {
        let why = store.away(index);
        sound.push(why.is_none());
        if let Some(why) = why {
            let finding = Finding::new(Severity::Error, "target-wrong", why, "its objects were not checked; check again then");
            report.add(finding.on(&target.name).at(&target.path));
        }
    }
    sound
}

/// Names in `files/` that are no ids belong to nobody here; they are only reported.
fn check_names(check: &mut Check<'_>) -> Result<()> {
    let dir = check.store.files_dir();
    for name in check.store.medium.list(&dir).doing("list", &dir)? {
        if parse_id(name.as_bytes()).is_none() {
            let path = dir.join(&name);
            let finding = Finding::new(Severity::Warning, "stranger", format!("{} is not a file of the store", path.display()), "move it elsewhere");
            check.report.add(finding.at(&path));
        }
    }
    Ok(())
}

fn check_orphans(check: &mut Check<'_>, known: &BTreeSet<u64>, purge: bool) -> Result<()> {
    for (index, target) in check.store.targets.iter().enumerate() {
        if !check.sound.get(index).copied().unwrap_or(false) {
            continue;
        }
        for name in objects::list(check.store, index as u32)? {
            let id = name.file;
            check.report.objects += 1;
            if known.contains(&id) {
                continue;
            }
            let path = target.path.join(std::ffi::OsStr::from_bytes(name.text().as_bytes()));
            let place = objects::target(check.store, index as u32)?;
            let allocated = place.look(name).doing("look at", &path)?.map_or(0, |facts| facts.used_bytes);
            // An empty one is what a killed creation leaves; one with data might be all that is left of a file.
            let mend = check.repair && (purge || allocated == 0);
            if mend {
                objects::remove(check.store, id, (index as u32, name.role), &[])?;
            }
            let finding = Finding::new(
                Severity::Warning,
                "object-orphaned",
                format!("{} ({allocated} bytes) belongs to no file", path.display()),
                &format!("look at it; {} removes empty ones, with --purge also those with data", check.store.repair_command()),
            );
            check.report.add(finding.of_file(id).on(&target.name).at(&path).mended(mend));
        }
    }
    Ok(())
}

fn check_capacities(check: &mut Check<'_>) -> Result<()> {
    if check.sound.contains(&false) {
        return Ok(());
    }
    for (target, used) in check.store.targets.iter().zip(used_bytes(check.store)?) {
        if target.capacity_bytes > 0 && used > target.capacity_bytes {
            let finding = Finding::new(
                Severity::Warning,
                "over-capacity",
                format!("target {} holds {used} bytes, its capacity is {}", target.name, target.capacity_bytes),
                "apply a layout that puts less on it, or raise capacity_bytes in store.toml",
            );
            check.report.add(finding.on(&target.name));
        }
    }
    Ok(())
}
