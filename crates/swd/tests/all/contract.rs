//! What every scheme promises beyond reads and writes: to say where sectors lie, to be filled without its medium, to say why it asks.

use stripewise_swd::{
    CheckingMedium, Extent, Geometry, InPlace, Indirection, IndirectionParameters, Medium, MediumError, Order, Policy, Purpose, Scheme, Spare,
    SwdError, TrackLayer, TrackParameters, Zone,
};

const SECTOR_BYTES: u32 = 16;

/// A medium that notes where and why it was asked.
struct Noting {
    medium: CheckingMedium,
    purpose: Purpose,
    reads: Vec<(Purpose, Extent)>,
    writes: Vec<(Purpose, Extent)>,
    upkeep: usize,
}

impl Noting {
    fn new() -> Self {
        let geometry = Geometry::new(&[Zone { tracks: 80, sectors: 4 }, Zone { tracks: 61, sectors: 3 }], 2, SECTOR_BYTES, 1000).unwrap();
        let purpose = Purpose::Own;
        Self { medium: CheckingMedium::new(geometry), purpose, reads: Vec::new(), writes: Vec::new(), upkeep: 0 }
    }

    fn forget(&mut self) {
        self.reads.clear();
        self.writes.clear();
    }
}

impl Medium for Noting {
    fn geometry(&self) -> &Geometry {
        self.medium.geometry()
    }

    fn purpose(&mut self, purpose: Purpose) {
        self.purpose = purpose;
    }

    fn read(&mut self, at: Extent, into: &mut [u8]) -> Result<(), MediumError> {
        self.reads.push((self.purpose, at));
        self.medium.read(at, into)
    }

    fn write(&mut self, at: Extent, from: &[u8], spare: Option<&Spare>) -> Result<(), MediumError> {
        self.writes.push((self.purpose, at));
        self.medium.write(at, from, spare)
    }

    fn read_spare(&mut self, track: u32) -> Result<Option<Spare>, MediumError> {
        self.medium.read_spare(track)
    }

    fn read_random(&mut self, sector: u32, sectors: u32, into: &mut [u8]) -> Result<(), MediumError> {
        assert_eq!(self.purpose, Purpose::Upkeep);
        self.medium.read_random(sector, sectors, into)
    }

    fn write_random(&mut self, sector: u32, sectors: u32, from: &[u8]) -> Result<(), MediumError> {
        assert_eq!(self.purpose, Purpose::Upkeep);
        self.upkeep += 1;
        self.medium.write_random(sector, sectors, from)
    }

    fn flush(&mut self) -> Result<(), MediumError> {
        self.medium.flush()
    }
}

fn layer(policy: Policy) -> TrackLayer<Noting> {
    let parameters = TrackParameters { policy, band_tracks: 20, checkpoint_writes: 50, ..TrackParameters::default() };
    TrackLayer::create(Noting::new(), parameters).unwrap()
}

fn indirection() -> Indirection<Noting> {
    Indirection::new(Noting::new(), IndirectionParameters { cache_tracks: 30, s_block_sectors: 10 }).unwrap()
}

/// The suite, for one scheme.
fn keeps_its_promises<S: Scheme<Medium = Noting>>(name: &str, new: impl Fn() -> S) {
    let share = |scheme: &S, percent: u64| scheme.capacity_sectors() * percent / 100;
    for percent in [0, 30, 65, 100] {
        let mut scheme = new();
        let filled = share(&scheme, percent);
        scheme.medium_mut().forget();
        let upkeep = scheme.medium().upkeep;
        scheme.fill(filled).unwrap();
        let medium = scheme.medium();
        assert!(medium.reads.is_empty() && medium.writes.is_empty() && medium.upkeep == upkeep, "{name} asked its medium to be filled");
        for lba in 0..filled {
            let at = scheme.locate(lba).unwrap();
            assert_eq!(at.sectors, 1);
            scheme.medium_mut().forget();
            scheme.read(lba, 1, &mut [0; 16]).unwrap();
            assert_eq!(scheme.medium().reads, [(Purpose::Own, at)], "{name} at {percent} %: sector {lba} lies elsewhere");
        }
        if percent > 0 {
            assert!(matches!(scheme.fill(1), Err(SwdError::Parameter { key: "fill", .. })), "{name} was filled twice");
        }
        updates_cost_what_the_counters_say(name, &mut scheme, filled);
    }
    let mut scheme = new();
    let capacity = scheme.capacity_sectors();
    assert!(matches!(scheme.fill(capacity + 1), Err(SwdError::Beyond { .. })));
}

fn updates_cost_what_the_counters_say<S: Scheme<Medium = Noting>>(name: &str, scheme: &mut S, filled: u64) {
    scheme.medium_mut().forget();
    let before = scheme.counters();
    let mut oracle = vec![0u8; filled as usize];
    for update in 0..filled.min(1) * 400 {
        let lba = update.wrapping_mul(7919) % filled;
        oracle[lba as usize] = update as u8;
        scheme.write(lba, 1, &[update as u8; 16]).unwrap();
    }
    let (after, medium) = (scheme.counters(), scheme.medium());
    let count = |requests: &[(Purpose, Extent)], purpose| requests.iter().filter(|request| request.0 == purpose).count() as u64;
    assert_eq!(count(&medium.writes, Purpose::Own), after.own_writes - before.own_writes, "{name}");
    let extra = |requests| count(requests, Purpose::Amplification) + count(requests, Purpose::Collection);
    assert_eq!(extra(&medium.writes), after.extra_writes - before.extra_writes, "{name}");
    assert!(extra(&medium.reads) >= after.extra_reads - before.extra_reads, "{name}");
    assert_eq!(count(&medium.reads, Purpose::Own), 0, "{name}: an update is no read of a plain disk");
    scheme.flush().unwrap();
    for (lba, &version) in oracle.iter().enumerate() {
        let mut bytes = [0xff; 16];
        scheme.read(lba as u64, 1, &mut bytes).unwrap();
        assert_eq!(bytes, [version; 16], "{name}: sector {lba} of a filled disk");
    }
}

#[test]
fn every_scheme_says_where_sectors_lie_is_filled_without_its_medium_and_says_why_it_asks() {
    for order in Order::ALL.into_iter().filter(|&order| order != Order::Hdd) {
        keeps_its_promises(order.name(), || InPlace::new(Noting::new(), order, 4, 0).unwrap());
        keeps_its_promises(order.name(), || InPlace::create(Noting::new(), order, 4, 1).unwrap());
    }
    keeps_its_promises("tstl-greedy", || layer(Policy::Greedy));
    keeps_its_promises("tstl-smart", || layer(Policy::Smart));
    keeps_its_promises("tstl-adaptive", || layer(Policy::Adaptive));
    keeps_its_promises("is", indirection);
}

#[test]
fn a_filled_track_layer_is_in_the_state_that_sequential_writing_leaves() {
    for policy in [Policy::Greedy, Policy::Smart, Policy::Adaptive] {
        for percent in [20, 50, 80, 100] {
            let (mut filled, mut written) = (layer(policy), layer(policy));
            let end = filled.capacity_sectors() * percent / 100;
            filled.fill(end).unwrap();
            let mut lba = 0;
            while lba < end {
                let track = filled.locate(lba).unwrap().track;
                let sectors =
                    (lba..filled.capacity_sectors()).take_while(|&lba| filled.locate(lba).is_some_and(|at| at.track == track)).count() as u64;
                written.write(lba, sectors, &vec![0; sectors as usize * 16]).unwrap();
                lba += sectors;
            }
            assert!(filled.spaces().eq(written.spaces()), "{policy:?} at {percent} %");
            assert!((0..end).all(|lba| filled.locate(lba) == written.locate(lba)), "{policy:?} at {percent} %");
        }
    }
}

#[test]
fn an_idle_track_layer_collects_until_nothing_is_gained_and_loses_nothing() {
    for policy in [Policy::Greedy, Policy::Smart, Policy::Adaptive] {
        let mut scheme = layer(policy);
        let filled = scheme.capacity_sectors() * 3 / 4;
        let expected: Vec<u8> = (0..filled).flat_map(|lba| [(lba * 31 % 251) as u8; 16]).collect();
        scheme.write(0, filled, &expected).unwrap();
        for update in 0..300u64 {
            let lba = update.wrapping_mul(7919) % filled;
            scheme.write(lba, 1, &expected[lba as usize * 16..][..16]).unwrap();
        }
        let fragmentation = |scheme: &TrackLayer<Noting>| scheme.spaces().map(|space| space.fragmentation()).sum::<f64>();
        let before = fragmentation(&scheme);
        let mut steps = 0;
        while scheme.idle_step().unwrap() {
            steps += 1;
            assert!(steps < 10_000, "an idle disk comes to rest");
        }
        assert!(steps > 0 && fragmentation(&scheme) > before);
        assert!(!scheme.idle_step().unwrap());
        let mut bytes = vec![0; expected.len()];
        scheme.read(0, filled, &mut bytes).unwrap();
        assert_eq!(bytes, expected);
    }
}
