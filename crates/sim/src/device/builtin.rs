//! The built-in devices: figures compiled to whole nanoseconds and fixed point, so that the common case is two multiplications.

use super::{DeviceAccess, DeviceSpec, Figures, Service, Startup};
use crate::SplitMix64;
use crate::time::{PerByte, nanoseconds};

/// Figures of one direction, compiled.
#[derive(Clone, Copy, Debug)]
struct Direction {
    startup_ns: u64,
    /// Startup of an access that continues the one before.
    continued_ns: u64,
    /// Width of the interval of a uniform startup.
    spread_ns: u64,
    per_byte: PerByte,
}

impl Direction {
    fn new(figures: &Figures, discount: f64) -> Self {
        let most = figures.startup_max_s.unwrap_or(figures.startup_s);
        Direction {
            startup_ns: nanoseconds(figures.startup_s),
            continued_ns: nanoseconds(figures.startup_s * (1.0 - discount)),
            spread_ns: nanoseconds(most).saturating_sub(nanoseconds(figures.startup_s)),
            per_byte: PerByte::new(figures.per_byte_s),
        }
    }
}

/// One built-in device.
#[derive(Clone, Debug)]
pub(crate) struct Builtin {
    /// Address after the last access.
    position: u64,
    read: Direction,
    write: Direction,
    rarely: Box<Rarely>,
    fixed: bool,
    discounted: bool,
}

/// What only drawn startups need.
#[derive(Clone, Debug)]
struct Rarely {
    startup: Startup,
    paid_part: f64,
    random: SplitMix64,
}

impl Builtin {
    pub(crate) fn new(spec: &DeviceSpec, random: SplitMix64) -> Self {
        Builtin {
            position: u64::MAX,
            read: Direction::new(&spec.read, spec.sequential_discount),
            write: Direction::new(&spec.write, spec.sequential_discount),
            rarely: Box::new(Rarely { startup: spec.startup, paid_part: 1.0 - spec.sequential_discount, random }),
            fixed: matches!(spec.startup, Startup::Fixed),
            discounted: spec.sequential_discount > 0.0,
        }
    }

    #[inline]
    pub(crate) fn service(&mut self, access: &DeviceAccess) -> Service {
        let direction = if access.write { &self.write } else { &self.read };
        let before = core::mem::replace(&mut self.position, access.address.wrapping_add(access.bytes));
        let continues = self.discounted && before == access.address;
        let transfer_ns = direction.per_byte.of(access.bytes);
        let ns = if self.fixed {
            transfer_ns.saturating_add(if continues { direction.continued_ns } else { direction.startup_ns })
        } else {
            self.rarely.drawn(direction, access, transfer_ns, before, continues)
        };
        Service { ns, startup: !continues }
    }
}

impl Rarely {
    fn drawn(&mut self, direction: &Direction, access: &DeviceAccess, transfer_ns: u64, before: u64, continues: bool) -> u64 {
        let startup_ns = direction.startup_ns as f64;
        let startup = match self.startup {
            Startup::Fixed => startup_ns,
            Startup::Uniform => startup_ns + self.random.unit() * direction.spread_ns as f64,
            Startup::Exponential => {
                let startup = if continues { startup_ns * self.paid_part } else { startup_ns };
                return ((startup + transfer_ns as f64) * self.random.exponential()).round() as u64;
            }
            Startup::Seek { factor_s, rotation_s, capacity_bytes } => {
                let from = if before == u64::MAX { 0 } else { before % capacity_bytes };
                let distance = from.abs_diff(access.address % capacity_bytes) as f64 / capacity_bytes as f64;
                startup_ns + (factor_s * distance.sqrt() + rotation_s * self.random.unit()) * 1e9
            }
        };
        let paid = if continues { startup * self.paid_part } else { startup };
        transfer_ns.saturating_add(paid.round() as u64)
    }
}
