//! One server: a first-come-first-served queue before the channels of one device, as a reservation.
//!
//! Because accesses come in the order of their arrival, the end of each is known when it arrives: no event is needed for it. The same
//! code serves the engine with events and the one without.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::device::{Builtin, Device, DeviceAccess, Service};
use crate::map::Piece;

/// A device, without a virtual call for the built-in ones.
pub(crate) enum AnyDevice {
    Builtin(Builtin),
    Custom(Box<dyn Device>),
}

/// What a server gave one access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reserved {
    pub end_ns: u64,
    pub service_ns: u64,
}

/// More than one channel.
struct Channels {
    free_ns: Vec<u64>,
    leaving: BinaryHeap<Reverse<u64>>,
}

pub(crate) struct Server {
    /// When its channel, if it has but one, has done all that arrived.
    free_ns: u64,
    device: AnyDevice,
    pub busy_ns: u64,
    pub bytes: u64,
    pub accesses: u64,
    pub startups: u64,
    /// Sum over accesses of the time from arrival to end: by Little's law the mean queue times the run's length.
    pub stay_ns: u128,
    pub queue_max: u64,
    /// Ends of the accesses that are still here, of the one channel.
    leaving: VecDeque<u64>,
    many: Option<Box<Channels>>,
}

impl Server {
    pub(crate) fn new(device: AnyDevice, channels: u32) -> Self {
        let many = (channels > 1).then(|| Box::new(Channels { free_ns: vec![0; channels as usize], leaving: BinaryHeap::new() }));
        Server { free_ns: 0, device, busy_ns: 0, bytes: 0, accesses: 0, startups: 0, stay_ns: 0, queue_max: 0, leaving: VecDeque::new(), many }
    }

    /// Serves an access that arrives now; arrivals never go back in time.
    #[inline]
    pub(crate) fn reserve(&mut self, now_ns: u64, piece: &Piece, write: bool) -> Reserved {
        let Some(many) = &mut self.many else { return self.reserve_one(now_ns, piece, write) };
        let Some(channel) = many.free_ns.iter_mut().min() else { return Reserved { end_ns: now_ns, service_ns: 0 } };
        let begin_ns = now_ns.max(*channel);
        let service = serve(&mut self.device, piece, write, begin_ns);
        let end_ns = begin_ns.saturating_add(service.ns);
        *channel = end_ns;
        while many.leaving.peek().is_some_and(|end| end.0 <= now_ns) {
            many.leaving.pop();
        }
        many.leaving.push(Reverse(end_ns));
        let here = many.leaving.len() as u64;
        self.count(now_ns, end_ns, piece, service, here)
    }

    #[inline]
    fn reserve_one(&mut self, now_ns: u64, piece: &Piece, write: bool) -> Reserved {
        if self.free_ns < now_ns
            && let AnyDevice::Custom(device) = &mut self.device
        {
            let worked_ns = device.idle(self.free_ns, now_ns);
            self.busy_ns = self.busy_ns.saturating_add(worked_ns);
            self.free_ns = self.free_ns.saturating_add(worked_ns);
        }
        let begin_ns = now_ns.max(self.free_ns);
        let service = serve(&mut self.device, piece, write, begin_ns);
        let end_ns = begin_ns.saturating_add(service.ns);
        self.free_ns = end_ns;
        while self.leaving.front().is_some_and(|end| *end <= now_ns) {
            self.leaving.pop_front();
        }
        self.leaving.push_back(end_ns);
        let here = self.leaving.len() as u64;
        self.count(now_ns, end_ns, piece, service, here)
    }

    #[inline]
    fn count(&mut self, now_ns: u64, end_ns: u64, piece: &Piece, service: Service, here: u64) -> Reserved {
        self.busy_ns = self.busy_ns.saturating_add(service.ns);
        self.bytes = self.bytes.saturating_add(piece.bytes);
        self.accesses += 1;
        self.startups += u64::from(service.startup);
        self.stay_ns += u128::from(end_ns - now_ns);
        self.queue_max = self.queue_max.max(here);
        Reserved { end_ns, service_ns: service.ns }
    }

    /// Why its device could not serve an access, once it could not.
    pub(crate) fn failed(&self) -> Option<&str> {
        match &self.device {
            AnyDevice::Builtin(_) => None,
            AnyDevice::Custom(device) => device.failed(),
        }
    }

    pub(crate) fn channels(&self) -> u64 {
        self.many.as_ref().map_or(1, |many| many.free_ns.len() as u64)
    }

    /// Busy time that certainly lay before `until_ns`: what the server has done after it is at most what its channels then still owed.
    pub(crate) fn busy_before(&self, until_ns: u64) -> u64 {
        let owed: u64 = match &self.many {
            None => self.free_ns.saturating_sub(until_ns),
            Some(many) => many.free_ns.iter().map(|free| free.saturating_sub(until_ns)).fold(0, u64::saturating_add),
        };
        self.busy_ns.saturating_sub(owed)
    }
}

#[inline]
fn serve(device: &mut AnyDevice, piece: &Piece, write: bool, begin_ns: u64) -> Service {
    let access = DeviceAccess { address: piece.address, bytes: piece.bytes, write, begin_ns };
    match device {
        AnyDevice::Builtin(device) => device.service(&access),
        AnyDevice::Custom(device) => device.service(&access),
    }
}
