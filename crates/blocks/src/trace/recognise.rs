//! Which format a file is in, by its first lines: the one that they fit, if they fit no other. Two simulators' traces may look alike and mean times a
//! million times apart, so what fits several is an error that says how to tell which.

use std::collections::VecDeque;

use super::lines::Lines;
use super::{FORMATS, Format, parse};
use crate::Error;

/// The only format in which the first lines make sense. A line that makes sense in none of those that the lines before it left is damaged, and tells nothing.
pub(super) fn recognised(lines: &Lines, looked_at: &VecDeque<(u64, String)>, action: char) -> Result<Format, Error> {
    let Some((number, _)) = looked_at.front() else {
        return Err(lines.error_of_all("has no lines; give a trace with requests"));
    };
    let mut left = FORMATS.to_vec();
    for (place, (_, line)) in looked_at.iter().enumerate() {
        let fits: Vec<Format> = left.iter().copied().filter(|&format| parse(format, line, action).is_ok()).collect();
        if place == 0 || !fits.is_empty() {
            left = fits;
        }
    }
    match left.as_slice() {
        [format] => Ok(*format),
        [] => Err(lines.error(*number, &format!("is a request in no known format; give format: {}", names(&FORMATS)))),
        several => Err(lines.error(*number, &ambiguous(several))),
    }
}

fn ambiguous(several: &[Format]) -> String {
    let units: Vec<String> = several.iter().map(|&format| format!("{format} ({})", unit(format))).collect();
    format!("fits several formats that differ in what a time is: {}; say which it is with format (--format {})", units.join(", "), names(several))
}

/// What a time counts.
fn unit(format: Format) -> &'static str {
    match format {
        Format::Msr => "100 ns",
        Format::Spc | Format::Blkparse => "s",
        Format::DiskSim => "ms",
        Format::Dtrs | Format::SsdSim => "ns",
        Format::MqSim => "ns, or the Time_Unit of its workload file",
    }
}

/// `a, b or c`.
fn names(formats: &[Format]) -> String {
    let names: Vec<&str> = formats.iter().map(|format| format.name()).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
        None => String::new(),
    }
}
