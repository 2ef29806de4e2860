//! Trace logs: the slots behind a good header, a whole log, and the names.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use stripewise_fuzz::file_of;
use stripewise_trace::reader::{LogFile, NamesFile};

const HEADER: &[u8] = include_bytes!("../seeds/log/header");

fuzz_target!(|data: &[u8]| {
    for parts in [&[HEADER, data][..], &[data]] {
        let (_file, path) = file_of(parts);
        let Ok(Some(log)) = LogFile::open(&path) else { continue };
        let mut records = log.records();
        while let Ok(Some(_)) = records.next_slot() {}
    }
    for lenient in [false, true] {
        let _ = NamesFile::parse(data, Path::new("names"), lenient);
    }
});
