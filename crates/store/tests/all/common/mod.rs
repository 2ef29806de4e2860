//! What the store's tests share: specifications, layouts, contents that say where they belong, and checks on whole files.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

pub mod crashes;
pub mod faults;
pub mod register;

use std::path::{Path, PathBuf};

use stripewise_store::admin::medium::Medium;
use stripewise_store::admin::metadata::{data, newfile};
use stripewise_store::admin::moves::apply;
use stripewise_store::admin::moves::guide::Unguided;
use stripewise_store::admin::spec::{LayoutJson, RegionJson, SpecJson, TargetJson};
use stripewise_store::admin::{Result, Store, create};

pub const ID: u64 = 0x1234_5678_9abc_def0;
pub const K: u64 = 1024;

pub fn target(name: &str, kind: &str, path: &Path, capacity_bytes: u64) -> TargetJson {
    TargetJson {
        name: name.into(),
        class: "hdd".into(),
        kind: kind.into(),
        path: path.to_str().unwrap().into(),
        capacity_bytes,
        startup_read_ns: 1000,
        startup_write_ns: 1000,
        read_ps_per_byte: 10,
        write_ps_per_byte: 10,
    }
}

/// One region that repeats over all targets with one width.
pub fn even(targets: u32, region_bytes: u64, width: u64) -> LayoutJson {
    LayoutJson { regions: vec![RegionJson { start: 0, len: region_bytes, stripes: (0..targets).map(|t| (t, width)).collect() }], origin: None }
}

/// Regions of one length, each with its own stripes; the last repeats.
pub fn uneven(region_bytes: u64, stripes: &[&[(u32, u64)]]) -> LayoutJson {
    in_a_row(stripes.iter().map(|stripes| (region_bytes, stripes.to_vec())))
}

/// Regions one after the other, each of so many bytes on its own stripes; the last repeats.
pub fn in_a_row(regions: impl IntoIterator<Item = (u64, Vec<(u32, u64)>)>) -> LayoutJson {
    let mut end = 0;
    let regions = regions.into_iter().map(|(len, stripes)| {
        end += len;
        RegionJson { start: end - len, len, stripes }
    });
    LayoutJson { regions: regions.collect(), origin: None }
}

pub fn spec(base: &Path, kind: &str, targets: usize, capacity_bytes: u64, layout: LayoutJson) -> SpecJson {
    SpecJson {
        toml_sha256: "00".repeat(32),
        uuid: "11".repeat(16),
        region_bytes: 64 * K,
        default_layout: layout,
        targets: (0..targets).map(|i| target(&format!("t{i}"), kind, &base.join(format!("t{i}")), capacity_bytes)).collect(),
        rules: vec![],
    }
}

/// A store below `base` with one empty file linked at `base/file`.
pub fn store_with_file(medium: &dyn Medium, base: &Path, spec: &SpecJson) -> PathBuf {
    let root = base.join("store");
    create::create(medium, &root, spec).unwrap();
    let store = Store::open(medium, &root).unwrap();
    newfile::create_file(&store, ID, &base.join("file"), None).unwrap();
    root
}

/// Content that says which offset and which writer it is from; never zero.
pub fn pattern(stamp: u8, offset: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| ((offset + i) % 251) as u8 ^ stamp | 1).collect()
}

pub fn read_all(store: &Store<'_>, len: usize) -> Vec<u8> {
    let mut bytes = vec![0xee; len];
    let got = data::read_file(store, ID, 0, &mut bytes).unwrap();
    bytes.truncate(got);
    bytes
}

pub fn apply_all(store: &Store<'_>, layout: &LayoutJson) -> Result<apply::Applied> {
    apply::apply(store, ID, layout, &mut Unguided)
}

/// Brings the file to regions in both planes, and returns a layout that it moves to in one step, from each plane into the other. Objects of both planes then
/// hold some of its present home and some of its new one, and the present one's windows are short.
pub fn in_two_planes(store: &Store<'_>) -> LayoutJson {
    let first = |stripes: &[(u32, u64)]| RegionJson { start: 0, len: 16 * K, stripes: stripes.to_vec() };
    let pages = (4..32).map(|page| RegionJson { start: page * 4 * K, len: 4 * K, stripes: vec![(1, 4 * K)] });
    let tail = RegionJson { start: 128 * K, len: 128 * K, stripes: vec![(0, 4 * K)] };
    for stripes in [&[(2, 4 * K)], &[(0, 4 * K)]] {
        let regions = [first(stripes)].into_iter().chain(pages.clone()).chain([tail.clone()]);
        apply_all(store, &LayoutJson { regions: regions.collect(), origin: None }).unwrap();
    }
    let planes: Vec<_> = store.layout(ID).unwrap().regions.iter().map(|region| region.generation & 1).collect();
    assert!(planes[0] == 0 && planes[1..].iter().all(|plane| *plane == 1), "{planes:?}");
    let rest = RegionJson { start: 16 * K, len: 112 * K, stripes: vec![(2, 4 * K), (0, 4 * K), (1, 8 * K)] };
    LayoutJson { regions: vec![first(&[(1, 4 * K)]), rest, tail], origin: None }
}
