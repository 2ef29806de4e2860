//! A built-in device in a scenario.

use serde::Deserialize;

/// A built-in device: `startup + bytes * per_byte` on each of its channels.
///
/// A hard disk is one channel whose accesses start up each time they do not continue the one before; a solid-state disk is several channels,
/// equal or not in reading and writing. Assumed: service in order of arrival, no scheduling by position, no write cache, figures that do not
/// change with age or fill; the channels of one device are equal, any of them serves any address, and each moves bytes at the full figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSpec {
    /// Figures of reads.
    pub read: Figures,
    /// Figures of writes.
    pub write: Figures,
    /// Where the startup of an access comes from.
    #[serde(default)]
    pub startup: Startup,
    /// Part of its startup that an access is spared which begins where the one before it (in arrival, on any channel) ended: 1 = all, as on
    /// emulated devices; 0 = every access pays its startup, as in cost-models section 7.
    #[serde(default = "all")]
    pub sequential_discount: f64,
    /// Accesses that are served at once.
    #[serde(default = "one")]
    pub channels: u32,
}

/// Figures of one direction.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Startup time; the least one where it is drawn.
    pub startup_s: f64,
    /// Transfer time of a byte.
    pub per_byte_s: f64,
    /// The longest startup of `{"kind": "uniform"}`.
    #[serde(default)]
    pub startup_max_s: Option<f64>,
}

/// Where a startup comes from.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Startup {
    /// Always `startup_s`.
    #[default]
    Fixed,
    /// Uniform between `startup_s` and `startup_max_s`, independently of anything: T_min and T_max of SLAL.
    Uniform,
    /// The whole service time is exponential with mean `startup_s + bytes * per_byte_s`: for comparison with queueing formulas.
    Exponential,
    /// `startup_s + factor_s * sqrt(distance / capacity_bytes)` from the end of the access before, plus a rotation delay uniform on
    /// `[0, rotation_s)`. Addresses stand for positions as if tracks were equally long; they wrap at the capacity.
    Seek {
        /// Seek time of the full stroke beyond the constant part.
        factor_s: f64,
        /// Time of one rotation.
        rotation_s: f64,
        /// Bytes of the full stroke.
        capacity_bytes: u64,
    },
}

type Wrong = (&'static str, String, &'static str);

impl DeviceSpec {
    /// (key, what is wrong, cure) of the first thing that cannot be.
    pub(crate) fn check(&self) -> Result<(), Wrong> {
        if !(0.0..=1.0).contains(&self.sequential_discount) {
            return Err(("sequential_discount", format!("is {}", self.sequential_discount), "give a part between 0 and 1"));
        }
        for (key, figures) in [("read.startup_max_s", &self.read), ("write.startup_max_s", &self.write)] {
            match (self.startup, figures.startup_max_s) {
                (Startup::Uniform, None) => return Err((key, "is missing".into(), "give the longest startup of \"uniform\"")),
                (Startup::Uniform, Some(most)) if most < figures.startup_s => {
                    return Err((key, format!("is {most}"), "give no less than startup_s"));
                }
                (Startup::Uniform, Some(_)) | (_, None) => {}
                (_, Some(_)) => return Err((key, "is given".into(), "give \"startup\": {\"kind\": \"uniform\"} with it, or leave it out")),
            }
        }
        let Startup::Seek { factor_s, rotation_s, capacity_bytes } = self.startup else { return Ok(()) };
        for (key, value) in [("startup.factor_s", factor_s), ("startup.rotation_s", rotation_s)] {
            if !(0.0..=1000.0).contains(&value) {
                return Err((key, format!("is {value}"), "give seconds between 0 and 1000"));
            }
        }
        if capacity_bytes == 0 {
            return Err(("startup.capacity_bytes", "is 0".into(), "give the bytes of the disk"));
        }
        Ok(())
    }
}

fn all() -> f64 {
    1.0
}

fn one() -> u32 {
    1
}
