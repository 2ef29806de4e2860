//! What the thesis prints about the traces it used (tables 4.1 and 5.2, figure 5.8), in blocks and ms, and what it does not print and is assumed here.
//!
//! Units. Table 5.2 prints MAX LBA and block distance in bytes: 36,417,159,175 of mds_0 are the 34 GiB of that volume; they are divided by 512
//! here. Its request sizes are blocks. Table 4.1 is all in blocks. Its inter-arrival time of Financial2 stands among ms and is taken for ms; SPC
//! traces count in seconds, so it may be that.

/// The statistics of a published trace.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Published {
    /// As the seed calls it.
    pub name: &'static str,
    /// Table of the thesis.
    pub table: &'static str,
    /// Mean inter-arrival time, ms.
    pub interarrival_ms: f64,
    /// Mean distance from the end of a request to the start of the next, blocks.
    pub distance_blocks: f64,
    /// Highest block touched.
    pub lba_max: u64,
    /// Mean size, blocks; where only the largest is printed: assumed.
    pub request_blocks: f64,
    /// Largest size, blocks, where it is printed.
    pub request_blocks_max: Option<u32>,
    pub write_share: f64,
    /// Share of writes within 10,000 blocks of the write before; where figure 5.8 does not say: assumed.
    pub near_share: f64,
    /// Coefficient of variation of inter-arrival times, above 1 for bursts. Assumed: the seed only calls that of Financial2 huge.
    pub variation: f64,
    /// Keys of this record that the seed does not print.
    pub assumed: &'static [&'static str],
}

const BYTES: f64 = 512.0;

/// All whose look-alikes can be made. Of hm_0 the seed prints its locality only.
pub const PUBLISHED: [Published; 7] = [
    of_table_4_1("web_0", 297.941_146_8, 6_245_717.249, 71_116_454, 3200, 16.0, 0.701_23, 1.0),
    of_table_4_1("hp_c2247", 14.192_258_97, 273_730.042_8, 2_049_836, 134, 16.0, 0.488_449, 1.0),
    of_table_4_1("Financial2", 0.064_536_72, 591_141.466_3, 2_676_179, 3072, 8.0, 0.096_978, 10.0),
    of_table_5_2("mds_0", 499.41, 968_339_427.25, 36_417_159_175, 18.0, 0.8811, None),
    of_table_5_2("usr_0", 270.25, 1_682_254_833.62, 17_077_784_583, 45.0, 0.5958, Some(0.15)),
    of_table_5_2("stg_0", 297.79, 1_332_575_418.89, 11_612_643_455, 23.0, 0.8481, Some(0.15)),
    of_table_5_2("web_1", 3757.39, 2_627_690_359.97, 72_831_761_927, 58.0, 0.4589, Some(0.30)),
];

/// Assumed of traces that figure 5.8 does not show.
const NEAR_SHARE_ASSUMED: f64 = 0.15;

#[expect(clippy::too_many_arguments, reason = "a row of the table")]
const fn of_table_4_1(
    name: &'static str,
    interarrival_ms: f64,
    distance_blocks: f64,
    lba_max: u64,
    blocks_max: u32,
    blocks: f64,
    write_share: f64,
    variation: f64,
) -> Published {
    Published {
        name,
        table: "4.1",
        interarrival_ms,
        distance_blocks,
        lba_max,
        request_blocks: blocks,
        request_blocks_max: Some(blocks_max),
        write_share,
        near_share: NEAR_SHARE_ASSUMED,
        variation,
        assumed: &["request_blocks", "near_share", "variation"],
    }
}

const fn of_table_5_2(
    name: &'static str,
    interarrival_ms: f64,
    distance_bytes: f64,
    byte_max: u64,
    request_blocks: f64,
    write_share: f64,
    near_share: Option<f64>,
) -> Published {
    Published {
        name,
        table: "5.2",
        interarrival_ms,
        distance_blocks: distance_bytes / BYTES,
        lba_max: byte_max / crate::BLOCK_BYTES,
        request_blocks,
        request_blocks_max: None,
        write_share,
        near_share: match near_share {
            Some(share) => share,
            None => NEAR_SHARE_ASSUMED,
        },
        variation: 1.0,
        assumed: match near_share {
            Some(_) => &["variation"],
            None => &["near_share", "variation"],
        },
    }
}

/// The record of a name, whatever its case.
#[must_use]
pub fn published(name: &str) -> Option<&'static Published> {
    PUBLISHED.iter().find(|each| each.name.eq_ignore_ascii_case(name))
}
