//! The order in which a disk serves the requests it holds.
//!
//! A request counts from the time its command has been taken, `ready_ns`; FCFS waits for the one that came first even if a later one is ready.
//! SSTF and C-LOOK go by the cylinder at which a request's first sector lay when it came; SPTF looks at the arm and the rotation anew each time.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use stripewise_blocks::BlockRequest;

use crate::drive::layout::Place;
use crate::medium::TimedMedium;

/// An order of service.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
pub enum QueueOrder {
    /// First come, first served.
    #[default]
    #[serde(rename = "fcfs")]
    Fcfs,
    /// The shortest seek first.
    #[serde(rename = "sstf")]
    Sstf,
    /// Inwards cylinder by cylinder; from the innermost request back to the outermost.
    #[serde(rename = "c-look")]
    CLook,
    /// The shortest positioning time first: seek and rotation.
    #[serde(rename = "sptf")]
    Sptf,
}

/// A request that the disk holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) request: BlockRequest,
    /// Its number, from 0.
    pub(crate) number: u64,
    pub(crate) ready_ns: u64,
    /// Where its first sector lies, and its sector of the track.
    pub(crate) place: Option<(Place, u32)>,
}

impl Pending {
    fn cylinder(&self) -> u32 {
        self.place.map_or(0, |(place, _)| place.cylinder)
    }
}

/// The requests that the disk holds.
#[derive(Clone, Debug)]
pub(crate) enum Queue {
    Fcfs(VecDeque<Pending>),
    Sorted(Sorted),
    Sptf(Vec<Pending>),
}

/// Requests by cylinder.
#[derive(Clone, Debug)]
pub(crate) struct Sorted {
    nearest: bool,
    by_cylinder: BTreeMap<(u32, u64), Pending>,
    /// Their commands are still being taken.
    by_ready: BTreeMap<(u64, u64), Pending>,
}

impl Queue {
    pub(crate) fn new(order: QueueOrder) -> Self {
        match order {
            QueueOrder::Fcfs => Self::Fcfs(VecDeque::new()),
            QueueOrder::Sstf | QueueOrder::CLook => {
                Self::Sorted(Sorted { nearest: order == QueueOrder::Sstf, by_cylinder: BTreeMap::new(), by_ready: BTreeMap::new() })
            }
            QueueOrder::Sptf => Self::Sptf(Vec::new()),
        }
    }

    /// Whether it looks at where requests lie.
    #[inline]
    pub(crate) fn needs_places(&self) -> bool {
        !matches!(self, Self::Fcfs(_))
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Fcfs(queue) => queue.len(),
            Self::Sorted(sorted) => sorted.by_cylinder.len() + sorted.by_ready.len(),
            Self::Sptf(queue) => queue.len(),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, pending: Pending) {
        match self {
            Self::Fcfs(queue) => queue.push_back(pending),
            Self::Sorted(sorted) => {
                sorted.by_ready.insert((pending.ready_ns, pending.number), pending);
            }
            Self::Sptf(queue) => queue.push(pending),
        }
    }

    /// When the next one can be served; `None` of none.
    pub(crate) fn ready_ns(&self) -> Option<u64> {
        match self {
            Self::Fcfs(queue) => queue.front().map(|pending| pending.ready_ns),
            Self::Sorted(sorted) if !sorted.by_cylinder.is_empty() => Some(0),
            Self::Sorted(sorted) => sorted.by_ready.keys().next().map(|key| key.0),
            Self::Sptf(queue) => queue.iter().map(|pending| pending.ready_ns).min(),
        }
    }

    /// The one to be served now, if one is ready.
    #[inline]
    pub(crate) fn pop(&mut self, medium: &TimedMedium) -> Option<Pending> {
        let now_ns = medium.now_ns();
        match self {
            Self::Fcfs(queue) => {
                let ready = queue.front().is_some_and(|pending| pending.ready_ns <= now_ns);
                if ready { queue.pop_front() } else { None }
            }
            Self::Sorted(sorted) => sorted.pop(now_ns, medium.mechanics().cylinder()),
            Self::Sptf(queue) => {
                let cost = |pending: &Pending| {
                    let write = pending.request.write;
                    pending.place.map_or(0, |(place, sector)| medium.positioning_ns(&place, sector, write))
                };
                let ready = queue.iter().enumerate().filter(|(_, pending)| pending.ready_ns <= now_ns);
                let best = ready.min_by_key(|(_, pending)| (cost(pending), pending.number)).map(|(i, _)| i)?;
                Some(queue.swap_remove(best))
            }
        }
    }
}

impl Sorted {
    fn pop(&mut self, now_ns: u64, cylinder: u32) -> Option<Pending> {
        while let Some(entry) = self.by_ready.first_entry().filter(|entry| entry.key().0 <= now_ns) {
            let pending = entry.remove();
            self.by_cylinder.insert((pending.cylinder(), pending.number), pending);
        }
        let after = self.by_cylinder.range((cylinder, 0)..).next().map(|(&key, _)| key);
        let key = if self.nearest {
            let before = self.by_cylinder.range(..(cylinder, 0)).next_back().map(|(&key, _)| key);
            // Of one cylinder the oldest: the last key below it is its youngest.
            let before = before.and_then(|key| self.by_cylinder.range((key.0, 0)..).next().map(|(&key, _)| key));
            [before, after].into_iter().flatten().min_by_key(|key| key.0.abs_diff(cylinder))
        } else {
            after.or_else(|| self.by_cylinder.keys().next().copied())
        }?;
        self.by_cylinder.remove(&key)
    }
}
