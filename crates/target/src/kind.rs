//! What serves a target, what device it is, and how that device behaves: what a store's configuration says of a target, by the numbers of store.bin
//! (docs/formats.md) and the words of store.toml.

/// Most targets of one store: keeps the per-file array of objects of the preloaded library within one page.
pub const MAX_TARGETS: usize = 256;

/// Device class of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Class {
    /// Not said.
    Any = 0,
    /// Hard disk.
    Hdd = 1,
    /// Flash.
    Ssd = 2,
    /// Shingled disk.
    Swd = 3,
}

impl Class {
    const ALL: [Self; 4] = [Self::Any, Self::Hdd, Self::Ssd, Self::Swd];

    /// The class of a number in store.bin.
    #[must_use]
    pub fn of_code(code: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|class| *class as u32 == code)
    }

    /// The class of a word in store.toml.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Its word in store.toml.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Hdd => "hdd",
            Self::Ssd => "ssd",
            Self::Swd => "swd",
        }
    }
}

/// What serves a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// A directory.
    Dir = 0,
    /// A directory behind an emulated device's clock.
    Emulated = 1,
    /// Objects of another process, which serves the segment in a directory: for tests.
    #[cfg(feature = "served")]
    Served = 1000,
}

impl Kind {
    const ALL: &[Self] = &[
        Self::Dir,
        Self::Emulated,
        #[cfg(feature = "served")]
        Self::Served,
    ];

    /// The kind of a number in store.bin.
    #[must_use]
    pub fn of_code(code: u32) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| *kind as u32 == code)
    }

    /// The kind of a word in store.toml.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Its word in store.toml.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dir => "dir",
            Self::Emulated => "emulated",
            #[cfg(feature = "served")]
            Self::Served => "served",
        }
    }

    /// Whether its accesses take a device's time.
    #[must_use]
    pub const fn is_emulated(self) -> bool {
        matches!(self, Self::Emulated)
    }
}

/// Service-time figures of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceModel {
    /// Startup of a read that does not continue the last access, ns.
    pub startup_read_ns: u64,
    /// The same for a write, ns.
    pub startup_write_ns: u64,
    /// Transfer time of a read, picoseconds per byte.
    pub read_ps_per_byte: u64,
    /// Transfer time of a write, picoseconds per byte.
    pub write_ps_per_byte: u64,
}
