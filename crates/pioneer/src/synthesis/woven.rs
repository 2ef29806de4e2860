//! Facts of mixtures of statistics and patterns, over random profiles and random patterns.

use std::io::Cursor;

use stripewise_chance::SplitMix64;
use stripewise_workpath::node::{APART, TOGETHER, TOGETHER_REST, mode};
use stripewise_workpath::{Class, Comm, Distribution, File, Group, Node, Op, Path, PathWriter, Tables, View, Who, check_playable};

use super::frame::OWN;
use super::tests::{check, profile};
use super::weave::{requests, woven};
use super::{synthesize_among, write};

/// Mixtures that are looked at, by so many threads.
const MIXTURES: u64 = 100_000;
const THREADS: u64 = 2;
/// Files of the patterns: a shared one, and one of each rank.
const FILES: u32 = 2;
/// Loops within loops of the patterns.
const LOOPS: u64 = 3;

/// Requests of open files, collective ones among them, in loops within loops that chance makes.
fn body(random: &mut SplitMix64, depth: u64, out: &mut Vec<Node>) {
    for _ in 0..1 + random.below(3) {
        let place = |random: &mut SplitMix64| random.below(1000) as i64;
        if depth > 0 && random.below(2) == 0 {
            let at = out.len();
            out.push(Node { at: place(random), at_rank: place(random), stride: place(random), ..Node::rounds(random.below(5), 0) });
            body(random, depth - 1, out);
            out[at].link = (out.len() - at - 1) as u32;
            continue;
        }
        let ops = [(Op::MpiWriteAt, 0), (Op::MpiWriteAtAll, 0), (Op::MpiView, 0), (Op::Pwrite, 1), (Op::Fstat, 1)];
        let (op, file) = ops[random.below(5) as usize];
        let who = [Who::All, Who::Root, Who::Group(0), Who::Last][if op == Op::MpiWriteAt { random.below(4) as usize } else { 0 }];
        let slack = random.below(4) as u32;
        out.push(Node {
            who,
            at: place(random),
            at_rank: place(random),
            stride: place(random),
            size: random.below(9),
            view: u16::from(op == Op::MpiView),
            slack_ns: 7,
            slack_first: slack,
            slack_rest: if slack == 0 { 0 } else { 1 + random.below(3) as u32 },
            flags: if who == Who::All { [0, TOGETHER, TOGETHER_REST, TOGETHER | TOGETHER_REST][random.below(4) as usize] } else { 0 }
                | if random.below(2) == 0 { APART } else { 0 },
            ..Node::request(op, file)
        });
    }
}

/// Slacks that the first round and the others can be told apart by.
fn tables() -> Tables {
    let file = |class, name: &str| File { class, name: name.to_owned(), bytes: 0, present: false, directory: false };
    Tables {
        files: vec![file(Class::Shared, "shared.file0"), file(Class::Private, "below/own.{rank}")],
        comms: vec![Comm::World],
        groups: vec![Group::Span { low: 1, high: 1 << 16 }],
        distributions: [100, 200, 300].map(|ns| Distribution::Values(vec![(ns, 1)])).to_vec(),
        views: vec![View::strided(8, 64)],
        ..Tables::default()
    }
}

fn written(nodes: &[Node], tables: &Tables) -> Vec<u8> {
    let mut writer = PathWriter::new(Cursor::new(Vec::new())).unwrap();
    nodes.iter().for_each(|node| writer.node(node).unwrap());
    writer.finish(tables, 0).unwrap().into_inner()
}

fn patterns(seed: u64) -> Vec<u8> {
    let mut random = SplitMix64::new(seed, 78);
    let end = |op, file| Node { size: mode::WRITE | mode::CREATE, ..Node::request(op, file) };
    let mut nodes = vec![end(Op::MpiOpen, 0), end(Op::Open, 1)];
    body(&mut random, LOOPS, &mut nodes);
    nodes.extend([Node::request(Op::Close, 1), Node::request(Op::MpiClose, 0)]);
    written(&nodes, &tables())
}

/// What a rank asks for: operation, file less the first ones, place, size, slack, whether all wait for each other before it.
fn asked(path: &Path<'_>, rank: u32, processes: u32, files: std::ops::Range<u32>) -> Vec<(Op, u32, i64, u64, u64, bool)> {
    let of = path.requests(rank, processes).filter(|each| files.contains(&each.file));
    // Those that name another file have its number as their size.
    let moved = |op| if matches!(op, Op::Rename | Op::Link | Op::Symlink) { u64::from(files.start) } else { 0 };
    of.map(|each| (each.op, each.file - files.start, each.offset, each.size - moved(each.op), each.slack_ns, each.together)).collect()
}

fn look(seed: u64) -> (u64, usize) {
    let (of, processes) = (profile(seed), 1 + (seed % 5) as u32);
    let bytes = patterns(seed);
    let patterns = Path::parse(&bytes).unwrap();
    let count = requests(&patterns).unwrap();
    let sequence = SplitMix64::new(seed, 79).below(400);
    let (made, before) = synthesize_among(&of, processes, seed, sequence, count).unwrap();
    check(&made, &of, processes);
    assert!(before.is_sorted() && before.iter().all(|&each| each <= count));

    let own = write::write(&of, &made, seed, Cursor::new(Vec::new())).unwrap().into_inner();
    let statistics = Path::parse(&own).unwrap();
    let mixed = woven(&patterns, &statistics, processes, &before, Cursor::new(Vec::new())).unwrap().into_inner();
    let mixture = Path::parse(&mixed).unwrap();
    check_playable(&mixture, processes).unwrap();
    // What lies between two of statistics has each node of the patterns once, and before and behind it once for each loop that is cut.
    let pieces = before.chunk_by(|a, b| a == b).count() + 1;
    assert!(mixture.len() <= statistics.len() + pieces * patterns.len() * (1 + 2 * (LOOPS as usize + 1)));
    let mut names: Vec<&str> = mixture.tables.files.iter().map(|file| file.name.as_str()).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "a name is given twice");
    let all = mixture.tables.files.len() as u32;
    for rank in [0, processes - 1] {
        assert_eq!(asked(&mixture, rank, processes, 0..FILES), asked(&patterns, rank, processes, 0..FILES), "seed {seed}");
        assert_eq!(asked(&mixture, rank, processes, FILES..all), asked(&statistics, rank, processes, 0..all), "seed {seed}");
    }
    assert_eq!(mixture.requests_of_root, mixture.count(0, processes), "a hole, or a request twice");
    (count, made.filled.requests.len())
}

#[test]
fn a_mixture_has_the_requests_of_patterns_and_those_of_statistics_each_in_their_order() {
    let all = |thread: u64| (thread..MIXTURES).step_by(THREADS as usize).map(look).fold((0, 0), |sum, each| (sum.0 + each.0, sum.1 + each.1));
    let (patterns, statistics) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || all(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).fold((0, 0), |sum, each| (sum.0 + each.0, sum.1 + each.1))
    });
    assert!(patterns > 10 * MIXTURES && statistics > 10 * MIXTURES as usize, "{patterns} {statistics}");
}

/// Ten rounds of a write, and the nodes of their mixture with statistics that come after so many of them.
fn cut(before: &[u64]) -> Vec<(Option<Op>, u64, i64)> {
    let write = Node { stride: 8, size: 8, slack_first: 1, slack_rest: 2, ..Node::request(Op::Pwrite, 1) };
    let bytes = written(&[Node { at: 100, ..Node::rounds(10, 1) }, write], &tables());
    let stats: Vec<Node> = before.iter().map(|_| Node { comm: OWN, ..Node::request(Op::Stat, 0) }).collect();
    let own = Tables { files: tables().files, comms: vec![Comm::World, Comm::Own], ..Tables::default() };
    let stats = written(&stats, &own);
    let (patterns, stats) = (Path::parse(&bytes).unwrap(), Path::parse(&stats).unwrap());
    let mixed = woven(&patterns, &stats, 4, before, Cursor::new(Vec::new())).unwrap().into_inner();
    let mixture = Path::parse(&mixed).unwrap();
    (0..mixture.len()).filter_map(|at| mixture.node(at)).map(|node| (node.op, node.size, node.at)).collect()
}

#[test]
fn a_loop_stays_one_up_to_where_something_comes_in_between() {
    let (write, stat) = (Some(Op::Pwrite), Some(Op::Stat));
    assert_eq!(cut(&[0, 10]), [(stat, 0, 0), (None, 10, 100), (write, 8, 0), (stat, 0, 0)]);
    assert_eq!(cut(&[4]), [(None, 4, 100), (write, 8, 0), (stat, 0, 0), (None, 6, 100), (write, 8, 32)]);
    assert_eq!(cut(&[1, 9]), [(write, 8, 100), (stat, 0, 0), (None, 8, 100), (write, 8, 8), (stat, 0, 0), (write, 8, 172)]);
}

#[test]
fn statistics_stand_where_the_run_had_them_and_patterns_that_have_grown_stay_spread() {
    // Ids 3, 6 and 9 of 12: two requests of the others before each, three behind the last.
    let json = r#"{"processes": 4, "classes": {"private": {"OS": 1, "ISG": 3, "sessions":
        {"posix-write": {"D": 2, "IRG": 3, "SIZE": {"write0": 10}, "RT1": {"": {"write0": 1}}}}}}}"#;
    let of = serde_json::from_str(json).unwrap();
    let before = |patterns| synthesize_among(&of, 4, 1, 12, patterns).unwrap().1;
    assert_eq!(before(9), [2, 4, 6]);
    assert_eq!(before(90), [20, 40, 60]);
    assert_eq!(before(0), [0, 0, 0]);
    assert_eq!(synthesize_among(&of, 4, 1, 0, 6).unwrap().1, [2, 4, 6]);
}
