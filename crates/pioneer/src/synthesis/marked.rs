//! Facts of paths with marks: each rank's own counts whatever the seed, shared pointers of ranks that have one each, bounds of memory, waits.

use std::collections::BTreeMap;
use std::io::Cursor;

use stripewise_workpath::node::TOGETHER;
use stripewise_workpath::{Path, Tables, Who, takes_part};

use super::profile::Profile;
use super::tests::check;
use super::{Synthetic, synthesize, write};

fn made(json: &str, processes: u32, seed: u64) -> Synthetic {
    let of: Profile = serde_json::from_str(json).unwrap();
    let made = synthesize(&of, processes, seed).unwrap();
    check(&made, &of, processes);
    made
}

/// How many requests with bytes each rank makes.
fn counts(made: &Synthetic, processes: u32) -> Vec<usize> {
    let tables = Tables { groups: made.frame.parts.groups.clone(), ..Tables::default() };
    let of = |rank: u32| made.filled.requests.iter().filter(|each| each.size > 0 && takes_part(&tables, each.who, rank, processes)).count();
    (0..processes).map(of).collect()
}

fn unlike(durations: &str, following: &str) -> String {
    format!(
        r#"{{"processes": 4, "classes": {{"shared": {{"OS": 4, "sessions": {{"posix-write": {{"D": {durations}, "RT1": {following}, "SIZE": {{"pwrite": 100}}}}}}}}}}}}"#
    )
}

const TWO_WAYS: &str = r#"{"": {"pwrite": 1, "pwrite@root": 1}, "pwrite": {"pwrite": 9}, "pwrite@root": {"pwrite@root": 999}}"#;

#[test]
fn each_rank_makes_as_many_requests_as_in_the_run_whatever_the_seed() {
    let values = |values: &str, weights: &str| format!(r#"{{"values": {values}, "weights": {weights}}}"#);
    for seed in 0..20 {
        let alike = unlike(&values("[11, 1001]", "[1, 1]"), TWO_WAYS);
        assert_eq!(counts(&made(&alike, 4, seed), 4), [2020, 20, 20, 20], "{seed}");
        // The root's sessions are of 1 and 1,999 requests, those of all of 10.
        let spread = unlike(&values("[2, 11, 2000]", "[1, 2, 1]"), TWO_WAYS);
        assert_eq!(counts(&made(&spread, 4, seed), 4), [2020, 20, 20, 20], "{seed}");
        // Four times as many requests, as by --scale.
        let scaled = unlike(&values("[41, 4001]", "[1, 1]"), TWO_WAYS);
        assert_eq!(counts(&made(&scaled, 4, seed), 4), [8080, 80, 80, 80], "{seed}");
        // Sessions without requests have no way.
        let empty = unlike(&values("[1, 11, 1001]", "[2, 1, 1]"), TWO_WAYS);
        assert_eq!(counts(&made(&empty, 4, seed), 4), [1010, 10, 10, 10], "{seed}");
    }
}

#[test]
fn lengths_are_drawn_apart_from_the_way_where_ways_are_of_the_same_ranks() {
    let durations = r#"{"values": [3, 9], "weights": [1, 1]}"#;
    let following = r#"{"": {"pwrite": 1, "fsync": 1}, "pwrite": {"pwrite": 7}}"#;
    let firsts = |following: &str| -> Vec<Vec<(String, u32)>> {
        let first = |made: &Synthetic| {
            made.frame.sessions.iter().map(|each| (made.frame.ops[each.first as usize + 1].op.name().to_owned(), each.requests)).collect()
        };
        (0..20).map(|seed| first(&made(&unlike(durations, following), 4, seed))).collect()
    };
    let found: BTreeMap<(String, u32), usize> = firsts(following).concat().into_iter().fold(BTreeMap::new(), |mut all, each| {
        *all.entry(each).or_default() += 1;
        all
    });
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(firsts(following), firsts(&following.replace("pwrite", "pwrite@root").replace("fsync", "fsync@root")));
}

#[test]
fn shared_pointers_of_ranks_that_have_one_each_are_moved_by_who_calls() {
    let private = r#"{"processes": 4, "classes": {"private": {"OS": 1, "sessions": {"mpi-write": {"D": 4,
        "RT1": {"": {"mpi_write_shared@root": 1}, "mpi_write_shared@root": {"mpi_write_shared": 1}, "mpi_write_shared": {"mpi_write_shared@others": 1}},
        "SIZE": {"mpi_write_shared": 100, "mpi_write_shared@root": 10, "mpi_write_shared@others": 7}}}}}}"#;
    let shared = private.replace("private", "shared").replace(r#""D": 4"#, r#""comm": {"self": 1}, "D": 4"#);
    for json in [private, &shared] {
        let made = made(json, 4, 1);
        let told: Vec<(Who, u64, u64)> = made.filled.requests[1..4].iter().map(|each| (each.who, each.size, each.offset)).collect();
        // The second call is at 10 of the root and at 0 of the others.
        assert_eq!(told, [(Who::Root, 10, 0), (Who::All, 100, 10), (Who::AllButRoot, 7, 100)]);
    }
}

#[test]
fn data_by_pointers_of_their_own_is_there_for_those_that_wrote_it_alone() {
    let json = r#"{"processes": 4, "classes": {"private": {"OS": 1, "sessions": {"mpi-readwrite": {"D": 4, "SEQ": 0, "OFF": 0,
        "RT1": {"": {"mpi_write_shared@root": 1}, "mpi_write_shared@root": {"mpi_write_shared": 1}, "mpi_write_shared": {"mpi_read_at": 1}},
        "SIZE": {"mpi_write_shared": 100, "mpi_write_shared@root": 10, "mpi_read_at": 110}}}}}}"#;
    assert_eq!(made(json, 1, 1).filled.files[0].bytes, 0);
    assert_eq!(made(json, 4, 1).filled.files[0].bytes, 110);
}

#[test]
fn marks_that_multiply_sessions_or_files_beyond_memory_are_refused_with_a_sentence() {
    let groups: Vec<String> = (0..240).map(|rest| format!(r#"{{"group": {{"congruent": [256, {}]}}}}"#, rest + 1)).collect();
    let refusal = |files: u32, sessions: &str, operation: &str| {
        let class = format!(r#"{{"OS": {files}, "RT2": {{"{operation}": 1}}{sessions}}}"#);
        let json = format!(r#"{{"processes": 4, "subgroups": [{}], "classes": {{"private": {class}}}}}"#, groups.join(", "));
        synthesize(&serde_json::from_str(&json).unwrap(), 4, 1).err()
    };
    let often = r#", "OT": 3, "sessions": {"posix-write": {"D": 1}}"#;
    let found = refusal(100_000, often, "stat@group-240").unwrap();
    assert_eq!(found, "more than 276168 sessions (OS, OT) with marks of 240 group(s); scale files down, or mark fewer groups");
    let found = refusal(300_000, "", "stat@group-240").unwrap();
    assert_eq!(found, "more than 277309 files (OS) with marks of 240 group(s); scale files down, or mark fewer groups");
    assert_eq!(refusal(1000, often, "stat@group-240"), None);
    assert_eq!(refusal(300_000, "", "stat"), None);
}

#[test]
fn ranks_wait_at_a_slack_of_the_limit_in_whole_nanoseconds() {
    let waits = |slack: &str, from: &str| {
        let json = format!(
            r#"{{"processes": 4, "together": {{"mpi_write_at": {from}}}, "classes": {{"shared": {{"OS": 1, "sessions": {{"mpi-write": {{"ST": {{"mpi_write_at": {slack}}}}}}}}}}}}}"#
        );
        let of: Profile = serde_json::from_str(&json).unwrap();
        let path = write::write(&of, &synthesize(&of, 4, 1).unwrap(), 1, Cursor::new(Vec::new())).unwrap().into_inner();
        let path = Path::parse(&path).unwrap();
        (0..path.len()).filter_map(|at| path.node(at)).filter(|node| node.flags & TOGETHER != 0).count()
    };
    assert_eq!(waits("0.000123", "0.000123"), 1);
    assert_eq!((1..2000).filter(|us| waits(&format!("{us}e-6"), &format!("{us}e-6")) != 1).count(), 0);
    assert_eq!([waits("0.01", "0.000123"), waits("0.000122", "0.000123")], [1, 0]);
}
