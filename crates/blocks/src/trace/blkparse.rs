//! blkparse's default output (blkparse(1)): `major,minor cpu sequence time pid action RWBS sector + blocks [process]`.
//!
//! A request passes several actions; one is taken (Q, queued by the file system, or D, issued to the device), so each request counts once.
//! Discards and bare flushes move no blocks and are passed over; the summary at the end is not read.

use super::fields::{Wrong, blocks, decimal, whole};
use super::{Line, Traced};

const WORDS: &str =
    "blkparse has major,minor, cpu, sequence, time in s, pid, action, RWBS, sector + blocks: correct the line or choose another format";

pub(super) fn parse(line: &str, action: char) -> Result<Line<'_>, Wrong> {
    if is_summary(line) {
        return Ok(Line::End);
    }
    let mut fields = line.split_ascii_whitespace();
    let device = fields.next().unwrap_or("");
    if !is_device(device) {
        return Err(Wrong::new("device", device, WORDS));
    }
    whole("cpu", fields.next().filter(|text| !text.is_empty()), WORDS)?;
    whole("sequence", fields.next().filter(|text| !text.is_empty()), WORDS)?;
    let time_ns = decimal("time", fields.next(), 9, WORDS)?;
    whole("pid", fields.next().filter(|text| !text.is_empty()), WORDS)?;
    let done = fields.next().ok_or_else(|| Wrong::new("action", "", WORDS))?;
    if !done.starts_with(action) || done.len() > 1 {
        return Ok(Line::Other);
    }
    let rwbs = fields.next().ok_or_else(|| Wrong::new("RWBS", "", WORDS))?;
    let Some(write) = direction(rwbs) else { return Ok(Line::Other) };
    let text = fields.next();
    // A flush names no sector: the process follows at once.
    if text.is_some_and(|text| text.starts_with('[')) {
        return Ok(Line::Other);
    }
    let lba = whole("sector", text.filter(|text| !text.is_empty()), WORDS)?;
    if fields.next() != Some("+") {
        return Err(Wrong::new("sector + blocks", "", WORDS));
    }
    let text = fields.next();
    if text == Some("0") {
        return Ok(Line::Other);
    }
    let blocks = blocks("blocks", text)?;
    if lba.checked_add(u64::from(blocks)).is_none() {
        return Err(Wrong::new("sector", &lba.to_string(), WORDS));
    }
    Ok(Line::Request(Traced { time_ns, device, lba, blocks, write }))
}

/// Reads and writes; `None` for discards and flushes. Letters before are a flush that goes first, letters after are flags.
fn direction(rwbs: &str) -> Option<bool> {
    match rwbs.trim_start_matches('F').chars().next() {
        Some('W') => Some(true),
        Some('R') => Some(false),
        _ => None,
    }
}

fn is_device(text: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once(',').is_some_and(|(major, minor)| number(major) && number(minor))
}

/// `CPU0 (8,0):` or `Total (8,0):`.
fn is_summary(line: &str) -> bool {
    let first = line.split_ascii_whitespace().next().unwrap_or("");
    first == "Total" || first.strip_prefix("CPU").is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}
