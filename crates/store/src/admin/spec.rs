//! What Python hands over as JSON: a store's specification (store.toml, parsed and validated there) and layouts. Both are checked
//! again here, because a plan may be edited by hand.

use std::path::Path;

use serde::{Deserialize, Serialize};
use stripewise_layout::{GRANULE, Layout, MovePhase, Origin, Placement, Region, Span, Spread, Stripe, View};
use stripewise_target::kind::{Class, DeviceModel, Kind, MAX_TARGETS};

use super::error::{Result, StoreError};
use crate::bin::{self, Action, MAX_RULES, Rule, StoreSpec, TargetRecord};

/// One region as JSON: bytes, and (target index, width in bytes) pairs.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct RegionJson {
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// (target, width in bytes) in the order of the cycle.
    pub stripes: Vec<(u32, u64)>,
}

/// A layout as JSON; the last region repeats.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct LayoutJson {
    /// Regions from byte 0 on, without gaps.
    pub regions: Vec<RegionJson>,
    /// Whose layout it is; none: what it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<OriginJson>,
}

/// Whose layout a file has, by name.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum OriginJson {
    /// The store's own.
    Own,
    /// A plan's, a template's, or `set-layout`'s.
    Given,
    /// Given, and a drained target has left it since.
    Drained,
}

impl From<OriginJson> for Origin {
    fn from(origin: OriginJson) -> Self {
        match origin {
            OriginJson::Own => Self::Own,
            OriginJson::Given => Self::Given,
            OriginJson::Drained => Self::Drained,
        }
    }
}

impl OriginJson {
    /// None where it is unknown.
    #[must_use]
    pub fn of(origin: Origin) -> Option<Self> {
        match origin {
            Origin::Unknown => None,
            Origin::Own => Some(Self::Own),
            Origin::Given => Some(Self::Given),
            Origin::Drained => Some(Self::Drained),
        }
    }
}

/// One target as JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TargetJson {
    pub name: String,
    /// `any`, `hdd`, `ssd` or `swd`.
    pub class: String,
    /// `dir` or `emulated`.
    pub kind: String,
    /// Absolute path.
    pub path: String,
    /// Bytes it may hold, 0 = what its file system has.
    pub capacity_bytes: u64,
    pub startup_read_ns: u64,
    pub startup_write_ns: u64,
    /// Transfer of a read, picoseconds per byte.
    pub read_ps_per_byte: u64,
    /// Transfer of a write, picoseconds per byte.
    pub write_ps_per_byte: u64,
}

/// One rule as JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RuleJson {
    /// Shell pattern over the absolute path.
    pub glob: String,
    /// `manage` or `ignore`.
    pub action: String,
    /// Layout of matching files; none = the default.
    #[serde(default)]
    pub layout: Option<LayoutJson>,
}

/// A store's specification as JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SpecJson {
    /// SHA-256 of store.toml, 64 hexadecimal digits.
    pub toml_sha256: String,
    /// The store's id, 32 hexadecimal digits, dashes allowed.
    pub uuid: String,
    /// Default size of a region, bytes.
    pub region_bytes: u64,
    /// Layout of new files.
    pub default_layout: LayoutJson,
    /// Targets in the order of their indices.
    pub targets: Vec<TargetJson>,
    /// Rules, the first that matches counts.
    #[serde(default)]
    pub rules: Vec<RuleJson>,
}

fn invalid(text: String) -> StoreError {
    StoreError::Invalid(text)
}

/// Reads exactly `N` bytes of hexadecimal digits; dashes are skipped.
fn hex<const N: usize>(key: &str, text: &str) -> Result<[u8; N]> {
    let wrong = || invalid(format!("store.toml: {key} is {text:?}, must be {} hexadecimal digits; let `stripewise store create` write it", 2 * N));
    let digits: Vec<u8> = text.chars().filter(|c| *c != '-').map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>().ok_or_else(wrong)?;
    let bytes: Vec<u8> = digits.chunks_exact(2).filter_map(|pair| Some(pair.first()? << 4 | pair.get(1)?)).collect();
    if digits.len() != 2 * N {
        return Err(wrong());
    }
    bytes.try_into().map_err(|_| wrong())
}

impl LayoutJson {
    /// Parses a layout.
    ///
    /// # Errors
    /// `Invalid` with the place in the text.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text)
            .map_err(|e| invalid(format!("layout: {e}; expected {{\"regions\": [{{\"start\", \"len\", \"stripes\": [[target, width], ..]}}, ..]}}")))
    }

    /// The regions in owned form, generation 0, checked: from 0 on without gaps, granules, widths, targets below `targets`.
    ///
    /// # Errors
    /// `Invalid` naming `what`, the region and the key.
    pub fn regions(&self, what: &str, targets: usize) -> Result<Vec<Region>> {
        if self.regions.is_empty() {
            return Err(invalid(format!("{what}: regions is empty; give at least one region, the last one repeats")));
        }
        let mut at = 0;
        let mut regions = Vec::with_capacity(self.regions.len());
        for (i, r) in self.regions.iter().enumerate() {
            if r.start != at {
                return Err(invalid(format!("{what}: regions[{i}].start is {}, must be {at}; regions follow each other without gaps", r.start)));
            }
            if r.len == 0 || r.len % GRANULE != 0 {
                return Err(invalid(format!("{what}: regions[{i}].len is {}, must be a positive multiple of {GRANULE}; round it", r.len)));
            }
            at = at.checked_add(r.len).ok_or_else(|| invalid(format!("{what}: regions[{i}] ends beyond 2^64; shorten it")))?;
            let stripes = r.stripes.iter().enumerate().map(|(j, &(target, width_bytes))| {
                if target as usize >= targets {
                    return Err(invalid(format!("{what}: regions[{i}].stripes[{j}] names target {target}, the store has {targets}; use 0 to {}", targets.saturating_sub(1))));
                }
                if width_bytes == 0 || width_bytes % GRANULE != 0 {
                    return Err(invalid(format!("{what}: regions[{i}].stripes[{j}] has width {width_bytes}, must be a positive multiple of {GRANULE}; leave the target out or round it")));
                }
                Ok(Stripe { target, width_bytes })
            });
            let stripes = stripes.collect::<Result<Vec<_>>>()?;
            if stripes.is_empty() {
                return Err(invalid(format!("{what}: regions[{i}].stripes is empty; name at least one target")));
            }
            regions.push(Region { start: r.start, len: r.len, generation: 0, placement: Placement::Striped(stripes) });
        }
        Ok(regions)
    }

    /// What a new file gets in its place ([`Spread::of`]) where target number `t` has `room[t]` bytes.
    ///
    /// # Errors
    /// As [`LayoutJson::template`].
    pub fn spread(&self, what: &str, room: &[u64], chance: Option<u64>) -> Result<Vec<Region>> {
        let template = self.template(what, room.len())?;
        let view = View::parse(&template).map_err(|e| invalid(format!("{what}: {e}")))?;
        let Some(spread) = Spread::of(&view, |target| room.get(target as usize).copied().unwrap_or(0), chance) else {
            return self.regions(what, room.len());
        };
        let mut bytes = vec![0; spread.bytes()];
        spread.encode(&mut bytes);
        Ok(Layout::decode(&bytes).map_err(|e| invalid(format!("{what}: {e}")))?.regions)
    }

    /// The layout file of these regions, with id 0 for a template.
    ///
    /// # Errors
    /// As [`LayoutJson::regions`], and `Invalid` for what the format itself refuses.
    pub fn template(&self, what: &str, targets: usize) -> Result<Vec<u8>> {
        let layout = plain_layout(self.regions(what, targets)?, 0, [0, 0], self.origin.map(Origin::from).unwrap_or_default());
        layout.encode().map_err(|e| invalid(format!("{what}: {e}")))
    }
}

/// A layout without a move.
pub fn plain_layout(regions: Vec<Region>, generation: u64, file_id: [u64; 2], origin: Origin) -> Layout {
    Layout { generation, file_id, origin, regions, pending: vec![], retired: vec![], phase: MovePhase::None, span: Span::default(), replicas: vec![] }
}

/// Regions as JSON. Regions that stay in the plain file have no stripes.
pub fn regions_json(regions: &[Region]) -> Vec<RegionJson> {
    regions
        .iter()
        .map(|r| RegionJson { start: r.start, len: r.len, stripes: stripes_of(&r.placement).iter().map(|s| (s.target, s.width_bytes)).collect() })
        .collect()
}

/// The stripes of a placement; none when original.
pub fn stripes_of(placement: &Placement) -> &[Stripe] {
    match placement {
        Placement::Striped(stripes) => stripes,
        _ => &[],
    }
}

impl SpecJson {
    /// Parses a specification.
    ///
    /// # Errors
    /// `Invalid` with the place in the text.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|e| invalid(format!("store specification: {e}; run `stripewise store create` anew")))
    }

    /// The store's id.
    ///
    /// # Errors
    /// `Invalid`.
    pub fn uuid(&self) -> Result<[u8; 16]> {
        hex("uuid", &self.uuid)
    }

    /// Compiles store.bin.
    ///
    /// # Errors
    /// `Invalid` naming the key.
    pub fn compile(&self) -> Result<Vec<u8>> {
        self.check_targets()?;
        if self.rules.len() > MAX_RULES {
            return Err(invalid(format!("store.toml: {} rules, the limit is {MAX_RULES}; merge some", self.rules.len())));
        }
        let count = self.targets.len();
        let own = LayoutJson { origin: Some(OriginJson::Own), ..self.default_layout.clone() };
        let default_layout = own.template("store.toml: default layout", count)?;
        let mut targets = Vec::new();
        for t in &self.targets {
            targets.push(TargetRecord {
                name: &t.name,
                path: t.path.as_bytes(),
                class: class_of(t)?,
                kind: kind_of(t)?,
                capacity_bytes: t.capacity_bytes,
                model: DeviceModel {
                    startup_read_ns: t.startup_read_ns,
                    startup_write_ns: t.startup_write_ns,
                    read_ps_per_byte: t.read_ps_per_byte,
                    write_ps_per_byte: t.write_ps_per_byte,
                },
            });
        }
        let mut layouts = Vec::new();
        for (i, rule) in self.rules.iter().enumerate() {
            layouts.push(match &rule.layout {
                Some(layout) => {
                    LayoutJson { origin: Some(OriginJson::Given), ..layout.clone() }.template(&format!("store.toml: rules[{i}].layout"), count)?
                }
                None => Vec::new(),
            });
        }
        let mut rules = Vec::new();
        for ((i, rule), layout) in self.rules.iter().enumerate().zip(&layouts) {
            let action = match rule.action.as_str() {
                "manage" => Action::Manage,
                "ignore" => Action::Ignore,
                other => return Err(invalid(format!("store.toml: rules[{i}].action is {other:?}, must be \"manage\" or \"ignore\""))),
            };
            rules.push(Rule { glob: rule.glob.as_bytes(), action, layout });
        }
        Ok(bin::encode(&StoreSpec {
            toml_sha256: hex("toml_sha256", &self.toml_sha256)?,
            uuid: self.uuid()?,
            region_bytes: self.region_bytes,
            default_layout: &default_layout,
            targets,
            rules,
        }))
    }

    fn check_targets(&self) -> Result<()> {
        if self.targets.is_empty() || self.targets.len() > MAX_TARGETS {
            return Err(invalid(format!("store.toml: {} targets, must be 1 to {MAX_TARGETS}; add or remove [[target]] tables", self.targets.len())));
        }
        for (i, t) in self.targets.iter().enumerate() {
            if !Path::new(&t.path).is_absolute() || t.path.contains('\0') {
                return Err(invalid(format!("store.toml: targets[{i}].path is {:?}, must be an absolute path", t.path)));
            }
            for (j, other) in self.targets.iter().enumerate().take(i) {
                if t.name == other.name {
                    return Err(invalid(format!("store.toml: targets[{j}] and targets[{i}] are both called {:?}; rename one", t.name)));
                }
                if Path::new(&t.path) == Path::new(&other.path) {
                    return Err(invalid(format!(
                        "store.toml: targets[{j}] and targets[{i}] both lie in {}; give each a directory of its own",
                        t.path
                    )));
                }
            }
        }
        Ok(())
    }
}

fn class_of(t: &TargetJson) -> Result<Class> {
    Class::of_name(&t.class).ok_or_else(|| invalid(format!("store.toml: target {}: class is {:?}, must be any, hdd, ssd or swd", t.name, t.class)))
}

fn kind_of(t: &TargetJson) -> Result<Kind> {
    Kind::of_name(&t.kind).ok_or_else(|| invalid(format!("store.toml: target {}: kind is {:?}, must be dir or emulated", t.name, t.kind)))
}
