//! A filter as blooms see it.

use alloy_primitives::{Bloom, BloomInput};
use methods::LogFilterParams;

/// Filters with more values match nearly every bloom, and are slow to compare.
const BLOOM_VALUES_MAX: usize = 64;

/// The values of a filter, hashed as blooms hash them.
pub(super) struct FilterBlooms<'a> {
    addresses: Values<'a>,
    topics: Vec<Values<'a>>,
}

impl<'a> FilterBlooms<'a> {
    /// A filter with many values matches every block that has logs.
    pub(super) fn of(filter: &'a LogFilterParams) -> Self {
        let is_short = filter.value_count() <= BLOOM_VALUES_MAX;
        let topics = filter.topics.iter().filter(|_| is_short);
        let addresses: &[_] = if is_short { &filter.addresses } else { &[] };
        Self { addresses: Values::new(addresses), topics: topics.map(|topics| Values::new(topics)).collect() }
    }

    /// Whether a block with this bloom may have logs that match.
    pub(super) fn may_match(&mut self, block: &Bloom) -> bool {
        !block.is_zero()
            && self.addresses.any(block)
            && self.topics.iter_mut().all(|topics| topics.any(block))
    }
}

/// Values of which one must be there; any do if there are none. Each is hashed when it is first asked for.
struct Values<'a> {
    all: Vec<&'a [u8]>,
    hashed: Vec<Bloom>,
}

impl<'a> Values<'a> {
    fn new(values: &'a [impl AsRef<[u8]>]) -> Self {
        Self { all: values.iter().map(AsRef::as_ref).collect(), hashed: Vec::new() }
    }

    fn any(&mut self, block: &Bloom) -> bool {
        let mut place = 0;
        while let Some(value) = self.all.get(place) {
            if self.hashed.len() == place {
                self.hashed.push(Bloom::from(BloomInput::Raw(value)));
            }
            if block.contains(&self.hashed[place]) {
                return true;
            }
            place += 1;
        }
        self.all.is_empty()
    }
}
