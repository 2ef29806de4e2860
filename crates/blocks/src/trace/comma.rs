//! The two published formats with commas: MSR Cambridge (SNIA IOTTA 388) and SPC (trace file format specification 1.0.1).

use super::Traced;
use super::fields::{Wrong, decimal, is_write, touched, whole};

const MSR_WORDS: &str =
    "msr has timestamp, host, disk, Read or Write, offset and size in bytes, response time: correct the line or choose another format";
const SPC_WORDS: &str = "spc has ASU, block address, bytes, R or W, time in s: correct the line or choose another format";

/// Ticks of a Windows timestamp are 100 ns.
const TICK_NS: u64 = 100;

/// Offsets and sizes that are not of whole blocks count as the blocks that they touch.
pub(super) fn msr(line: &str) -> Result<Traced<'_>, Wrong> {
    let mut fields = line.split(',');
    let text = fields.next();
    let ticks = whole("timestamp", text, MSR_WORDS)?;
    let time_ns = ticks.checked_mul(TICK_NS).ok_or_else(|| Wrong::new("timestamp", text.unwrap_or(""), MSR_WORDS))?;
    fields.next().ok_or_else(|| Wrong::new("host", "", MSR_WORDS))?;
    let device = fields.next().ok_or_else(|| Wrong::new("disk", "", MSR_WORDS))?.trim();
    let write = is_write("type", fields.next(), "Read", "Write", MSR_WORDS)?;
    let offset = whole("offset", fields.next(), MSR_WORDS)?;
    let text = fields.next();
    let (lba, blocks) = touched(offset, whole("size", text, MSR_WORDS)?, "size", text)?;
    Ok(Traced { time_ns, device, lba, blocks, write })
}

/// Fields after the fifth are the publisher's own and are not read.
pub(super) fn spc(line: &str) -> Result<Traced<'_>, Wrong> {
    let mut fields = line.split(',');
    let device = fields.next().unwrap_or("").trim();
    whole("ASU", Some(device).filter(|text| !text.is_empty()), SPC_WORDS)?;
    let text = fields.next();
    let lba = whole("block address", text, SPC_WORDS)?;
    let offset = lba.checked_mul(crate::BLOCK_BYTES).ok_or_else(|| Wrong::new("block address", text.unwrap_or(""), SPC_WORDS))?;
    let text = fields.next();
    let (_, blocks) = touched(offset, whole("size", text, SPC_WORDS)?, "size", text)?;
    let write = is_write("opcode", fields.next(), "R", "W", SPC_WORDS)?;
    let time_ns = decimal("time", fields.next(), 9, SPC_WORDS)?;
    Ok(Traced { time_ns, device, lba, blocks, write })
}
