//! What a scenario must satisfy before it is simulated: the engine trusts every index and every sum that is checked here.

use super::{FileSpec, SCENARIO_VERSION, Scenario, Stripe};
use crate::Error;

/// Offsets lie below this many bytes, as in a layout.
pub(crate) const MAX_LOGICAL: u64 = 1 << 62;
/// No single time of a scenario is longer: a run of many such still fits the clock of u64 ns.
const MAX_SECONDS: f64 = 1e6;
/// Slowest transfer: above it the fixed-point time per byte would not fit.
const MAX_PER_BYTE_S: f64 = 1.0;
/// The free channel is looked for one by one.
const MAX_CHANNELS: u32 = 1024;
/// More copies in flight than any machine has; the report's buckets and a node's processes are bounded alike.
const MAX_COUNT: u32 = 1 << 16;

fn invalid<T>(key: &str, wrong: &str, cure: &str) -> Result<T, Error> {
    Err(Error::Invalid(format!("scenario: {key} {wrong}; {cure}")))
}

/// A time between 0 and `most` seconds.
pub(crate) fn seconds(key: &str, value: f64, most: f64) -> Result<(), Error> {
    if value.is_finite() && (0.0..=most).contains(&value) {
        return Ok(());
    }
    invalid(key, &format!("is {value}"), &format!("give seconds between 0 and {most}"))
}

fn count(key: &str, value: u32) -> Result<(), Error> {
    if (1..=MAX_COUNT).contains(&value) {
        return Ok(());
    }
    invalid(key, &format!("is {value}"), &format!("give a number from 1 to {MAX_COUNT}"))
}

impl Scenario {
    /// Checks what the types cannot say.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the first key that is wrong and what to do about it.
    pub fn check(&self) -> Result<(), Error> {
        if self.version != SCENARIO_VERSION {
            return invalid("version", &format!("is {}", self.version), &format!("this program reads version {SCENARIO_VERSION}"));
        }
        self.check_servers()?;
        seconds("network.establish_s", self.network.establish_s, MAX_SECONDS)?;
        seconds("network.per_byte_s", self.network.per_byte_s, MAX_PER_BYTE_S)?;
        count("network.processes_per_node", self.network.processes_per_node)?;
        count("timeline_buckets", self.timeline_buckets)?;
        if self.timeline_buckets < 2 {
            return invalid("timeline_buckets", "is 1", "give 2 or more");
        }
        if self.read_ahead_bytes > MAX_LOGICAL {
            return invalid("read_ahead_bytes", "is too large", "give less than 2^62");
        }
        let mut seen = vec![u32::MAX; self.servers.len()];
        for (i, cycle) in self.cycles.iter().enumerate() {
            check_cycle(i, cycle, &mut seen)?;
        }
        for (i, file) in self.files.iter().enumerate() {
            self.check_file(i, file)?;
        }
        self.check_moves()
    }

    fn check_servers(&self) -> Result<(), Error> {
        if self.servers.is_empty() || self.servers.len() > 1 << 24 {
            return invalid("servers", &format!("has {} entries", self.servers.len()), "name from 1 to 16 million servers");
        }
        for (i, server) in self.servers.iter().enumerate() {
            let key = |rest: &str| format!("servers[{i}].device.{rest} (server {:?})", server.name);
            let device = &server.device;
            for (name, figures) in [("read", &device.read), ("write", &device.write)] {
                seconds(&key(&format!("{name}.startup_s")), figures.startup_s, MAX_SECONDS)?;
                seconds(&key(&format!("{name}.per_byte_s")), figures.per_byte_s, MAX_PER_BYTE_S)?;
                if let Some(most) = figures.startup_max_s {
                    seconds(&key(&format!("{name}.startup_max_s")), most, MAX_SECONDS)?;
                }
            }
            device.check().or_else(|(rest, wrong, cure)| invalid(&key(rest), &wrong, cure))?;
            if !(1..=MAX_CHANNELS).contains(&device.channels) {
                return invalid(&key("channels"), &format!("is {}", device.channels), &format!("give a number from 1 to {MAX_CHANNELS}"));
            }
            if server.disk.is_some() && device.channels != 1 {
                return invalid(&key("channels"), &format!("is {}", device.channels), "give 1 to a server with a mechanical disk");
            }
        }
        Ok(())
    }

    fn check_place(&self, key: &str, cycle: u32, first: u32) -> Result<(), Error> {
        let Some(stripes) = self.cycles.get(cycle as usize) else {
            return invalid(key, &format!("names cycle {cycle} of {}", self.cycles.len()), "name a cycle that there is");
        };
        if first as usize >= stripes.len() {
            return invalid(key, &format!("begins at entry {first} of {}", stripes.len()), "give an entry of its cycle");
        }
        Ok(())
    }

    fn check_file(&self, i: usize, file: &FileSpec) -> Result<(), Error> {
        let key = |rest: &str| format!("files[{i}].{rest} (file {:?})", file.name);
        if file.size_bytes > MAX_LOGICAL {
            return invalid(&key("size_bytes"), "is too large", "give less than 2^62");
        }
        if file.regions.is_empty() {
            return invalid(&key("regions"), "is empty", "give at least one region; the last one repeats");
        }
        let mut end = 0;
        for (n, region) in file.regions.iter().enumerate() {
            let key = key(&format!("regions[{n}]"));
            if region.start != end {
                return invalid(&key, &format!("starts at {}", region.start), &format!("begin where the one before ends, at {end}"));
            }
            if region.len == 0 || region.len > MAX_LOGICAL || region.start + region.len > MAX_LOGICAL {
                return invalid(&key, &format!("is {} bytes long", region.len), "give a length from 1, ending below 2^62");
            }
            self.check_place(&key, region.cycle, region.first)?;
            end = region.start + region.len;
        }
        Ok(())
    }

    fn check_moves(&self) -> Result<(), Error> {
        for (i, step) in self.moves.iter().enumerate() {
            let key = format!("moves[{i}]");
            seconds(&format!("{key}.at_s"), step.at_s, 1e9)?;
            if step.file as usize >= self.files.len() {
                return invalid(&format!("{key}.file"), &format!("is {}", step.file), "name a file that there is");
            }
            if step.len == 0 || step.start > MAX_LOGICAL || step.len > MAX_LOGICAL - step.start {
                return invalid(&format!("{key}.len"), &format!("is {}", step.len), "give a span of at least one byte that ends below 2^62");
            }
            self.check_place(&key, step.cycle, step.first)?;
        }
        count("copy.in_flight", self.copy.in_flight)?;
        if self.copy.chunk_bytes == 0 || self.copy.chunk_bytes > MAX_LOGICAL {
            return invalid("copy.chunk_bytes", &format!("is {}", self.copy.chunk_bytes), "give at least 1 byte");
        }
        let rate = self.copy.rate_bytes_per_s;
        if !rate.is_finite() || rate < 0.0 || (rate > 0.0 && self.copy.chunk_bytes as f64 / rate > 1e9) {
            return invalid("copy.rate_bytes_per_s", &format!("is {rate}"), "give bytes per second, or 0 for no cap");
        }
        Ok(())
    }
}

fn check_cycle(i: usize, cycle: &[Stripe], seen: &mut [u32]) -> Result<(), Error> {
    if cycle.is_empty() {
        return invalid(&format!("cycles[{i}]"), "is empty", "give at least one [server, width_bytes]");
    }
    let mut bytes = 0u64;
    for (n, stripe) in cycle.iter().enumerate() {
        let key = format!("cycles[{i}][{n}]");
        let servers = seen.len();
        let Some(last) = seen.get_mut(stripe.server as usize) else {
            return invalid(&key, &format!("names server {} of {servers}", stripe.server), "name a server that there is");
        };
        if *last == i as u32 {
            return invalid(
                &key,
                &format!("names server {} a second time", stripe.server),
                "name each server once and give it the sum of the widths",
            );
        }
        *last = i as u32;
        bytes = bytes.saturating_add(stripe.width_bytes);
        if stripe.width_bytes == 0 || bytes > MAX_LOGICAL {
            return invalid(&key, &format!("has width {}", stripe.width_bytes), "give at least 1 byte, the whole cycle below 2^62");
        }
    }
    Ok(())
}
