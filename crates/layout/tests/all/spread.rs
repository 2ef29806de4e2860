//! New files on targets of unequal room: the layout that they get is one that the parser accepts and `encode` would write, and however many files grow, in
//! whatever order, a store takes nearly all that its targets hold.

use crate::common::TARGETS;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use stripewise_layout::{GRANULE, Layout, NotAsked, Origin, Placement, Region, Spread, Stripe, Striping, View};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn equal(targets: u32, width_bytes: u64, len: u64) -> Vec<u8> {
    let stripes = (0..targets).map(|target| Stripe { target, width_bytes }).collect();
    let region = Region { start: 0, len, generation: 0, placement: Placement::Striped(stripes) };
    Layout { regions: vec![region], ..Layout::default() }.encode().unwrap()
}

fn region_of(start: u64, len: u64) -> Region {
    let stripes = (0..2).map(|target| Stripe { target, width_bytes: 64 * KIB }).collect();
    Region { start, len, generation: 0, placement: Placement::Striped(stripes) }
}

/// The layout file of a new file.
fn new_file(template: &[u8], room: &[u64], chance: Option<u64>) -> Vec<u8> {
    match Spread::of(&View::parse(template).unwrap(), |target| room.get(target as usize).copied().unwrap_or(0), chance) {
        None => template.to_vec(),
        Some(spread) => {
            let mut bytes = vec![0; spread.bytes()];
            spread.encode(&mut bytes);
            bytes
        }
    }
}

#[test]
fn a_new_file_has_the_origin_of_its_template() {
    let stripes: Vec<_> = (0..3).map(|target| Stripe { target, width_bytes: 64 * KIB }).collect();
    for origin in [Origin::Unknown, Origin::Own, Origin::Given, Origin::Drained] {
        let region = Region { start: 0, len: 48 * MIB, generation: 0, placement: Placement::Striped(stripes.clone()) };
        let template = Layout { regions: vec![region], origin, ..Layout::default() }.encode().unwrap();
        for room in [[1 << 40, 1 << 40, 1 << 40], [1 << 40, 1 << 30, 1 << 33]] {
            let made = new_file(&template, &room, Some(u64::MAX));
            assert_ne!(made, template);
            let made = Layout::decode(&made).unwrap();
            assert_eq!(made, Layout::decode(&made.encode().unwrap()).unwrap());
            assert_eq!(made.origin, origin);
        }
    }
}

/// The stripes of a new file that was asked for so.
fn asked(template: &[u8], asked: Striping, room: &[u64], chance: u64) -> Result<Vec<(u32, u64)>, NotAsked> {
    let view = View::parse(template).unwrap();
    let spread = Spread::asked(&view, &asked, |target| room.get(target as usize).copied().unwrap_or(0), chance)?;
    let mut bytes = vec![0; spread.bytes()];
    spread.encode(&mut bytes);
    let made = Layout::decode(&bytes).unwrap();
    assert_eq!(made.encode().unwrap(), bytes);
    assert_eq!((made.origin, made.regions.len()), (Origin::Given, 1));
    let region = made.regions.into_iter().next().unwrap();
    let Placement::Striped(stripes) = region.placement else { panic!("no stripes") };
    let stripes: Vec<_> = stripes.iter().map(|stripe| (stripe.target, stripe.width_bytes)).collect();
    assert_eq!(region.len % stripes.iter().map(|(_, width)| width).sum::<u64>(), 0);
    assert_eq!(stripes, spread.stripes().collect::<Vec<_>>());
    Ok(stripes)
}

#[test]
fn a_new_file_has_the_stripes_that_it_was_asked_for() {
    let (template, room) = (equal(6, 64 * KIB, 64 * MIB), [1 << 40; 6]);
    let of = |count, width_bytes, first, chance| asked(&template, Striping { count, width_bytes, first }, &room, chance).unwrap();
    assert_eq!(of(2, MIB, 1, u64::MAX), [(0, MIB), (1, MIB)]);
    assert_eq!(of(3, 0, 5, 0), [(4, 64 * KIB), (5, 64 * KIB), (0, 64 * KIB)]);
    assert_eq!(of(1, 5000, 6, 0), [(5, 8 * KIB)]);
    assert_eq!(of(60, MIB, 0, 0), (0..6).map(|target| (target, MIB)).collect::<Vec<_>>());
    assert_eq!(of(0, 0, 0, u64::MAX)[0], (5, 64 * KIB));
    // There is no seventh target, so any is the first.
    assert_eq!(of(1, 0, 7, 0), [(0, 64 * KIB)]);
    assert_eq!(of(1, u64::MAX, 1, 0), [(0, 256 * MIB)]);
    let one_full = [1 << 40, MIB, 1 << 40, 0, 1 << 40, 1 << 40];
    let by_room = |count, first| asked(&template, Striping { count, width_bytes: 2 * MIB, first }, &one_full, 0);
    assert_eq!(by_room(2, 1), Err(NotAsked::NoRoom));
    assert!(by_room(2, 5).is_ok());
    assert_eq!([by_room(0, 0), by_room(6, 1), by_room(9, 5)], [const { Err(NotAsked::Unlike) }; 3]);
    let two = Layout { regions: vec![region_of(0, 4 * MIB), region_of(4 * MIB, 4 * MIB)], ..Layout::default() }.encode().unwrap();
    assert_eq!(asked(&two, Striping { count: 1, ..Striping::default() }, &room, 0), Err(NotAsked::Shaped));
    let long = equal(6, 64 * KIB, (1 << 60) / (384 * KIB) * (384 * KIB));
    assert_eq!(asked(&long, Striping { count: 5, width_bytes: 200_000_000, first: 1 }, &room, 0), Err(NotAsked::Shaped));
}

proptest! {
    #[test]
    fn stripes_that_are_asked_for_are_neighbours(count in 0u32..20, width in 0u64..1 << 32, first in 0u32..20, chance: u64, targets in 1u32..12) {
        let template = equal(targets, 64 * KIB, 64 * MIB);
        let stripes = asked(&template, Striping { count, width_bytes: width, first }, &[u64::MAX; 12], chance).unwrap();
        prop_assert_eq!(stripes.len() as u32, if count == 0 { targets } else { count.min(targets) });
        prop_assert!(stripes.windows(2).all(|pair| pair[1].0 == (pair[0].0 + 1) % targets && pair[1].1 == pair[0].1));
        if (1..=targets).contains(&first) {
            prop_assert_eq!(stripes[0].0, first - 1);
        }
    }
}

/// Targets of 1 MiB to 1 TiB, one of them of 64 MiB or more: of a store of a few stripes the last ones would decide.
fn capacities() -> impl Strategy<Value = Vec<u64>> {
    let power_of = |from: f64| (from..28.0).prop_map(|power| power.exp2() as u64 * GRANULE);
    let mixed = (power_of(14.0), prop::collection::vec(power_of(8.0), 0..11), any::<prop::sample::Index>());
    mixed.prop_map(|(large, mut all, place)| {
        all.insert(place.index(all.len() + 1), large);
        all
    })
}

/// How files come and grow.
#[derive(Clone, Debug)]
enum Use {
    /// One after another, the sizes as parts of all room.
    InTurn(Vec<f64>),
    /// All made at once, each growing at its own pace.
    AtOnce(Vec<f64>),
}

fn uses() -> impl Strategy<Value = Use> {
    prop_oneof![
        Just(Use::AtOnce(vec![1.0])),
        prop::collection::vec(1e-4..0.3f64, 1..40).prop_map(Use::InTurn),
        prop::collection::vec(0.01..1.0f64, 2..120).prop_map(Use::AtOnce),
    ]
}

struct Store {
    capacities: Vec<u64>,
    /// Of all files so far.
    chance: u64,
    used: Vec<u64>,
}

impl Store {
    fn room(&self) -> Vec<u64> {
        self.capacities.iter().zip(&self.used).map(|(capacity, used)| capacity - used).collect()
    }

    fn new_file(&mut self, template: &[u8]) -> Vec<u8> {
        self.chance = self.chance.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        new_file(template, &self.room(), Some(self.chance))
    }

    /// Grows a file; false where a target is full.
    fn grow(&mut self, file: &[u8], from: u64, to: u64) -> bool {
        let view = View::parse(file).unwrap();
        let more: Vec<u64> = (0..self.used.len() as u32)
            .map(|t| view.target_bytes(t, to).next_multiple_of(GRANULE) - view.target_bytes(t, from).next_multiple_of(GRANULE))
            .collect();
        if more.iter().zip(self.room()).any(|(more, room)| *more > room) {
            return false;
        }
        self.used.iter_mut().zip(&more).for_each(|(used, more)| *used += more);
        true
    }

    /// Until a write fails.
    fn fill(&mut self, template: &[u8], how: &Use) {
        let whole: u64 = self.capacities.iter().sum();
        match how {
            Use::AtOnce(paces) => {
                // Of smaller files it is chance on which targets they lie, when all are made before one has grown.
                let paces = &paces[..paces.len().min((whole / (16 * MIB)).max(1) as usize)];
                let mut files: Vec<(Vec<u8>, u64)> = paces.iter().map(|_| (self.new_file(template), 0)).collect();
                let all: f64 = paces.iter().sum();
                loop {
                    for ((file, size), pace) in files.iter_mut().zip(paces) {
                        let to = *size + (((whole as f64 * pace / all / 400.0) as u64) / GRANULE + 1) * GRANULE;
                        if !self.grow(file, *size, to) {
                            return;
                        }
                        *size = to;
                    }
                }
            }
            Use::InTurn(sizes) => {
                for part in sizes.iter().cycle() {
                    let (file, wanted) = (self.new_file(template), (whole as f64 * part) as u64 / GRANULE * GRANULE + GRANULE);
                    let step = (wanted / 20).next_multiple_of(GRANULE).min((whole / 400).next_multiple_of(GRANULE));
                    let mut size = 0;
                    while size < wanted {
                        if !self.grow(&file, size, size + step) {
                            return;
                        }
                        size += step;
                    }
                }
            }
        }
    }
}

/// The mix, what was taken of it, and how.
fn taken(capacities: &[u64], how: &Use) -> (u64, u64) {
    let mut store = Store { capacities: capacities.to_vec(), used: vec![0; capacities.len()], chance: 1 };
    let template = equal(capacities.len() as u32, 64 * KIB, 64 * MIB);
    store.fill(&template, how);
    (store.used.iter().sum(), capacities.iter().sum())
}

#[test]
fn a_store_takes_nearly_all_that_its_targets_hold_in_1000_mixes() {
    let mut runner = TestRunner::new(Config { cases: 1000, ..Config::default() });
    runner
        .run(&(capacities(), uses()), |(capacities, how)| {
            let (used, whole) = taken(&capacities, &how);
            prop_assert!(used as f64 >= 0.95 * whole as f64, "{used} of {whole} bytes");
            Ok(())
        })
        .unwrap();
}

#[test]
fn small_disks_beside_large_ones_do_not_end_a_file() {
    let capacities = [73 << 30, 73 << 30, 73 << 30, 73 << 30, 16 * MIB, 16 * MIB];
    let (used, whole) = taken(&capacities, &Use::AtOnce(vec![1.0]));
    assert!(used * 100 >= whole * 99, "{used} of {whole}");
}

#[test]
fn targets_of_equal_room_keep_the_template() {
    let template = equal(3, 64 * KIB, 64 * MIB);
    for room in [[0, 0, 0], [MIB, MIB, MIB], [1 << 40, 1 << 40, 1 << 40], [100 * MIB, 99 * MIB, 98 * MIB]] {
        assert_eq!(new_file(&template, &room, None), template, "{room:?}");
    }
    assert_ne!(new_file(&template, &[100 * MIB, 100 * MIB, 50 * MIB], None), template);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_written_without_an_allocator_is_what_encode_writes(
        widths in prop::collection::vec(1u64..200, 1..TARGETS as usize),
        room in prop::collection::vec(prop_oneof![Just(0), Just(u64::MAX), any::<u64>(), 0u64..1 << 40], 0..12),
        len in 1u64..100_000,
        chance in any::<Option<u64>>(),
    ) {
        let stripes: Vec<Stripe> = widths.iter().zip(0..).map(|(width, target)| Stripe { target, width_bytes: width * GRANULE }).collect();
        let region = Region { start: 0, len: len * GRANULE, generation: 0, placement: Placement::Striped(stripes) };
        let template = Layout { regions: vec![region], ..Layout::default() }.encode().unwrap();
        let bytes = new_file(&template, &room, chance);
        prop_assert_eq!(Layout::decode(&bytes).unwrap().encode().unwrap(), bytes);
    }
}
