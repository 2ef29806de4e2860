//! An opened store: its configuration in owned form, the paths of its parts, and who else is using it.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stripewise_layout::{Layout, LayoutError};

use super::error::{Context, Result, StoreError};
use super::foreground::RunDir;
use super::medium::{Lock, Medium, Root, read_small};
use crate::bin::{BinError, Class, Kind as TargetKind, StoreView};
use crate::devices::DeviceModel;
use crate::locks::How;
use crate::names::{self, parse_id};
use crate::run::{MOVER_LOCK, SESSION_LOCK, boot_of_slot};
use crate::slot::{MachineId, SLOT_HEADER_USED_BYTES, SlotHeader, machine_id};
use crate::within::{LAYOUT_BYTES_MAX, STORE_BIN_BYTES_MAX};

/// A slot of another machine that was written to this recently counts as in use: the age beyond which a program that
/// died with its machine no longer blocks the store.
pub(super) const OTHER_MACHINE_FRESH_S: i64 = 24 * 3600;

/// One target.
#[derive(Clone, Debug)]
pub struct TargetInfo {
    /// Name.
    pub name: String,
    /// Directory, absolute.
    pub path: PathBuf,
    /// Device class.
    pub class: Class,
    /// What serves it.
    pub kind: TargetKind,
    /// Bytes it may hold; 0 = what its file system has.
    pub capacity_bytes: u64,
    /// Service times, of use for emulated targets.
    pub model: DeviceModel,
}

/// One rule for new files.
#[derive(Clone, Debug)]
pub struct RuleInfo {
    /// Shell pattern over the absolute path.
    pub glob: Vec<u8>,
    /// Whether matching files go into the store.
    pub manage: bool,
    /// Template, empty = default.
    pub layout: Vec<u8>,
}

/// An opened store.
pub struct Store<'m> {
    /// What it lies on.
    pub medium: &'m dyn Medium,
    /// Its directory, absolute.
    pub root: PathBuf,
    /// Its own id.
    pub uuid: [u8; 16],
    /// SHA-256 of the store.toml it was compiled from.
    pub toml_sha256: [u8; 32],
    /// Default size of a region, bytes.
    pub region_bytes: u64,
    /// Template of new files (layout file with id 0).
    pub default_layout: Vec<u8>,
    /// Targets in the order of their indices.
    pub targets: Vec<TargetInfo>,
    /// Rules, first match counts.
    pub rules: Vec<RuleInfo>,
    /// Checksum of store.bin: tells one configuration from another.
    pub config: u32,
}

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

/// Reads bytes of a path.
pub fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// A file id as it stands in names.
pub fn id_text(id: u64) -> String {
    format!("{id:016x}")
}

/// Reads a file id as it stands in names.
///
/// # Errors
/// `Invalid` when it is not 16 lower-case hexadecimal digits.
pub fn id_from(text: &str) -> Result<u64> {
    parse_id(text.as_bytes())
        .ok_or_else(|| StoreError::Invalid(format!("file id {text:?} is not 16 lower-case hexadecimal digits; take it from `stripewise store ls`")))
}

fn bin_error(path: &Path, e: BinError) -> StoreError {
    let text = format!("{}: {e}", path.display());
    match e {
        BinError::Newer(_) => StoreError::Newer(text),
        _ => StoreError::Damaged(text),
    }
}

/// An error of a layout file, with its name.
pub fn layout_error(path: &Path, e: LayoutError) -> StoreError {
    let text = format!("{}: {e}", path.display());
    match e {
        LayoutError::Newer { .. } => StoreError::Newer(text),
        _ => StoreError::Damaged(text),
    }
}

impl<'m> Store<'m> {
    /// Opens the store at an absolute path.
    ///
    /// # Errors
    /// `NotFound` when there is none, `Newer` and `Damaged` for what store.bin says.
    pub fn open(medium: &'m dyn Medium, root: &Path) -> Result<Self> {
        let path = root.join("store.bin");
        match medium.hold(root, Root::Store) {
            // Said below, in the words of a store that is not there.
            Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {}
            held => held.doing("open", root)?,
        }
        if medium.stat(&path).doing("look at", &path)?.is_none() {
            return Err(StoreError::NotFound(format!(
                "{} is no store: it has no store.bin; make one with `stripewise store create {}`",
                root.display(),
                root.display()
            )));
        }
        let bytes = read_small(medium, &path, STORE_BIN_BYTES_MAX).doing("read", &path)?;
        let view = StoreView::parse(&bytes).map_err(|e| bin_error(&path, e))?;
        let targets: Vec<TargetInfo> = (0..view.target_count())
            .filter_map(|i| view.target(i))
            .map(|t| TargetInfo {
                name: t.name.to_string(),
                path: path_of(t.path),
                class: t.class,
                kind: t.kind,
                capacity_bytes: t.capacity_bytes,
                model: t.model,
            })
            .collect();
        for (index, target) in targets.iter().enumerate() {
            // One that is away, or another's, is an error of what is done there, and the check says why.
            let held = medium.hold(&target.path, Root::Target { store: root });
            if held.is_ok() && super::identity::mismatch(medium, &target.path, &view.uuid(), index).is_some() {
                medium.close_target(&target.path);
            }
        }
        let rules = (0..view.rule_count())
            .filter_map(|i| view.rule(i))
            .map(|r| RuleInfo { glob: r.glob.to_vec(), manage: r.action == crate::bin::Action::Manage, layout: r.layout.to_vec() })
            .collect();
        Ok(Self {
            medium,
            root: root.to_path_buf(),
            uuid: view.uuid(),
            toml_sha256: view.toml_sha256(),
            region_bytes: view.region_bytes(),
            default_layout: view.default_layout().to_vec(),
            targets,
            rules,
            config: view.checksum(),
        })
    }

    /// `files/`.
    pub fn files_dir(&self) -> PathBuf {
        self.root.join("files")
    }

    /// `files/<id>`.
    pub fn file_dir(&self, id: u64) -> PathBuf {
        self.files_dir().join(id_text(id))
    }

    /// `files/<id>/<part>`.
    pub fn part(&self, id: u64, part: &str) -> PathBuf {
        self.file_dir(id).join(part)
    }

    /// `trash/`.
    pub fn trash_dir(&self) -> PathBuf {
        self.root.join("trash")
    }

    /// `run/`.
    pub fn run_dir(&self) -> PathBuf {
        self.root.join("run")
    }

    /// `run/`, held open, for one who looks at the programs' slots; `None` on a medium that has none.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn run(&self) -> Result<Option<RunDir>> {
        let run = self.run_dir();
        let boot = self.boot_id()?;
        Ok(self.medium.run_fd(&run).doing("open", &run)?.map(|dir| RunDir { dir, boot }))
    }

    /// This boot's id.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn boot_id(&self) -> Result<String> {
        self.medium.boot_id().doing("read", Path::new("/proc/sys/kernel/random/boot_id"))
    }

    /// The target of an index.
    ///
    /// # Errors
    /// `Damaged` when the store has fewer.
    pub fn target(&self, index: u32) -> Result<&TargetInfo> {
        self.targets.get(index as usize).ok_or_else(|| {
            StoreError::Damaged(format!(
                "{}: a layout names target {index} but store.bin has {}; give store.toml its [[target]] back",
                self.root.display(),
                self.targets.len()
            ))
        })
    }

    /// The object of a plane: `<target>/<id>.data` or `<target>/<id>.data1`.
    ///
    /// # Errors
    /// As [`Store::target`].
    pub fn object(&self, target: u32, id: u64, plane: u32) -> Result<PathBuf> {
        Ok(path_of(names::object(self.target(target)?.path.as_os_str().as_bytes(), id, plane).as_bytes()))
    }

    /// Ids under `files/`, in order; other names are not touched.
    ///
    /// # Errors
    /// Those of reading the directory.
    pub fn ids(&self) -> Result<Vec<u64>> {
        self.ids_in(&self.files_dir())
    }

    /// Ids under a directory of the store (`files/` or `trash/`).
    ///
    /// # Errors
    /// Those of reading the directory.
    pub fn ids_in(&self, dir: &Path) -> Result<Vec<u64>> {
        let names = self.medium.list(dir).doing("list", dir)?;
        Ok(names.iter().filter_map(|n| parse_id(n.as_bytes())).collect())
    }

    /// The layout of a file.
    ///
    /// # Errors
    /// `NotFound` when there is no such file, `Newer` or `Damaged`.
    pub fn layout(&self, id: u64) -> Result<Layout> {
        let path = self.part(id, "layout");
        if self.medium.stat(&path).doing("look at", &path)?.is_none() {
            return Err(StoreError::NotFound(format!(
                "{}: the store has no layout of file {}; see `stripewise store ls`, or run `stripewise store fsck`",
                path.display(),
                id_text(id)
            )));
        }
        let bytes = read_small(self.medium, &path, LAYOUT_BYTES_MAX).doing("read", &path)?;
        Layout::decode(&bytes).map_err(|e| layout_error(&path, e))
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
        super::leftovers::renew(self);
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
            return Err(StoreError::InUse(format!("{who} is moving files of the store {}; wait until it is done, or stop it", self.root.display())));
        };
        let session = self.lock_shared()?;
        self.check_other_machines(true)?;
        super::leftovers::renew(self);
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
            Err(e) if e.kind() == std::io::ErrorKind::NotFound || super::disk::Refused::of(&e).is_some() => Ok(false),
            Err(e) => Err(StoreError::io("look at", slot, e)),
        }
    }

    fn slot_header(&self, slot: &Path) -> Result<Option<SlotHeader>> {
        let mut bytes = [0u8; SLOT_HEADER_USED_BYTES];
        let read = self.medium.open(slot, super::medium::Open::Read).and_then(|file| file.read_at(&mut bytes, 0));
        match read {
            Ok(_) => Ok(SlotHeader::parse(&bytes)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound || super::disk::Refused::of(&e).is_some() => Ok(None),
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
        super::leftovers::old_boots(self, clean)
    }

    /// The error of a store that another machine uses.
    pub(super) fn used_elsewhere(&self, machine: &str, slot: &Path) -> StoreError {
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
