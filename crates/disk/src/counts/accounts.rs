//! What a disk did and for whom: accesses and their times by the purpose that the scheme gave, and how far the arm went.

use serde::Serialize;
use stripewise_swd::Purpose;

use crate::drive::mechanics::Motion;
use crate::time::in_seconds;

/// Accesses of one purpose, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Accesses to the medium, of one track each.
    pub accesses: u64,
    /// Sectors of these.
    pub sectors: u64,
    /// Accesses that the cache served.
    pub hits: u64,
    /// Moving the arm, changing heads, settling.
    pub seek_ns: u64,
    /// Waiting for first sectors.
    pub rotation_ns: u64,
    /// Transferring, and waiting for the next track in the middle of a transfer.
    pub transfer_ns: u64,
}

impl Account {
    /// All time.
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.seek_ns + self.rotation_ns + self.transfer_ns
    }
}

/// The accounts of a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    by_purpose: [Account; 4],
    /// Entry i: accesses after a move of 2^(i-1) to 2^i - 1 cylinders; entry 0: of none.
    seeks: [u64; 32],
}

fn place(purpose: Purpose) -> usize {
    match purpose {
        Purpose::Own => 0,
        Purpose::Amplification => 1,
        Purpose::Collection => 2,
        Purpose::Upkeep => 3,
    }
}

impl Accounts {
    /// Of one purpose.
    #[must_use]
    pub fn of(&self, purpose: Purpose) -> Account {
        self.by_purpose.get(place(purpose)).copied().unwrap_or_default()
    }

    /// Times by purpose, ns: own, amplification, collection, upkeep.
    #[inline]
    pub(crate) fn times(&self) -> [u64; 4] {
        self.by_purpose.map(|account| account.ns())
    }

    #[inline]
    pub(crate) fn access(&mut self, purpose: Purpose, sectors: u32, motion: &Motion) {
        if let Some(account) = self.by_purpose.get_mut(place(purpose)) {
            account.accesses += 1;
            account.sectors += u64::from(sectors);
            account.seek_ns += motion.seek_ns;
            account.rotation_ns += motion.rotation_ns;
            account.transfer_ns += motion.transfer_ns;
        }
        if let Some(count) = self.seeks.get_mut((u32::BITS - motion.cylinders.leading_zeros()) as usize) {
            *count += 1;
        }
    }

    pub(crate) fn hit(&mut self, purpose: Purpose) {
        if let Some(account) = self.by_purpose.get_mut(place(purpose)) {
            account.hits += 1;
        }
    }

    #[must_use]
    pub fn report(&self) -> AccountsReport {
        AccountsReport {
            own: (&self.of(Purpose::Own)).into(),
            amplification: (&self.of(Purpose::Amplification)).into(),
            collection: (&self.of(Purpose::Collection)).into(),
            upkeep: (&self.of(Purpose::Upkeep)).into(),
        }
    }

    /// How far the arm moved before accesses, in ranges that double; ranges without accesses are left out.
    #[must_use]
    pub fn seeks(&self) -> Vec<SeekRange> {
        let range = |(i, &accesses): (usize, &u64)| {
            let from = if i == 0 { 0 } else { 1u64 << (i - 1) };
            SeekRange { from_cylinders: from, to_cylinders: if i == 0 { 0 } else { 2 * from - 1 }, accesses }
        };
        self.seeks.iter().enumerate().map(range).filter(|range| range.accesses > 0).collect()
    }
}

/// Accounts as a report has them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AccountsReport {
    /// What a plain disk would have done too.
    pub own: AccountReport,
    /// What updates took with them.
    pub amplification: AccountReport,
    /// Moves that bring free space together.
    pub collection: AccountReport,
    /// Checkpoints, journal, tables.
    pub upkeep: AccountReport,
}

/// An account in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AccountReport {
    /// Accesses to the medium, of one track each.
    pub accesses: u64,
    /// Sectors of these.
    pub sectors: u64,
    /// Accesses that the cache served.
    pub hits: u64,
    /// Moving the arm, changing heads, settling.
    pub seek_s: f64,
    /// Waiting for first sectors.
    pub rotation_s: f64,
    /// Transferring, and waiting for the next track in the middle of a transfer.
    pub transfer_s: f64,
}

impl From<&Account> for AccountReport {
    fn from(account: &Account) -> Self {
        Self {
            accesses: account.accesses,
            sectors: account.sectors,
            hits: account.hits,
            seek_s: in_seconds(account.seek_ns),
            rotation_s: in_seconds(account.rotation_ns),
            transfer_s: in_seconds(account.transfer_ns),
        }
    }
}

/// Accesses by how far the arm moved for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SeekRange {
    /// At least so far.
    pub from_cylinders: u64,
    /// At most so far.
    pub to_cylinders: u64,
    /// How many.
    pub accesses: u64,
}
