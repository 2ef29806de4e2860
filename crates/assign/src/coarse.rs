//! Servers by the hundred: those that are alike stand for each other, as one that is as swift and as large as all of them together. Prices of the small
//! problem that this makes are found quickly, and every server's own follow from them: at the best prices a request costs the same on all of its kind.

use crate::prices::Duals;
use crate::problem::{Choices, FEATURES, Lists, Problem};

/// From so many choices on prices come from groups.
pub(crate) const MANY: usize = 200;
/// Groups that are made.
const GROUPS: usize = 96;

/// A problem of groups of choices, and which choice is in which.
pub(crate) struct Coarse {
    pub problem: Problem,
    /// Choices of each group.
    groups: Vec<Vec<usize>>,
    /// Of a choice's entries: own ones, which become the group's, and shared ones, which stay.
    own: Vec<bool>,
    /// Resources of the small problem that stand for shared ones.
    shared: Vec<(u32, u32)>,
}

impl Coarse {
    /// None where there are few choices, or where they are not servers with resources of their own, all of one kind.
    pub(crate) fn new(problem: &Problem) -> Option<Coarse> {
        if problem.choices < MANY || problem.runs.len() != 1 {
            return None;
        }
        let own = own_entries(problem)?;
        let mut groups = Vec::new();
        let (limited, free): (Vec<usize>, Vec<usize>) =
            (0..problem.choices).partition(|choice| problem.capacity[server(problem, *choice)].is_finite());
        for kind in [limited, free].into_iter().filter(|kind| !kind.is_empty()) {
            let wanted = (GROUPS * kind.len()).div_ceil(problem.choices).max(GROUPS / 4);
            let figures: Vec<Vec<f64>> = kind.iter().map(|choice| figures(problem, &own, *choice)).collect();
            split(&figures, (0..kind.len()).collect(), wanted, &mut |members| groups.push(members.iter().map(|at| kind[*at]).collect()));
        }
        Some(Coarse::of(problem, groups, own))
    }

    fn of(problem: &Problem, groups: Vec<Vec<usize>>, own: Vec<bool>) -> Coarse {
        let kinds = own.iter().filter(|own| **own).count();
        let first = problem.entries.of(0);
        let mut shared: Vec<(u32, u32)> = Vec::new();
        for (number, ((at, _), _)) in first.iter().zip(&own).filter(|(_, own)| !**own).enumerate() {
            shared.push((*at, (groups.len() * kinds + number) as u32));
        }
        let new_of = |old: u32| shared.iter().find(|(from, _)| *from == old).map(|(_, to)| *to);
        let merged = |lists: &Lists<f64>| {
            Lists::from_lists(groups.iter().enumerate().map(|(number, members)| {
                let template = lists.of(members[0]);
                template
                    .iter()
                    .enumerate()
                    .map(|(entry, (at, _))| {
                        let value = alike(members.iter().map(|choice| lists.of(*choice)[entry].1));
                        match new_of(*at) {
                            Some(to) => (to, value),
                            None => (own_place(problem, &own, members[0], *at, number, kinds), value / members.len() as f64),
                        }
                    })
                    .collect()
            }))
        };
        let entries = Lists::from_lists(groups.iter().enumerate().map(|(number, members)| {
            let template = problem.entries.of(members[0]);
            template
                .iter()
                .enumerate()
                .map(|(entry, (at, _))| {
                    let value = |feature: usize| alike(members.iter().map(|choice| problem.entries.of(*choice)[entry].1[feature]));
                    match new_of(*at) {
                        Some(to) => (to, std::array::from_fn(value)),
                        None => {
                            let count = members.len() as f64;
                            (own_place(problem, &own, members[0], *at, number, kinds), std::array::from_fn(|feature| value(feature) / count))
                        }
                    }
                })
                .collect()
        }));
        let of_group = |f: &dyn Fn(usize) -> f64| groups.iter().map(|members| members.iter().map(|choice| f(*choice)).sum()).collect::<Vec<f64>>();
        let capacity = of_group(&|choice| problem.capacity[server(problem, choice)]);
        let largest = groups.iter().map(|members| members.iter().map(|choice| problem.largest[*choice]).fold(0.0, f64::max)).collect();
        let penalty_s = groups.iter().map(|members| problem.penalty_s[members[0]]).collect();
        let stores = Lists::from_lists((0..groups.len() as u32).map(|group| vec![(group, 1.0)]));
        let (leave, enter) = (merged(&problem.leave), merged(&problem.enter));
        let resources = groups.len() * kinds + shared.len();
        let small = problem.with_choices(Choices { resources, entries, stores, leave, enter, capacity, largest, penalty_s });
        Coarse { problem: small, groups, own, shared }
    }

    /// Duals of the problem from those of the small one.
    pub(crate) fn spread(&self, problem: &Problem, small: &Duals) -> Duals {
        let kinds = self.own.iter().filter(|own| **own).count();
        let (wide, narrow) = (problem.resources, self.problem.resources);
        let mut duals = Duals { lambda: vec![0.0; problem.windows * wide], pi: vec![0.0; problem.windows * problem.servers] };
        for window in 0..problem.windows {
            let mix = mix(problem, window);
            let lambda = &mut duals.lambda[window * wide..][..wide];
            let from = &small.lambda[window * narrow..][..narrow];
            self.shared.iter().for_each(|(old, new)| lambda[*old as usize] = from[*new as usize]);
            for (number, members) in self.groups.iter().enumerate() {
                let own = |choice: usize| problem.entries.of(choice).iter().zip(&self.own).filter(|(_, own)| **own).map(|(entry, _)| entry);
                for kind in 0..kinds {
                    let swift = |choice: usize| {
                        own(choice).nth(kind).map_or((0, 0.0), |(at, q)| {
                            let seconds: f64 = q.iter().zip(&mix).map(|(second, feature)| second * feature).sum();
                            (*at as usize, if seconds > 0.0 { 1.0 / seconds } else { 0.0 })
                        })
                    };
                    let total: f64 = members.iter().map(|choice| swift(*choice).1).sum();
                    for choice in members {
                        let (at, speed) = swift(*choice);
                        let part = if total > 0.0 { speed / total } else { 1.0 / members.len() as f64 };
                        lambda[at] = from[number * kinds + kind] * part;
                    }
                }
                for choice in members {
                    duals.pi[window * problem.servers + server(problem, *choice)] = small.pi[window * self.groups.len() + number];
                }
            }
        }
        duals
    }
}

fn server(problem: &Problem, choice: usize) -> usize {
    problem.stores.of(choice)[0].0 as usize
}

/// All requests of a window together.
fn mix(problem: &Problem, window: usize) -> [f64; FEATURES] {
    let mut total = [0.0; FEATURES];
    for region in 0..problem.regions {
        total.iter_mut().zip(problem.features(window, region, problem.runs[0].shape)).for_each(|(sum, feature)| *sum += feature);
    }
    total
}

/// Which entries of every choice are on resources that no other choice loads; None where choices differ in that, or share servers.
fn own_entries(problem: &Problem) -> Option<Vec<bool>> {
    let (mut users, mut stored) = (vec![0u32; problem.resources], vec![0u32; problem.servers]);
    for choice in 0..problem.choices {
        problem.entries.of(choice).iter().for_each(|(at, _)| users[*at as usize] += 1);
        problem.stores.of(choice).iter().for_each(|(at, _)| stored[*at as usize] += 1);
    }
    let own = |choice: usize| -> Vec<bool> { problem.entries.of(choice).iter().map(|(at, _)| users[*at as usize] == 1).collect() };
    let first = own(0);
    let shared = |choice: usize| -> Vec<u32> { problem.entries.of(choice).iter().map(|(at, _)| *at).filter(|at| users[*at as usize] > 1).collect() };
    let alike = (0..problem.choices).all(|choice| {
        let stores = problem.stores.of(choice);
        let known = |(at, _): &(u32, f64)| problem.entries.of(choice).iter().any(|(own, _)| own == at);
        own(choice) == first
            && shared(choice) == shared(0)
            && stores.len() == 1
            && stored[stores[0].0 as usize] == 1
            && problem.leave.of(choice).len() == problem.leave.of(0).len()
            && problem.enter.of(choice).len() == problem.enter.of(0).len()
            && problem.leave.of(choice).iter().chain(problem.enter.of(choice)).all(known)
    });
    (alike && first.contains(&true)).then_some(first)
}

/// The resource of a group that stands for one of its members' own.
fn own_place(problem: &Problem, own: &[bool], choice: usize, at: u32, group: usize, kinds: usize) -> u32 {
    let mine = problem.entries.of(choice).iter().zip(own).filter(|(_, own)| **own);
    let kind = mine.map(|((place, _), _)| *place).position(|place| place == at).unwrap_or(0);
    (group * kinds + kind) as u32
}

/// The harmonic mean: servers that end together.
fn alike(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count, mut zero) = (0.0, 0.0, false);
    for value in values {
        zero |= value == 0.0;
        sum += 1.0 / value;
        count += 1.0;
    }
    if zero { 0.0 } else { count / sum }
}

/// What servers are alike in: logarithms of seconds per feature, and of room.
fn figures(problem: &Problem, own: &[bool], choice: usize) -> Vec<f64> {
    let entries = problem.entries.of(choice).iter().zip(own).filter(|(_, own)| **own);
    let seconds = entries.flat_map(|((_, q), _)| q.iter().filter(|second| **second > 0.0).map(|second| second.ln()));
    let room = problem.capacity[server(problem, choice)];
    seconds.chain((room.is_finite() && room > 0.0).then(|| room.ln())).collect()
}

/// Splits members in halves along the figure that differs most, until there are so many groups or all are equal.
fn split(figures: &[Vec<f64>], mut members: Vec<usize>, groups: usize, done: &mut impl FnMut(&[usize])) {
    let sizes = figures[members[0]].len();
    let alike = members.iter().all(|member| figures[*member].len() == sizes);
    let spread = |at: &usize| {
        let values = || members.iter().map(|member| figures[*member][*at]);
        values().fold(f64::NEG_INFINITY, f64::max) - values().fold(f64::INFINITY, f64::min)
    };
    let widest = if alike { (0..sizes).max_by(|a, b| spread(a).total_cmp(&spread(b))) } else { None };
    match widest {
        Some(at) if groups > 1 && members.len() > 1 && spread(&at) > 0.0 => {
            members.sort_by(|a, b| figures[*a][at].total_cmp(&figures[*b][at]).then(a.cmp(b)));
            let second = members.split_off(members.len() / 2);
            split(figures, members, groups / 2, done);
            split(figures, second, groups - groups / 2, done);
        }
        _ => done(&members),
    }
}
