//! Paths of random trees: what is written is read, expanded as a plain recursion does it, and never trusted where a byte was changed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::io::Cursor;

use proptest::collection::vec;
use proptest::prelude::*;
use stripewise_workpath::node::{APART, TOGETHER, TOGETHER_REST};
use stripewise_workpath::op::OPS;
use stripewise_workpath::{
    Class, Comm, Distribution, File, Group, Node, Numbers, Op, Path, PathError, PathWriter, Tables, View, Who, check_playable, draw, takes_part,
};

#[derive(Clone, Debug)]
enum Tree {
    Leaf(Node),
    Loop(Node, Vec<Tree>),
}

const PROCESSES: u32 = 3;

fn tables() -> Tables {
    let file = |name: &str, class| File { class, name: name.to_owned(), bytes: 7, present: false, directory: false };
    Tables {
        processes: PROCESSES,
        seed: 11,
        files: vec![file("a", Class::Shared), file("d/b{rank}", Class::Private)],
        comms: vec![Comm::World, Comm::Own, Comm::Blocks(2)],
        groups: vec![Group::Span { low: 0, high: 1 << 15 }, Group::Congruent { by: 2, rest: 1 }],
        distributions: vec![Distribution::Values(vec![(5, 1), (900, 3)]), Distribution::Quantiles(vec![0, 10, 1000])],
        views: vec![],
        numbers: vec![(0..3).map(|rank| Numbers { at: 100 * rank, stride: 10 + rank, size: rank as u64 }).collect()],
    }
}

fn who() -> impl Strategy<Value = Who> {
    prop_oneof![5 => Just(Who::All), 1 => Just(Who::Root), 1 => Just(Who::AllButRoot), 1 => Just(Who::Last), 1 => Just(Who::AllButLast),
        1 => (0u8..2).prop_map(Who::Group)]
}

fn node(op: Option<Op>) -> impl Strategy<Value = Node> {
    (who(), 0u32..2, -50i64..50, -50i64..50, -50i64..50, 0u64..4, 0u32..2, 0u32..3).prop_map(
        move |(who, table, at, at_rank, stride, size, file, drawn)| {
            let base = op.map_or(Node::rounds(0, 0), |op| Node::request(op, file));
            Node { who, table, at, at_rank, stride, size, slack_ns: 3, slack_first: drawn, slack_rest: 2 - drawn, ..base }
        },
    )
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![Just(Op::Pread), Just(Op::Write0), Just(Op::Stat)].prop_flat_map(|op| node(Some(op))).prop_map(Tree::Leaf);
    leaf.prop_recursive(4, 24, 4, |inner| (node(None), vec(inner, 1..4)).prop_map(|(node, body)| Tree::Loop(node, body)))
}

fn flatten(trees: &[Tree], out: &mut Vec<Node>) {
    for tree in trees {
        match tree {
            Tree::Leaf(node) => out.push(*node),
            Tree::Loop(node, body) => {
                let at = out.len();
                out.push(*node);
                flatten(body, out);
                out[at].link = u32::try_from(out.len() - at - 1).unwrap();
            }
        }
    }
}

fn written(nodes: &[Node], tables: &Tables) -> Vec<u8> {
    let mut writer = PathWriter::new(Cursor::new(Vec::new())).unwrap();
    nodes.iter().for_each(|node| writer.node(node).unwrap());
    writer.finish(tables, 1).unwrap().into_inner()
}

/// What a node is for a rank: place, stride, size.
fn of_rank(node: &Node, tables: &Tables, rank: u32) -> (i64, i64, u64) {
    match node.table {
        0 => (node.at + node.at_rank * i64::from(rank), node.stride, node.size),
        entry => {
            let own = tables.numbers[entry as usize - 1][rank as usize];
            (own.at, own.stride, own.size)
        }
    }
}

type Row = (Op, i64, u64, u64);

/// Expansion by recursion; `at` is the place of the loop, its round, and all rounds so far; `index` is the node's place in preorder.
fn expand(trees: &[Tree], tables: &Tables, rank: u32, at: (i64, u64, u64), index: &mut u64, out: &mut Vec<Row>) {
    let (base, round, counted) = at;
    for tree in trees {
        let (Tree::Leaf(node) | Tree::Loop(node, _)) = tree;
        let own = *index;
        *index += 1;
        let takes_part = takes_part(tables, node.who, rank, PROCESSES);
        let (at, stride, size) = of_rank(node, tables, rank);
        let place = base + at + stride * round as i64;
        match tree {
            Tree::Leaf(node) if takes_part => {
                let drawn = if round == 0 { node.slack_first } else { node.slack_rest };
                let slack = if drawn == 0 { node.slack_ns } else { draw(&tables.distributions[drawn as usize - 1], tables.seed, own, counted) };
                let op = node.op.unwrap();
                out.push((op, if op == Op::Stat { -1 } else { place }, size, slack));
            }
            Tree::Leaf(_) => (),
            Tree::Loop(_, body) => {
                let begin = *index;
                let rounds = if takes_part { size } else { 0 };
                for inner in 0..rounds {
                    *index = begin;
                    expand(body, tables, rank, (place, inner, counted * size + inner), index, out);
                }
                *index = begin;
                let mut nodes = Vec::new();
                flatten(body, &mut nodes);
                *index += nodes.len() as u64;
            }
        }
    }
}

proptest! {
    #[test]
    fn a_path_is_read_as_written_and_expands_as_a_recursion_does(trees in vec(tree(), 1..6)) {
        let (mut nodes, tables) = (Vec::new(), tables());
        flatten(&trees, &mut nodes);
        let bytes = written(&nodes, &tables);
        let path = Path::parse(&bytes).unwrap();
        prop_assert_eq!(&path.tables, &tables);
        prop_assert_eq!((0..path.len()).map(|at| path.node(at).unwrap()).collect::<Vec<_>>(), nodes);
        for rank in 0..PROCESSES {
            let mut rows = Vec::new();
            expand(&trees, &tables, rank, (0, 0, 0), &mut 0, &mut rows);
            let made: Vec<Row> = path.requests(rank, PROCESSES).map(|one| (one.op, one.offset, one.size, one.slack_ns)).collect();
            prop_assert_eq!(path.count(rank, PROCESSES), made.len() as u64);
            prop_assert_eq!(made, rows);
        }
    }

    #[test]
    fn a_changed_byte_is_refused_or_makes_another_sound_path(trees in vec(tree(), 1..4), at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let mut nodes = Vec::new();
        flatten(&trees, &mut nodes);
        let mut bytes = written(&nodes, &tables());
        let place = at.index(bytes.len());
        let was = bytes[place];
        bytes[place] = to;
        let parsed = Path::parse(&bytes);
        prop_assert!(place >= 128 || to == was || parsed.is_err());
        if let Ok(path) = parsed {
            let _ = check_playable(&path, PROCESSES);
            for rank in 0..PROCESSES {
                prop_assert!(path.requests(rank, PROCESSES).take(10_000).all(|one| (one.file as usize) < path.tables.files.len()));
            }
        }
    }

    #[test]
    fn a_cut_path_is_refused(trees in vec(tree(), 1..4), at in any::<prop::sample::Index>()) {
        let mut nodes = Vec::new();
        flatten(&trees, &mut nodes);
        let bytes = written(&nodes, &tables());
        prop_assert!(matches!(Path::parse(&bytes[..at.index(bytes.len())]), Err(PathError::Damaged(_))));
    }
}

#[test]
fn a_later_version_is_named() {
    let mut bytes = written(&[Node::request(Op::Stat, 0)], &tables());
    bytes[8] = 2;
    assert_eq!(Path::parse(&bytes).unwrap_err(), PathError::Newer(2));
}

#[test]
fn names_lead_to_no_place_outside() {
    for name in ["", "/a", "../a", "a/../b", "a//b", "./a", "a/", "a\0b"] {
        let mut tables = tables();
        tables.files[0].name = name.to_owned();
        assert!(matches!(Path::parse(&written(&[], &tables)), Err(PathError::Damaged(_))), "{name:?}");
    }
}

#[test]
fn a_private_file_needs_the_rank_in_its_name() {
    let mut tables = tables();
    tables.files[0].class = Class::Private;
    assert!(Path::parse(&written(&[], &tables)).is_err());
}

fn playable(nodes: &[Node]) -> Result<(), PathError> {
    let bytes = written(nodes, &tables());
    check_playable(&Path::parse(&bytes).unwrap(), PROCESSES)
}

#[test]
fn collective_calls_need_all_ranks_of_their_communicator() {
    let open = Node::request(Op::MpiOpen, 0);
    let call = Node { size: 8, ..Node::request(Op::MpiWriteAtAll, 0) };
    assert!(playable(&[open, call]).is_ok());
    for who in [Who::Root, Who::AllButRoot, Who::Last, Who::AllButLast, Who::Group(1)] {
        assert!(matches!(playable(&[open, Node { who, ..call }]), Err(PathError::Unplayable(_))), "{who:?}");
        // On a communicator of one rank each nobody waits for anybody.
        assert!(playable(&[Node { comm: 1, ..open }, Node { who, comm: 1, ..call }]).is_ok());
    }
    // Blocks of two: ranks 0 and 1, rank 2 alone.
    assert!(playable(&[Node { comm: 2, ..open }, Node { comm: 2, who: Who::Last, ..call }]).is_ok());
    assert!(playable(&[Node { comm: 2, ..open }, Node { comm: 2, who: Who::Root, ..call }]).is_err());
    assert!(playable(&[open, Node { comm: 1, ..call }]).is_err());
}

#[test]
fn collective_calls_in_loops_need_equal_rounds() {
    let open = Node::request(Op::MpiOpen, 0);
    let call = Node { size: 8, ..Node::request(Op::MpiWriteAtAll, 0) };
    assert!(playable(&[open, Node::rounds(9, 1), call]).is_ok());
    assert!(playable(&[open, Node { table: 1, ..Node::rounds(9, 1) }, call]).is_err());
    assert!(playable(&[open, Node { who: Who::Root, ..Node::rounds(9, 1) }, call]).is_err());
    assert!(playable(&[open, Node { table: 1, ..Node::rounds(9, 1) }, Node::request(Op::Stat, 0)]).is_ok());
}

#[test]
fn ranks_that_wait_for_each_other_come_all_and_in_equal_rounds() {
    let waits = |flags| Node { flags, ..Node::request(Op::Stat, 0) };
    for flags in [TOGETHER, TOGETHER_REST, TOGETHER | TOGETHER_REST | APART] {
        assert!(playable(&[waits(flags), Node::rounds(9, 1), waits(flags)]).is_ok());
        for around in [Node { table: 1, ..Node::rounds(9, 1) }, Node { who: Who::Root, ..Node::rounds(9, 1) }] {
            assert!(matches!(playable(&[around, waits(flags)]), Err(PathError::Unplayable(_))), "{around:?}");
        }
        for who in [Who::Root, Who::AllButRoot, Who::Last, Who::AllButLast, Who::Group(1)] {
            assert!(Path::parse(&written(&[Node { who, ..waits(flags) }], &tables())).is_err(), "{who:?}");
        }
        assert!(Path::parse(&written(&[Node { flags, ..Node::rounds(2, 1) }, waits(0)], &tables())).is_err());
    }
}

#[test]
fn ranks_wait_in_the_rounds_that_are_marked() {
    let of = |flags| {
        let bytes = written(&[Node::rounds(2, 2), Node::rounds(3, 1), Node { flags, ..Node::request(Op::Stat, 0) }], &tables());
        Path::parse(&bytes).unwrap().requests(1, PROCESSES).map(|one| one.together).collect::<Vec<_>>()
    };
    assert_eq!(of(TOGETHER), [true, false, false, true, false, false]);
    assert_eq!(of(TOGETHER_REST), [false, true, true, false, true, true]);
}

#[test]
fn equal_totals_in_another_order_are_refused() {
    let opens = [Node::request(Op::MpiOpen, 0), Node::request(Op::MpiOpen, 0)];
    let call = Node { size: 8, ..Node::request(Op::MpiWriteAtAll, 0) };
    let mut tables = tables();
    let rounds = |of: [u64; 3]| of.map(|size| Numbers { at: 0, stride: 0, size }).to_vec();
    tables.numbers = vec![rounds([2, 3, 6]), rounds([3, 2, 1])];
    let nested = [Node { table: 1, ..Node::rounds(0, 2) }, Node { table: 2, ..Node::rounds(0, 1) }, call];
    let bytes = written(&[&opens[..], &nested[..]].concat(), &tables);
    assert!(matches!(check_playable(&Path::parse(&bytes).unwrap(), PROCESSES), Err(PathError::Unplayable(_))));
}

#[test]
fn a_file_on_two_communicators_is_closed_by_who_opened_it() {
    let own = |op, who| Node { comm: 1, who, ..Node::request(op, 0) };
    let all = |op| Node::request(op, 0);
    let (open, close) = (own(Op::MpiOpen, Who::Root), own(Op::MpiClose, Who::Root));
    let whole = [all(Op::MpiOpen), all(Op::MpiWriteAtAll), all(Op::MpiClose)];
    assert!(playable(&[&[open, own(Op::MpiWriteAt, Who::Root), close][..], &whole].concat()).is_ok());
    assert!(playable(&[&[open, own(Op::MpiWriteAt, Who::All), close][..], &whole].concat()).is_err());
    assert!(playable(&[&[open, own(Op::MpiClose, Who::All)][..], &whole].concat()).is_err());
    assert!(playable(&[whole[0], open, whole[1], close]).is_err());
    assert!(playable(&[whole[0], Node::rounds(2, 2), open, close, whole[1]]).is_ok());
    assert!(playable(&[whole[0], Node::rounds(2, 1), open]).is_err());
    assert!(playable(&[whole[0], Node::rounds(2, 1), whole[2], open, close]).is_err());
}

#[test]
fn what_is_marked_as_a_directory_is_used_as_one() {
    let mut tables = tables();
    tables.files[0] = File { bytes: 0, directory: true, ..tables.files[0].clone() };
    let is_sound = |nodes: &[Node]| Path::parse(&written(nodes, &tables)).is_ok();
    for op in OPS {
        assert_eq!(is_sound(&[Node::request(*op, 0)]), op.is_on_directories(), "{op:?}");
    }
    let (made, renamed) = (Node::request(Op::Mkdir, 0), Node { size: 2, ..Node::request(Op::Rename, 0) });
    assert!(is_sound(&[made, renamed]) && !is_sound(&[renamed, made]));
    assert!(!is_sound(&[Node { size: 1, ..Node::request(Op::Rename, 1) }]));
}

#[test]
fn views_beyond_the_largest_file_are_refused() {
    let mut tables = tables();
    let call = Node { size: 200, ..Node::request(Op::MpiWriteAll0, 0) };
    for (tile, is_sound) in [(1 << 54, true), (i64::MAX as u64, false), ((1 << 62) / 100, false)] {
        tables.views = vec![View { piece: 1, distance: 1, pieces: 1, tile }];
        assert_eq!(Path::parse(&written(&[call], &tables)).is_ok(), is_sound, "{tile}");
    }
}

#[test]
fn draws_have_the_shares_of_their_distribution() {
    let values = Distribution::Values(vec![(1, 1), (2, 3)]);
    let ones = (0..10_000).filter(|round| draw(&values, 5, 3, *round) == 1).count();
    assert!((2300..2700).contains(&ones), "{ones}");
    let quantiles = Distribution::Quantiles(vec![0, 1_000, 9_000]);
    let low = (0..10_000).filter(|round| draw(&quantiles, 5, 3, *round) < 1_000).count();
    assert!((4800..5200).contains(&low), "{low}");
    assert_eq!(draw(&Distribution::Quantiles(vec![8]), 1, 2, 3), 8);
}
