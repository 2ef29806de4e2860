//! The formats of five columns with blanks between: DiskSim's ASCII (DiskSim 4.0 reference manual), and those of SSD simulators, which look the same but
//! count in ns and know no flag but 1 for a read: SSDSim (its readme.txt), MQSim (traces of its README) and DTRS traces.
//!
//! MQSim's workload file names the unit of its times; where that is not ns, stretching mends it. That DTRS times are ns is not said where those traces
//! are published; it is SSDSim's unit, and what makes them last hours.

use super::Traced;
use super::fields::{Wrong, blocks, decimal, whole};

const DISKSIM_WORDS: &str = "disksim has time in ms, device, block, blocks, flags: correct the line or choose another format";
const DTRS_WORDS: &str = "dtrs has time in ns, device, block, blocks, 1 for a read or 0: correct the line or choose another format";
const SSDSIM_WORDS: &str = "ssdsim has time in ns, device, sector, sectors, 1 for a read or 0: correct the line or choose another format";
const MQSIM_WORDS: &str = "mqsim has time in ns, device, sector, sectors, 1 for a read or 0: correct the line or choose another format";

/// Flags: bit 0 set for a read, all others are the host's own.
pub(super) fn disksim(line: &str) -> Result<Traced<'_>, Wrong> {
    let mut fields = line.split_ascii_whitespace();
    let time_ns = decimal("time", fields.next(), 6, DISKSIM_WORDS)?;
    rest(time_ns, fields, DISKSIM_WORDS, u64::MAX)
}

pub(super) fn dtrs(line: &str) -> Result<Traced<'_>, Wrong> {
    in_ns(line, DTRS_WORDS)
}

pub(super) fn ssdsim(line: &str) -> Result<Traced<'_>, Wrong> {
    in_ns(line, SSDSIM_WORDS)
}

pub(super) fn mqsim(line: &str) -> Result<Traced<'_>, Wrong> {
    in_ns(line, MQSIM_WORDS)
}

fn in_ns<'a>(line: &'a str, words: &'static str) -> Result<Traced<'a>, Wrong> {
    let mut fields = line.split_ascii_whitespace();
    let time_ns = whole("time", fields.next().filter(|text| !text.is_empty()), words)?;
    rest(time_ns, fields, words, 1)
}

fn rest<'a>(time_ns: u64, mut fields: impl Iterator<Item = &'a str>, words: &'static str, flags_max: u64) -> Result<Traced<'a>, Wrong> {
    let device = fields.next().ok_or_else(|| Wrong::new("device", "", words))?;
    whole("device", Some(device), words)?;
    let lba = whole("block", fields.next(), words)?;
    let blocks = blocks("blocks", fields.next())?;
    let text = fields.next();
    let flags = flags(text, words)?;
    if flags > flags_max {
        return Err(Wrong::new("flags", text.unwrap_or(""), words));
    }
    if let Some(more) = fields.next() {
        return Err(Wrong::new("sixth column", more, words));
    }
    if lba.checked_add(u64::from(blocks)).is_none() {
        return Err(Wrong::new("block", &lba.to_string(), words));
    }
    Ok(Traced { time_ns, device, lba, blocks, write: flags & 1 == 0 })
}

/// DiskSim prints them as hexadecimal digits without a prefix.
fn flags(text: Option<&str>, words: &'static str) -> Result<u64, Wrong> {
    let text = text.unwrap_or("");
    if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Wrong::new("flags", text, words));
    }
    u64::from_str_radix(text, 16).map_err(|_| Wrong::new("flags", text, words))
}
