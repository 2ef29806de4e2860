//! Cost of one trace record, both tick reads included, beside what two tick reads alone cost.
//!
//! Prints one JSON line. The log lies in the temporary directory (TMPDIR). Each batch is four chunks of log, so its mean holds what
//! calibrations, new chunks and page faults cost; the value is the median of the batches.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::ffi::CString;
use std::hint::black_box;
use std::time::Instant;
use stripewise_trace::{Op, Process, Record, ThreadLog, clock, record, thread_exit};

const BATCHES: usize = 41;
const PER_BATCH: u64 = 65_536;

static PROCESS: Process = Process::new();

fn main() {
    let dir = std::env::temp_dir().join(format!("stripewise-bench-{}", std::process::id()));
    std::fs::create_dir(&dir).expect("the bench needs a directory of its own");
    let c_dir = CString::new(dir.to_str().expect("a plain path")).expect("no zero byte");
    PROCESS.start(&c_dir, 0, 1, b"bench\0").expect("tracing starts");
    let file = PROCESS.file_id(b"/bench", 1, 1);

    let ticks_ns = median_ns(|i| {
        black_box(i);
        black_box(clock::now_ticks());
        black_box(clock::now_ticks());
    });
    let mut log = ThreadLog::new();
    let log_pointer: *mut ThreadLog = &raw mut log;
    let record_ns = median_ns(|i| {
        let start_ticks = clock::now_ticks();
        let i = black_box(i);
        let call = Record {
            start_ticks,
            end_ticks: clock::now_ticks(),
            offset: i * 4096,
            requested_bytes: 4096,
            done: 4096,
            file,
            fd: 3,
            op: Op::Read as u16,
            ..Record::default()
        };
        // SAFETY: the log is this thread's own.
        unsafe { record(log_pointer, &PROCESS, &call) };
    });
    // SAFETY: as above.
    unsafe { thread_exit(log_pointer, &PROCESS) };
    let _ = std::fs::remove_dir_all(&dir);

    let goal_ns = if clock::kind() == clock::MONOTONIC { 100.0 } else { 60.0 };
    eprintln!("two tick reads alone: {ticks_ns:.1} ns");
    println!(
        r#"{{"name":"trace.posix_record_added_ns","value":{record_ns:.1},"unit":"ns","baseline":"goal {goal_ns} ns ({})","ratio":{:.3}}}"#,
        if goal_ns < 100.0 { "invariant TSC" } else { "CLOCK_MONOTONIC" },
        record_ns / goal_ns,
    );
}

/// Median over batches of the mean cost of one call, in ns.
fn median_ns(mut call: impl FnMut(u64)) -> f64 {
    let mut batches: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let begin = Instant::now();
            for i in 0..PER_BATCH {
                call(i);
            }
            begin.elapsed().as_secs_f64() * 1e9 / PER_BATCH as f64
        })
        .collect();
    batches.sort_by(f64::total_cmp);
    batches[BATCHES / 2]
}
