//! Seconds of one request on a cycle: H2DP, Table 2, with the bytes and servers that the request really has (cost-models section 1).

use crate::cycle::Cycle;
use crate::place::Place;
use crate::share::Ends;
use crate::{Key, Keys, map};

/// Startup (seconds per access) and transfer (seconds per byte) of reads and of writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// alpha of a read.
    pub startup_read_s: f64,
    /// beta of a read.
    pub per_byte_read_s: f64,
    /// alpha of a write.
    pub startup_write_s: f64,
    /// beta of a write.
    pub per_byte_write_s: f64,
}

impl Figures {
    #[inline]
    pub(crate) fn seconds(&self, bytes: u64, write: bool) -> f64 {
        if write { self.startup_write_s + bytes as f64 * self.per_byte_write_s } else { self.startup_read_s + bytes as f64 * self.per_byte_read_s }
    }
}

/// p, c, e, t of the models and the figures of both classes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Client processes.
    pub p: f64,
    /// Processes on one node.
    pub c: f64,
    /// Seconds to establish a connection.
    pub e: f64,
    /// Network seconds per byte.
    pub t: f64,
    /// HServers.
    pub hdd: Figures,
    /// SServers.
    pub ssd: Figures,
}

/// What the formulas take of one key, whatever the cycle: chosen once for many cycles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Priced {
    key: Key,
    /// c*r*t: the node's link.
    node_s: f64,
    hdd: (f64, f64),
    ssd: (f64, f64),
}

impl Priced {
    #[inline]
    pub fn new(params: &Params, key: Key) -> Self {
        let of = |figures: &Figures| {
            if key.write { (figures.startup_write_s, figures.per_byte_write_s) } else { (figures.startup_read_s, figures.per_byte_read_s) }
        };
        Self { key, node_s: params.c * double(key.size) * params.t, hdd: of(&params.hdd), ssd: of(&params.ssd) }
    }

    /// T = T_E + T_X + T_ST on a cycle; a run's kind says whether its servers are SServers.
    #[inline]
    pub fn cost(&self, params: &Params, cycle: &Cycle<bool>) -> f64 {
        let place = Place::new(self.key.offset, self.key.size, cycle.by_length);
        let (mut touched, mut h_eff, mut s_eff) = (0u64, 0u64, 0u64);
        for run in &cycle.runs {
            let (most, servers) = Ends::new(place, run).most_bytes(run.width, run.count);
            touched += servers;
            if run.kind {
                s_eff = s_eff.max(most);
            } else {
                h_eff = h_eff.max(most);
            }
        }
        let establish = (params.c * double(touched)).max(params.p) * params.e;
        let transfer = self.node_s.max(params.p * double(h_eff.max(s_eff)) * params.t);
        let on_hdd = if h_eff > 0 { self.hdd.0 + double(h_eff) * self.hdd.1 } else { 0.0 };
        let on_ssd = if s_eff > 0 { self.ssd.0 + double(s_eff) * self.ssd.1 } else { 0.0 };
        establish + transfer + params.p * on_hdd.max(on_ssd)
    }
}

/// Numbers below 2^63 as doubles: from signed ones that is a single instruction.
#[inline]
fn double(number: u64) -> f64 {
    number as i64 as f64
}

/// Seconds of every region when its keys, rows `first[g]..first[g + 1]`, lie on `cycle`: the sum over its requests.
///
/// `None` when `first` does not cut the columns.
pub fn cycle_costs(params: &Params, cycle: &Cycle<bool>, keys: Keys<'_>, first: &[i64]) -> Option<Vec<f64>> {
    if !keys.is_cut_by(first) {
        return None;
    }
    let ranges: Vec<(i64, i64)> = first.iter().copied().zip(first.iter().copied().skip(1)).collect();
    Some(map(&ranges, keys.len(), |(low, high)| {
        keys.rows(*low, *high).map(|(key, count)| Priced::new(params, key).cost(params, cycle) * count).sum()
    }))
}
