//! Room on the targets of a store: what each can still take, where several share a file system.

/// Of one target: the device of its file system and what that has free, and what its capacity leaves (`u64::MAX`: it has none of its own); bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub device: u64,
    pub free: u64,
    pub left: u64,
}

/// What each target can take when all do, bytes: targets on one file system share what is free there, those with a capacity no more than it leaves. One with
/// nothing free takes nothing and shares nothing: it may be mounted read-only where others on its file system are not.
pub fn share(seen: &[Seen], room: &mut [u64]) {
    const OPEN: u64 = u64::MAX;
    room.fill(OPEN);
    for start in 0..seen.len() {
        if room.get(start).is_none_or(|known| *known != OPEN) {
            continue;
        }
        let Some(first) = seen.get(start) else { continue };
        if first.free == 0 {
            if let Some(room) = room.get_mut(start) {
                *room = 0;
            }
            continue;
        }
        let here = || seen.iter().enumerate().filter(|(_, target)| target.device == first.device && target.free > 0);
        let mut free = here().map(|(_, target)| target.free).min().unwrap_or(0);
        let mut sharers = here().count() as u64;
        // Those that can take least first: what they leave is the others'.
        while let Some((i, target)) = here().filter(|(i, _)| room.get(*i) == Some(&OPEN)).min_by_key(|(_, target)| target.left) {
            let part = target.left.min(free / sharers.max(1)).min(OPEN - 1);
            if let Some(room) = room.get_mut(i) {
                *room = part;
            }
            (free, sharers) = (free - part, sharers - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(seen: &[(u64, u64, u64)]) -> Vec<u64> {
        let seen: Vec<Seen> = seen.iter().map(|(device, free, left)| Seen { device: *device, free: *free, left: *left }).collect();
        let mut room = vec![0; seen.len()];
        share(&seen, &mut room);
        room
    }

    const NONE: u64 = u64::MAX;

    #[test]
    fn targets_on_one_file_system_share_it_and_capacities_hold() {
        assert_eq!(shared(&[(1, 100, NONE), (2, 90, NONE)]), [100, 90]);
        assert_eq!(shared(&[(1, 100, NONE), (1, 100, NONE), (2, 90, NONE)]), [50, 50, 90]);
        assert_eq!(shared(&[(1, 100, 10), (1, 100, NONE), (2, 90, NONE)]), [10, 90, 90]);
        assert_eq!(shared(&[(1, 100, NONE), (1, 100, 80), (1, 100, 10)]), [45, 45, 10]);
        assert_eq!(shared(&[(1, 100, 300)]), [100]);
        assert_eq!(shared(&[(1, NONE, NONE), (1, 0, 5)]), [NONE - 1, 0]);
        assert_eq!(shared(&[(1, 100, NONE), (1, 0, NONE), (1, 100, 10), (2, 0, NONE)]), [90, 0, 10, 0]);
        assert_eq!(shared(&[]), [0; 0]);
    }
}
