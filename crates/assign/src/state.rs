//! An assignment with what it loads: kept up to date while regions are taken out and put back. Beside the loads it keeps the sum of their powers, which
//! stands for the busiest resource where a smooth measure is needed: the higher the power, the nearer.

use crate::problem::{Problem, dot};

/// Not assigned.
pub(crate) const NOWHERE: u32 = u32::MAX;

#[derive(Clone)]
pub(crate) struct State<'a> {
    pub problem: &'a Problem,
    /// `[region][window]`.
    pub path: Vec<u32>,
    /// `[window][resource]`, seconds.
    pub busy: Vec<f64>,
    /// `[window][server]`, bytes.
    pub used: Vec<f64>,
    pub penalty_s: f64,
    /// Power 2^squarings of loads in parts of the window's scale, and their sum in each window.
    pub squarings: u32,
    pub scale: Vec<f64>,
    pub sum: Vec<f64>,
    /// `[window][resource]`, what each power counts for.
    weight: Vec<f64>,
    /// `[window][server]`, prices of room; empty where there are none.
    pi: Vec<f64>,
    /// What the bytes stored cost at the prices of room.
    pub rent: f64,
    /// `[window][resource]`, the weighed power of each load.
    pub powered: Vec<f64>,
}

/// How full a server with a price may get while the state is guided, in parts of its room.
const OVERFULL: f64 = 1.1;
/// Of the power by which the price of room grows with how full a server is.
const ROOM_SQUARINGS: u32 = 5;

/// What the bound says that seconds and bytes are worth: a search that is guided weighs resources by it, and may overfill servers at a price.
#[derive(Clone, Copy)]
pub(crate) struct Guide<'a> {
    /// `[window][resource]`.
    pub weight: &'a [f64],
    /// `[window][server]`.
    pub pi: &'a [f64],
}

/// x^(2^squarings).
#[inline(always)]
pub(crate) fn power(x: f64, squarings: u32) -> f64 {
    (0..squarings).fold(x, |x, _| x * x)
}

/// The inverse of [`power`].
pub(crate) fn root(x: f64, squarings: u32) -> f64 {
    (0..squarings).fold(x.max(0.0), |x, _| x.sqrt())
}

impl<'a> State<'a> {
    /// Nothing assigned.
    pub(crate) fn new(problem: &'a Problem) -> State<'a> {
        State {
            problem,
            path: vec![NOWHERE; problem.regions * problem.windows],
            busy: vec![0.0; problem.windows * problem.resources],
            used: vec![0.0; problem.windows * problem.servers],
            penalty_s: 0.0,
            squarings: 3,
            scale: vec![1.0; problem.windows],
            sum: vec![0.0; problem.windows],
            weight: vec![1.0; problem.windows * problem.resources],
            powered: vec![0.0; problem.windows * problem.resources],
            pi: Vec::new(),
            rent: 0.0,
        }
    }

    /// The regions on the paths given, room not looked at; those without a path lie nowhere.
    pub(crate) fn of(problem: &'a Problem, path: &[u32]) -> State<'a> {
        let mut state = State::new(problem);
        for (region, path) in path.chunks_exact(problem.windows).enumerate() {
            if path.contains(&NOWHERE) {
                continue;
            }
            state.put(region, path);
        }
        state
    }

    pub(crate) fn path_of(&self, region: usize) -> &[u32] {
        &self.path[region * self.problem.windows..][..self.problem.windows]
    }

    /// Counts everything anew, without the rounding that putting and taking leave behind, and sets the power, the guide and the
    /// scales: the busiest resource of each window, or its level where that is more.
    pub(crate) fn recount(&mut self, squarings: u32, level: &[f64], guide: Option<Guide>) {
        let path = std::mem::take(&mut self.path);
        *self = State::of(self.problem, &path);
        self.path = path;
        self.squarings = squarings;
        if let Some(guide) = guide {
            self.weight.copy_from_slice(guide.weight);
            self.pi = guide.pi.to_vec();
            self.rent = self.used.iter().enumerate().map(|(at, used)| self.rent_of(at, *used)).sum();
        }
        let busiest = self.busiest();
        for (window, (scale, sum)) in self.scale.iter_mut().zip(&mut self.sum).enumerate() {
            let wanted = level.get(window).map_or(busiest[window], |level| busiest[window].max(*level));
            *scale = if wanted > 0.0 { wanted } else { 1.0 };
            *sum = 0.0;
            for at in window * self.problem.resources..(window + 1) * self.problem.resources {
                self.powered[at] = self.weight[at] * power(self.busy[at] / *scale, squarings);
                *sum += self.powered[at];
            }
        }
    }

    fn load(&mut self, window: usize, resource: u32, seconds: f64) {
        let at = window * self.problem.resources + resource as usize;
        self.busy[at] = (self.busy[at] + seconds).max(0.0);
        let powered = self.weight[at] * power(self.busy[at] / self.scale[window], self.squarings);
        self.sum[window] = (self.sum[window] + powered - self.powered[at]).max(0.0);
        self.powered[at] = powered;
    }

    fn change(&mut self, region: usize, path: &[u32], sign: f64) {
        let problem = self.problem;
        let valid = sign * problem.valid_bytes[region];
        for (window, choice) in path.iter().enumerate() {
            let choice = *choice as usize;
            let features = problem.features(window, region, problem.shape[choice] as usize);
            problem.entries.of(choice).iter().for_each(|(at, q)| self.load(window, *at, sign * dot(features, q)));
            for (at, share) in problem.stores.of(choice) {
                let at = window * problem.servers + *at as usize;
                let used = (self.used[at] + valid * share).max(0.0);
                self.rent += self.rent_of(at, used) - self.rent_of(at, self.used[at]);
                self.used[at] = used;
            }
            self.penalty_s += sign * problem.penalty_s[choice];
            if window > 0 && path[window - 1] as usize != choice {
                let left = path[window - 1] as usize;
                problem.leave.of(left).iter().for_each(|(at, seconds)| self.load(window, *at, valid * seconds));
                problem.enter.of(choice).iter().for_each(|(at, seconds)| self.load(window, *at, valid * seconds));
            }
        }
    }

    /// Puts a region that lies nowhere on a path.
    pub(crate) fn put(&mut self, region: usize, path: &[u32]) {
        self.change(region, path, 1.0);
        self.path[region * self.problem.windows..][..self.problem.windows].copy_from_slice(path);
    }

    /// Takes a region off its path, which `path` receives.
    pub(crate) fn take(&mut self, region: usize, path: &mut [u32]) {
        path.copy_from_slice(self.path_of(region));
        self.change(region, path, -1.0);
        self.path[region * self.problem.windows..][..self.problem.windows].fill(NOWHERE);
    }

    /// What a server that holds so many bytes costs: with the slope of its price where it is just full.
    fn rent_of(&self, at: usize, used: f64) -> f64 {
        match self.pi.get(at) {
            Some(pi) if *pi > 0.0 => {
                let room = self.problem.capacity[at % self.problem.servers];
                pi * room * power(used / room, ROOM_SQUARINGS) / f64::from(1u32 << ROOM_SQUARINGS)
            }
            _ => 0.0,
        }
    }

    /// What a server costs more with so many bytes more.
    pub(crate) fn more_rent(&self, window: usize, choice: usize, bytes: f64) -> f64 {
        if self.pi.is_empty() {
            return 0.0;
        }
        let more = |(at, share): &(u32, f64)| {
            let at = window * self.problem.servers + *at as usize;
            self.rent_of(at, self.used[at] + share * bytes) - self.rent_of(at, self.used[at])
        };
        self.problem.stores.of(choice).iter().map(more).sum()
    }

    /// Whether a window has room for so many bytes more on a choice.
    pub(crate) fn fits(&self, window: usize, choice: usize, bytes: f64) -> bool {
        let from = window * self.problem.servers;
        let limit = |at: usize| self.problem.fillable(at) * if self.pi.get(from + at).is_some_and(|pi| *pi > 0.0) { OVERFULL } else { 1.0 };
        bytes <= self.problem.largest[choice]
            && self.problem.stores.of(choice).iter().all(|(at, share)| self.used[from + *at as usize] + share * bytes <= limit(*at as usize))
    }

    /// Whether a region that lies nowhere has room on the whole path.
    pub(crate) fn fits_path(&self, region: usize, path: &[u32]) -> bool {
        path.iter().enumerate().all(|(window, choice)| self.fits(window, *choice as usize, self.problem.valid_bytes[region]))
    }

    /// Whether a path has a part on a server that holds more than it has room for.
    pub(crate) fn crowded(&self, path: &[u32]) -> bool {
        let servers = self.problem.servers;
        path.iter().enumerate().any(|(window, choice)| {
            self.problem
                .stores
                .of(*choice as usize)
                .iter()
                .any(|(at, _)| self.used[window * servers + *at as usize] > self.problem.fillable(*at as usize))
        })
    }

    /// Whether no server holds more than it has room for.
    pub(crate) fn has_room(&self) -> bool {
        self.used.iter().enumerate().all(|(at, used)| *used <= self.problem.fillable(at % self.problem.servers))
    }

    /// Seconds of the busiest resource of each window.
    pub(crate) fn busiest(&self) -> Vec<f64> {
        let wide = self.problem.resources;
        (0..self.problem.windows).map(|window| self.busy[window * wide..][..wide].iter().fold(0.0, |a: f64, b| a.max(*b))).collect()
    }

    pub(crate) fn weight(&self, at: usize) -> f64 {
        self.weight[at]
    }

    /// What is minimised.
    pub(crate) fn objective(&self) -> f64 {
        self.busiest().iter().sum::<f64>() + self.penalty_s
    }

    /// The objective with powers in place of the busiest resources, and the price of room where there is one.
    pub(crate) fn smooth(&self) -> f64 {
        self.scale.iter().zip(&self.sum).map(|(scale, sum)| scale * root(*sum, self.squarings)).sum::<f64>() + self.penalty_s + self.rent
    }
}
