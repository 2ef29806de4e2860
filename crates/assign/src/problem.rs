//! The instance: its tables as the caller has them, checked once, and stored the way the solver walks them (choices of one shape beside each other).

/// Features of what a region's requests do in a window when cut in a shape; what they mean is the caller's business.
pub const FEATURES: usize = 8;
/// Room is compared with this relative slack: shares such as 1/3 do not add up exactly.
pub(crate) const ROOM_SLACK: f64 = 1e-9;

/// Lists per choice: list c is `at[first[c]..first[c + 1]]` with its values beside it.
#[derive(Clone, Debug, Default)]
pub struct List<T> {
    /// One more than there are choices, ascending from 0.
    pub first: Vec<i64>,
    /// Resources or servers.
    pub at: Vec<i64>,
    /// One per member.
    pub value: Vec<T>,
}

/// An instance as the caller has it. All numbers are at least 0 and, unless said otherwise, finite.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// Windows, at least 1.
    pub windows: usize,
    pub regions: usize,
    /// Shapes that requests can be cut in.
    pub shapes: usize,
    /// Choices, at least 1 where there are regions.
    pub choices: usize,
    /// Resources: whatever can be busy.
    pub resources: usize,
    /// Servers: whatever has room.
    pub servers: usize,
    /// `features[((w * regions + r) * shapes + g) * FEATURES ..]`.
    pub features: Vec<f64>,
    /// Bytes that a region stores, and that a move copies.
    pub valid_bytes: Vec<f64>,
    /// Bytes of room per server; may be infinite.
    pub capacity: Vec<f64>,
    /// The shape of each choice.
    pub shape: Vec<i64>,
    /// Seconds per feature on resources.
    pub entries: List<[f64; FEATURES]>,
    /// Shares of a region's bytes on servers, in (0, 1].
    pub stores: List<f64>,
    /// Seconds per byte on resources while a region leaves the choice.
    pub leave: List<f64>,
    /// Seconds per byte on resources while a region comes to the choice.
    pub enter: List<f64>,
    /// Seconds that a region on the choice costs beside its load, each window: simpler layouts first.
    pub penalty_s: Vec<f64>,
}

/// One member of a [`Lists`]: where, and how much.
pub(crate) type Member<T> = (u32, T);

/// The tables of a [`Problem`] that depend on its choices.
pub(crate) struct Choices {
    pub resources: usize,
    pub entries: Lists<[f64; FEATURES]>,
    pub stores: Lists<f64>,
    pub leave: Lists<f64>,
    pub enter: Lists<f64>,
    pub capacity: Vec<f64>,
    pub largest: Vec<f64>,
    pub penalty_s: Vec<f64>,
}

/// Lists per choice, checked and packed.
#[derive(Clone, Debug)]
pub(crate) struct Lists<T> {
    first: Vec<u32>,
    members: Vec<Member<T>>,
}

impl<T: Copy> Lists<T> {
    pub(crate) fn of(&self, choice: usize) -> &[Member<T>] {
        &self.members[self.first[choice] as usize..self.first[choice + 1] as usize]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(crate) fn from_lists(lists: impl Iterator<Item = Vec<Member<T>>>) -> Lists<T> {
        let mut packed = Lists { first: vec![0], members: Vec::new() };
        for list in lists {
            packed.members.extend(list);
            packed.first.push(packed.members.len() as u32);
        }
        packed
    }

    fn packed(name: &str, list: &List<T>, order: &[u32], limit: usize, sound: impl Fn(&T) -> bool) -> Result<Lists<T>, String> {
        let ascending = list.first.windows(2).all(|pair| pair[0] <= pair[1]);
        let ends = (list.first.first(), list.first.last());
        if list.first.len() != order.len() + 1 || ends != (Some(&0), Some(&(list.at.len() as i64))) || !ascending || list.at.len() != list.value.len()
        {
            return Err(format!(
                "{name}: {} firsts and {} members do not make a list for each of {} choices",
                list.first.len(),
                list.at.len(),
                order.len()
            ));
        }
        if let Some(at) = list.at.iter().find(|at| **at < 0 || **at >= limit as i64) {
            return Err(format!("{name}: {at} is not below {limit}"));
        }
        if !list.value.iter().all(sound) {
            return Err(format!("{name}: a value is negative, infinite or out of range"));
        }
        let mut packed = Lists { first: vec![0], members: Vec::with_capacity(list.at.len()) };
        for choice in order {
            let (from, to) = (list.first[*choice as usize] as usize, list.first[*choice as usize + 1] as usize);
            packed.members.extend((from..to).map(|i| (list.at[i] as u32, list.value[i])));
            packed.first.push(packed.members.len() as u32);
        }
        Ok(packed)
    }
}

/// Choices of one shape, which stand beside each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub shape: usize,
    pub from: usize,
    pub to: usize,
}

/// A checked instance.
#[derive(Clone, Debug)]
pub struct Problem {
    pub(crate) windows: usize,
    pub(crate) regions: usize,
    pub(crate) choices: usize,
    pub(crate) resources: usize,
    pub(crate) servers: usize,
    shapes: usize,
    features: Vec<[f64; FEATURES]>,
    pub(crate) valid_bytes: Vec<f64>,
    pub(crate) capacity: Vec<f64>,
    pub(crate) runs: Vec<Run>,
    pub(crate) shape: Vec<u32>,
    pub(crate) entries: Lists<[f64; FEATURES]>,
    pub(crate) stores: Lists<f64>,
    pub(crate) leave: Lists<f64>,
    pub(crate) enter: Lists<f64>,
    pub(crate) penalty_s: Vec<f64>,
    /// Bytes of the largest region that each choice has room for.
    pub(crate) largest: Vec<f64>,
    /// The caller's number of each choice, and back.
    pub(crate) outer: Vec<u32>,
    pub(crate) inner: Vec<u32>,
}

fn finite(number: &f64) -> bool {
    number.is_finite() && *number >= 0.0
}

fn length(name: &str, found: usize, wanted: Option<usize>) -> Result<(), String> {
    if Some(found) == wanted { Ok(()) } else { Err(format!("{name}: {found} numbers, which is not what the sizes say")) }
}

impl Problem {
    /// Checks an instance; an error is one sentence that names the table.
    pub fn new(tables: Tables) -> Result<Problem, String> {
        let Tables { windows, regions, shapes, choices, resources, servers, .. } = tables;
        if windows == 0 || (regions > 0 && choices == 0) {
            return Err("sizes: there must be a window, and a choice where there are regions".into());
        }
        if [windows, regions, shapes, choices, resources, servers].iter().any(|size| *size > u32::MAX as usize / 2) {
            return Err("sizes: out of range".into());
        }
        let cells = windows.checked_mul(regions).and_then(|n| n.checked_mul(shapes)).and_then(|n| n.checked_mul(FEATURES));
        length("features", tables.features.len(), cells)?;
        length("valid_bytes", tables.valid_bytes.len(), Some(regions))?;
        length("capacity", tables.capacity.len(), Some(servers))?;
        length("shape", tables.shape.len(), Some(choices))?;
        length("penalty_s", tables.penalty_s.len(), Some(choices))?;
        for (name, numbers) in [("features", &tables.features), ("valid_bytes", &tables.valid_bytes), ("penalty_s", &tables.penalty_s)] {
            if !numbers.iter().all(finite) {
                return Err(format!("{name}: a number is negative or not finite"));
            }
        }
        if !tables.capacity.iter().all(|bytes| *bytes >= 0.0) {
            return Err("capacity: a number is negative or none".into());
        }
        if tables.shape.iter().any(|shape| *shape < 0 || *shape >= shapes as i64) {
            return Err(format!("shape: a choice's is not below {shapes}"));
        }
        let mut outer: Vec<u32> = (0..choices as u32).collect();
        outer.sort_by_key(|choice| tables.shape[*choice as usize]);
        let mut inner = vec![0u32; choices];
        outer.iter().enumerate().for_each(|(to, from)| inner[*from as usize] = to as u32);
        let shape: Vec<u32> = outer.iter().map(|choice| tables.shape[*choice as usize] as u32).collect();
        let mut runs: Vec<Run> = Vec::new();
        for (choice, shape) in shape.iter().enumerate() {
            match runs.last_mut() {
                Some(run) if run.shape == *shape as usize => run.to = choice + 1,
                _ => runs.push(Run { shape: *shape as usize, from: choice, to: choice + 1 }),
            }
        }
        let stores = Lists::packed("stores", &tables.stores, &outer, servers, |share| *share > 0.0 && *share <= 1.0)?;
        let room = |(server, share): &Member<f64>| tables.capacity[*server as usize] * (1.0 + ROOM_SLACK) / share;
        let largest = (0..choices).map(|choice| stores.of(choice).iter().map(room).fold(f64::INFINITY, f64::min)).collect();
        Ok(Problem {
            windows,
            regions,
            choices,
            resources,
            servers,
            shapes,
            features: tables.features.as_chunks::<FEATURES>().0.to_vec(),
            valid_bytes: tables.valid_bytes,
            capacity: tables.capacity,
            runs,
            shape,
            entries: Lists::packed("entries", &tables.entries, &outer, resources, |q| q.iter().all(finite))?,
            stores,
            largest,
            leave: Lists::packed("leave", &tables.leave, &outer, resources, finite)?,
            enter: Lists::packed("enter", &tables.enter, &outer, resources, finite)?,
            penalty_s: outer.iter().map(|choice| tables.penalty_s[*choice as usize]).collect(),
            outer,
            inner,
        })
    }

    /// Some of the regions, each standing for so many of its kind, which need not lie together.
    pub(crate) fn only(&self, kept: &[(usize, f64)]) -> Problem {
        let cells = (0..self.windows).flat_map(|window| kept.iter().map(move |kept| (window, kept)));
        let features =
            cells.flat_map(|(window, (region, count))| (0..self.shapes).map(move |shape| self.features(window, *region, shape).map(|f| f * count)));
        let features = features.collect();
        let valid_bytes = kept.iter().map(|(region, count)| self.valid_bytes[*region] * count).collect();
        Problem { regions: kept.len(), features, valid_bytes, largest: vec![f64::INFINITY; self.choices], ..self.clone() }
    }

    /// The same regions on other choices, all of the first shape.
    pub(crate) fn with_choices(&self, of: Choices) -> Problem {
        let Choices { resources, entries, stores, leave, enter, capacity, largest, penalty_s } = of;
        let choices = penalty_s.len();
        let shape = self.runs.first().map_or(0, |run| run.shape);
        let same: Vec<u32> = (0..choices as u32).collect();
        Problem {
            choices,
            resources,
            servers: capacity.len(),
            runs: vec![Run { shape, from: 0, to: choices }],
            shape: vec![shape as u32; choices],
            entries,
            stores,
            leave,
            enter,
            capacity,
            largest,
            penalty_s,
            outer: same.clone(),
            inner: same,
            ..self.clone()
        }
    }

    pub(crate) fn features(&self, window: usize, region: usize, shape: usize) -> &[f64; FEATURES] {
        &self.features[(window * self.regions + region) * self.shapes + shape]
    }

    /// Bytes of a server that may be filled.
    pub(crate) fn fillable(&self, server: usize) -> f64 {
        self.capacity[server] * (1.0 + ROOM_SLACK)
    }

    /// Whether moves cost anything at all.
    pub(crate) fn moves_cost(&self) -> bool {
        !self.leave.is_empty() || !self.enter.is_empty()
    }
}

/// Feature vector times seconds per feature.
#[inline(always)]
pub(crate) fn dot(features: &[f64; FEATURES], seconds: &[f64; FEATURES]) -> f64 {
    features.iter().zip(seconds).map(|(feature, second)| feature * second).sum()
}
