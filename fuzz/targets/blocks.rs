//! Block traces in every format, and recognised by their first lines.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stripewise_blocks::trace::{FORMATS, TraceSpec, open};
use stripewise_fuzz::file_of;

fuzz_target!(|data: &[u8]| {
    for format in FORMATS.into_iter().map(Some).chain([None]) {
        let (_file, path) = file_of(&[data]);
        let mut spec = TraceSpec::new(&path);
        (spec.format, spec.window) = (format, 4);
        let Ok(opened) = open(&spec) else { continue };
        let mut last_ns = 0;
        for request in opened.requests {
            let Ok(request) = request else { break };
            assert!(request.arrival_ns >= last_ns && request.blocks > 0);
            last_ns = request.arrival_ns;
        }
    }
});
