//! Replicas as JSON, and the container that holds them: their domains one behind the other, each with its regions cut to the bytes that it has.

use std::path::Path;

use serde::{Deserialize, Serialize};
use stripewise_layout::{Dim, GRANULE, Layout, MAX_LOGICAL, MAX_REGIONS, OnWrite, Placement, Region, Replica};

use crate::admin::error::{Result, StoreError};
use crate::admin::spec::{LayoutJson, RegionJson, stripes_of};

/// Bytes of the record's own home: all of a plain file lies in itself, so any length will do.
const HOME_BYTES: u64 = 1 << 20;

/// What a write does to a replica, as JSON.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum OnWriteJson {
    /// It is written, too.
    #[default]
    Update,
    /// Its blocks are stale.
    Invalidate,
}

impl From<OnWriteJson> for OnWrite {
    fn from(json: OnWriteJson) -> Self {
        match json {
            OnWriteJson::Update => Self::Update,
            OnWriteJson::Invalidate => Self::Invalidate,
        }
    }
}

impl From<OnWrite> for OnWriteJson {
    fn from(on_write: OnWrite) -> Self {
        match on_write {
            OnWrite::Update => Self::Update,
            OnWrite::Invalidate => Self::Invalidate,
        }
    }
}

/// One replica as JSON: strided blocks in the order in which they are to stand, and the regions of its own bytes, of which the last repeats.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct ReplicaJson {
    /// First byte of the first block in the plain file.
    pub base: u64,
    /// Bytes of a block.
    pub block: u64,
    /// (stride, count) of the loops, outermost first.
    pub dims: Vec<(u64, u64)>,
    /// Regions in bytes of the replica, from 0 on.
    pub regions: Vec<RegionJson>,
    /// What writes do to it, of a managed file.
    #[serde(default)]
    pub on_write: OnWriteJson,
}

/// The replicas of one plain file as JSON.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct ReplicasJson {
    /// In the order of their domains.
    pub replicas: Vec<ReplicaJson>,
}

impl ReplicasJson {
    /// Parses replicas.
    ///
    /// # Errors
    /// `Invalid` with the place in the text.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|e| {
            let form = "{\"replicas\": [{\"base\", \"block\", \"dims\": [[stride, count], ..], \"regions\": [..], \"on_write\": \"update\" or \"invalidate\"}, ..]}";
            StoreError::Invalid(format!("replicas: {e}; expected {form}"))
        })
    }
}

/// Where the copies of one plain file are to stand.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The record's layout: the plain file as home, its replicas with their places in the container.
    pub layout: Layout,
    /// The container's regions.
    pub regions: Vec<Region>,
    /// The container's bytes.
    pub bytes: u64,
}

impl Plan {
    /// The plan for a plain file of `size` bytes in a store of so many targets.
    ///
    /// # Errors
    /// `Invalid` naming the replica and the key.
    pub fn of(json: &ReplicasJson, path: &Path, size: u64, targets: usize) -> Result<Self> {
        if json.replicas.is_empty() {
            return Err(invalid(path, "no replicas are named; give at least one"));
        }
        let mut plan = Self { layout: Layout::default(), regions: Vec::new(), bytes: 0 };
        plan.layout.regions = vec![Region { start: 0, len: HOME_BYTES, generation: 0, placement: Placement::Original }];
        for (number, replica) in json.replicas.iter().enumerate() {
            let total = total_of(replica, size).map_err(|why| invalid(path, &format!("replicas[{number}] {why}")))?;
            let all = LayoutJson { regions: replica.regions.clone(), origin: None }.regions(&format!("replicas[{number}]"), targets)?;
            let regions = cut(&all, total);
            let shifted = regions.iter().map(|region| Region { start: plan.bytes + region.start, ..region.clone() });
            plan.regions.extend(shifted);
            if plan.regions.len() as u64 > MAX_REGIONS {
                return Err(invalid(path, &format!("replicas[{number}] makes more than {MAX_REGIONS} regions; make its last region longer")));
            }
            plan.layout.replicas.push(Replica {
                id: number as u32,
                base: replica.base,
                block: replica.block,
                dims: replica.dims.iter().map(|&(stride, count)| Dim { stride, count }).collect(),
                domain_base: plan.bytes,
                is_home: false,
                on_write: replica.on_write.into(),
                regions,
            });
            plan.bytes += total.next_multiple_of(GRANULE);
            if plan.bytes > MAX_LOGICAL {
                return Err(invalid(path, "its replicas hold more than 2^62 bytes together; make fewer of them"));
            }
        }
        Ok(plan)
    }
}

fn invalid(path: &Path, why: &str) -> StoreError {
    StoreError::Invalid(format!("{}: {why}", path.display()))
}

/// Bytes of all blocks, which lie within the file.
fn total_of(replica: &ReplicaJson, size: u64) -> std::result::Result<u64, String> {
    let too_long = || format!("holds blocks behind byte 2^62; the file has {size} bytes");
    let (mut total, mut end) = (replica.block, replica.base.checked_add(replica.block).ok_or_else(too_long)?);
    for &(stride, count) in &replica.dims {
        let steps = count.checked_sub(1).ok_or("has a loop of no steps; a count is at least 1")?;
        total = total.checked_mul(count).filter(|total| *total <= MAX_LOGICAL).ok_or_else(too_long)?;
        end = stride.checked_mul(steps).and_then(|far| end.checked_add(far)).ok_or_else(too_long)?;
    }
    if total == 0 {
        return Err("has blocks of no bytes; a block has at least 1".into());
    }
    if end > size {
        return Err(format!("ends at byte {end}, the file has {size} bytes; its blocks must lie in the file"));
    }
    Ok(total)
}

/// Regions of which the last repeats, cut to cover `total` bytes, rounded up to whole granules, and no more.
fn cut(regions: &[Region], total: u64) -> Vec<Region> {
    let end = total.next_multiple_of(GRANULE);
    let mut found: Vec<Region> = Vec::new();
    for (number, region) in regions.iter().enumerate().filter(|(_, region)| region.start < end) {
        let cycle: u64 = stripes_of(&region.placement).iter().map(|stripe| stripe.width_bytes).sum();
        let is_last = number + 1 == regions.len();
        // A window that begins anew where its cycle does is the same as one that goes on.
        let goes_on = is_last && region.len.is_multiple_of(cycle.max(1));
        let mut at = region.start;
        while at < end && found.len() as u64 <= MAX_REGIONS {
            let len = if goes_on { end - at } else { region.len.min(end - at) };
            found.push(Region { start: at, len, ..region.clone() });
            at += len;
            if !is_last {
                break;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    const K: u64 = 1024;

    fn region(start: u64, len: u64, widths: &[u64]) -> RegionJson {
        RegionJson { start, len, stripes: (0..).zip(widths.iter().copied()).collect() }
    }

    fn plan(replicas: Vec<ReplicaJson>, size: u64) -> Result<Plan> {
        Plan::of(&ReplicasJson { replicas }, Path::new("/f"), size, 2)
    }

    fn bounds(regions: &[Region]) -> Vec<(u64, u64)> {
        regions.iter().map(|region| (region.start, region.len)).collect()
    }

    #[test]
    fn domains_follow_one_another_and_regions_end_with_them() {
        let one = ReplicaJson {
            base: 0,
            block: 3 * K,
            dims: vec![(10 * K, 7)],
            regions: vec![region(0, 8 * K, &[4 * K, 4 * K])],
            on_write: OnWriteJson::Update,
        };
        let other = ReplicaJson {
            on_write: OnWriteJson::Invalidate,
            regions: vec![region(0, 8 * K, &[8 * K]), region(8 * K, 8 * K, &[4 * K, 8 * K])],
            ..one.clone()
        };
        let made = plan(vec![one, other], 63 * K).unwrap();
        assert_eq!(made.bytes, 48 * K);
        assert_eq!(bounds(&made.regions), [(0, 24 * K), (24 * K, 8 * K), (32 * K, 8 * K), (40 * K, 8 * K)]);
        assert_eq!(bounds(&made.layout.replicas[1].regions), [(0, 8 * K), (8 * K, 8 * K), (16 * K, 8 * K)]);
        assert_eq!(made.layout.replicas[1].domain_base, 24 * K);
        assert_eq!([0, 1].map(|number| made.layout.replicas[number].on_write), [OnWrite::Update, OnWrite::Invalidate]);
    }

    #[test]
    fn a_region_that_nothing_of_the_replica_reaches_is_left_out() {
        let short = ReplicaJson {
            base: 0,
            block: 1,
            dims: vec![],
            regions: vec![region(0, 8 * K, &[4 * K]), region(8 * K, 8 * K, &[4 * K])],
            on_write: OnWriteJson::Update,
        };
        assert_eq!(bounds(&plan(vec![short], 1).unwrap().regions), [(0, 4 * K)]);
    }

    #[test]
    fn blocks_outside_the_file_and_loops_of_nothing_are_refused_by_name() {
        let good = ReplicaJson { base: 1, block: 9, dims: vec![(10, 3)], regions: vec![region(0, 4 * K, &[4 * K])], on_write: OnWriteJson::Update };
        assert!(plan(vec![good.clone()], 30).is_ok());
        let cases = [
            (good.clone(), 29, "replicas[1] ends at byte 30, the file has 29 bytes"),
            (ReplicaJson { dims: vec![(10, 0)], ..good.clone() }, 30, "loop of no steps"),
            (ReplicaJson { block: 0, ..good.clone() }, 30, "blocks of no bytes"),
            (ReplicaJson { dims: vec![(u64::MAX, 3)], ..good.clone() }, 30, "behind byte 2^62"),
            (ReplicaJson { regions: vec![], ..good.clone() }, 30, "regions is empty"),
        ];
        for (bad, size, expected) in cases {
            let first = ReplicaJson { block: 1, dims: vec![], ..good.clone() };
            let error = plan(vec![first, bad], size).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(plan(vec![], 30).is_err());
    }

    #[test]
    fn writes_update_a_replica_unless_it_says_another_thing_that_is_known() {
        let text = |more: &str| format!("{{\"replicas\": [{{\"base\": 0, \"block\": 1, \"dims\": [], \"regions\": []{more}}}]}}");
        let parsed = |more| ReplicasJson::parse(&text(more)).map(|json| json.replicas[0].on_write);
        assert_eq!(parsed("").unwrap(), OnWriteJson::Update);
        assert_eq!(parsed(", \"on_write\": \"update\"").unwrap(), OnWriteJson::Update);
        assert_eq!(parsed(", \"on_write\": \"invalidate\"").unwrap(), OnWriteJson::Invalidate);
        let error = parsed(", \"on_write\": \"drop\"").unwrap_err().to_string();
        assert!(error.contains("unknown variant `drop`, expected `update` or `invalidate`"), "{error}");
    }
}
