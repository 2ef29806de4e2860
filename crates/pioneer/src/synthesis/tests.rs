//! Facts of whole synthetic paths: hard dependencies, ids, counts, over profiles that chance makes.

use std::collections::{BTreeMap, HashMap};

use stripewise_chance::SplitMix64;
use stripewise_workpath::op::{Layer, Moves, Position};
use stripewise_workpath::{Class, Op};

use super::distribution::{Distribution, Slack};
use super::frame::OWN;
use super::profile::{Access, Counts, FileClass, Kind, Profile, SessionKind, ViewWeight};
use super::{Synthetic, synthesize};

/// Profiles that are looked at; each synthetic path has up to some hundred requests.
const PROFILES: u64 = 100_000;
/// Profiles are looked at by so many threads.
const THREADS: u64 = 2;

const POSIX: [&str; 19] = [
    "read0",
    "read1",
    "write0",
    "write1",
    "pread",
    "pwrite",
    "seek",
    "fsync",
    "fdatasync",
    "ftruncate",
    "fallocate",
    "fstat",
    "fcntl",
    "lock",
    "mmap",
    "munmap",
    "advise",
    "write0",
    "read0",
];
const MPI: [&str; 24] = [
    "mpi_read_at",
    "mpi_write_at",
    "mpi_read_at_all",
    "mpi_write_at_all",
    "mpi_read0",
    "mpi_read1",
    "mpi_write0",
    "mpi_write1",
    "mpi_read_all0",
    "mpi_write_all1",
    "mpi_read_shared",
    "mpi_write_ordered",
    "mpi_iread00",
    "mpi_iread11",
    "mpi_iwrite10",
    "mpi_iwrite_at0",
    "mpi_iread_at_all0",
    "mpi_wait",
    "mpi_seek",
    "mpi_view",
    "mpi_sync",
    "mpi_set_size",
    "mpi_get_size",
    "mpi_preallocate",
];
const OUTSIDE: [&str; 15] = [
    "stat",
    "access",
    "statfs",
    "unlink",
    "rename",
    "link",
    "symlink",
    "readlink",
    "mkdir",
    "rmdir",
    "mknod",
    "truncate",
    "setattr",
    "opendir",
    "mpi_delete",
];
const KINDS: [Kind; 7] =
    [Kind::PosixRead, Kind::PosixWrite, Kind::PosixReadWrite, Kind::PosixDirectory, Kind::MpiRead, Kind::MpiWrite, Kind::MpiReadWrite];

fn pick<'a>(random: &mut SplitMix64, of: &[&'a str]) -> &'a str {
    of[random.below(of.len() as u64) as usize]
}

fn distribution(random: &mut SplitMix64, low: u64, high: u64) -> Distribution {
    let mut number = || (low + random.below(high - low + 1)) as f64;
    let (a, b, c) = (number(), number(), number());
    match number() as u64 % 5 {
        0 => Distribution::constant(a),
        1 => Distribution::Values { values: vec![a, a + 1.0 + b], weights: vec![1.0 + c, 2.0] },
        2 => Distribution::Quantiles { quantiles: vec![a, a + b, a + b + c] },
        3 => Distribution::Uniform { uniform: [a, a + b] },
        _ => Distribution::Quantiles { quantiles: vec![0.0f64.max(low as f64), 2.0 * a + low as f64] },
    }
}

fn session(random: &mut SplitMix64, kind: Kind) -> SessionKind {
    let is_mpi = kind.layer() == Layer::Mpi;
    let ops: &[&str] = if is_mpi { &MPI } else { &POSIX };
    let mut following: BTreeMap<String, Counts> = BTreeMap::new();
    let mut size: BTreeMap<String, Distribution> = BTreeMap::new();
    let mut from = "";
    for _ in 0..random.below(8) {
        let to = pick(random, ops);
        *following.entry(from.to_owned()).or_default().entry(to.to_owned()).or_default() += (1 + random.below(9)) as f64;
        size.entry(to.to_owned()).or_insert_with(|| distribution(random, 0, 5000));
        from = to;
    }
    let bursts = Slack::Bursts { short: Distribution::constant(0.0), long: Distribution::constant(2.0), every: Distribution::constant(3.0) };
    let communicators = [("world", random.below(3)), ("self", 1), ("blocks-2", random.below(2))];
    SessionKind {
        duration: distribution(random, 1, 12),
        request_gap: distribution(random, 1, 4),
        sequential: Distribution::Uniform { uniform: [0.0, random.unit()] },
        following,
        offset: (random.below(2) == 0).then(|| distribution(random, 0, 20_000)),
        size,
        views: vec![ViewWeight { piece: 10, distance: 40, pieces: 1 + random.below(3), tile: 150, weight: 1.0 }],
        shift: distribution(random, 0, 9000),
        slack: [("open".to_owned(), Slack::Plain(Distribution::constant(0.5))), ("read0".to_owned(), bursts)].into(),
        communicators: communicators.into_iter().filter(|_| is_mpi).map(|(name, weight)| (name.to_owned(), weight as f64)).collect(),
    }
}

fn class(random: &mut SplitMix64) -> FileClass {
    let mut sessions: BTreeMap<Kind, SessionKind> = BTreeMap::new();
    for _ in 0..1 + random.below(3) {
        let kind = KINDS[random.below(7) as usize];
        sessions.insert(kind, session(random, kind));
    }
    let kinds: Vec<Kind> = sessions.keys().copied().collect();
    let any = |random: &mut SplitMix64| kinds[random.below(kinds.len() as u64) as usize];
    let next = kinds.iter().map(|&kind| (kind, [(any(random), 1.0)].into())).collect();
    FileClass {
        files: random.below(4) as u32,
        open_times: distribution(random, 0, 2),
        session_gap: distribution(random, 1, 40),
        file_size: (random.below(2) == 0).then(|| distribution(random, 0, 50_000)),
        outside: (0..random.below(5)).map(|_| (pick(random, &OUTSIDE).to_owned(), random.below(6) as f64)).collect(),
        outside_slack: BTreeMap::new(),
        names: Vec::new(),
        access: Access { first: [(kinds[0], 1.0)].into(), next },
        sessions,
    }
}

pub(super) fn profile(seed: u64) -> Profile {
    let mut random = SplitMix64::new(seed, 77);
    let classes = ["root", "shared", "private"].map(|name| (name.to_owned(), class(&mut random)));
    Profile { processes: 4, apart: false, together: [].into(), classes: classes.into() }
}

/// Every rule that a path must keep, whatever its profile says.
pub(super) fn check(made: &Synthetic, of: &Profile, processes: u32) {
    let frame = &made.frame;
    assert_eq!(frame.ops.len(), frame.ids.len());
    let mut ids = frame.ids.clone();
    ids.sort_unstable();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "an id is given twice");
    let outside: f64 = of.classes.values().filter(|class| class.files > 0).flat_map(|class| class.outside.values()).sum();
    assert_eq!(made.filled.requests.len(), frame.ops.len() + outside as usize, "the stream has holes");

    let last = i64::from(processes) - 1;
    let mut states: HashMap<u32, (bool, u32)> = HashMap::new();
    let mut views: HashMap<u32, u16> = HashMap::new();
    let mut open: HashMap<u32, (Kind, u32, u32)> = HashMap::new();
    let mut begun: HashMap<u32, u32> = HashMap::new();
    let mut written: HashMap<u32, (i64, i64)> = HashMap::new();
    for (number, file) in made.filled.files.iter().enumerate() {
        states.insert(number as u32, (file.present || file.bytes > 0, 0));
    }
    for request in &made.filled.requests {
        let file = &made.filled.files[request.file as usize];
        let state = states.get_mut(&request.file).unwrap();
        let facts = request.op.facts();
        assert!(file.class == Class::Shared || request.comm == OWN || facts.layer == Layer::Posix, "a collective call on files that differ");
        let Some(session) = request.session else {
            assert_ne!(facts.place, stripewise_workpath::op::Place::Inside);
            match request.op {
                Op::Unlink | Op::MpiDelete | Op::Rename | Op::Rmdir => {
                    assert!(state.0 && state.1 == 0, "{:?} of what is not there, or open", request.op);
                    assert_eq!(file.directory, request.op == Op::Rmdir);
                    state.0 = false;
                    written.remove(&request.file);
                }
                Op::Mkdir | Op::Mknod => {
                    assert!(!std::mem::replace(&mut state.0, true), "{:?} of what is there", request.op);
                }
                Op::Link | Op::Symlink | Op::Truncate | Op::Setattr | Op::Opendir => assert!(state.0, "{:?} of what is not there", request.op),
                _ => (),
            }
            if let Some(other) = request.other {
                let other = states.get_mut(&other).unwrap();
                assert!(!std::mem::replace(&mut other.0, true), "{:?} to what is there", request.op);
            }
            continue;
        };
        let described = &frame.sessions[session as usize];
        assert_eq!(described.file, request.file);
        if request.op == described.kind.open() {
            assert!(!begun.contains_key(&session));
            assert!(described.kind.writes() || state.0, "a file that is not there is opened for reading");
            *state = (true, state.1 + 1);
            open.insert(session, (described.kind, 0, 0));
            begun.insert(session, 0);
            *begun.get_mut(&session).unwrap() += 1;
            continue;
        }
        *begun.get_mut(&session).expect("a request before its open") += 1;
        let (kind, mapped, pending) = open.get_mut(&session).expect("a request after the close");
        if request.op == kind.close() {
            open.remove(&session);
            state.1 -= 1;
            continue;
        }
        assert!(kind.allows(request.op), "{:?} in {kind:?}", request.op);
        match request.op {
            Op::Mmap => *mapped += 1,
            Op::Munmap => *mapped = mapped.checked_sub(1).expect("munmap before mmap"),
            Op::MpiWait => *pending = pending.checked_sub(1).expect("a wait for nothing"),
            _ if facts.pending => *pending += 1,
            _ => (),
        }
        let at_last = request.offset as i64 + request.shift * last;
        assert!(at_last >= 0);
        if request.op == Op::MpiView {
            views.insert(session, request.view);
        }
        let view = views.get(&session).and_then(|&view| made.filled.views.get(usize::from(view).checked_sub(1)?));
        let is_shared = facts.position == Position::Shared;
        let bytes = if is_shared && request.comm != OWN { request.size * (last as u64 + 1) } else { request.size };
        let reach = view.map_or(bytes, |view| super::extent::reach(view, bytes)) as i64;
        let ends = (request.offset as i64 + reach, at_last + reach);
        let before = written.entry(request.file).or_default();
        match facts.moves {
            Moves::Reads => {
                let is_written = ends.0 <= before.0 && ends.1 <= before.1;
                assert!(is_written || ends.0.max(ends.1) <= file.bytes as i64, "data is read that is not there: {request:?} {before:?} {file:?}");
            }
            Moves::Writes => *before = (before.0.max(ends.0), before.1.max(ends.1)),
            Moves::Nothing => (),
        }
        let limit = frame.files[request.file as usize].size.filter(|&size| size > 0);
        if facts.moves != Moves::Nothing && facts.position != Position::Shared {
            assert!(limit.is_none_or(|limit| request.offset + request.size <= limit), "beyond FS");
        }
        if matches!(request.op, Op::Ftruncate | Op::MpiSetSize) {
            assert!(request.size as i64 >= before.0.max(before.1) && request.size >= file.bytes, "data is cut off");
        }
    }
    assert!(open.is_empty() && begun.len() == frame.sessions.len());
    for (session, count) in begun {
        assert_eq!(count, frame.sessions[session as usize].requests);
    }
}

#[test]
fn hard_dependencies_hold_and_ids_are_unique_without_holes_in_paths_of_random_profiles() {
    let look = |thread: u64| {
        let mut requests = 0;
        for seed in (thread..PROFILES).step_by(THREADS as usize) {
            let of = profile(seed);
            let processes = 1 + (seed % 5) as u32;
            let made = synthesize(&of, processes, seed).unwrap();
            check(&made, &of, processes);
            requests += made.filled.requests.len();
        }
        requests
    };
    let requests: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || look(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(requests > 10 * PROFILES as usize, "{requests}");
}

/// Open, 3 writes, close: first by one file, then by another, and three stats.
const PLAIN: &str = r#"{"processes": 4, "classes": {"shared": {"OS": 2, "ISG": {"values": [1, 6], "weights": [1, 1]}, "RT2": {"stat": 3},
    "sessions": {"posix-write": {"D": 4, "RT1": {"": {"write0": 2}, "write0": {"write0": 4}}, "SIZE": {"write0": 100}, "ST": {"write0": 0.25}}}}}}"#;

fn made(json: &str, processes: u32, seed: u64) -> Synthetic {
    let of: Profile = serde_json::from_str(json).unwrap();
    let made = synthesize(&of, processes, seed).unwrap();
    check(&made, &of, processes);
    made
}

#[test]
fn a_path_of_the_profile_s_own_length_has_its_counts_and_order() {
    for seed in 0..20 {
        let made = made(PLAIN, 4, seed);
        let names: Vec<&str> = made.filled.requests.iter().map(|request| request.op.name()).collect();
        let session = ["open", "write0", "write0", "write0", "close"];
        assert_eq!(names, [&session[..], &session[..], &["stat"; 3]].concat());
        let offsets: Vec<u64> = made.filled.requests[1..4].iter().map(|request| request.offset).collect();
        assert_eq!(offsets, [0, 100, 200]);
        assert_eq!(made.filled.requests.iter().map(|request| request.slack_ns).sum::<u64>(), 6 * 250_000_000);
    }
}

#[test]
fn a_session_that_reads_what_another_wrote_needs_nothing_beforehand() {
    let json = r#"{"processes": 4, "classes": {"private": {"OS": 1, "OT": 2, "ISG": 1, "AM": {"first": {"posix-write": 1}, "next": {"posix-write": {"posix-read": 1}}},
        "sessions": {"posix-write": {"D": 11, "SIZE": {"write0": 4096}, "RT1": {"": {"write0": 1}, "write0": {"write0": 9}}},
                     "posix-read": {"D": 11, "SIZE": {"read0": 4096}, "RT1": {"": {"read0": 1}, "read0": {"read0": 9}}}}}}}"#;
    assert_eq!(made(json, 8, 1).filled.files[0].bytes, 0);
    let reading = json.replace(r#""first": {"posix-write": 1}"#, r#""first": {"posix-read": 1}"#);
    assert_eq!(made(&reading, 8, 1).filled.files[0].bytes, 40960);
}

#[test]
fn offsets_of_a_strided_file_are_walked_in_order_by_each_session() {
    let json = r#"{"processes": 4, "classes": {"shared": {"OS": 1, "OT": 2, "ISG": 1, "AM": {"first": {"mpi-write": 1}, "next": {"mpi-write": {"mpi-read": 1}}},
        "sessions": {"mpi-write": {"D": 5, "SEQ": 0.25, "SIZE": {"mpi_write_at_all": 10}, "SHIFT": 10, "OFF": {"values": [40, 80, 120], "weights": [1, 1, 1]},
                                   "RT1": {"": {"mpi_write_at_all": 1}, "mpi_write_at_all": {"mpi_write_at_all": 3}}},
                     "mpi-read": {"D": 5, "SEQ": 0.25, "SIZE": {"mpi_read_at_all": 10}, "SHIFT": 10, "OFF": {"values": [40, 80, 120], "weights": [1, 1, 1]},
                                  "RT1": {"": {"mpi_read_at_all": 1}, "mpi_read_at_all": {"mpi_read_at_all": 3}}}}}}}"#;
    let made = made(json, 4, 3);
    let data: Vec<(u64, i64)> = made.filled.requests.iter().filter(|each| each.size > 0).map(|each| (each.offset, each.shift)).collect();
    assert_eq!(data, [(0, 10), (40, 10), (80, 10), (120, 10)].repeat(2));
    assert_eq!(made.filled.files[0].bytes, 0);
}
