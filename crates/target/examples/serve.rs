//! The process behind a target of the kind for tests: `serve SEGMENT IDENTITY`. It makes the segment, tells so by a line, and serves it until it is killed. Its
//! identity is what it finds in a file.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::path::PathBuf;

use stripewise_target::shared_memory::{SEGMENT_BYTES, serve_until};

fn main() {
    let mut words = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(segment), Some(identity)) = (words.next(), words.next()) else {
        eprintln!("usage: serve SEGMENT IDENTITY");
        std::process::exit(2);
    };
    File::create_new(&segment).unwrap().set_len(SEGMENT_BYTES as u64).unwrap();
    println!("ready");
    serve_until(&segment, &std::fs::read(identity).unwrap(), || false);
}
