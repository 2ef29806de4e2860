//! Sessions: a file from its MPI_File_open to its close, by all ranks that opened it together. Only all of them together tell where the shared file pointer
//! is: ordered calls move it by what every rank asks for.

use crate::format::entry_kind;
use crate::reader::{ProcessLogs, Run};
use crate::record::{Op, Record, flags};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Number of a process in the run, and of a handle in the process.
type Place = (u32, u32);

/// What moves a shared file pointer, in the order of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    /// A new view, or a seek to a byte of its data.
    To(u64),
    /// A seek from where it was.
    By(i64),
    /// A seek from the end.
    Away,
    /// An ordered call that asks for bytes.
    Ordered(u64),
    /// Another call that uses it.
    Used,
}

impl Move {
    fn is_collective(self) -> bool {
        self != Move::Used
    }
}

/// What the first pass over the logs finds of the mpi layer.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Bytes done by nonblocking calls, by process and request.
    done: HashMap<(u32, u64), i64>,
    moves: HashMap<Place, Vec<(u64, Move)>>,
    shared: bool,
    /// Whether there is such a layer.
    pub(crate) any: bool,
    /// Opens by process, in the order of time.
    opens: Vec<(u32, u64, Record)>,
}

impl Survey {
    /// Looks at a record of process number `process`; `start_ns` is its start.
    pub(crate) fn look(&mut self, process: u32, start_ns: u64, record: &Record) {
        self.any |= record.flags & flags::MPI != 0;
        if record.flags & flags::MPI == 0 || record.errno != 0 {
            return;
        }
        let by_shared = record.flags & flags::SHARED != 0;
        let known = record.flags & flags::UNKNOWN_OFFSET == 0;
        let moved = match Op::from_number(record.op) {
            Some(Op::MpiOpen) => {
                self.opens.push((process, start_ns, *record));
                return;
            }
            Some(Op::MpiWait) => {
                if known {
                    self.done.insert((process, record.offset), record.done);
                }
                return;
            }
            Some(Op::View) => Move::To(0),
            Some(Op::MpiSeek) if by_shared => match record.requested_bytes {
                0 if known => Move::To(record.offset),
                1 if known => Move::By(record.offset as i64),
                _ => Move::Away,
            },
            Some(Op::MpiRead | Op::MpiWrite) if by_shared => {
                self.shared = true;
                if record.flags & flags::COLLECTIVE != 0 { Move::Ordered(record.requested_bytes) } else { Move::Used }
            }
            _ => return,
        };
        self.moves.entry((process, record.fd as u32)).or_default().push((start_ns, moved));
    }

    /// Bytes that a nonblocking call has done, as far as it was completed.
    pub(crate) fn done(&self, process: u32, request: u64) -> Option<i64> {
        self.done.get(&(process, request)).copied()
    }
}

/// A file opened together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Session {
    pub path: Vec<u8>,
    /// Ranks in MPI_COMM_WORLD, by rank in the communicator.
    pub ranks: Vec<i64>,
    /// Process and handle, by rank in the communicator; gaps where a rank was not traced.
    pub members: BTreeMap<u64, Place>,
}

/// All sessions of a run.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    pub all: Vec<Session>,
    /// Where the shared file pointer was at each call that used it, in bytes of the view's data.
    positions: HashMap<Place, VecDeque<Option<u64>>>,
}

impl Sessions {
    /// Puts together what the processes have opened: the k-th open of a path by the same ranks is one session of all of them.
    pub(crate) fn of(run: &Run, survey: &mut Survey) -> Sessions {
        let mut sessions = Sessions::default();
        let mut numbers: HashMap<(Vec<u8>, Vec<i64>, u32), usize> = HashMap::new();
        let mut seen: HashMap<(u32, Vec<u8>, Vec<i64>), u32> = HashMap::new();
        survey.opens.sort_by_key(|(process, start_ns, _)| (*process, *start_ns));
        for (process, _, record) in &survey.opens {
            let Some(logs) = run.processes.get(*process as usize) else { continue };
            let Some((rank, ranks)) = members(run, logs, record) else { continue };
            let Some(name) = run.name(&logs.identity, record.file) else { continue };
            let times = seen.entry((*process, name.path.clone(), ranks.clone())).or_default();
            let key = (name.path.clone(), ranks, *times);
            *times += 1;
            let number = *numbers.entry(key.clone()).or_insert_with(|| {
                sessions.all.push(Session { path: key.0, ranks: key.1, members: BTreeMap::new() });
                sessions.all.len() - 1
            });
            if let Some(session) = sessions.all.get_mut(number) {
                session.members.insert(rank, (*process, record.fd as u32));
            }
        }
        if survey.shared {
            for session in &sessions.all {
                follow(session, survey, &mut sessions.positions);
            }
        }
        survey.moves.clear();
        sessions
    }

    /// Where the shared file pointer was at the next call that used it.
    pub(crate) fn next_position(&mut self, process: u32, handle: u32) -> Option<u64> {
        self.positions.get_mut(&(process, handle))?.pop_front()?
    }
}

/// Rank of a process in the communicator of an open, and the ranks of all in it.
fn members(run: &Run, logs: &ProcessLogs, record: &Record) -> Option<(u64, Vec<i64>)> {
    let note = run.note(&logs.identity, entry_kind::COMMUNICATOR, record.fd as u32)?;
    let (&rank, ranks) = note.split_first()?;
    (ranks.len() == record.aux as usize).then(|| (rank, ranks.iter().map(|rank| *rank as i64).collect()))
}

/// Follows a session's shared file pointer through its collective calls. A call that moves it for one rank alone leaves it unknown, since nobody tells the
/// order of the ranks, until a seek or a new view says where it is.
fn follow(session: &Session, survey: &mut Survey, positions: &mut HashMap<Place, VecDeque<Option<u64>>>) {
    let mut moves: Vec<(Place, VecDeque<Move>)> = Vec::new();
    for place in session.members.values() {
        let mut of = survey.moves.remove(place).unwrap_or_default();
        of.sort_by_key(|(start_ns, _)| *start_ns);
        moves.push((*place, of.into_iter().map(|(_, moved)| moved).collect()));
    }
    let whole = session.members.len() == session.ranks.len();
    let mut at = Some(0u64).filter(|_| whole);
    loop {
        // What each does alone, up to the next that all do.
        for (place, queue) in &mut moves {
            while queue.front().is_some_and(|moved| !moved.is_collective()) {
                queue.pop_front();
                at = None;
                positions.entry(*place).or_default().push_back(None);
            }
        }
        let mut together = moves.iter_mut().map(|(place, queue)| (*place, queue.pop_front())).collect::<Vec<_>>();
        if together.iter().all(|(_, moved)| moved.is_none()) {
            return;
        }
        // A process that was killed, or lost records, is not where the others are.
        if together.iter().any(|(_, moved)| moved.is_none()) {
            at = None;
        }
        let mut next = at;
        for (place, moved) in &mut together {
            match moved {
                Some(Move::Ordered(bytes)) => {
                    positions.entry(*place).or_default().push_back(next);
                    next = next.and_then(|from| from.checked_add(*bytes));
                }
                Some(Move::To(to)) => next = Some(*to).filter(|_| whole),
                // All of them seek by the same.
                Some(Move::By(by)) => next = at.and_then(|from| from.checked_add_signed(*by)),
                Some(Move::Away | Move::Used) | None => next = None,
            }
        }
        at = next;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn session(processes: u32) -> Session {
        let members = (0..processes).map(|rank| (u64::from(rank), (rank, 7))).collect();
        Session { path: b"f".to_vec(), ranks: (0..i64::from(processes)).collect(), members }
    }

    fn followed(each: &[&[Move]]) -> Vec<Vec<Option<u64>>> {
        let mut survey = Survey::default();
        for (process, moves) in each.iter().enumerate() {
            let timed = moves.iter().enumerate().map(|(at, moved)| (at as u64, *moved)).collect();
            survey.moves.insert((process as u32, 7), timed);
        }
        let mut positions = HashMap::new();
        follow(&session(each.len() as u32), &mut survey, &mut positions);
        (0..each.len()).map(|process| positions.remove(&(process as u32, 7)).unwrap_or_default().into()).collect()
    }

    #[test]
    fn ordered_calls_follow_each_other_by_rank() {
        let all = followed(&[&[Move::Ordered(10), Move::Ordered(1)], &[Move::Ordered(20), Move::Ordered(2)]]);
        assert_eq!(all, [[Some(0), Some(30)], [Some(10), Some(31)]]);
    }

    #[test]
    fn a_seek_and_a_view_say_where_it_is() {
        let each: &[Move] = &[Move::Ordered(4), Move::By(2), Move::Ordered(4), Move::To(0), Move::Ordered(1)];
        assert_eq!(followed(&[each, each]), [[Some(0), Some(10), Some(0)], [Some(4), Some(14), Some(1)]]);
    }

    #[test]
    fn who_uses_it_alone_leaves_it_unknown_until_the_next_seek() {
        let one: &[Move] = &[Move::Used, Move::Ordered(4), Move::To(8), Move::Ordered(4)];
        let other: &[Move] = &[Move::Ordered(4), Move::To(8), Move::Ordered(4)];
        assert_eq!(followed(&[one, other]), [vec![None, None, Some(8)], vec![None, Some(12)]]);
    }

    #[test]
    fn a_rank_that_was_lost_leaves_all_unknown() {
        assert_eq!(followed(&[&[Move::Ordered(1), Move::Ordered(1)], &[Move::Ordered(1)]]), [vec![Some(0), None], vec![Some(1)]]);
    }
}
