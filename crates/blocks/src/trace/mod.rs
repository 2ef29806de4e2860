//! Traces of block devices as they are published: which format a file is in, and its requests one by one.
//!
//! Every format is a function from a line to a request; lines, order in time and the choice of a device are common to all.

mod blkparse;
mod columns;
mod comma;
mod fields;
mod lines;
mod order;
mod reader;
mod recognise;
mod write;

pub use reader::{Opened, TraceSpec, open};
pub use write::{Export, export};

use core::fmt;
use core::str::FromStr;

use fields::Wrong;
use serde::{Deserialize, Serialize};

/// A format of traces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// MSR Cambridge: timestamp (100 ns since 1601), host, disk number, Read or Write, offset and size in bytes, response time; commas between.
    Msr,
    /// Storage Performance Council: ASU, block address, bytes, R or W, time in s; commas between.
    Spc,
    /// DiskSim's ASCII: time in ms, device, block, blocks, flags (1 = read); blanks between.
    DiskSim,
    /// blkparse's default output.
    Blkparse,
    /// Time in ns, device, block, blocks, 1 = read and 0 = write; blanks between.
    Dtrs,
    /// SSDSim's: the same.
    SsdSim,
    /// MQSim's: the same, where its workload file says that times are ns.
    MqSim,
}

/// All of them.
pub const FORMATS: [Format; 7] = [Format::Blkparse, Format::Msr, Format::Spc, Format::DiskSim, Format::Dtrs, Format::SsdSim, Format::MqSim];

impl Format {
    /// How it is called in options and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::Msr => "msr",
            Format::Spc => "spc",
            Format::DiskSim => "disksim",
            Format::Blkparse => "blkparse",
            Format::Dtrs => "dtrs",
            Format::SsdSim => "ssdsim",
            Format::MqSim => "mqsim",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self, crate::Error> {
        FORMATS.into_iter().find(|format| format.name() == text).ok_or_else(|| {
            let known: Vec<&str> = FORMATS.iter().map(|format| format.name()).collect();
            crate::Error::Invalid(format!("format = \"{text}\" is not known; give one of {}", known.join(", ")))
        })
    }
}

/// One line's meaning.
#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Request(Traced<'a>),
    /// Something else that the format knows.
    Other,
    /// Nothing that follows is a request.
    End,
}

/// A request with the trace's own clock and device.
#[derive(Debug, PartialEq, Eq)]
struct Traced<'a> {
    time_ns: u64,
    device: &'a str,
    lba: u64,
    blocks: u32,
    write: bool,
}

/// What `line` means in `format`; `action` is the one that is taken of a blkparse trace.
fn parse<'a>(format: Format, line: &'a str, action: char) -> Result<Line<'a>, Wrong> {
    match format {
        Format::Msr => comma::msr(line).map(Line::Request),
        Format::Spc => comma::spc(line).map(Line::Request),
        Format::DiskSim => columns::disksim(line).map(Line::Request),
        Format::Dtrs => columns::dtrs(line).map(Line::Request),
        Format::SsdSim => columns::ssdsim(line).map(Line::Request),
        Format::MqSim => columns::mqsim(line).map(Line::Request),
        Format::Blkparse => blkparse::parse(line, action),
    }
}

#[cfg(test)]
mod tests;
