//! Numbers out of text, exactly: decimals are read by their digits, so that a time of many digits loses nothing.

use crate::BLOCK_BYTES;

/// What is wrong with a line: the field, what it holds, and what it should hold.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    field: &'static str,
    text: String,
    wanted: &'static str,
}

/// Of a field that is shown in a message.
const SHOWN_CHARS: usize = 40;

impl Wrong {
    pub(super) fn new(field: &'static str, text: &str, wanted: &'static str) -> Self {
        Wrong { field, text: text.chars().take(SHOWN_CHARS).collect(), wanted }
    }

    /// The sentence without its place.
    pub(super) fn sentence(&self) -> String {
        if self.text.is_empty() {
            return format!("{} is missing; {}", self.field, self.wanted);
        }
        format!("{} = \"{}\"; {}", self.field, self.text.escape_debug(), self.wanted)
    }
}

/// A whole number.
pub(super) fn whole(field: &'static str, text: Option<&str>, wanted: &'static str) -> Result<u64, Wrong> {
    let text = text.unwrap_or("").trim();
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Wrong::new(field, text, wanted));
    }
    text.parse().map_err(|_| Wrong::new(field, text, wanted))
}

/// A decimal number in units of 10^-`digits`; further digits of the fraction are dropped.
pub(super) fn decimal(field: &'static str, text: Option<&str>, digits: u32, wanted: &'static str) -> Result<u64, Wrong> {
    let text = text.unwrap_or("").trim();
    let wrong = || Wrong::new(field, text, wanted);
    let (before, after) = text.split_once('.').unwrap_or((text, ""));
    if before.is_empty() || !before.bytes().chain(after.bytes()).all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let scale = 10u64.checked_pow(digits).ok_or_else(wrong)?;
    let kept = after.get(..digits as usize).unwrap_or(after);
    let fraction = if kept.is_empty() { 0 } else { kept.parse::<u64>().map_err(|_| wrong())? };
    let missing = 10u64.checked_pow(digits.saturating_sub(kept.len() as u32)).ok_or_else(wrong)?;
    let units = before.parse::<u64>().ok().and_then(|units| units.checked_mul(scale));
    units.and_then(|units| units.checked_add(fraction.checked_mul(missing)?)).ok_or_else(wrong)
}

/// Read or write, told by one of the given words.
pub(super) fn is_write(field: &'static str, text: Option<&str>, read: &str, write: &str, wanted: &'static str) -> Result<bool, Wrong> {
    let text = text.unwrap_or("").trim();
    if text.eq_ignore_ascii_case(write) {
        Ok(true)
    } else if text.eq_ignore_ascii_case(read) {
        Ok(false)
    } else {
        Err(Wrong::new(field, text, wanted))
    }
}

/// A number of blocks, at least 1.
pub(super) fn blocks(field: &'static str, text: Option<&str>) -> Result<u32, Wrong> {
    const WANTED: &str = "a request has 1 to 4294967295 blocks of 512 bytes: correct the line or leave it out";
    let number = whole(field, text, WANTED)?;
    u32::try_from(number).ok().filter(|&blocks| blocks > 0).ok_or_else(|| Wrong::new(field, text.unwrap_or(""), WANTED))
}

/// The blocks that `bytes` from byte `offset` on touch: the first, and how many.
pub(super) fn touched(offset: u64, bytes: u64, field: &'static str, text: Option<&str>) -> Result<(u64, u32), Wrong> {
    let wrong = || Wrong::new(field, text.unwrap_or(""), "a request has 1 byte to 2 TiB and ends below 2^64: correct the line or leave it out");
    let end = offset.checked_add(bytes).ok_or_else(wrong)?.div_ceil(BLOCK_BYTES);
    let first = offset / BLOCK_BYTES;
    let blocks = u32::try_from(end - first).ok().filter(|_| bytes > 0).ok_or_else(wrong)?;
    Ok((first, blocks))
}
