//! A scheme on a simulated disk as a device that serves accesses of bytes one at a time: what a larger simulation plugs in as one of its disks.

use stripewise_swd::{Purpose, Scheme, SwdError};

use crate::commands::Commands;
use crate::counts::report::CounterReport;
use crate::error::Error;
use crate::idle::idle;
use crate::medium::TimedMedium;
use crate::settings::{Background, Settings};
use crate::timed::{TimedScheme, each};

/// A disk that serves one access at a time, in the order they come. Of the settings, the queue and arrivals are not used.
#[derive(Clone, Debug)]
pub struct SimulatedDisk {
    scheme: TimedScheme,
    commands: Commands,
    background: Option<Background>,
    used_sectors: u64,
    sector_bytes: u64,
}

impl SimulatedDisk {
    /// The disk of the settings, filled as they say, with its clock at 0.
    ///
    /// # Errors
    /// Settings that do not fit together.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        let scheme = TimedScheme::new(settings)?;
        Ok(Self {
            used_sectors: scheme.used_sectors(settings)?,
            commands: Commands::new(&settings.disk, scheme.medium().takes_writes()),
            background: settings.background,
            sector_bytes: u64::from(settings.disk.block_bytes),
            scheme,
        })
    }

    /// Bytes that addresses are folded onto.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.used_sectors * self.sector_bytes
    }

    /// Serves `bytes` from `address` on, which the disk takes up at `begin_ns`, and returns how long that takes, ns. Addresses are folded onto the used
    /// space; an access beyond its end goes on at its begin.
    ///
    /// # Errors
    /// A scheme that cannot serve it.
    pub fn serve(&mut self, begin_ns: u64, address: u64, bytes: u64, write: bool) -> Result<u64, Error> {
        let (first, end) = (address / self.sector_bytes, address.saturating_add(bytes.max(1)).div_ceil(self.sector_bytes));
        let (mut lba, mut left) = (first % self.used_sectors, (end - first).min(self.used_sectors));
        let blocks = left * (self.sector_bytes / stripewise_blocks::BLOCK_BYTES);
        let hit = !write && each!(&self.scheme, scheme => holds(scheme.as_ref(), lba, left));
        let taken_ns = self.commands.take(write, hit, blocks);
        each!(&mut self.scheme, scheme => scheme.medium_mut().wait_until(begin_ns.saturating_add(taken_ns)));
        let transferred_ns = self.scheme.medium().accounts().of(Purpose::Own).transfer_ns;
        while left > 0 {
            let sectors = left.min(self.used_sectors - lba);
            let done = each!(&mut self.scheme, scheme => if write { scheme.write(lba, sectors, &[]) } else { scheme.read(lba, sectors, &mut []) });
            done.map_err(|error| failed(address, &error))?;
            (lba, left) = ((lba + sectors) % self.used_sectors, left - sectors);
        }
        let medium = self.scheme.medium();
        let transfer_ns = medium.accounts().of(Purpose::Own).transfer_ns - transferred_ns;
        Ok(medium.now_ns().saturating_sub(begin_ns) + self.commands.bring(write, blocks, transfer_ns))
    }

    /// Nothing is asked of the disk from `from_ns` until `until_ns`. Returns how long it worked for itself, ns; where its work ends
    /// after `until_ns`, the time from `from_ns` until that end, which the next access must wait for.
    ///
    /// # Errors
    /// A scheme that fails.
    pub fn idle(&mut self, from_ns: u64, until_ns: u64) -> Result<u64, Error> {
        let before = self.scheme.medium().accounts().times().iter().sum::<u64>();
        let worked = each!(&mut self.scheme, scheme => idle(scheme.as_mut(), self.background, from_ns, until_ns));
        worked.map_err(|error| Error::Request(format!("work of an idle disk: {error}")))?;
        let medium = self.scheme.medium();
        let busy_ns = medium.accounts().times().iter().sum::<u64>() - before;
        Ok(if medium.now_ns() > until_ns { medium.now_ns() - from_ns } else { busy_ns })
    }

    /// The simulated disk below.
    #[must_use]
    pub fn medium(&self) -> &TimedMedium {
        self.scheme.medium()
    }

    /// What the scheme counted.
    #[must_use]
    pub fn counters(&self) -> CounterReport {
        each!(&self.scheme, scheme => scheme.counters()).into()
    }
}

fn failed(address: u64, error: &SwdError) -> Error {
    Error::Request(format!("an access at byte {address}: {error}"))
}

fn holds<S: Scheme<Medium = TimedMedium>>(scheme: &S, lba: u64, sectors: u64) -> bool {
    let medium = scheme.medium();
    medium.caches_reads()
        && scheme
            .locate(lba)
            .and_then(|at| medium.place(at).map(|place| (place, at.sector)))
            .is_some_and(|(place, sector)| medium.holds(&place, sector, sectors))
}
