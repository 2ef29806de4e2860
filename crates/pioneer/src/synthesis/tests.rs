//! Facts of whole synthetic paths: hard dependencies, ids, counts, over profiles that chance makes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use stripewise_chance::SplitMix64;
use stripewise_workpath::op::{Layer, Moves, Position};
use stripewise_workpath::{Class, Op, Tables, Who, takes_part};

use super::arguments::Request;
use super::distribution::{Distribution, Slack};
use super::frame::OWN;
use super::profile::{Access, Counts, FileClass, Kind, Opening, Profile, Ranks, SessionKind, Subgroup, ViewWeight};
use super::states::Prepared;
use super::who::{mark, marked};
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

/// Marks that profiles have, in turn: none, those of the root and the others, those of groups too.
const MARKS: [&[&str]; 3] = [&[""], &["", "", "@root", "@others"], &["", "", "@root", "@others", "@group-1", "@group-2"]];

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

fn session(random: &mut SplitMix64, kind: Kind, marks: &[&str]) -> SessionKind {
    let is_mpi = kind.layer() == Layer::Mpi;
    let ops: &[&str] = if is_mpi { &MPI } else { &POSIX };
    let mut following: BTreeMap<String, Counts> = BTreeMap::new();
    let mut size: BTreeMap<String, Distribution> = BTreeMap::new();
    let mut from = String::new();
    for _ in 0..random.below(8) {
        let (name, mark) = (pick(random, ops), pick(random, marks));
        let to = format!("{name}{mark}");
        *following.entry(from).or_default().entry(to.clone()).or_default() += (1 + random.below(9)) as f64;
        size.entry(if random.below(2) == 0 { name.to_owned() } else { to.clone() }).or_insert_with(|| distribution(random, 0, 5000));
        from = to;
    }
    let mut own: BTreeMap<String, Distribution> = BTreeMap::new();
    for (key, high) in [("OFF", 20_000), ("SHIFT", 9000), ("SEQ", 0)] {
        let mark = pick(random, marks);
        if !mark.is_empty() {
            own.insert(format!("{key}{mark}"), distribution(random, 0, high));
        }
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
        own,
    }
}

fn class(random: &mut SplitMix64, marks: &[&str]) -> FileClass {
    let mut sessions: BTreeMap<Opening, SessionKind> = BTreeMap::new();
    for _ in 0..1 + random.below(3) {
        let kind = KINDS[random.below(7) as usize];
        let who = marked(pick(random, marks)).unwrap().1;
        sessions.insert(Opening { kind, who }, session(random, kind, if who == Who::All { marks } else { &[""] }));
    }
    let kinds: Vec<Opening> = sessions.keys().copied().collect();
    let any = |random: &mut SplitMix64| kinds[random.below(kinds.len() as u64) as usize];
    let next = kinds.iter().map(|&kind| (kind, [(any(random), 1.0)].into())).collect();
    FileClass {
        files: random.below(4) as u32,
        open_times: distribution(random, 0, 2),
        session_gap: distribution(random, 1, 40),
        file_size: (random.below(2) == 0).then(|| distribution(random, 0, 50_000)),
        outside: (0..random.below(5)).map(|_| (format!("{}{}", pick(random, &OUTSIDE), pick(random, marks)), random.below(6) as f64)).collect(),
        outside_slack: BTreeMap::new(),
        names: Vec::new(),
        access: Access { first: [(kinds[0], 1.0)].into(), next },
        sessions,
    }
}

pub(super) fn profile(seed: u64) -> Profile {
    let mut random = SplitMix64::new(seed, 77);
    let marks = MARKS[random.below(3) as usize];
    let classes = ["root", "shared", "private"].map(|name| (name.to_owned(), class(&mut random, if name == "root" { &[""] } else { marks })));
    let groups = if random.below(2) == 0 {
        [Ranks::Span([0, 32_768]), Ranks::Span([32_768, 65_536])]
    } else {
        [Ranks::Congruent([3, 1]), Ranks::Congruent([3, 2])]
    };
    let subgroups = groups.map(|group| Subgroup { group: Some(group) });
    Profile { processes: 4, apart: false, together: [].into(), subgroups: subgroups.into(), classes: classes.into() }
}

/// What a rank has done by now.
#[derive(Clone, Default)]
struct Rank {
    number: i64,
    /// By file: it is there, and how many sessions have it open.
    states: HashMap<u32, (bool, u32)>,
    /// By session what is mapped, and what is pending.
    open: HashMap<u32, (u32, u32)>,
    closed: BTreeSet<u32>,
    /// By file the end of what it has written.
    written: HashMap<u32, i64>,
    /// By session, where it has opened the file alone, where its shared pointer stands.
    pointers: HashMap<u32, i64>,
}

impl Rank {
    fn outside(&mut self, request: &Request, file: &Prepared) {
        let state = self.states.get_mut(&request.file).unwrap();
        match request.op {
            Op::Unlink | Op::MpiDelete | Op::Rename | Op::Rmdir => {
                assert!(state.0 && state.1 == 0, "{:?} of what is not there, or open", request.op);
                assert_eq!(file.directory, request.op == Op::Rmdir);
                state.0 = false;
                self.written.remove(&request.file);
            }
            Op::Mkdir | Op::Mknod => {
                assert!(!std::mem::replace(&mut state.0, true), "{:?} of what is there", request.op);
            }
            Op::Link | Op::Symlink | Op::Truncate | Op::Setattr | Op::Opendir => assert!(state.0, "{:?} of what is not there", request.op),
            _ => (),
        }
        if let Some(other) = request.other {
            let other = self.states.get_mut(&other).unwrap();
            assert!(!std::mem::replace(&mut other.0, true), "{:?} to what is there", request.op);
        }
    }

    /// One of a session's; `reach`: from its first byte to the end of its last; `span`: of a shared pointer that is its own, how far that moves.
    fn inside(&mut self, request: &Request, file: &Prepared, kind: Kind, reach: i64, span: Option<i64>) {
        let session = request.session.unwrap();
        let state = self.states.get_mut(&request.file).unwrap();
        if request.op == kind.open() {
            assert!(!self.closed.contains(&session));
            assert!(kind.writes() || state.0, "a file that is not there is opened for reading");
            *state = (true, state.1 + 1);
            assert!(self.open.insert(session, (0, 0)).is_none());
            return;
        }
        if request.op == kind.close() {
            self.open.remove(&session).expect("a close before its open");
            self.closed.insert(session);
            state.1 -= 1;
            return;
        }
        let (mapped, pending) = self.open.get_mut(&session).expect("a request before the open, or after the close");
        let facts = request.op.facts();
        match request.op {
            Op::Mmap => *mapped += 1,
            Op::Munmap => *mapped = mapped.checked_sub(1).expect("munmap before mmap"),
            Op::MpiWait => *pending = pending.checked_sub(1).expect("a wait for nothing"),
            _ if facts.pending => *pending += 1,
            _ => (),
        }
        let mut at = request.offset as i64 + request.shift * self.number;
        if request.op == Op::MpiView {
            self.pointers.remove(&session);
        }
        if let Some(span) = span {
            let pointer = self.pointers.entry(session).or_default();
            assert!(self.number > 0 || *pointer == at, "{at} is not where the root's pointer stands, {pointer}");
            at = *pointer;
            *pointer += span;
        }
        assert!(at >= 0);
        let before = self.written.entry(request.file).or_default();
        match facts.moves {
            Moves::Reads => assert!(at + reach <= (*before).max(file.bytes as i64), "data is read that is not there: {request:?} {before} {file:?}"),
            Moves::Writes => *before = (*before).max(at + reach),
            Moves::Nothing => (),
        }
    }
}

/// Every rule that a path must keep, whatever its profile says, by each rank.
pub(super) fn check(made: &Synthetic, of: &Profile, processes: u32) {
    let frame = &made.frame;
    assert_eq!(frame.ops.len(), frame.ids.len());
    let mut ids = frame.ids.clone();
    ids.sort_unstable();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "an id is given twice");
    let outside: f64 = of.classes.values().filter(|class| class.files > 0).flat_map(|class| class.outside.values()).sum();
    assert_eq!(made.filled.requests.len(), frame.ops.len() + outside as usize, "the stream has holes");

    let states: HashMap<u32, (bool, u32)> =
        made.filled.files.iter().zip(0..).map(|(file, number)| (number, (file.present || file.bytes > 0, 0))).collect();
    let mut ranks: Vec<Rank> = (0..processes).map(|number| Rank { number: number.into(), states: states.clone(), ..Rank::default() }).collect();
    let tables = Tables { groups: frame.parts.groups.clone(), ..Tables::default() };
    let mut views: HashMap<u32, u16> = HashMap::new();
    let mut begun: HashMap<u32, u32> = HashMap::new();
    for request in &made.filled.requests {
        let file = &made.filled.files[request.file as usize];
        let facts = request.op.facts();
        let who = if file.class == Class::Root { Who::Root } else { request.who };
        let is_of = |rank: &Rank| takes_part(&tables, who, rank.number as u32, processes);
        assert!(file.class == Class::Shared || request.comm == OWN || facts.layer == Layer::Posix, "a collective call on files that differ");
        assert!(!facts.collective || request.comm == OWN || request.who == Who::All, "a collective call of some ranks");
        let Some(session) = request.session else {
            assert_ne!(facts.place, stripewise_workpath::op::Place::Inside);
            ranks.iter_mut().filter(|rank| is_of(rank)).for_each(|rank| rank.outside(request, file));
            continue;
        };
        let described = &frame.sessions[session as usize];
        assert_eq!(described.file, request.file);
        let kind = described.kind;
        *begun.entry(session).or_default() += 1;
        assert!(matches!(request.op, op if op == kind.open() || op == kind.close() || kind.allows(op)), "{:?} in {kind:?}", request.op);
        if request.op == Op::MpiView {
            views.insert(session, request.view);
        }
        let view = views.get(&session).and_then(|&view| made.filled.views.get(usize::from(view).checked_sub(1)?));
        let is_shared = facts.position == Position::Shared;
        let count = ranks.iter().filter(|rank| is_of(rank)).count() as u64;
        let bytes = if is_shared && request.comm != OWN { request.size * count } else { request.size };
        let reach = view.map_or(bytes, |view| super::extent::reach(view, bytes)) as i64;
        let span = view.map_or(bytes, |view| super::extent::spanned(view, bytes)) as i64;
        let span = (is_shared && request.comm == OWN).then_some(span);
        ranks.iter_mut().filter(|rank| is_of(rank)).for_each(|rank| rank.inside(request, file, kind, reach, span));
        let limit = frame.files[request.file as usize].size.filter(|&size| size > 0);
        if facts.moves != Moves::Nothing && !is_shared {
            assert!(limit.is_none_or(|limit| request.offset + request.size <= limit), "beyond FS");
        }
        if matches!(request.op, Op::Ftruncate | Op::MpiSetSize) {
            let written = ranks.iter().filter_map(|rank| rank.written.get(&request.file)).max().copied().unwrap_or(0);
            assert!(request.size as i64 >= written && request.size >= file.bytes, "data is cut off");
        }
    }
    assert!(ranks.iter().all(|rank| rank.open.is_empty()) && begun.len() == frame.sessions.len());
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
            let processes = 1 + (seed % 7) as u32;
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

/// What each rank makes, with its mark, its size and where it begins.
fn told(made: &Synthetic) -> Vec<(String, u64, u64)> {
    let text = |request: &Request| format!("{}{}", request.op.name(), mark(request.who));
    made.filled.requests.iter().map(|request| (text(request), request.size, request.offset)).collect()
}

#[test]
fn what_the_root_alone_writes_has_sizes_and_places_of_its_own_and_is_not_there_for_the_others() {
    let json = r#"{"processes": 4, "classes": {"shared": {"OS": 1, "OT": 2, "AM": {"first": {"posix-write": 1}, "next": {"posix-write": {"posix-read": 1}}}, "sessions": {
        "posix-write": {"D": 4, "SEQ": 0, "OFF": 1000, "OFF@root": 5, "RT1": {"": {"pwrite@root": 1}, "pwrite@root": {"pwrite": 1}, "pwrite": {"pwrite": 1}},
                        "SIZE": {"pwrite": 100, "pwrite@root": 7}},
        "posix-read": {"D": 2, "SEQ": 0, "OFF": 0, "RT1": {"": {"pread": 1}}, "SIZE": {"pread": 1}}}}}}"#;
    let made = made(json, 4, 1);
    let [_, header, one, two, ..] = &told(&made)[..] else { panic!("too short") };
    assert_eq!(
        [header, one, two].map(|each| (each.0.as_str(), each.1, each.2)),
        [("pwrite@root", 7, 5), ("pwrite", 100, 1000), ("pwrite", 100, 1000)]
    );
    assert_eq!(made.filled.files[0].bytes, 0);
    let alone = json.replace(r#""pwrite": 1}, "pwrite": {"pwrite": 1}}"#, r#""pwrite@root": 1}}"#);
    assert_eq!(self::made(&alone, 4, 1).filled.files[0].bytes, 1);
    assert_eq!(self::made(&alone, 1, 1).filled.files[0].bytes, 0);
}

#[test]
fn a_file_that_the_root_alone_makes_is_there_before_others_read_it() {
    let json = r#"{"processes": 4, "classes": {"shared": {"OS": 1, "OT": 2, "AM": {"first": {"posix-write@root": 1}, "next": {"posix-write@root": {"posix-read": 1}}},
        "sessions": {"posix-write@root": {"D": 2, "SIZE": {"write0": 10}}, "posix-read": {"D": 1}}}}}"#;
    let found = made(json, 4, 1);
    let names: Vec<String> = told(&found).into_iter().map(|each| each.0).collect();
    assert_eq!(names, ["open@root", "write0@root", "close@root", "open", "close"]);
    assert!(found.filled.files[0].present);
    assert!(!made(&json.replace("@root", ""), 4, 1).filled.files[0].present);
}

#[test]
fn ranks_seek_to_one_place_where_some_have_moved_their_pointers_alone() {
    let json = r#"{"processes": 4, "classes": {"shared": {"OS": 1, "sessions": {"posix-write": {"D": 4, "SIZE": {"write0": 100, "write0@root": 7},
        "RT1": {"": {"write0@root": 1}, "write0@root": {"write0": 1}, "write0": {"write0": 1}}}}}}}"#;
    let found = told(&made(json, 4, 1));
    let names: Vec<&str> = found.iter().map(|each| each.0.as_str()).collect();
    assert_eq!(names, ["open", "write0@root", "write1", "write0", "close"]);
    assert_eq!(found[3].2, 100);
}
