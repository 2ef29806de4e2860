//! Requests as slices of a Perfetto trace: protobuf TracePackets, of which any number can be written one after the other.
//!
//! Field numbers are those of Perfetto's `trace_packet.proto`, `track_event.proto`, `track_descriptor.proto`, `interned_data.proto` and
//! `debug_annotation.proto`. Names stand once, in the first packet of the file; a slice then takes some 50 bytes.

use crate::columns::Request;

const LENGTH_DELIMITED: u64 = 2;
/// All packets are of one sequence, whose first one clears what readers remember.
const SEQUENCE: u64 = 1;
const CLEARED: u64 = 1;
const NEEDS_NAMES: u64 = 2;
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
/// What slices are called, and their arguments, by their numbers from 1 on.
const SLICES: [&str; 2] = ["read", "write"];
const ARGUMENTS: [&str; 4] = ["file", "offset", "size", "replica"];

#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(u8::try_from(value & 0x7f).unwrap_or(0) | 0x80);
            value >>= 7;
        }
        self.0.push(u8::try_from(value).unwrap_or(0));
    }

    fn number(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | LENGTH_DELIMITED);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn message(self, field: u64, inner: &Self) -> Self {
        self.bytes(field, &inner.0)
    }

    /// As a packet of the trace.
    fn packet(self) -> Vec<u8> {
        Self::default().message(1, &self).0
    }
}

fn interned(iid: u64, name: &str) -> Message {
    Message::default().number(1, iid).bytes(2, name.as_bytes())
}

/// The first packet: the names of slices, of their arguments, and of all files (whose number + 1 stands for them).
#[must_use]
pub fn names<'a>(files: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    let mut data = Message::default().message(1, &interned(1, "io"));
    for (iid, name) in (1..).zip(SLICES) {
        data = data.message(2, &interned(iid, name));
    }
    for (iid, name) in (1..).zip(ARGUMENTS) {
        data = data.message(3, &interned(iid, name));
    }
    for (iid, name) in (1..).zip(files) {
        data = data.message(29, &interned(iid, name));
    }
    Message::default().number(10, SEQUENCE).number(13, CLEARED | NEEDS_NAMES).message(12, &data).packet()
}

/// The packet that names a process, below which its threads stand.
#[must_use]
pub fn process_track(uuid: u64, pid: u64, name: &str) -> Vec<u8> {
    let process = Message::default().number(1, pid).bytes(6, name.as_bytes());
    let track = Message::default().number(1, uuid).bytes(2, name.as_bytes()).message(3, &process);
    Message::default().number(10, SEQUENCE).message(60, &track).packet()
}

/// A track below that of a process: what one of its threads did, of which no two at a time.
#[must_use]
pub fn lane_track(uuid: u64, process_uuid: u64, name: &str) -> Vec<u8> {
    let track = Message::default().number(1, uuid).number(5, process_uuid).bytes(2, name.as_bytes());
    Message::default().number(10, SEQUENCE).message(60, &track).packet()
}

/// A request as the beginning and the end of a slice on a track; with the number of the replica that served it, if one did.
pub fn slice(into: &mut Vec<u8>, track: u64, file: u32, request: &Request, replica: Option<u64>) {
    let argument = |iid: u64| Message::default().number(1, iid);
    let mut event = Message::default().number(9, SLICE_BEGIN).number(11, track).number(3, 1).number(10, 1 + u64::from(request.is_write));
    event = event.message(4, &argument(1).number(17, u64::from(file) + 1));
    if let Some(offset) = request.offset {
        event = event.message(4, &argument(2).number(3, offset));
    }
    event = event.message(4, &argument(3).number(3, request.size));
    if let Some(replica) = replica {
        event = event.message(4, &argument(4).number(3, replica));
    }
    let at = |ns: u64| Message::default().number(8, ns).number(10, SEQUENCE).number(13, NEEDS_NAMES);
    into.extend(at(request.start_ns).message(11, &event).packet());
    let end = Message::default().number(9, SLICE_END).number(11, track);
    into.extend(at(request.end_ns).message(11, &end).packet());
}

/// The lane of each request of one thread, given in the order of their starts: the first that is free then.
///
/// Requests of one lane do not overlap. Threads do one call at a time; asynchronous requests and imported times may overlap.
#[must_use]
pub fn lanes(times: impl Iterator<Item = (u64, u64)>) -> Vec<u32> {
    let mut free: Vec<u64> = Vec::new();
    let mut taken = Vec::new();
    for (start, end) in times {
        let lane = free.iter().take(LANES_MAX).position(|&until| until <= start);
        let lane = lane.unwrap_or(free.len().min(LANES_MAX - 1));
        match free.get_mut(lane) {
            Some(until) => *until = end.max(*until),
            None => free.push(end),
        }
        taken.push(u32::try_from(lane).unwrap_or(u32::MAX));
    }
    taken
}

/// More requests of one thread at a time share the last lane.
pub const LANES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_has_its_replica_where_one_served_it() {
        let request = Request { start_ns: 1, end_ns: 2, process: 0, is_write: false, offset: Some(7), size: 9 };
        let bytes = |replica| {
            let mut made = Vec::new();
            slice(&mut made, 3, 0, &request, replica);
            made
        };
        // Annotation 4: its name by number, then an unsigned value.
        let told = |replica: u8| [0x22, 4, 0x08, 4, 0x18, replica];
        let has = |made: &[u8], replica: u8| made.windows(6).any(|part| part == told(replica));
        assert!(has(&bytes(Some(0)), 0) && has(&bytes(Some(5)), 5) && !has(&bytes(None), 0));
        assert_eq!(bytes(Some(5)).len(), bytes(None).len() + 6);
    }
}
