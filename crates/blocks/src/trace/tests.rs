//! What lines mean, and that none makes a reader panic.

use std::io::Cursor;

use proptest::prelude::*;

use super::lines::Lines;
use super::reader::read;
use super::*;
use crate::{BlockRequest, Error};

fn all_of(text: &str, spec: &TraceSpec) -> Result<(Format, Vec<BlockRequest>), Error> {
    let opened = read(Lines::of(Box::new(Cursor::new(text.as_bytes().to_vec())), "t".to_owned()), spec)?;
    Ok((opened.format, opened.requests.collect::<Result<_, _>>()?))
}

fn anything() -> TraceSpec {
    TraceSpec::new(std::path::Path::new("t"))
}

fn told(text: &str, spec: &TraceSpec) -> String {
    all_of(text, spec).unwrap_err().to_string()
}

fn request(arrival_ns: u64, lba: u64, blocks: u32, write: bool) -> BlockRequest {
    BlockRequest { arrival_ns, lba, blocks, write }
}

const BLKPARSE: &str = "\
  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]
  8,0    3        2     0.000001829   697  P   N [kjournald]
  8,0    3        3     0.000002197   697  Q   W 223490 + 8 [kjournald]
  8,0    3        4     0.000005533   697  I   W 223490 + 8 [kjournald]
  8,0    0        5     0.000006829   697  m   N cfq697 insert_request
  8,16   1        6     0.000007000     1  Q FWFS [jbd2]
  8,16   1        7     0.000107000     1  Q  RA 64 + 16 [cat]
  8,0    1        8     0.000207000     1  Q  DS 4096 + 1024 [fstrim]
  8,0    1        9     0.000307000     1  Q FWFS 9 + 0 [jbd2]
  8,0    3       10     0.000400000   697  D  WS 223490 + 8 [kjournald]
CPU3 (8,0):
 Reads Queued:           1,        8KiB\t Writes Queued:           1,        4KiB
Total (8,0):
";

#[test]
fn each_published_format_is_recognised_and_read() {
    let msr = "128166372003061629,hm,1,Read,383496192,32768,413\r\n128166372003061729,hm,1,Write,512,1,0\n";
    assert_eq!(all_of(msr, &anything()).unwrap(), (Format::Msr, vec![request(0, 749_016, 64, false), request(10_000, 1, 1, true)]));
    let spc = "0,20941264,8192,W,0.551706,0x10\n0,1,1536,r,0.554041\n";
    assert_eq!(all_of(spc, &anything()).unwrap(), (Format::Spc, vec![request(0, 20_941_264, 16, true), request(2_335_000, 1, 3, false)]));
    let disksim = "0 0 7 8 1\n0.0125 0 20228336 8 0\n";
    assert_eq!(all_of(disksim, &anything()).unwrap(), (Format::DiskSim, vec![request(0, 7, 8, false), request(12_500, 20_228_336, 8, true)]));
}

/// Lines as SSDSim's readme, MQSim's traces and DTRS traces have them.
const WHOLE: &str = "# any\n0 13 280605840 2 1\n97900000 13 287641400 128 0\n";

#[test]
fn five_columns_of_whole_numbers_are_read_as_what_they_are_said_to_be() {
    for (format, gap_ns) in
        [(Format::Dtrs, 97_900_000), (Format::SsdSim, 97_900_000), (Format::MqSim, 97_900_000), (Format::DiskSim, 97_900_000_000_000)]
    {
        let spec = TraceSpec { format: Some(format), ..anything() };
        let wanted = vec![request(0, 280_605_840, 2, false), request(gap_ns, 287_641_400, 128, true)];
        assert_eq!(all_of(WHOLE, &spec).unwrap(), (format, wanted));
    }
}

#[test]
fn five_columns_of_whole_numbers_are_never_taken_for_one_format_of_several() {
    let wanted = "t: line 2: fits several formats that differ in what a time is: disksim (ms), dtrs (ns), ssdsim (ns), mqsim (ns, or the Time_Unit of its \
                  workload file); say which it is with format (--format disksim, dtrs, ssdsim or mqsim)";
    assert_eq!(told(WHOLE, &anything()), wanted);
    let later_than_disksim_counts = "18446744073709551615 0 5 8 1\n";
    assert!(told(later_than_disksim_counts, &anything()).contains("(--format dtrs, ssdsim or mqsim)"));
}

#[test]
fn a_fraction_or_a_flag_of_its_own_tells_disksim_on_any_of_the_first_lines() {
    for text in ["0 0 7 8 1\n1 0 7 8 0\n2.5 0 7 8 0\n", "0 0 7 8 1\n1 0 7 8 3\n", "0 0 7 8 1\ndamaged\n1 0 7 8 b\n"] {
        let opened = read(Lines::of(Box::new(Cursor::new(text.as_bytes().to_vec())), "t".to_owned()), &anything()).unwrap();
        assert_eq!(opened.format, Format::DiskSim, "{text}");
    }
}

#[test]
fn of_blkparse_only_reads_and_writes_of_one_action_count() {
    let queued = all_of(BLKPARSE, &anything()).unwrap();
    assert_eq!(queued, (Format::Blkparse, vec![request(0, 223_490, 8, true), request(104_803, 64, 16, false)]));
    let issued = all_of(BLKPARSE, &TraceSpec { action: 'D', ..anything() }).unwrap();
    assert_eq!(issued.1, [request(0, 223_490, 8, true)]);
    assert_eq!(told(BLKPARSE, &TraceSpec { action: 'C', ..anything() }), "t: has no read or write with action C; choose another action");
}

#[test]
fn one_device_is_taken_and_a_missing_one_is_told_with_those_there_are() {
    let text = "0.5 0 10 8 1\n1.5 3 20 8 1\n2.5 0 30 8 0\n";
    assert_eq!(all_of(text, &TraceSpec { device: Some("3".to_owned()), ..anything() }).unwrap().1, [request(0, 20, 8, false)]);
    assert_eq!(told(text, &TraceSpec { device: Some("7".to_owned()), ..anything() }), "t: has no requests of device \"7\"; it has those of 0, 3");
}

#[test]
fn requests_a_little_late_are_sorted_and_very_late_ones_are_an_error() {
    let text = "0.5 0 1 8 1\n1.5 0 2 8 1\n1.0 0 3 8 1\n2.0 0 4 8 1\n";
    let order = |window| all_of(text, &TraceSpec { window, ..anything() }).map(|(_, all)| all.iter().map(|each| each.lba).collect::<Vec<_>>());
    assert_eq!(order(1).unwrap(), [1, 3, 2, 4]);
    assert_eq!(order(0).unwrap_err().to_string(), told(text, &TraceSpec { window: 0, ..anything() }));
    assert!(order(0).unwrap_err().to_string().starts_with("t: line 3: the time is before"));
}

#[test]
fn a_bad_line_is_told_with_number_field_and_cure() {
    for (text, wanted) in [
        ("1,h,0,Read,0,512,0\n1,h,0,Erase,0,512,0\n", "t: line 2: type = \"Erase\"; msr has timestamp"),
        ("1,h,0,Read,0,512,0\n\n# remark\n1,h,0,Read,zero,512,0\n", "t: line 4: offset = \"zero\"; "),
        ("1,h,0,Read,0,512,0\n1,h,0,Read,0,0,0\n", "t: line 2: size = \"0\"; a request has 1 byte"),
        ("1,h,0,Read,0,512,0\n1,h\n", "t: line 2: disk is missing; "),
        ("0.1 0 5 8 1\n0.2 0 5 0 1\n", "t: line 2: blocks = \"0\"; a request has 1 to 4294967295 blocks"),
        ("0.1 0 5 8 1\n0.2 0 18446744073709551615 8 1\n", "t: line 2: block = \"18446744073709551615\"; "),
        ("0,5,512,R,0.5\n0,5,512,R,-1\n", "t: line 2: time = \"-1\"; spc has"),
        ("hello\n", "t: line 1: is a request in no known format; give format"),
        ("", "t: has no lines; "),
        ("\u{1f}\u{8b}", "t: line 1: is a request in no known format"),
    ] {
        let sentence = told(text, &anything());
        assert!(sentence.starts_with(wanted), "{sentence}");
    }
}

#[test]
fn a_flag_that_a_format_does_not_know_is_told() {
    for format in [Format::Dtrs, Format::SsdSim, Format::MqSim] {
        let sentence = told("0 0 5 8 1\n9 0 5 8 7\n", &TraceSpec { format: Some(format), ..anything() });
        assert!(sentence.starts_with(&format!("t: line 2: flags = \"7\"; {format} has time in ns")), "{sentence}");
    }
}

#[test]
fn compressed_and_endless_lines_are_told() {
    let gzip = Lines::of(Box::new(Cursor::new(vec![0x1f, 0x8b, 8, 0])), "t.gz".to_owned());
    assert_eq!(read(gzip, &anything()).err().unwrap().to_string(), "t.gz: is compressed with gzip; decompress it first (gunzip)");
    let endless = Lines::of(Box::new(std::io::BufReader::new(std::io::repeat(b'1'))), "t".to_owned());
    assert!(read(endless, &anything()).err().unwrap().to_string().contains("longer than 64 KiB"));
}

fn requests() -> impl Strategy<Value = Vec<BlockRequest>> {
    prop::collection::vec((0u64..1 << 40, 0u64..1 << 45, 1u32..5000, any::<bool>()), 1..20).prop_map(|drawn| {
        let mut arrival_ns = 0;
        drawn
            .into_iter()
            .map(|(gap, lba, blocks, write)| {
                arrival_ns += gap / 100 * 100;
                request(arrival_ns, lba, blocks, write)
            })
            .collect()
    })
}

/// A line of each format, in the order of [`FORMATS`].
const LINES: [&str; 7] = [
    "8,0 3 1 0.000002197 697 Q W 223490 + 8 [x]",
    "128166372003061629,h,1,Read,383496192,32768,41",
    "0,20941264,8192,W,0.551706",
    "7961.833 0 20228336 8 0",
    "97900000 0 287641400 128 1",
    "4851300\t1\t524288\t16\t0",
    "938944000 13 93230992 32 0 ",
];

/// Pieces that lines of all formats are made of, and dirt.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<u64>().prop_map(|number| number.to_string()),
        "[0-9]{0,3}[.,+][0-9]{0,12}",
        "Read|Write|R|W|Q|D|8,0|\\+|\\[x\\]|CPU0|Total|#|-1|1e3|0x10",
        "\\PC{0,6}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_reads_back_the_same(requests in requests(), as_msr in any::<bool>()) {
        let mut text = Vec::new();
        let to = if as_msr { Export::Msr } else { Export::DiskSim };
        export(to, requests.iter().copied().map(Ok), &mut text, "t").unwrap();
        let (format, again) = all_of(&String::from_utf8(text).unwrap(), &anything()).unwrap();
        let begin_ns = requests[0].arrival_ns;
        let from_zero: Vec<_> = requests.into_iter().map(|each| BlockRequest { arrival_ns: each.arrival_ns - begin_ns, ..each }).collect();
        prop_assert_eq!(format, if as_msr { Format::Msr } else { Format::DiskSim });
        prop_assert_eq!(again, from_zero);
    }

    #[test]
    fn a_damaged_line_is_an_error_or_a_request_and_never_a_panic(which in 0usize..7, at in 0usize..60, dirt in "\\PC|[0-9,. +]{0,2}") {
        let mut line: Vec<char> = LINES[which].chars().collect();
        let at = at.min(line.len() - 1);
        line.splice(at..=at, dirt.chars());
        let line: String = line.into_iter().collect();
        if let Ok(Line::Request(traced)) = parse(FORMATS[which], &line, 'Q') {
            prop_assert!(traced.blocks > 0 && traced.lba.checked_add(u64::from(traced.blocks)).is_some(), "{line}");
        }
        let _ = all_of(&line, &anything());
    }

    #[test]
    fn requests_in_whole_columns_are_refused_until_their_format_is_given(requests in requests(), format in 4usize..7) {
        let line = |each: &BlockRequest| format!("{} 0 {} {} {}\n", each.arrival_ns, each.lba, each.blocks, u8::from(!each.write));
        let text: String = requests.iter().map(line).collect();
        prop_assert!(told(&text, &anything()).starts_with("t: line 1: fits several formats"));
        let begin_ns = requests[0].arrival_ns;
        let from_zero: Vec<_> = requests.iter().map(|each| BlockRequest { arrival_ns: each.arrival_ns - begin_ns, ..*each }).collect();
        prop_assert_eq!(all_of(&text, &TraceSpec { format: Some(FORMATS[format]), ..anything() }).unwrap().1, from_zero);
    }

    #[test]
    fn what_is_recognised_reads_in_no_other_format(picks in prop::collection::vec((0usize..7, 0usize..60, prop::option::of("[0-9., ]{0,2}")), 1..5)) {
        let lines = [LINES[0], LINES[1], LINES[2], "0 0 7 8 1", "1 0 7 8 3", "2.5 0 7 8 0", "9 1 7 8 0"];
        let text: String = picks.iter().map(|(which, at, dirt)| {
            let mut line: Vec<char> = lines[*which].chars().collect();
            let at = at % line.len();
            if let Some(dirt) = dirt {
                line.splice(at..=at, dirt.chars());
            }
            line.into_iter().collect::<String>() + "\n"
        }).collect();
        if let Ok((format, _)) = all_of(&text, &anything()) {
            let reads = |&other: &Format| all_of(&text, &TraceSpec { format: Some(other), ..anything() }).is_ok();
            prop_assert_eq!(FORMATS.into_iter().filter(reads).collect::<Vec<_>>(), [format]);
        }
    }

    #[test]
    fn no_text_makes_a_reader_panic(lines in prop::collection::vec((prop::collection::vec(piece(), 0..10), 0usize..3), 0..6), format in 0usize..8) {
        let text: String = lines.iter().map(|(pieces, between)| pieces.join([",", " ", "\t"][*between]) + "\n").collect();
        let spec = TraceSpec { format: FORMATS.get(format).copied(), ..anything() };
        if let Ok((_, requests)) = all_of(&text, &spec) {
            prop_assert!(requests.windows(2).all(|pair| pair[0].arrival_ns <= pair[1].arrival_ns));
            prop_assert!(requests.iter().all(|each| each.blocks > 0 && each.lba.checked_add(u64::from(each.blocks)).is_some()));
            // Accepted lines survive a writer.
            let mut again = Vec::new();
            export(Export::DiskSim, requests.iter().copied().map(Ok), &mut again, "t").unwrap();
            let spec = TraceSpec { format: Some(Format::DiskSim), ..anything() };
            let back = all_of(&String::from_utf8(again).unwrap(), &spec).map(|(_, all)| all);
            prop_assert_eq!(back.unwrap_or_default(), requests);
        }
    }
}
