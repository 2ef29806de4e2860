//! An opened store: its configuration in owned form, the paths of its parts, and who else is using it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stripewise_layout::{Layout, LayoutError};

use super::error::{Context, Result, StoreError};
use super::medium::{Kind, Lock, Medium, read_small};
use crate::bin::{BinError, Class, Kind as TargetKind, StoreView};
use crate::devices::DeviceModel;
use crate::names::{self, parse_id};

/// Longest store.bin that is read: 256 targets and 1,024 rules with layouts of their own fit many times.
const STORE_BIN_LIMIT_BYTES: u64 = 1 << 30;
/// Longest layout file that is read: the most regions and stripes of the format stay below 200 MiB.
const LAYOUT_LIMIT_BYTES: u64 = 256 << 20;
/// A slot of another machine that was written to this recently counts as in use: the age beyond which a program that
/// died with its machine no longer blocks the store.
const OTHER_MACHINE_FRESH_S: i64 = 24 * 3600;

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
        if medium.stat(&path).doing("look at", &path)?.is_none() {
            return Err(StoreError::NotFound(format!(
                "{} is no store: it has no store.bin; make one with `stripewise store create {}`",
                root.display(),
                root.display()
            )));
        }
        let bytes = read_small(medium, &path, STORE_BIN_LIMIT_BYTES).doing("read", &path)?;
        let view = StoreView::parse(&bytes).map_err(|e| bin_error(&path, e))?;
        let targets = (0..view.target_count())
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

    /// `run/<boot-id>` of this boot.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn run_dir(&self) -> Result<PathBuf> {
        Ok(self.root.join("run").join(self.boot_id()?))
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
        let bytes = read_small(self.medium, &path, LAYOUT_LIMIT_BYTES).doing("read", &path)?;
        Layout::decode(&bytes).map_err(|e| layout_error(&path, e))
    }

    /// Takes the store for one offline change. Programs that use it hold the same lock shared; it dies with them.
    ///
    /// # Errors
    /// `InUse` when programs, or another machine, are using the store.
    pub fn lock_exclusive(&self) -> Result<Box<dyn Lock>> {
        let path = self.root.join("run").join("session.lock");
        let Some(lock) = self.medium.try_lock(&path, true).doing("lock", &path)? else {
            let users = self.live_processes()?;
            let who = match users {
                0 => "another stripewise command is changing".to_string(),
                1 => "1 process is using".to_string(),
                n => format!("{n} processes are using"),
            };
            return Err(StoreError::InUse(format!("{who} the store {}; wait until it is done, or stop it", self.root.display())));
        };
        self.check_other_machines(true)?;
        Ok(lock)
    }

    /// Keeps offline changes away while one file is worked on, as a program that uses the store does. `None` where the lock cannot
    /// even be opened (a store that is only readable): then nobody changes it either.
    ///
    /// # Errors
    /// `InUse` when an offline change is under way.
    pub fn lock_shared(&self) -> Result<Option<Box<dyn Lock>>> {
        let path = self.root.join("run").join("session.lock");
        match self.medium.try_lock(&path, false) {
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
        let path = self.root.join("run").join("mover.lock");
        let Some(lock) = self.medium.try_lock(&path, true).doing("lock", &path)? else {
            let pids = self.medium.lock_holders(&path).unwrap_or_default();
            let who = pids.first().map_or_else(|| "another process".to_string(), |pid| format!("process {pid}"));
            return Err(StoreError::InUse(format!("{who} is moving files of the store {}; wait until it is done, or stop it", self.root.display())));
        };
        let session = self.lock_shared()?;
        self.check_other_machines(true)?;
        Ok(MoverLock { _mover: lock, _session: session })
    }

    /// Takes a file for itself: no program has it open, and those that open it meanwhile wait.
    ///
    /// # Errors
    /// `InUse` with the processes that have it open.
    pub fn lock_file(&self, id: u64, name: &Path) -> Result<Box<dyn Lock>> {
        let ctl = self.part(id, "ctl");
        match self.medium.try_lock(&ctl, true).doing("lock", &ctl)? {
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
        let dir = self.run_dir()?;
        let mut live = 0;
        for slot in self.slots(&dir)? {
            if self.medium.try_lock(&slot, true).doing("look at", &slot)?.is_none() {
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
        let dir = self.run_dir()?;
        let mut found = Vec::new();
        for slot in self.slots(&dir)? {
            if self.medium.try_lock(&slot, true).doing("look at", &slot)?.is_some() {
                continue;
            }
            let Ok(file) = self.medium.open(&slot, super::medium::Open::Read) else { continue };
            let mut head = [0u8; 20];
            if file.read_at(&mut head, 0).doing("read", &slot)? < head.len() {
                continue;
            }
            let word = |at: usize| head.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes);
            found.push(Program { pid: word(8), is_stale: word(12) != self.config, targets: word(16) });
        }
        Ok(found)
    }

    fn slots(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        if self.medium.stat(dir).doing("look at", dir)?.is_none_or(|s| s.kind != Kind::Dir) {
            return Ok(Vec::new());
        }
        let names = self.medium.list(dir).doing("list", dir)?;
        Ok(names.iter().map(|n| dir.join(n)).filter(|p| p.extension().is_some_and(|e| e == "slot")).collect())
    }

    /// Refuses a store that another machine uses: flock does not reach there, so a run directory of another host with a slot
    /// of the last 24 hours counts as in use. With `clean`, run directories of this machine's earlier boots are removed.
    ///
    /// # Errors
    /// `InUse` with the machine's name.
    pub fn check_other_machines(&self, clean: bool) -> Result<()> {
        let run = self.root.join("run");
        let boot = self.boot_id()?;
        let machine = self.medium.machine_id().doing("read", Path::new("/etc/machine-id"))?;
        for name in self.medium.list(&run).doing("list", &run)? {
            let dir = run.join(&name);
            if name.as_bytes() == boot.as_bytes() || self.medium.stat(&dir).doing("look at", &dir)?.is_none_or(|s| s.kind != Kind::Dir) {
                continue;
            }
            let host = read_small(self.medium, &dir.join("host"), 4096).map(|b| String::from_utf8_lossy(&b).trim().to_string()).unwrap_or_default();
            // A machine without an id writes none; then nothing can be told, and the lock alone decides.
            if !host.is_empty() && host != machine {
                let now = self.medium.now_s();
                for slot in self.slots(&dir)? {
                    let stat = self.medium.stat(&slot).doing("look at", &slot)?;
                    if stat.is_some_and(|s| now - s.mtime_s < OTHER_MACHINE_FRESH_S) {
                        return Err(StoreError::InUse(format!(
                            "the store {} is in use by machine {host}: {} is less than 24 hours old; one machine writes a store at a time, stop its programs there or, if that machine is gone, remove {}",
                            self.root.display(),
                            slot.display(),
                            dir.display()
                        )));
                    }
                }
            }
            if clean {
                for part in self.medium.list(&dir).doing("list", &dir)? {
                    let part = dir.join(part);
                    self.medium.unlink(&part).doing("remove", &part)?;
                }
                self.medium.rmdir(&dir).doing("remove", &dir)?;
            }
        }
        Ok(())
    }
}
