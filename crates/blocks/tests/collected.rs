//! The two collected traces that may lie beside the checkout (`../shared/data/block`) are read whole; without them there is nothing to test.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use stripewise_blocks::statistics::{Measure, Summary, gather};
use stripewise_blocks::trace::{Format, TraceSpec, open};

fn read(name: &str, format: Option<Format>) -> Option<(Format, Summary)> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/block")).join(name);
    if !path.exists() {
        eprintln!("{} is not there: nothing was tested", path.display());
        return None;
    }
    let opened = open(&TraceSpec { format, ..TraceSpec::new(&path) }).unwrap();
    Some((opened.format, gather(opened.requests, Measure::default()).unwrap()))
}

#[test]
fn the_dtrs_trace_is_read_whole() {
    let Some((format, summary)) = read("DTRS100M.trace", Some(Format::Dtrs)) else { return };
    assert_eq!((format, summary.requests, summary.writes), (Format::Dtrs, 127_043, 13_920));
    assert_eq!((summary.lba_max, summary.request_blocks_max), (321_307_347, 128));
    assert_eq!(summary.duration_s, 29_999.951_6);
}

#[test]
fn the_postmark_trace_is_read_whole() {
    let Some((format, summary)) = read("postmark-aligned.trace", None) else { return };
    assert_eq!((format, summary.requests, summary.writes), (Format::DiskSim, 62_257, 10_477));
    assert_eq!((summary.lba_max, summary.request_blocks_max), (44_711_855, 8192));
}
