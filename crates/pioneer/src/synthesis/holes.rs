//! One stream of all sessions' requests, and the operations outside sessions in its holes (thesis, section 2.6.4, figure 2.5).
//!
//! What is missing between the ids of the sessions' requests are holes; operations outside sessions (RT2) fill them. Ours: there are as many as RT2 counts.
//! Where the holes are more, evenly spread ones are filled, and the others closed up; where they are fewer, the rest follows behind. An operation gets a
//! file that it makes sense for: none is unlinked while a session has it open, or needs it later.

use std::collections::BTreeMap;

use stripewise_chance::SplitMix64;
use stripewise_workpath::{Class, Op, Who};

use super::distribution::shuffle;
use super::frame::{Frame, Streams};
use super::profile::{CLASSES, Profile};
use super::who::{Act, marked};

/// A request outside sessions, or one of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Number of the operation in the frame.
    Inside(u32),
    /// An operation of a class, whose file is chosen when its turn comes.
    Outside(Class, Act),
}

/// Where operations outside sessions go: of the ids that are taken (ascending) the order, with `outside` of them in the holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The next request of a session.
    Taken,
    /// A hole that is filled.
    Hole,
}

/// Ids from 1 on, as the first request's (figure 2.5): which are taken, which of the others are filled by `outside` operations.
pub fn steps(ids: impl Iterator<Item = u64> + Clone, outside: u64) -> impl Iterator<Item = Step> {
    let (count, last) = ids.clone().fold((0u64, 0), |(count, _), id| (count + 1, id));
    // All that comes has these ids, unless gaps reach beyond.
    let end = last.max(count + outside);
    let holes = end.saturating_sub(count);
    let filled = outside.min(holes);
    // Holes 0..h of all are filled in so many.
    let up_to = move |hole: u64| (u128::from(hole) * u128::from(filled)).div_ceil(u128::from(holes.max(1))) as u64;
    let mut passed = 0;
    let mut expected = 1;
    let within = ids.map(Some).chain(std::iter::once(None)).flat_map(move |id| {
        let gap = id.unwrap_or(end + 1).saturating_sub(expected);
        let before = up_to(passed);
        passed += gap;
        expected = id.map_or(expected, |id| id + 1);
        let fill = up_to(passed) - before;
        std::iter::repeat_n(Step::Hole, fill as usize).chain(id.map(|_| Step::Taken))
    });
    within.chain(std::iter::repeat_n(Step::Hole, (outside - filled) as usize))
}

/// The order of all operations.
pub fn merged(profile: &Profile, frame: &Frame, streams: Streams) -> Vec<Place> {
    let outside = outside(profile, &mut streams.of(7, 0, 0));
    let mut order: Vec<(u64, u32)> = frame.ids.iter().copied().zip(0..).collect();
    order.sort();
    let mut inside = order.iter().map(|&(_, number)| Place::Inside(number));
    let count = outside.len() as u64;
    let mut outside = outside.into_iter();
    steps(order.iter().map(|&(id, _)| id), count)
        .filter_map(|step| match step {
            Step::Taken => inside.next(),
            Step::Hole => outside.next(),
        })
        .collect()
}

/// All operations outside sessions, in an order of the stream's.
pub fn outside(profile: &Profile, random: &mut SplitMix64) -> Vec<Place> {
    let mut all = Vec::new();
    for (name, class) in CLASSES {
        let Some(of) = profile.classes.get(name).filter(|of| of.files > 0) else { continue };
        for (key, count) in &of.outside {
            let Some((name, who)) = marked(key) else { continue };
            if let Some(op) = Op::named(name).filter(|op| op.facts().place != stripewise_workpath::op::Place::Inside) {
                let count = count.round().clamp(0.0, 1e9) as usize;
                let who = if class == Class::Root { Who::All } else { who };
                all.extend(std::iter::repeat_n(Place::Outside(class, Act { op, who }), count));
            }
        }
    }
    shuffle(&mut all, random);
    all
}

/// Chooses files for operations outside sessions: in turn, in an order of the stream's, the first that makes sense.
#[derive(Clone, Debug)]
pub struct Chooser {
    files: BTreeMap<u8, (Vec<u32>, usize)>,
}

/// Files that are looked at for one operation, at most.
const LOOK_MAX: usize = 64;

impl Chooser {
    /// The files of each class.
    pub fn of(frame: &Frame, streams: Streams) -> Self {
        let mut files: BTreeMap<u8, (Vec<u32>, usize)> = BTreeMap::new();
        for (number, file) in frame.files.iter().enumerate() {
            files.entry(file.class as u8).or_default().0.push(number as u32);
        }
        for (class, (list, _)) in &mut files {
            shuffle(list, &mut streams.of(8, usize::from(*class), 0));
        }
        Self { files }
    }

    /// Whether one of the next files of a class `fits`.
    pub fn has(&self, class: Class, fits: impl Fn(u32) -> bool) -> bool {
        self.files
            .get(&(class as u8))
            .is_some_and(|(list, turn)| list.iter().cycle().skip(*turn).take(list.len().min(LOOK_MAX)).any(|&file| fits(file)))
    }

    /// A file of a class that `fits`; else the one whose turn it is, and false.
    pub fn choose(&mut self, class: Class, fits: impl Fn(u32) -> bool) -> Option<(u32, bool)> {
        let (list, turn) = self.files.get_mut(&(class as u8))?;
        let mut at = *turn;
        for _ in 0..list.len().min(LOOK_MAX) {
            let file = list.get(at).copied()?;
            at = if at + 1 < list.len() { at + 1 } else { 0 };
            if fits(file) {
                *turn = at;
                return Some((file, true));
            }
        }
        let file = list.get(*turn).copied()?;
        *turn = if *turn + 1 < list.len() { *turn + 1 } else { 0 };
        Some((file, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids, those of figure 2.5 first, and which of the holes between them are filled.
    fn filled(ids: &[u64], outside: u64) -> Vec<Option<u64>> {
        let mut taken = ids.iter();
        steps(ids.iter().copied(), outside).map(|step| if step == Step::Taken { taken.next().copied() } else { None }).collect()
    }

    #[test]
    fn the_holes_of_figure_2_5_are_filled_by_operations_outside_sessions() {
        let ids = [1, 2, 3, 6, 7, 8, 12, 13, 14, 15];
        let stream: Vec<u64> =
            filled(&ids, 5).into_iter().zip(1..).map(|(id, place)| id.inspect(|&id| assert_eq!(id, place)).map_or(0, |_| place)).collect();
        assert_eq!(stream, [1, 2, 3, 0, 0, 6, 7, 8, 0, 0, 0, 12, 13, 14, 15]);
    }

    #[test]
    fn holes_that_are_left_are_closed_up_and_what_is_too_much_follows_behind() {
        assert_eq!(filled(&[1, 5, 9], 2), [Some(1), None, Some(5), None, Some(9)]);
        assert_eq!(filled(&[1, 3], 3), [Some(1), None, Some(3), None, None]);
        assert_eq!(filled(&[], 2), [None, None]);
        assert_eq!(filled(&[4], 0), [Some(4)]);
    }
}
