//! Writing requests as traces, so that what is generated here can be given to other simulators.

use std::io::Write;

use serde::Deserialize;

use crate::{BLOCK_BYTES, BlockRequest, Error};

/// The formats that can be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Export {
    /// [`super::Format::Msr`]: times are cut to 100 ns and count from 1 January 1970; host `stripewise`, disk 0, response time 0.
    Msr,
    /// [`super::Format::DiskSim`]: device 0; ms with six digits, which is exact.
    DiskSim,
}

/// 1 January 1970 in 100 ns since 1601.
const EPOCH_TICKS: u64 = 116_444_736_000_000_000;
const TICK_NS: u64 = 100;
const MS_NS: u64 = 1_000_000;

/// Writes all requests to `out`, called `name` in messages; returns how many.
///
/// # Errors
/// The source's, those of writing, and offsets that the format cannot hold.
pub fn export(format: Export, requests: impl Iterator<Item = Result<BlockRequest, Error>>, out: &mut impl Write, name: &str) -> Result<u64, Error> {
    let failed = |error: std::io::Error| Error::Trace(format!("{name}: cannot be written ({error}); check the path and the space there"));
    let mut written = 0;
    for request in requests {
        let request = request?;
        match format {
            Export::Msr => msr(&request, out, name)?.map_err(failed)?,
            Export::DiskSim => disksim(&request, out).map_err(failed)?,
        }
        written += 1;
    }
    out.flush().map_err(failed)?;
    Ok(written)
}

fn msr(request: &BlockRequest, out: &mut impl Write, name: &str) -> Result<std::io::Result<()>, Error> {
    let ticks = EPOCH_TICKS.saturating_add(request.arrival_ns / TICK_NS);
    let kind = if request.write { "Write" } else { "Read" };
    if request.end() > u64::MAX / BLOCK_BYTES || ticks > u64::MAX / TICK_NS {
        return Err(Error::Invalid(format!("{name}: msr cannot hold block {} or its time; export as disksim", request.lba)));
    }
    let (offset, bytes) = (request.lba * BLOCK_BYTES, u64::from(request.blocks) * BLOCK_BYTES);
    Ok(writeln!(out, "{ticks},stripewise,0,{kind},{offset},{bytes},0"))
}

fn disksim(request: &BlockRequest, out: &mut impl Write) -> std::io::Result<()> {
    let (ms, rest) = (request.arrival_ns / MS_NS, request.arrival_ns % MS_NS);
    writeln!(out, "{ms}.{rest:06} 0 {} {} {}", request.lba, request.blocks, u8::from(!request.write))
}
