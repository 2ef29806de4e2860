//! An opened store: its configuration in owned form, and the paths of its parts.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stripewise_layout::{Layout, LayoutError};
use stripewise_target::kind::{Class, DeviceModel, Kind as TargetKind};
use stripewise_target::names::object_path;
use stripewise_target::text::parse_id;

use super::error::{Context, Result, StoreError};
use super::ids::{id_text, path_of, quoted};
use super::medium::{DevicesMap, Medium, Root, read_small};
use crate::bin::{BinError, StoreView};
use crate::bin::{LAYOUT_BYTES_MAX, STORE_BIN_BYTES_MAX};

/// One target.
#[derive(Clone, Debug)]
pub struct TargetInfo {
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
    /// Says whether to go on with what takes long; without one it does.
    pub asked: Option<&'m (dyn Fn() -> bool + Sync)>,
}

fn bin_error(root: &Path, path: &Path, e: BinError) -> StoreError {
    let text = format!("{}: {e}", path.display());
    match e {
        BinError::Newer(_) => StoreError::Newer(text),
        _ => StoreError::Damaged(format!("{text}; {} compiles it anew from store.toml", repair_command(root))),
    }
}

/// The command that mends the store at `root`, in quotes, as findings and errors name it.
fn repair_command(root: &Path) -> String {
    format!("'stripewise store fsck {} --repair'", quoted(root))
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
    /// Whoever copies, reads or looks at much asks this between two pieces, where an error leaves nothing half done.
    ///
    /// # Errors
    /// `Stopped` when somebody wants it to end.
    pub fn go_on(&self) -> Result<()> {
        match self.asked {
            Some(asked) if !asked() => Err(StoreError::Stopped("stopped; what was done so far stands, and what was half done was taken back".into())),
            _ => Ok(()),
        }
    }

    /// The command that mends this store, in quotes, as findings and errors name it.
    #[must_use]
    pub fn repair_command(&self) -> String {
        repair_command(&self.root)
    }

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
            let toml = root.join("store.toml");
            return Err(StoreError::NotFound(if medium.stat(&toml).doing("look at", &toml)?.is_some() {
                format!(
                    "{} has no store.bin: where it was lost, {} compiles it anew from store.toml; where making the store was interrupted, run the \
                     same command again",
                    root.display(),
                    repair_command(root)
                )
            } else {
                format!(
                    "{} is not a store: it has no store.bin; make one with 'stripewise store create {} --cluster CLUSTER'",
                    root.display(),
                    quoted(root)
                )
            }));
        }
        let bytes = read_small(medium, &path, STORE_BIN_BYTES_MAX).doing("read", &path)?;
        Self::compiled(medium, root, &bytes)
    }

    /// The store at an absolute path, as it is by a store.bin of these bytes.
    ///
    /// # Errors
    /// `Newer` and `Damaged` for what they say.
    pub(super) fn compiled(medium: &'m dyn Medium, root: &Path, bytes: &[u8]) -> Result<Self> {
        let view = StoreView::parse(bytes).map_err(|e| bin_error(root, &root.join("store.bin"), e))?;
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
            asked: None,
        })
    }

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

    pub fn trash_dir(&self) -> PathBuf {
        self.root.join("trash")
    }

    pub fn run_dir(&self) -> PathBuf {
        self.root.join("run")
    }

    /// The clocks of its devices, where moves and copies are counted; made where there are none yet and a target is emulated.
    ///
    /// # Errors
    /// `Io`.
    pub fn clocks(&self) -> Result<Option<Box<dyn DevicesMap>>> {
        let (run, is_emulated) = (self.run_dir(), self.targets.iter().any(|target| target.kind.is_emulated()));
        self.medium.devices(&run, self.targets.len(), is_emulated).doing("map the device clocks in", &run)
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

    /// That a target's directory is missing or not the one that it was, as a sentence with the cure; `None` when it is.
    pub fn away(&self, index: usize) -> Option<String> {
        let target = self.targets.get(index)?;
        let why = super::identity::mismatch(self.medium, &target.path, &self.uuid, index)?;
        Some(format!("target {} is away: {}", target.name, why.told(&self.root, &target.name)))
    }

    /// The object of a plane: `<target>/<id>.data` or `<target>/<id>.data1`.
    ///
    /// # Errors
    /// As [`Store::target`].
    pub fn object(&self, target: u32, id: u64, plane: u32) -> Result<PathBuf> {
        Ok(path_of(object_path(self.target(target)?.path.as_os_str().as_bytes(), id, plane).as_bytes()))
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
}
