//! The numbers of the blocks that are stored whole, as ranges without gaps.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Ranges that do not touch each other, by their lowest number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ranges(pub(super) BTreeMap<u64, u64>);

impl Ranges {
    pub(super) fn contains(&self, number: u64) -> bool {
        self.around(number).is_some()
    }

    fn around(&self, number: u64) -> Option<(u64, u64)> {
        let (&lowest, &newest) = self.0.range(..=number).next_back()?;
        (newest >= number).then_some((lowest, newest))
    }

    pub(super) fn add(&mut self, number: u64) {
        if self.contains(number) {
            return;
        }
        let below = number.checked_sub(1).and_then(|below| self.around(below));
        let above = number.checked_add(1).and_then(|above| self.0.remove(&above));
        let lowest = below.map_or(number, |(lowest, _)| lowest);
        self.0.insert(lowest, above.unwrap_or(number));
    }

    pub(super) fn pop_lowest(&mut self) -> Option<u64> {
        let (lowest, newest) = self.0.pop_first()?;
        if lowest < newest {
            self.0.insert(lowest + 1, newest);
        }
        Some(lowest)
    }

    /// Takes out the highest number, if it is above `lowest`.
    pub(super) fn pop_above(&mut self, lowest: u64) -> Option<u64> {
        let (range, newest) = self.0.pop_last()?;
        if newest <= lowest {
            self.0.insert(range, newest);
            return None;
        }
        if range < newest {
            self.0.insert(range, newest - 1);
        }
        Some(newest)
    }

    pub(super) fn count(&self) -> u64 {
        self.0.iter().map(|(lowest, newest)| newest - lowest + 1).sum()
    }

    /// Iterates over the ranges in ascending order.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = RangeInclusive<u64>> + '_ {
        self.0.iter().map(|(lowest, newest)| *lowest..=*newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn ranges_are_the_set_of_their_numbers(numbers in proptest::collection::vec(0_u64..40, 0..60)) {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for number in numbers {
                if number % 7 == 0 {
                    prop_assert_eq!(ranges.pop_lowest(), set.pop_first());
                } else if number % 7 == 1 {
                    let highest = set.last().copied().filter(|highest| *highest > number);
                    prop_assert_eq!(ranges.pop_above(number), highest);
                    highest.map(|highest| set.remove(&highest));
                } else {
                    ranges.add(number);
                    set.insert(number);
                }
                let all: Vec<u64> = ranges.iter().flatten().collect();
                prop_assert_eq!(all, set.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(ranges.count(), set.len() as u64);
                let edges: Vec<_> = ranges.iter().collect();
                prop_assert!(edges.windows(2).all(|pair| *pair[0].end() + 1 < *pair[1].start()));
            }
        }
    }
}
