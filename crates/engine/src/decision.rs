//! The rules of IO-Engine's map (figure 3.4, steps 3 to 8).

use crate::aggregators::{Aggregators, Driver};
use crate::regions::Pattern;

/// The largest collective buffer, in bytes.
pub const BUFFER_BYTES_MAX: u64 = 64 << 20;
/// Buffers are whole pages.
const STEP: u64 = 4096;
/// The most processes of a read that one server of Lustre should have at once.
const CO_RATIO_MAX: u32 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    Read,
    Write,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Independent,
    Collective,
}

/// A call of all processes of a file; numbers from 1 on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    pub operation: Operation,
    pub pattern: Pattern,
    pub processes: u32,
    pub nodes: u32,
    /// Hint `cb_nodes`.
    pub cb_nodes: Option<u32>,
    /// Of one process, in one call.
    pub request_bytes: u64,
    pub stripes: u32,
    pub driver: Driver,
    /// The file was there before: its stripe count cannot be changed.
    pub is_old: bool,
}

/// The rule that decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// Step 3.
    Read,
    /// Step 5.
    ContiguousWrite,
    /// Step 7.
    StridedWrite,
    /// Step 7, on an old file whose stripe count leaves few aggregators.
    Chasm,
}

/// What a call should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    pub mode: Mode,
    pub why: Why,
    pub aggregators: Aggregators,
    /// Hint `romio_lustre_co_ratio`; none: the file system has none.
    pub co_ratio: Option<u32>,
    /// Hint `cb_buffer_size`, in bytes; none: the call is independent.
    pub buffer_bytes: Option<u64>,
}

/// How many processes one server of Lustre should have at once (steps 4, 6 and 8).
pub fn co_ratio(operation: Operation, processes: u32, stripes: u32) -> u32 {
    match operation {
        Operation::Read => (processes / stripes.max(1)).clamp(1, CO_RATIO_MAX),
        Operation::Write => 1,
    }
}

/// The decision for a call, by rule.
pub fn decide(call: &Call) -> Decision {
    let ratio = co_ratio(call.operation, call.processes, call.stripes);
    let aggregators = Aggregators::of(call.driver, call.cb_nodes, call.nodes, call.stripes, ratio);
    let (mode, why) = match (call.operation, call.pattern) {
        (Operation::Read, _) => (Mode::Independent, Why::Read),
        (Operation::Write, Pattern::Contiguous) => (Mode::Independent, Why::ContiguousWrite),
        (Operation::Write, Pattern::Strided) if call.is_old && aggregators.are_too_few() => (Mode::Independent, Why::Chasm),
        (Operation::Write, Pattern::Strided) => (Mode::Collective, Why::StridedWrite),
    };
    Decision {
        mode,
        why,
        aggregators,
        co_ratio: (call.driver == Driver::Lustre).then_some(ratio),
        buffer_bytes: (mode == Mode::Collective).then(|| buffer_bytes(call, aggregators.count)),
    }
}

/// What one aggregator moves in one call, so that one round does; at most [`BUFFER_BYTES_MAX`].
fn buffer_bytes(call: &Call, aggregators: u32) -> u64 {
    let of_one = u128::from(call.processes.max(1)) * u128::from(call.request_bytes.max(1));
    let bytes = of_one.div_ceil(u128::from(aggregators.max(1))).min(u128::from(BUFFER_BYTES_MAX)) as u64;
    bytes.next_multiple_of(STEP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    /// 128 processes on 16 nodes, 8 servers, strided requests of 1 MiB: the text's own runs.
    const CALL: Call = Call {
        operation: Operation::Write,
        pattern: Pattern::Strided,
        processes: 128,
        nodes: 16,
        cb_nodes: None,
        request_bytes: MIB,
        stripes: 8,
        driver: Driver::Lustre,
        is_old: true,
    };

    #[test]
    fn the_buffers_of_figure_3_10() {
        // With 16 nodes and 8 stripes there are 8, for one of them is a server's.
        for (aggregators, bytes) in [(4, 32 * MIB), (8, 16 * MIB), (16, 16 * MIB)] {
            assert_eq!(decide(&Call { cb_nodes: Some(aggregators), ..CALL }).buffer_bytes, Some(bytes));
        }
        assert_eq!(decide(&Call { request_bytes: 2 * MIB, ..CALL }).buffer_bytes, Some(32 * MIB));
        // The text's evaluation: 16 aggregators, 2 MiB, 16 MiB.
        assert_eq!(decide(&Call { request_bytes: 2 * MIB, stripes: 16, ..CALL }).buffer_bytes, Some(16 * MIB));
        assert_eq!(decide(&Call { request_bytes: 16 * MIB, ..CALL }).buffer_bytes, Some(64 * MIB));
        assert_eq!(decide(&Call { request_bytes: 100, processes: 3, nodes: 1, ..CALL }).buffer_bytes, Some(4096));
        assert_eq!(decide(&Call { request_bytes: u64::MAX, processes: u32::MAX, ..CALL }).buffer_bytes, Some(64 * MIB));
    }

    #[test]
    fn the_co_ratios_of_steps_4_6_and_8() {
        for (processes, stripes, ratio) in [(128, 60, 2), (128, 8, 4), (4, 8, 1), (8, 8, 1), (24, 8, 3), (40, 8, 4)] {
            assert_eq!(co_ratio(Operation::Read, processes, stripes), ratio);
            assert_eq!(co_ratio(Operation::Write, processes, stripes), 1);
        }
        assert_eq!(decide(&Call { driver: Driver::Other, ..CALL }).co_ratio, None);
    }

    #[test]
    fn the_modes_of_the_map() {
        let of = |operation, pattern| decide(&Call { operation, pattern, ..CALL });
        for pattern in [Pattern::Strided, Pattern::Contiguous] {
            let read = of(Operation::Read, pattern);
            assert_eq!((read.mode, read.why, read.co_ratio, read.buffer_bytes), (Mode::Independent, Why::Read, Some(4), None));
        }
        assert_eq!(of(Operation::Write, Pattern::Contiguous).why, Why::ContiguousWrite);
        let strided = of(Operation::Write, Pattern::Strided);
        assert_eq!((strided.mode, strided.why, strided.co_ratio), (Mode::Collective, Why::StridedWrite, Some(1)));
    }

    #[test]
    fn a_chasm_of_an_old_file_is_left_by_independent_calls() {
        let old = Call { nodes: 12, stripes: 13, ..CALL };
        assert_eq!((decide(&old).mode, decide(&old).why), (Mode::Independent, Why::Chasm));
        assert_eq!(decide(&Call { is_old: false, ..old }).mode, Mode::Collective);
        assert_eq!(decide(&Call { driver: Driver::Other, ..old }).mode, Mode::Collective);
        assert_eq!(decide(&Call { nodes: 60, stripes: 64, ..CALL }).mode, Mode::Collective);
    }

    proptest! {
        #[test]
        fn one_round_is_enough_or_the_buffer_is_the_largest(processes in 1u32..5000, nodes in 1u32..500, stripes in 1u32..500, request_bytes in 1u64..1 << 40) {
            let decided = decide(&Call { processes, nodes, stripes, request_bytes, is_old: false, ..CALL });
            let bytes = decided.buffer_bytes.unwrap_or(0);
            prop_assert!(bytes <= BUFFER_BYTES_MAX && bytes.is_multiple_of(4096));
            let moved = u128::from(bytes) * u128::from(decided.aggregators.count);
            prop_assert!(bytes == BUFFER_BYTES_MAX || moved >= u128::from(processes) * u128::from(request_bytes));
        }
    }
}
