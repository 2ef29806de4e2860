//! The writer inside real processes: threads, forks, kills, signals, limits.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::cell::UnsafeCell;
use std::ffi::CString;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use stripewise_trace::reader::{LogFile, Run, Slot};
use stripewise_trace::{Op, Process, Record, ThreadLog, after_fork_child, clock, record, thread_exit};

fn process(dir: &Path) -> &'static Process {
    let process: &'static Process = Box::leak(Box::new(Process::new()));
    process.start(&CString::new(dir.to_str().unwrap()).unwrap(), 0, 4, b"prog\0").unwrap();
    process
}

fn call(offset: u64, op: Op) -> Record {
    let start_ticks = clock::now_ticks();
    Record { start_ticks, end_ticks: clock::now_ticks(), offset, op: op as u16, ..Record::default() }
}

/// Complete records and the number of other slots that are not empty.
fn read(log: &LogFile) -> (Vec<Record>, usize) {
    let (mut complete, mut other) = (Vec::new(), 0);
    let mut records = log.records();
    while let Some((_, slot)) = records.next_slot().unwrap() {
        match slot {
            Slot::Complete(record) => complete.push(record),
            Slot::Empty => {}
            _ => other += 1,
        }
    }
    (complete, other)
}

fn wait(child: i32) -> i32 {
    let mut status = 0;
    // SAFETY: a child of this test.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status
}

#[test]
fn each_thread_has_a_log_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let process = process(dir.path());
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            scope.spawn(move || {
                let mut log = ThreadLog::new();
                for i in 0..20_000 {
                    // SAFETY: this thread's own log.
                    unsafe { record(&mut log, process, &call(thread << 32 | i, Op::Write)) };
                }
                // SAFETY: as above.
                unsafe { thread_exit(&mut log, process) };
            });
        }
    });
    let run = Run::scan(dir.path(), false).unwrap();
    assert_eq!(run.processes.len(), 1);
    let logs = &run.processes[0].logs;
    assert_eq!(logs.len(), 8);
    for log in logs {
        let (records, other) = read(log);
        let thread = records[0].offset >> 32;
        assert_eq!((records.len(), other), (20_000, 0));
        assert!(records.iter().enumerate().all(|(i, record)| record.offset == thread << 32 | i as u64));
    }
}

#[test]
fn threads_that_meet_a_name_at_once_give_it_one_id() {
    let dir = tempfile::tempdir().unwrap();
    let process = process(dir.path());
    let ids: Vec<Vec<u32>> = std::thread::scope(|scope| {
        let ask = || (0..200).map(|i| process.file_id(format!("/file/{i}").as_bytes(), 1, i)).collect();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|of_thread| of_thread == &ids[0]));
    let mut all = ids[0].clone();
    all.sort_unstable();
    assert_eq!(all, (1..=200).collect::<Vec<_>>());
}

fn forked(told: bool) {
    let dir = tempfile::tempdir().unwrap();
    let process = process(dir.path());
    let mut log = ThreadLog::new();
    let before = process.file_id(b"/before", 1, 1);
    let write = |log: &mut ThreadLog, file: u32, offsets: std::ops::Range<u64>| {
        for offset in offsets {
            // SAFETY: this thread's own log.
            unsafe { record(log, process, &Record { file, ..call(offset, Op::Read) }) };
        }
    };
    write(&mut log, before, 0..100);
    // SAFETY: the child calls nothing but the writer, and leaves by _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        if told {
            // SAFETY: the child of a fork.
            unsafe { after_fork_child(&mut log) };
        }
        write(&mut log, before, 1_000..1_100);
        let own = process.file_id(b"/child", 1, 2);
        write(&mut log, own, 1_100..1_200);
        // SAFETY: leaves without running the harness's destructors.
        unsafe { libc::_exit(0) };
    }
    let own = process.file_id(b"/parent", 1, 3);
    write(&mut log, own, 100..200);
    assert_eq!(wait(child), 0);
    // SAFETY: as above.
    unsafe { thread_exit(&mut log, process) };

    let run = Run::scan(dir.path(), false).unwrap();
    assert_eq!(run.processes.len(), 2);
    for of in &run.processes {
        let (records, other) = read(&of.logs[0]);
        assert_eq!((of.logs.len(), records.len(), other), (1, 200, 0));
        let is_child = of.identity.pid == child as u32;
        assert!(records.iter().all(|record| (record.offset >= 1_000) == is_child));
        let name = |record: &Record| String::from_utf8(run.name(&of.identity, record.file).unwrap().path.clone()).unwrap();
        assert_eq!(name(&records[0]), "/before");
        assert_eq!(name(&records[150]), if is_child { "/child" } else { "/parent" });
    }
}

#[test]
fn a_forked_child_has_a_log_of_its_own_and_knows_its_parents_names() {
    forked(true);
}

#[test]
fn a_forked_child_that_nobody_told_notices_by_itself() {
    forked(false);
}

#[test]
fn a_killed_process_loses_at_most_the_record_being_written() {
    let dir = tempfile::tempdir().unwrap();
    let process = process(dir.path());
    // SAFETY: a fresh shared page of zeros, for the count that outlives the child.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0) };
    // SAFETY: the page is never unmapped.
    let done = unsafe { &*page.cast::<AtomicU64>() };
    // SAFETY: the child calls nothing but the writer.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut log = ThreadLog::new();
        for i in 0.. {
            // SAFETY: this thread's own log.
            unsafe { record(&mut log, process, &call(i, Op::Write)) };
            done.store(i + 1, SeqCst);
        }
    }
    while done.load(SeqCst) < 100_000 {
        std::thread::yield_now();
    }
    // SAFETY: our own child.
    unsafe { libc::kill(child, libc::SIGKILL) };
    assert!(libc::WIFSIGNALED(wait(child)));
    let run = Run::scan(dir.path(), false).unwrap();
    let (records, other) = read(&run.processes[0].logs[0]);
    let done = done.load(SeqCst);
    assert!((done..=done + 1).contains(&(records.len() as u64)), "{} of {done}", records.len());
    assert!(other <= 1);
    assert!(records.iter().enumerate().all(|(i, record)| record.offset == i as u64));
}

struct Shared(UnsafeCell<ThreadLog>);
// SAFETY: only the recording thread and its own signal handlers touch it.
unsafe impl Sync for Shared {}
static INTERRUPTED: Shared = Shared(UnsafeCell::new(ThreadLog::new()));
static SIGNALLED: Process = Process::new();
static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_: i32) {
    let number = HANDLED.fetch_add(1, SeqCst);
    // SAFETY: runs in the recording thread, which is what the log allows.
    unsafe { record(INTERRUPTED.0.get(), &SIGNALLED, &call(number, Op::Sync)) };
}

#[test]
fn a_record_interrupted_by_a_handler_that_records_loses_neither() {
    const RECORDS: u64 = 400_000;
    let dir = tempfile::tempdir().unwrap();
    SIGNALLED.start(&CString::new(dir.path().to_str().unwrap()).unwrap(), 0, 1, b"prog\0").unwrap();
    // SAFETY: a plain handler for a signal that nothing else here uses.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_NODEFER;
        libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
    }
    let finished = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        // SAFETY: names this thread, which outlives the scope's other one.
        let recorder = unsafe { libc::pthread_self() };
        let finished = &finished;
        let sender = scope.spawn(move || {
            while !finished.load(SeqCst) {
                // SAFETY: as above.
                unsafe { libc::pthread_kill(recorder, libc::SIGUSR1) };
                std::thread::sleep(std::time::Duration::from_micros(5));
            }
        });
        for i in 0..RECORDS {
            // SAFETY: this thread's own log.
            unsafe { record(INTERRUPTED.0.get(), &SIGNALLED, &call(i, Op::Read)) };
        }
        while HANDLED.load(SeqCst) < 100 {
            std::thread::yield_now();
        }
        finished.store(true, SeqCst);
        sender.join().unwrap();
    });
    // SAFETY: as above.
    unsafe { thread_exit(INTERRUPTED.0.get(), &SIGNALLED) };
    let run = Run::scan(dir.path(), false).unwrap();
    let (records, other) = read(&run.processes[0].logs[0]);
    let of = |op: Op| records.iter().filter(|record| record.op == op as u16).count() as u64;
    assert_eq!((of(Op::Read), of(Op::Sync), other), (RECORDS, HANDLED.load(SeqCst), 0));
}

#[test]
fn a_file_size_limit_costs_records_and_does_not_kill_the_host() {
    let dir = tempfile::tempdir().unwrap();
    let process = process(dir.path());
    // SAFETY: the child changes its own limit and calls nothing but the writer.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let limit = libc::rlimit { rlim_cur: 1 << 20, rlim_max: 1 << 20 };
        let mut log = ThreadLog::new();
        // SAFETY: as above.
        unsafe {
            libc::setrlimit(libc::RLIMIT_FSIZE, &limit);
            for i in 0..30_000 {
                record(&mut log, process, &call(i, Op::Write));
            }
            thread_exit(&mut log, process);
            libc::_exit(0);
        }
    }
    assert_eq!(wait(child), 0);
    let run = Run::scan(dir.path(), false).unwrap();
    let log = &run.processes[0].logs[0];
    // 1 MiB less the header.
    assert_eq!(read(log).0.len() as u64, (1 << 20) / 64 - 64);
    assert_eq!(log.header.dropped, 30_000 - ((1 << 20) / 64 - 64));
}

#[test]
fn a_full_file_system_costs_records_and_does_not_kill_the_host() {
    let dir = tempfile::tempdir().unwrap();
    let target = CString::new(dir.path().to_str().unwrap()).unwrap();
    // SAFETY: mounts on a directory of this test's own.
    let mounted = unsafe { libc::mount(c"tmpfs".as_ptr(), target.as_ptr(), c"tmpfs".as_ptr(), 0, c"size=256k".as_ptr().cast()) };
    if mounted != 0 {
        eprintln!("skipped: mounting a small tmpfs needs root");
        return;
    }
    let process = process(dir.path());
    let mut log = ThreadLog::new();
    for i in 0..5_000 {
        // SAFETY: this thread's own log.
        unsafe { record(&mut log, process, &call(i, Op::Write)) };
    }
    // SAFETY: as above.
    unsafe { thread_exit(&mut log, process) };
    let run = Run::scan(dir.path(), false);
    let read = run.map(|run| (read(&run.processes[0].logs[0]).0.len() as u64, run.processes[0].logs[0].header.dropped));
    // SAFETY: unmounts what was mounted above; lazily, as a child that another test forked may still hold the mapping.
    assert_eq!(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) }, 0);
    let (kept, dropped) = read.unwrap();
    assert_eq!((kept, dropped), (960, 5_000 - 960));
}
