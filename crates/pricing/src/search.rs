//! The cheapest stripe pair of every region: what Algorithm 1 of H2DP asks for, over all pairs of a grid at once.
//!
//! Keys that occur in many regions are priced once per pair, eight pairs at a time, and a region's total is the sum over its rows; regions
//! with the same keys and counts share one search. Where nearly every key is the only one of its kind, rows are priced where they stand.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::cost::{Params, Priced};
use crate::cycle::Cycle;
use crate::{Key, Keys, map};

/// Pairs priced at a time: a cache line of prices.
const LANES: usize = 8;
/// More distinct keys than this are not worth a table: their prices would not stay in the cache.
const KEYS_MAX: usize = 1 << 20;
/// Costs that differ by less are equal: sums of the same numbers in another order.
const TIE: f64 = 1.0 + 1e-12;

type Lane = [f64; LANES];

/// What is minimised: `weight * T(pair) + (1 - weight) * others_s`, with a weight per pair and a cost per region; plain T when both are empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Objective<'a> {
    /// One per pair, or empty for 1.
    pub weight: &'a [f64],
    /// Seconds per region, or empty for 0.
    pub others_s: &'a [f64],
}

/// The best pair of a region.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Position among the pairs; among equally good ones the last.
    pub pair: usize,
    /// T of the region on it, seconds.
    pub cost_s: f64,
    /// The objective.
    pub value: f64,
}

const NONE: Choice = Choice { pair: 0, cost_s: f64::INFINITY, value: f64::INFINITY };

/// Multiplies and folds: the keys are numbers, not an attacker's.
#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }
}

type Table<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;

/// The best of `pairs` (h, s), in bytes, for every region, rows `first[g]..first[g + 1]`, on `M` HServers and `N` SServers.
///
/// `None` when `first` does not cut the columns, a pair has no cycle, or weights and costs are not one per pair and region.
pub fn search(
    params: &Params,
    (m, n): (u64, u64),
    pairs: &[(u64, u64)],
    keys: Keys<'_>,
    first: &[i64],
    objective: Objective<'_>,
) -> Option<Vec<Choice>> {
    if !keys.is_cut_by(first) || !(objective.weight.is_empty() || objective.weight.len() == pairs.len()) {
        return None;
    }
    let ranges: Vec<(i64, i64)> = first.iter().copied().zip(first.iter().copied().skip(1)).collect();
    if !(objective.others_s.is_empty() || objective.others_s.len() == ranges.len()) {
        return None;
    }
    let cycles: Vec<Cycle<bool>> = pairs.iter().map(|(h, s)| Cycle::pair((false, m, *h), (true, n, *s))).collect::<Option<_>>()?;
    let (members, shared) = share(keys, &ranges, objective.others_s);
    let numbered = Numbered::new(keys, &shared);
    let mut best = vec![NONE; shared.len()];
    for (block, cycles) in cycles.chunks(LANES).enumerate() {
        let totals = block_totals(params, cycles, keys, &shared, numbered.as_ref());
        for ((best, totals), region) in best.iter_mut().zip(&totals).zip(&shared) {
            let others_s = objective.others_s.get(region.number).copied().unwrap_or(0.0);
            for (pair, total) in (block * LANES..).zip(totals).take(cycles.len()) {
                let weight = objective.weight.get(pair).copied().unwrap_or(1.0);
                let value = if weight < 1.0 { weight * total + (1.0 - weight) * others_s } else { *total };
                if value <= best.value * TIE {
                    *best = Choice { pair, cost_s: *total, value };
                }
            }
        }
    }
    Some(members.iter().map(|member| best.get(*member).copied().unwrap_or(NONE)).collect())
}

/// A region that stands for all that are like it, and its rows.
#[derive(Clone, Copy, Debug)]
struct Region {
    number: usize,
    low: i64,
    high: i64,
}

/// One region per distinct list of rows (and its cost elsewhere), and for every region the position of its representative.
fn share(keys: Keys<'_>, ranges: &[(i64, i64)], others_s: &[f64]) -> (Vec<usize>, Vec<Region>) {
    let mut seen: Table<u64, Vec<usize>> = Table::default();
    let mut shared: Vec<Region> = Vec::new();
    let members = ranges.iter().enumerate().map(|(number, &(low, high))| {
        let cost = others_s.get(number).map_or(0, |cost| cost.to_bits());
        let mut mixer = Mixer(cost);
        for (key, count) in keys.rows(low, high) {
            key.hash(&mut mixer);
            mixer.write_u64(count.to_bits());
        }
        let alike = seen.entry(mixer.finish()).or_default();
        let same = |other: &&usize| {
            shared.get(**other).is_some_and(|other| {
                others_s.get(other.number).map_or(0, |cost| cost.to_bits()) == cost && keys.rows(other.low, other.high).eq(keys.rows(low, high))
            })
        };
        if let Some(position) = alike.iter().find(same) {
            return *position;
        }
        alike.push(shared.len());
        shared.push(Region { number, low, high });
        shared.len() - 1
    });
    (members.collect(), shared)
}

/// The distinct keys of all rows, and the number of each row's key.
struct Numbered {
    keys: Vec<Key>,
    number: Vec<u32>,
}

impl Numbered {
    /// `None` where most rows have a key of their own.
    fn new(keys: Keys<'_>, shared: &[Region]) -> Option<Self> {
        let rows: i64 = shared.iter().map(|region| region.high - region.low).sum();
        let worth = (rows as usize / 2).min(KEYS_MAX);
        let mut seen: Table<Key, u32> = Table::default();
        let mut numbered = Self { keys: Vec::new(), number: vec![0; keys.len()] };
        for region in shared {
            let numbers = numbered.number.get_mut(region.low.max(0) as usize..region.high.max(0) as usize)?;
            for ((key, _), number) in keys.rows(region.low, region.high).zip(numbers) {
                *number = *seen.entry(key).or_insert_with(|| {
                    numbered.keys.push(key);
                    numbered.keys.len() as u32 - 1
                });
                if numbered.keys.len() > worth {
                    return None;
                }
            }
        }
        Some(numbered)
    }
}

/// Seconds of every shared region under up to eight pairs.
fn block_totals(params: &Params, cycles: &[Cycle<bool>], keys: Keys<'_>, shared: &[Region], numbered: Option<&Numbered>) -> Vec<Lane> {
    let lane = |key: Key| -> Lane {
        let priced = Priced::new(params, key);
        let mut prices = [0.0; LANES];
        for (price, cycle) in prices.iter_mut().zip(cycles) {
            *price = priced.cost(params, cycle);
        }
        prices
    };
    let Some(numbered) = numbered else {
        return map(shared, keys.len() * LANES, |region| weighted(keys.rows(region.low, region.high).map(|(key, count)| (lane(key), count))));
    };
    let prices = map(&numbered.keys, numbered.keys.len() * LANES, |key| lane(*key));
    map(shared, keys.len(), |region| {
        let numbers = numbered.number.get(region.low.max(0) as usize..region.high.max(0) as usize).unwrap_or_default();
        let price = |number: &u32| prices.get(*number as usize).copied().unwrap_or_default();
        weighted(keys.rows(region.low, region.high).zip(numbers).map(|((_, count), number)| (price(number), count)))
    })
}

/// The sum of prices times counts, lane by lane.
fn weighted(rows: impl Iterator<Item = (Lane, f64)>) -> Lane {
    rows.fold([0.0; LANES], |mut totals, (prices, count)| {
        for (total, price) in totals.iter_mut().zip(prices) {
            *total += price * count;
        }
        totals
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Figures, cycle_costs};
    use proptest::prelude::*;

    const PARAMS: Params = Params {
        p: 8.0,
        c: 2.0,
        e: 1e-4,
        t: 1e-9,
        hdd: Figures { startup_read_s: 3e-3, per_byte_read_s: 1e-8, startup_write_s: 4e-3, per_byte_write_s: 2e-8 },
        ssd: Figures { startup_read_s: 1e-4, per_byte_read_s: 2e-9, startup_write_s: 2e-4, per_byte_write_s: 4e-9 },
    };

    proptest! {
        #[test]
        fn every_region_gets_the_pair_that_is_cheapest_alone(
            regions in proptest::collection::vec(proptest::collection::vec((0i64..64, 1i64..64, 0u8..2, 1i64..4), 0..6), 1..8),
            m in 1u64..5, n in 1u64..4, weighted in any::<bool>(),
        ) {
            let mut rows = Vec::new();
            let mut first = vec![0];
            for region in &regions {
                rows.extend(region.iter().copied());
                first.push(rows.len() as i64);
            }
            let offset: Vec<i64> = rows.iter().map(|row| row.0 * 1000).collect();
            let size: Vec<i64> = rows.iter().map(|row| row.1 * 1000).collect();
            let write: Vec<u8> = rows.iter().map(|row| row.2).collect();
            let count: Vec<i64> = rows.iter().map(|row| row.3).collect();
            let keys = Keys { offset: &offset, size: &size, write: &write, count: &count };
            let pairs: Vec<(u64, u64)> = (0..4).flat_map(|h| (1..4).map(move |s| (h * 4096, s * 4096))).collect();
            let weight: Vec<f64> = if weighted { (0..pairs.len()).map(|i| 0.3 + 0.05 * i as f64).collect() } else { Vec::new() };
            let others_s: Vec<f64> = if weighted { (0..regions.len()).map(|g| g as f64 * 0.01).collect() } else { Vec::new() };
            let found = search(&PARAMS, (m, n), &pairs, keys, &first, Objective { weight: &weight, others_s: &others_s }).unwrap();
            for (g, choice) in found.iter().enumerate() {
                let values: Vec<f64> = pairs.iter().enumerate().map(|(i, (h, s))| {
                    let cycle = Cycle::pair((false, m, *h), (true, n, *s)).unwrap();
                    let cost = cycle_costs(&PARAMS, &cycle, keys, &first).unwrap()[g];
                    if weighted { weight[i] * cost + (1.0 - weight[i]) * others_s[g] } else { cost }
                }).collect();
                let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                prop_assert!(values[choice.pair] <= least * (1.0 + 1e-9));
                prop_assert!((choice.value - values[choice.pair]).abs() <= 1e-9 * choice.value.abs());
            }
        }
    }

    #[test]
    fn threads_and_tables_give_the_same_as_rows_one_by_one() {
        let rows = 50_000i64;
        let offset: Vec<i64> = (0..rows).map(|i| i % 97 * 4096).collect();
        let size: Vec<i64> = (0..rows).map(|i| 4096 + i % 5 * 4096).collect();
        let write: Vec<u8> = (0..rows).map(|i| (i % 2) as u8).collect();
        let count = vec![1; rows as usize];
        let keys = Keys { offset: &offset, size: &size, write: &write, count: &count };
        let first: Vec<i64> = (0..=50).map(|g| g * 1000).collect();
        let pairs: Vec<(u64, u64)> = (1..12).map(|s| (4096, s * 4096)).collect();
        let found = search(&PARAMS, (4, 2), &pairs, keys, &first, Objective::default()).unwrap();
        for (g, choice) in found.iter().enumerate() {
            let (h, s) = pairs[choice.pair];
            let cycle = Cycle::pair((false, 4, h), (true, 2, s)).unwrap();
            let alone = cycle_costs(&PARAMS, &cycle, keys, &first).unwrap()[g];
            assert!((alone - choice.cost_s).abs() <= 1e-12 * alone, "region {g}");
        }
    }
}
