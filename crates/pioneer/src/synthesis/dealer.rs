//! Choices dealt by weight without chance: after any number of them, each has come its share of times, one more or less.

/// What is dealt, and how much of each is due.
#[derive(Clone, Debug)]
pub struct Dealer<T> {
    /// Choice, share, credit; the heaviest first.
    choices: Vec<(T, f64, f64)>,
}

impl<T: Copy> Dealer<T> {
    /// Choices with weights; those without weight are left out.
    pub fn of(choices: impl IntoIterator<Item = (T, f64)>) -> Self {
        let mut choices: Vec<(T, f64, f64)> =
            choices.into_iter().filter(|(_, weight)| *weight > 0.0 && weight.is_finite()).map(|(choice, weight)| (choice, weight, 0.0)).collect();
        let sum: f64 = choices.iter().map(|each| each.1).sum();
        choices.iter_mut().for_each(|each| each.1 /= sum);
        choices.sort_by(|a, b| b.1.total_cmp(&a.1));
        Self { choices }
    }

    /// Whether there is no choice.
    pub fn is_empty(&self) -> bool {
        self.choices.is_empty()
    }

    /// The next one: a rare one when its time is up, at the end of its period, else the heaviest, so that what a process does a hundred times before
    /// something else comes a hundred times before it.
    pub fn deal(&mut self) -> Option<T> {
        let mut found = 0;
        for (place, (_, share, credit)) in self.choices.iter_mut().enumerate() {
            *credit += *share;
            if place > 0 && *credit >= 1.0 - 1e-9 {
                found = place;
            }
        }
        let (choice, _, credit) = self.choices.get_mut(found)?;
        *credit -= 1.0;
        Some(*choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_rare_choice_ends_its_period() {
        let mut dealer = Dealer::of([("sync", 1.0), ("write", 99.0)]);
        let places: Vec<usize> = (1..=300).filter(|_| dealer.deal() == Some("sync")).collect();
        assert_eq!(places, [100, 200, 300]);
    }

    #[test]
    fn nothing_is_dealt_of_nothing() {
        assert_eq!(Dealer::of([("never", 0.0)]).deal(), None);
    }

    proptest! {
        #[test]
        fn shares_are_kept_over_whole_periods(weights in prop::collection::vec(1u32..20, 1..6)) {
            let mut dealer = Dealer::of(weights.iter().enumerate().map(|(place, &weight)| (place, f64::from(weight))));
            let all: u32 = weights.iter().sum();
            let mut seen = vec![0u32; weights.len()];
            (0..all).for_each(|_| seen[dealer.deal().unwrap()] += 1);
            for (count, weight) in seen.iter().zip(&weights) {
                prop_assert!(count.abs_diff(*weight) < weights.len() as u32);
            }
        }
    }
}
