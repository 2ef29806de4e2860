//! Study.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
use stripewise_swd::{BlankMedium, Geometry, Policy, Scheme, TrackLayer, TrackParameters, Zone};
struct R(u64);
impl R {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut m = self.0;
        m = (m ^ m >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        m = (m ^ m >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        m ^ m >> 31
    }
    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
const SECTORS: u32 = 16;
const BANDS: u32 = 20;
fn workload(name: &str, end: u64, count: usize) -> Vec<u64> {
    let mut r = R(7);
    let tracks = (end / u64::from(SECTORS)) as usize;
    let mut order: Vec<u64> = (0..tracks as u64).collect();
    for k in (1..tracks).rev() {
        let o = r.below(k as u64 + 1) as usize;
        order.swap(k, o);
    }
    let zipf = |theta: f64| {
        let mut c: Vec<f64> = (1..=tracks).map(|k| (k as f64).powf(-theta)).collect();
        let mut s = 0.0;
        for x in &mut c {
            s += *x;
            *x = s;
        }
        for x in &mut c {
            *x /= s;
        }
        c
    };
    let (law, mix) = match name {
        "zipf08" => (zipf(0.8), 0),
        "zipf099" => (zipf(0.99), 0),
        "zipf12" => (zipf(1.2), 0),
        "mix" => (zipf(0.99), 1),
        "drift" => (zipf(0.99), 2),
        _ => (vec![], 0),
    };
    let mut seq = 0u64;
    (0..count)
        .map(|i| {
            let t = match name {
                "uniform" => r.below(tracks as u64),
                "80/20" => {
                    if r.below(5) < 4 {
                        order[r.below(tracks as u64 / 5) as usize]
                    } else {
                        order[(tracks / 5) + r.below((tracks - tracks / 5) as u64) as usize]
                    }
                }
                "seq" => {
                    seq = (seq + 1) % end;
                    return seq;
                }
                "runs" => {
                    if i % 64 == 0 {
                        seq = r.below(end);
                    }
                    seq = (seq + 1) % end;
                    return seq;
                }
                _ => {
                    if mix == 1 && r.below(2) == 0 {
                        seq = (seq + 1) % end;
                        return seq;
                    }
                    let shift = if mix == 2 { (i * 2 / count * tracks / 3) as u64 } else { 0 };
                    let u = r.unit();
                    order[(law.partition_point(|&c| c < u) + shift as usize) % tracks]
                }
            };
            t * u64::from(SECTORS) + r.below(u64::from(SECTORS))
        })
        .collect()
}
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let only_adaptive = args.iter().any(|a| a == "A");
    let fills: Vec<u64> = args.iter().filter_map(|a| a.parse().ok()).collect();
    let fills = if fills.is_empty() { vec![55, 65, 75, 85, 90, 95, 100] } else { fills };
    let names: Vec<&str> = args.iter().filter(|a| a.parse::<u64>().is_err() && a.len() > 1).map(String::as_str).collect();
    let names = if names.is_empty() { vec!["uniform", "zipf08", "zipf099", "zipf12", "80/20", "seq", "runs", "mix", "drift"] } else { names };
    let safe = std::env::var("SAFE").is_ok();
    for name in names {
        for &fill in &fills {
            print!("{name:8} {fill:3} ");
            for policy in [Policy::Greedy, Policy::Smart, Policy::Adaptive] {
                if only_adaptive && policy != Policy::Adaptive {
                    continue;
                }
                let medium = BlankMedium::new(&Geometry::new(&[Zone { tracks: 100 * BANDS, sectors: SECTORS }], 2, 0, 100_000).unwrap()).unwrap();
                let mut d = TrackLayer::create(medium, TrackParameters { policy, keeps_flushed: safe, ..TrackParameters::default() }).unwrap();
                let end = d.capacity_sectors() * fill / 100;
                d.fill(end).unwrap();
                let n = std::env::var("N").map_or(600, |n| n.parse().unwrap()) * BANDS as usize;
                let w = workload(name, end, 2 * n);
                for &lba in &w[..n] {
                    d.write(lba, 1, &[]).unwrap();
                }
                let b = d.counters();
                for &lba in &w[n..] {
                    d.write(lba, 1, &[]).unwrap();
                }
                let a = d.counters();
                let own = (a.own_writes - b.own_writes) as f64;
                let moved = (a.extra_writes - b.extra_writes) as f64 / own;
                let war = 1.0 + ((a.extra_reads + a.extra_writes) - (b.extra_reads + b.extra_writes)) as f64 / own;
                let copies = war - 1.0 - 2.0 * moved;
                print!(
                    "| {policy:?} {war:.3} (copied {copies:.3} moved {moved:.3} gath {} cp {:.3} fl {:.3}) ",
                    a.gathered_tracks - b.gathered_tracks,
                    (a.checkpoints - b.checkpoints) as f64 / own,
                    (a.own_flushes - b.own_flushes) as f64 / own
                );
            }
            println!();
        }
    }
}
