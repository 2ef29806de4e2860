//! Links of client nodes and servers: first come, first served, each direction for itself.
//!
//! A transfer occupies both of its links at once, it is not stored between them: its head reaches the second link when the first takes it
//! up, and it is over when both have carried it. A request leaves its node as a whole, its parts side by side. With that, p equal writes
//! that begin together take at most T_E + T_X + T_ST of cost-models section 1 (docs/simulator.md has the argument, and the case of reads).

use crate::report::{LinkSum, Links};
use crate::scenario::Scenario;
use crate::time::{PerByte, in_seconds, nanoseconds};

/// One direction of one link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Link {
    free_ns: u64,
    busy_ns: u64,
    bytes: u64,
}

impl Link {
    /// Carries so many bytes for `ns` from `now_ns` on, or when it is free; returns begin and end.
    pub(crate) fn carry(&mut self, now_ns: u64, ns: u64, bytes: u64) -> (u64, u64) {
        let begin_ns = self.free_ns.max(now_ns);
        self.free_ns = begin_ns.saturating_add(ns);
        self.busy_ns = self.busy_ns.saturating_add(ns);
        self.bytes += bytes;
        (begin_ns, self.free_ns)
    }

    /// Busy time that certainly lay before `until_ns`.
    fn busy_before(&self, until_ns: u64) -> u64 {
        self.busy_ns.saturating_sub(self.free_ns.saturating_sub(until_ns))
    }
}

/// All links. Client nodes come first, the mover's own node is the last.
pub(crate) struct Network {
    pub establish_ns: u64,
    pub per_byte: PerByte,
    processes: u32,
    processes_per_node: u32,
    pub node_out: Vec<Link>,
    pub node_in: Vec<Link>,
    pub server_in: Vec<Link>,
    pub server_out: Vec<Link>,
}

impl Network {
    /// `None` where moving bytes costs nothing.
    pub(crate) fn new(scenario: &Scenario, processes: u32) -> Option<Self> {
        let network = &scenario.network;
        let (establish_ns, per_byte) = (nanoseconds(network.establish_s), PerByte::new(network.per_byte_s));
        let nodes = processes.div_ceil(network.processes_per_node.max(1)) as usize + usize::from(!scenario.moves.is_empty());
        (establish_ns > 0 || !per_byte.is_zero()).then(|| Network {
            establish_ns,
            per_byte,
            processes,
            processes_per_node: network.processes_per_node.max(1),
            node_out: vec![Link::default(); nodes],
            node_in: vec![Link::default(); nodes],
            server_in: vec![Link::default(); scenario.servers.len()],
            server_out: vec![Link::default(); scenario.servers.len()],
        })
    }

    /// The node that an actor is on.
    pub(crate) fn node(&self, actor: u32) -> usize {
        (actor.min(self.processes) / self.processes_per_node) as usize
            + usize::from(actor >= self.processes && !self.processes.is_multiple_of(self.processes_per_node))
    }

    pub(crate) fn busiest_before(&self, until_ns: u64) -> u64 {
        let all = [&self.node_out, &self.node_in, &self.server_in, &self.server_out];
        all.into_iter().flatten().map(|link| link.busy_before(until_ns)).max().unwrap_or(0)
    }

    pub(crate) fn report(&self, end_ns: u64) -> Links {
        Links { nodes: sum(&self.node_out, &self.node_in, end_ns), servers: sum(&self.server_in, &self.server_out, end_ns) }
    }
}

fn sum(one_way: &[Link], other_way: &[Link], end_ns: u64) -> LinkSum {
    let both = || one_way.iter().chain(other_way);
    let busy_max_s = in_seconds(both().map(|l| l.busy_ns).max().unwrap_or(0));
    LinkSum {
        count: one_way.len() as u64,
        busy_s: both().map(|l| in_seconds(l.busy_ns)).sum(),
        busy_max_s,
        utilisation_max: if end_ns > 0 { busy_max_s / in_seconds(end_ns) } else { 0.0 },
        bytes: both().map(|l| l.bytes).sum(),
    }
}
