//! Who uses a store: the locks of verbs and movers, the slots of programs, other machines.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stripewise_target::within::TEXT_BYTES_MAX;

use super::error::{Context, Result, StoreError};
use super::foreground::RunDir;
use super::ids::{path_of, quoted};
use super::medium::{Kind, Lock, Open, read_small};
use super::refused::Refused;
use super::store::Store;
use crate::locks::How;
use crate::run::{MOVER_LOCK, SESSION_LOCK, boot_of_slot};
use crate::slot::{MachineId, SLOT_HEADER_USED_BYTES, SlotHeader, machine_id};

/// A slot of another machine that was written to this recently counts as in use: the age beyond which a program that
/// died with its machine no longer blocks the store.
const OTHER_MACHINE_FRESH_S: i64 = 24 * 3600;
/// Digits and hyphens of a boot's id.
const BOOT_ID_BYTES: usize = 36;

/// A living program that uses the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Program {
    /// Its process.
    pub pid: u32,
    /// Whether it began before store.bin was last changed, and does not know of it.
    pub is_stale: bool,
    /// Targets it knows.
    pub targets: u32,
}

/// What a mover holds as long as it moves.
pub struct MoverLock {
    _mover: Box<dyn Lock>,
    _session: Option<Box<dyn Lock>>,
}

impl Store<'_> {
    /// `run/`, held open, for one who looks at the programs' slots; `None` on a medium that has none.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn run(&self) -> Result<Option<RunDir>> {
        let run = self.run_dir();
        let boot = self.boot_id()?;
        Ok(self.medium.run_fd(&run).doing("open", &run)?.map(|dir| RunDir { dir, boot }))
    }

    /// Takes the store for one offline change. Programs that use it hold the same lock shared; it dies with them.
    ///
    /// # Errors
    /// `InUse` when programs, or another machine, are using the store.
    pub fn lock_exclusive(&self) -> Result<Box<dyn Lock>> {
        let path = self.common(SESSION_LOCK);
        let locked = match self.common_lock(SESSION_LOCK, |path| self.medium.try_presence(path, How::Exclusive)) {
            Err(e) if matches!(e.kind(), std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem) => {
                return Err(StoreError::InUse(format!("only its owner and root may have the store {} for themselves: {e}", self.root.display())));
            }
            locked => locked.doing("lock", &path)?,
        };
        let Some(lock) = locked else {
            let users = self.live_processes()?;
            let who = match users {
                0 => "another stripewise command is changing".to_string(),
                1 => "1 process is using".to_string(),
                n => format!("{n} processes are using"),
            };
            return Err(StoreError::InUse(format!("{who} the store {}; wait until it is done, or stop it", self.root.display())));
        };
        self.check_other_machines(true)?;
        renew(self);
        Ok(lock)
    }

    /// Keeps offline changes away while one file is worked on, as a program that uses the store does. `None` where the lock cannot
    /// even be opened (a store that is only readable): then nobody changes it either.
    ///
    /// # Errors
    /// `InUse` when an offline change is under way.
    pub fn lock_shared(&self) -> Result<Option<Box<dyn Lock>>> {
        let path = self.common(SESSION_LOCK);
        match self.common_lock(SESSION_LOCK, |path| self.medium.try_presence(path, How::Shared)) {
            Ok(Some(lock)) => Ok(Some(lock)),
            Ok(None) => {
                Err(StoreError::InUse(format!("another stripewise command is changing the store {}; wait until it is done", self.root.display())))
            }
            Err(e) if matches!(e.kind(), std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem) => Ok(None),
            Err(e) => Err(StoreError::io("lock", &path, e)),
        }
    }

    /// Takes the store for one mover, beside programs that use it.
    ///
    /// # Errors
    /// `InUse` with the other mover's process, or when an offline change is under way.
    pub fn lock_mover(&self) -> Result<MoverLock> {
        let path = self.common(MOVER_LOCK);
        let Some(lock) = self.common_lock(MOVER_LOCK, |path| self.medium.try_lock(path, true)).doing("lock", &path)? else {
            let pids = self.medium.lock_holders(&path).unwrap_or_default();
            let who = pids.first().map_or_else(|| "another process".to_string(), |pid| format!("process {pid}"));
            let root = self.root.display();
            return Err(StoreError::InUse(format!(
                "{who} is moving files of the store {root}; wait until it is done, or stop it: stripewise mover stop {}",
                quoted(&self.root)
            )));
        };
        let session = self.lock_shared()?;
        self.check_other_machines(true)?;
        renew(self);
        Ok(MoverLock { _mover: lock, _session: session })
    }

    /// Waits for the lock of a file that appends, cuts and changes of rights take.
    ///
    /// # Errors
    /// `Io`, of kind `TimedOut` when somebody else keeps it.
    pub fn lock_dir(&self, id: u64) -> Result<Box<dyn Lock>> {
        let dir = self.file_dir(id);
        self.medium.lock_dir(&dir).doing("lock", &dir)
    }

    /// Takes a file for itself: no program has it open, and those that open it meanwhile wait.
    ///
    /// # Errors
    /// `InUse` with the processes that have it open.
    pub fn lock_file(&self, id: u64, name: &Path) -> Result<Box<dyn Lock>> {
        let ctl = self.part(id, "ctl");
        match self.medium.try_presence(&ctl, How::Exclusive).doing("lock", &ctl)? {
            Some(lock) => Ok(lock),
            None => {
                let pids = self.medium.lock_holders(&ctl).unwrap_or_default();
                let who = match pids.as_slice() {
                    [] => "a process that this system does not name has it open".to_string(),
                    [pid] => format!("process {pid} has it open"),
                    _ => format!("processes {} have it open", pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
                };
                Err(StoreError::InUse(format!("{}: {who}; wait until it is closed", name.display())))
            }
        }
    }

    /// Living processes that have the store open on this machine.
    ///
    /// # Errors
    /// Those of reading the run directory.
    pub fn live_processes(&self) -> Result<usize> {
        let boot = self.boot_id()?;
        let mut live = 0;
        for (_, slot) in self.slots()?.into_iter().filter(|(of, _)| *of == boot) {
            if self.is_held(&slot)? {
                live += 1;
            }
        }
        Ok(live)
    }

    /// The living programs, by what their slots say.
    ///
    /// # Errors
    /// Those of reading the run directory.
    pub fn programs(&self) -> Result<Vec<Program>> {
        let boot = self.boot_id()?;
        let mut found = Vec::new();
        for (_, slot) in self.slots()?.into_iter().filter(|(of, _)| *of == boot) {
            if self.is_held(&slot)?
                && let Some(header) = self.slot_header(&slot)?
            {
                found.push(Program { pid: header.pid, is_stale: header.config != self.config, targets: header.targets });
            }
        }
        Ok(found)
    }

    /// Whether the process of a slot lives. One that is gone meanwhile, or that is no slot, is nobody's.
    fn is_held(&self, slot: &Path) -> Result<bool> {
        match self.medium.try_lock(slot, true) {
            Ok(lock) => Ok(lock.is_none()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound || Refused::of(&e).is_some() => Ok(false),
            Err(e) => Err(StoreError::io("look at", slot, e)),
        }
    }

    fn slot_header(&self, slot: &Path) -> Result<Option<SlotHeader>> {
        let mut bytes = [0u8; SLOT_HEADER_USED_BYTES];
        let read = self.medium.open(slot, Open::Read).and_then(|file| file.read_at(&mut bytes, 0));
        match read {
            Ok(_) => Ok(SlotHeader::parse(&bytes)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound || Refused::of(&e).is_some() => Ok(None),
            Err(e) => Err(StoreError::io("read", slot, e)),
        }
    }

    /// The slots in `run/`, each with its boot.
    ///
    /// # Errors
    /// Those of reading the run directory.
    pub fn slots(&self) -> Result<Vec<(String, PathBuf)>> {
        let run = self.run_dir();
        let names = self.medium.list(&run).doing("list", &run)?;
        let of = |name: &OsStr| boot_of_slot(name.as_bytes()).map(|boot| String::from_utf8_lossy(boot).into_owned());
        Ok(names.iter().filter_map(|name| Some((of(name)?, run.join(name)))).collect())
    }

    /// Refuses a store that another machine uses: flock does not reach there, so a slot of the last 24 hours whose header names another machine counts
    /// as in use. With `clean`, slots of this machine's earlier boots are removed, and what earlier versions left of them.
    ///
    /// # Errors
    /// `InUse` with the machine's id.
    pub fn check_other_machines(&self, clean: bool) -> Result<()> {
        let boot = self.boot_id()?;
        let machine = machine_id(self.medium.machine_id().doing("read", Path::new("/etc/machine-id"))?.as_bytes());
        for (_, slot) in self.slots()?.into_iter().filter(|(of, _)| *of != boot) {
            let Some(stat) = self.medium.stat(&slot).doing("look at", &slot)? else { continue };
            let theirs = self.slot_header(&slot)?.map(|header| header.machine).unwrap_or_default();
            let is_fresh = self.medium.now_s() - stat.mtime_s < OTHER_MACHINE_FRESH_S;
            // A machine without an id leaves none; then nothing can be told, and the lock alone decides.
            if theirs != MachineId::default() && theirs != machine && is_fresh {
                return Err(self.used_elsewhere(&String::from_utf8_lossy(&theirs), &slot));
            }
            if clean {
                // Others' in a shared store are theirs to remove, or the owner's.
                match self.medium.unlink(&slot) {
                    Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied) => {}
                    gone => gone.doing("remove", &slot)?,
                }
            }
        }
        old_boots(self, clean)
    }

    /// The error of a store that another machine uses.
    fn used_elsewhere(&self, machine: &str, slot: &Path) -> StoreError {
        StoreError::InUse(format!(
            "the store {} is in use by machine {machine}: {} is less than 24 hours old; one machine writes a store at a time, stop its programs there or, \
             if that machine is gone, remove that file",
            self.root.display(),
            slot.display()
        ))
    }

    /// A lock that is made with the store; an older store gets it now.
    fn common_lock<T>(&self, name: &CStr, lock: impl Fn(&Path) -> std::io::Result<T>) -> std::io::Result<T> {
        let path = self.common(name);
        match lock(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                self.medium.make_common(&path)?;
                lock(&path)
            }
            locked => locked,
        }
    }

    fn common(&self, name: &CStr) -> PathBuf {
        self.run_dir().join(path_of(name.to_bytes()))
    }
}

/// Looks after `run/<boot-id>/` of earlier versions: one of another machine that was used in the last 24 hours keeps the store closed, others are
/// removed with `clean`, those of this boot when they are empty.
///
/// # Errors
/// `InUse` as described, `Io`.
fn old_boots(store: &Store<'_>, clean: bool) -> Result<()> {
    let (run, medium) = (store.run_dir(), store.medium);
    let boot = store.boot_id()?;
    let machine = medium.machine_id().doing("read", Path::new("/etc/machine-id"))?;
    for name in medium.list(&run).doing("list", &run)? {
        let dir = run.join(&name);
        let is_boot = name.len() == BOOT_ID_BYTES && name.as_encoded_bytes().iter().all(|c| c.is_ascii_hexdigit() || *c == b'-');
        if !is_boot || medium.stat(&dir).doing("look at", &dir)?.is_none_or(|s| s.kind != Kind::Dir) {
            continue;
        }
        let parts = medium.list(&dir).doing("list", &dir)?;
        let host = read_small(medium, &dir.join("host"), TEXT_BYTES_MAX).map(|b| String::from_utf8_lossy(&b).trim().to_string()).unwrap_or_default();
        if !host.is_empty() && host != machine {
            for slot in parts.iter().map(|n| dir.join(n)).filter(|p| p.extension().is_some_and(|e| e == "slot")) {
                let stat = medium.stat(&slot).doing("look at", &slot)?;
                if stat.is_some_and(|s| medium.now_s() - s.mtime_s < OTHER_MACHINE_FRESH_S) {
                    return Err(store.used_elsewhere(&host, &slot));
                }
            }
        }
        if clean && (parts.is_empty() || name.as_encoded_bytes() != boot.as_bytes()) {
            // Somebody else's may be his to remove, or the store's owner's.
            let _ = parts.iter().map(|part| dir.join(part)).try_for_each(|part| medium.unlink(&part)).and_then(|()| medium.rmdir(&dir));
        }
    }
    Ok(())
}

/// Makes what is common in `run/` where an older store lacks it, and lets all users of a shared one read what they have to, as far as we may.
fn renew(store: &Store<'_>) {
    let medium = store.medium;
    // Programs get on without it for now; what is wrong with it the check names.
    let _ = medium.devices(&store.run_dir(), store.targets.len(), true);
    let is_shared = matches!(medium.stat(&store.run_dir()), Ok(Some(run)) if run.mode & 0o002 != 0);
    for target in store.targets.iter().filter(|_| is_shared) {
        let path = target.path.join(stripewise_target::identity::IDENTITY_FILE);
        if matches!(medium.stat(&path), Ok(Some(s)) if s.mode & 0o004 == 0) {
            let _ = medium.change_mode(&path, 0, 0o444);
        }
    }
}
