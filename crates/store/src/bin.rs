//! store.bin: a store's configuration compiled from store.toml, in the form that the preloaded library maps.
//! Drawn in docs/formats.md. [`StoreView`] checks everything once, so that later look-ups cannot go wrong.

use core::fmt;
use stripewise_target::kind::{Class, DeviceModel, Kind, MAX_TARGETS};

/// First bytes of store.bin.
pub const STORE_MAGIC: [u8; 8] = *b"SWSTORE1";
/// The version this code writes and the newest it reads.
pub const STORE_VERSION: u32 = 1;
/// Most rules of one store: each new file is matched against all of them.
pub const MAX_RULES: usize = 1024;
/// Longest store.bin that is read: 256 targets and 1,024 rules with layouts of their own fit many times.
pub const STORE_BIN_BYTES_MAX: u64 = 64 << 20;
/// Longest layout file that is read: the most regions and stripes of the format stay below 200 MiB.
pub const LAYOUT_BYTES_MAX: u64 = 256 << 20;

// Neither crate knows the other: here is where a layout that no store could hold would be let in.
const _: () = assert!(MAX_TARGETS == stripewise_layout::MAX_TARGETS as usize);

const HEADER: usize = 128;
const TARGET: usize = 128;
const RULE: usize = 32;

/// What a rule does with new files that match it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Action {
    /// They go into the store.
    Manage = 0,
    /// They stay plain files.
    Ignore = 1,
}

/// One target, borrowed from store.bin.
#[derive(Clone, Copy, Debug)]
pub struct TargetRecord<'a> {
    /// Name, UTF-8.
    pub name: &'a str,
    /// Absolute path of its directory.
    pub path: &'a [u8],
    /// Device class.
    pub class: Class,
    /// What serves it.
    pub kind: Kind,
    /// Bytes it may hold; 0 = what its file system has.
    pub capacity_bytes: u64,
    /// Service times, of use for emulated targets.
    pub model: DeviceModel,
}

/// One rule for new files, borrowed from store.bin.
#[derive(Clone, Copy, Debug)]
pub struct Rule<'a> {
    /// Shell pattern over the absolute path.
    pub glob: &'a [u8],
    /// What happens to files that match.
    pub action: Action,
    /// Layout template (a layout file with id 0); empty = the store's default.
    pub layout: &'a [u8],
}

/// Why a store.bin cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinError {
    /// Shorter than it says, or than its header.
    Truncated,
    /// Not a store.bin.
    Magic,
    /// Written by a newer Stripewise.
    Newer(u32),
    /// The checksum does not fit.
    Checksum,
    /// A field is out of range: its name.
    Field(&'static str),
}

impl fmt::Display for BinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("store.bin is cut short"),
            Self::Magic => f.write_str("store.bin does not begin with SWSTORE1"),
            Self::Newer(version) => {
                write!(f, "store.bin has version {version}, this Stripewise reads up to {STORE_VERSION}; use the newer Stripewise that wrote it")
            }
            Self::Checksum => f.write_str("store.bin's checksum does not fit"),
            Self::Field(name) => write!(f, "store.bin: {name} is out of range"),
        }
    }
}

/// A checked store.bin.
#[derive(Clone, Copy)]
pub struct StoreView<'a> {
    bytes: &'a [u8],
    targets: usize,
    rules: usize,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// The bytes that an (offset, length) pair at `at` names.
fn slice_at(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let offset = u32_at(bytes, at)? as usize;
    let len = u32_at(bytes, at + 4)? as usize;
    bytes.get(offset..offset.checked_add(len)?)
}

fn checksum(bytes: &[u8]) -> u32 {
    stripewise_checksum::crc32c_without(bytes, 12)
}

impl<'a> StoreView<'a> {
    /// The bytes that it is a view of.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Checks a whole store.bin.
    ///
    /// # Errors
    /// [`BinError`], never a panic, whatever the bytes are.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BinError> {
        if bytes.get(..8).is_none_or(|m| m != STORE_MAGIC) {
            return Err(if bytes.len() < 8 { BinError::Truncated } else { BinError::Magic });
        }
        let version = u32_at(bytes, 8).ok_or(BinError::Truncated)?;
        if version > STORE_VERSION {
            return Err(BinError::Newer(version));
        }
        if version == 0 {
            return Err(BinError::Field("version"));
        }
        let total = u64_at(bytes, 16).ok_or(BinError::Truncated)?;
        if bytes.len() < HEADER || total != bytes.len() as u64 {
            return Err(BinError::Truncated);
        }
        if u32_at(bytes, 12) != Some(checksum(bytes)) {
            return Err(BinError::Checksum);
        }
        let targets = u32_at(bytes, 72).unwrap_or(0) as usize;
        let rules = u32_at(bytes, 76).unwrap_or(0) as usize;
        if targets == 0 || targets > MAX_TARGETS {
            return Err(BinError::Field("the number of targets"));
        }
        if rules > MAX_RULES {
            return Err(BinError::Field("the number of rules"));
        }
        let view = Self { bytes, targets, rules };
        for i in 0..targets {
            view.target(i).ok_or(BinError::Field("a target"))?;
        }
        for i in 0..rules {
            let rule = view.rule(i).ok_or(BinError::Field("a rule"))?;
            view.check_layout(rule.layout, "a rule's layout")?;
        }
        if view.default_layout().is_empty() {
            return Err(BinError::Field("the default layout"));
        }
        view.check_layout(view.default_layout(), "the default layout")?;
        Ok(view)
    }

    fn check_layout(&self, layout: &[u8], name: &'static str) -> Result<(), BinError> {
        if layout.is_empty() {
            return Ok(());
        }
        match stripewise_layout::View::parse(layout) {
            Ok(view) if view.target_count() as usize <= self.targets => Ok(()),
            _ => Err(BinError::Field(name)),
        }
    }

    /// Number of targets.
    pub fn target_count(&self) -> usize {
        self.targets
    }

    /// Number of rules.
    pub fn rule_count(&self) -> usize {
        self.rules
    }

    /// Default size of a region, bytes.
    pub fn region_bytes(&self) -> u64 {
        u64_at(self.bytes, 80).unwrap_or(0)
    }

    /// SHA-256 of the store.toml that this was compiled from.
    pub fn toml_sha256(&self) -> [u8; 32] {
        self.bytes.get(24..56).and_then(|b| b.try_into().ok()).unwrap_or([0; 32])
    }

    /// The file's own checksum: tells one configuration from another.
    pub fn checksum(&self) -> u32 {
        u32_at(self.bytes, 12).unwrap_or(0)
    }

    /// The store's own id.
    pub fn uuid(&self) -> [u8; 16] {
        self.bytes.get(56..72).and_then(|b| b.try_into().ok()).unwrap_or([0; 16])
    }

    /// Layout of new files that no rule gives one.
    pub fn default_layout(&self) -> &'a [u8] {
        slice_at(self.bytes, 88).unwrap_or(&[])
    }

    /// The target of an index.
    pub fn target(&self, index: usize) -> Option<TargetRecord<'a>> {
        let at = HEADER.checked_add(index.checked_mul(TARGET)?)?;
        if index >= self.targets {
            return None;
        }
        let bytes = self.bytes;
        let path = slice_at(bytes, at + 8)?;
        if path.first() != Some(&b'/') || path.contains(&0) {
            return None;
        }
        Some(TargetRecord {
            name: core::str::from_utf8(slice_at(bytes, at)?).ok()?,
            path,
            class: Class::of_code(u32_at(bytes, at + 16)?)?,
            kind: Kind::of_code(u32_at(bytes, at + 20)?)?,
            capacity_bytes: u64_at(bytes, at + 24)?,
            model: DeviceModel {
                startup_read_ns: u64_at(bytes, at + 32)?,
                startup_write_ns: u64_at(bytes, at + 40)?,
                read_ps_per_byte: u64_at(bytes, at + 48)?,
                write_ps_per_byte: u64_at(bytes, at + 56)?,
            },
        })
    }

    /// The rule of an index.
    pub fn rule(&self, index: usize) -> Option<Rule<'a>> {
        if index >= self.rules {
            return None;
        }
        let at = HEADER + self.targets * TARGET + index * RULE;
        Some(Rule {
            glob: slice_at(self.bytes, at)?,
            layout: slice_at(self.bytes, at + 8)?,
            action: match u32_at(self.bytes, at + 16)? {
                0 => Action::Manage,
                1 => Action::Ignore,
                _ => return None,
            },
        })
    }

    /// The first rule that matches a new file's absolute path.
    pub fn rule_for(&self, path: &[u8]) -> Option<Rule<'a>> {
        (0..self.rules).filter_map(|i| self.rule(i)).find(|rule| crate::names::glob_matches(rule.glob, path))
    }
}

/// What [`encode`] compiles; the owner of what [`StoreView`] borrows.
#[cfg(feature = "admin")]
#[derive(Clone, Debug)]
pub struct StoreSpec<'a> {
    /// SHA-256 of store.toml.
    pub toml_sha256: [u8; 32],
    /// The store's own id.
    pub uuid: [u8; 16],
    /// Default size of a region, bytes.
    pub region_bytes: u64,
    /// Layout file with id 0.
    pub default_layout: &'a [u8],
    /// Targets in the order of their indices.
    pub targets: Vec<TargetRecord<'a>>,
    /// Rules; the first that matches counts.
    pub rules: Vec<Rule<'a>>,
}

/// Compiles a store.bin; [`StoreView::parse`] reads back what was given.
#[cfg(feature = "admin")]
pub fn encode(spec: &StoreSpec<'_>) -> Vec<u8> {
    let strings_at = HEADER + spec.targets.len() * TARGET + spec.rules.len() * RULE;
    let mut strings: Vec<u8> = Vec::new();
    let mut put = |bytes: &[u8]| -> [u8; 8] {
        strings.resize(strings.len().next_multiple_of(8), 0);
        let offset = (strings_at + strings.len()) as u32;
        strings.extend_from_slice(bytes);
        let mut pair = [0u8; 8];
        pair[..4].copy_from_slice(&offset.to_le_bytes());
        pair[4..].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        pair
    };
    let mut records: Vec<u8> = Vec::new();
    let default_layout = put(spec.default_layout);
    for target in &spec.targets {
        let from = records.len();
        records.extend(put(target.name.as_bytes()));
        records.extend(put(target.path));
        records.extend((target.class as u32).to_le_bytes());
        records.extend((target.kind as u32).to_le_bytes());
        let m = &target.model;
        for figure in [target.capacity_bytes, m.startup_read_ns, m.startup_write_ns, m.read_ps_per_byte, m.write_ps_per_byte] {
            records.extend(figure.to_le_bytes());
        }
        records.resize(from + TARGET, 0);
    }
    for rule in &spec.rules {
        let from = records.len();
        records.extend(put(rule.glob));
        records.extend(put(rule.layout));
        records.extend((rule.action as u32).to_le_bytes());
        records.resize(from + RULE, 0);
    }
    let mut bytes = Vec::with_capacity(strings_at + strings.len());
    bytes.extend(STORE_MAGIC);
    bytes.extend(STORE_VERSION.to_le_bytes());
    bytes.extend(0u32.to_le_bytes());
    bytes.extend(((strings_at + strings.len()) as u64).to_le_bytes());
    bytes.extend(spec.toml_sha256);
    bytes.extend(spec.uuid);
    bytes.extend((spec.targets.len() as u32).to_le_bytes());
    bytes.extend((spec.rules.len() as u32).to_le_bytes());
    bytes.extend(spec.region_bytes.to_le_bytes());
    bytes.extend(default_layout);
    bytes.resize(HEADER, 0);
    bytes.extend(records);
    bytes.extend(strings);
    let crc = checksum(&bytes).to_le_bytes();
    if let Some(field) = bytes.get_mut(12..16) {
        field.copy_from_slice(&crc);
    }
    bytes
}

#[cfg(all(test, feature = "admin"))]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;
    use stripewise_layout::{Layout, MovePhase, Placement, Region, Span, Stripe};

    fn template() -> Vec<u8> {
        let stripes = vec![Stripe { target: 0, width_bytes: 65_536 }, Stripe { target: 1, width_bytes: 4096 }];
        Layout {
            generation: 0,
            file_id: [0, 0],
            origin: stripewise_layout::Origin::Unknown,
            regions: vec![Region { start: 0, len: 64 << 20, generation: 0, placement: Placement::Striped(stripes) }],
            pending: vec![],
            retired: vec![],
            phase: MovePhase::None,
            span: Span { start: 0, len: 0 },
            replicas: vec![],
        }
        .encode()
        .unwrap()
    }

    fn sample(template: &[u8]) -> Vec<u8> {
        let model = DeviceModel { startup_read_ns: 1, startup_write_ns: 2, read_ps_per_byte: 3, write_ps_per_byte: 4 };
        let target = |name, path| TargetRecord { name, path, class: Class::Ssd, kind: Kind::Emulated, capacity_bytes: 9, model };
        encode(&StoreSpec {
            toml_sha256: [7; 32],
            uuid: [8; 16],
            region_bytes: 64 << 20,
            default_layout: template,
            targets: vec![target("a", b"/t/a"), target("b", b"/t/b")],
            rules: vec![
                Rule { glob: b"/s/*.log", action: Action::Ignore, layout: b"" },
                Rule { glob: b"/s/**", action: Action::Manage, layout: template },
            ],
        })
    }

    #[test]
    fn a_store_reads_back_as_it_was_compiled() {
        let template = template();
        let bytes = sample(&template);
        let view = StoreView::parse(&bytes).unwrap();
        assert_eq!((view.target_count(), view.rule_count(), view.region_bytes()), (2, 2, 64 << 20));
        assert_eq!((view.toml_sha256(), view.uuid()), ([7; 32], [8; 16]));
        let b = view.target(1).unwrap();
        assert_eq!(
            (b.name, b.path, b.class, b.kind, b.capacity_bytes, b.model.write_ps_per_byte),
            ("b", &b"/t/b"[..], Class::Ssd, Kind::Emulated, 9, 4)
        );
        assert_eq!(view.rule_for(b"/s/x.log").unwrap().action, Action::Ignore);
        assert_eq!(view.rule_for(b"/s/d/x").unwrap().layout, &template[..]);
        assert!(view.rule_for(b"/q").is_none());
    }

    #[test]
    fn a_newer_store_is_refused() {
        let mut bytes = sample(&template());
        bytes[8] = 2;
        assert_eq!(StoreView::parse(&bytes).err(), Some(BinError::Newer(2)));
    }

    proptest! {
        #[test]
        fn damaged_bytes_never_panic(at in 0usize..2000, value: u8, mend: bool, cut in 0usize..2000) {
            let mut bytes = sample(&template());
            let len = bytes.len();
            bytes[at % len] = value;
            if cut % 4 == 0 { bytes.truncate(cut % len); }
            if mend && bytes.len() > 16 {
                let crc = checksum(&bytes).to_le_bytes();
                bytes[12..16].copy_from_slice(&crc);
            }
            if let Ok(view) = StoreView::parse(&bytes) {
                for i in 0..view.target_count() { view.target(i).unwrap(); }
                let _ = view.rule_for(b"/s/a/b");
            }
        }
    }
}
