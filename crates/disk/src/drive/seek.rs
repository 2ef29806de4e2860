//! Seek times: a table with the time of every distance, interpolated once between the points of the disk's file.

use crate::drive::spec::DiskSpec;
use crate::time::milliseconds;

/// Times by cylinders of distance, ns.
#[derive(Clone, Debug)]
pub(crate) struct SeekTable {
    by_cylinders_ns: Vec<u32>,
}

impl SeekTable {
    pub(crate) fn new(spec: &DiskSpec) -> Self {
        let mut by_cylinders_ns = vec![0u32; spec.cylinders as usize];
        let last = spec.seek.last().copied().unwrap_or((1, 0.0));
        // After the last point the line through the last two goes on.
        let end = match spec.seek.iter().rev().nth(1) {
            Some(&before) => (spec.cylinders, last.1 + slope(before, last) * f64::from(spec.cylinders.saturating_sub(last.0))),
            None => (spec.cylinders, last.1),
        };
        let points = spec.seek.iter().copied().chain([end]);
        for (from, to) in spec.seek.iter().copied().zip(points.skip(1)) {
            for cylinders in from.0..to.0.min(spec.cylinders) {
                let ms = from.1 + slope(from, to) * f64::from(cylinders - from.0);
                if let Some(ns) = by_cylinders_ns.get_mut(cylinders as usize) {
                    *ns = u32::try_from(milliseconds(ms.max(0.0))).unwrap_or(u32::MAX);
                }
            }
        }
        Self { by_cylinders_ns }
    }

    /// 0 for no distance.
    #[inline]
    pub(crate) fn ns(&self, cylinders: u32) -> u64 {
        self.by_cylinders_ns.get(cylinders as usize).map_or(u64::from(u32::MAX), |&ns| u64::from(ns))
    }
}

fn slope(from: (u32, f64), to: (u32, f64)) -> f64 {
    if to.0 == from.0 { 0.0 } else { (to.1 - from.1) / f64::from(to.0 - from.0) }
}
