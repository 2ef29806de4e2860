//! Seconds of one request on a cycle: seed 000, Table 2, with the bytes and servers that the request really has (cost-models section 1).

use crate::cycle::Cycle;
use crate::share::{Ends, Place};
use crate::{Key, Keys, threads};

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

/// T = T_E + T_X + T_ST of one request; a run's kind says whether its servers are SServers.
#[inline]
pub(crate) fn request_cost(params: &Params, cycle: &Cycle<bool>, key: Key) -> f64 {
    let place = Place::new(key.offset, key.size, cycle.length);
    let (mut touched, mut h_eff, mut s_eff) = (0u64, 0u64, 0u64);
    for run in &cycle.runs {
        let ends = Ends::new(place, run);
        touched += ends.touched(run.count).number(run.count);
        let most = ends.most_bytes(run.width, run.count);
        if run.kind {
            s_eff = s_eff.max(most);
        } else {
            h_eff = h_eff.max(most);
        }
    }
    let establish = (params.c * touched as f64).max(params.p) * params.e;
    let transfer = (params.c * key.size as f64 * params.t).max(params.p * h_eff.max(s_eff) as f64 * params.t);
    let on_hdd = if h_eff > 0 { params.hdd.seconds(h_eff, key.write) } else { 0.0 };
    let on_ssd = if s_eff > 0 { params.ssd.seconds(s_eff, key.write) } else { 0.0 };
    establish + transfer + params.p * on_hdd.max(on_ssd)
}

/// Seconds of every region when its keys, rows `first[g]..first[g + 1]`, lie on `cycle`: the sum over its requests.
///
/// `None` when `first` does not cut the columns.
pub fn cycle_costs(params: &Params, cycle: &Cycle<bool>, keys: Keys<'_>, first: &[i64]) -> Option<Vec<f64>> {
    if !keys.is_cut_by(first) {
        return None;
    }
    let ranges: Vec<(i64, i64)> = first.iter().copied().zip(first.iter().copied().skip(1)).collect();
    Some(threads::map(&ranges, keys.len(), |(low, high)| keys.rows(*low, *high).map(|(key, count)| request_cost(params, cycle, key) * count).sum()))
}
