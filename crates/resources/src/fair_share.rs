//! The rule by which accounts share what there is a bounded amount of: memory, threads, places in a queue.

/// Whether an account that uses `own` may take `wanted` more of something of which `used` of `max` are in use.
///
/// An account may come to use no more than what is free when it asks. One greedy account gets about half, or up to two
/// thirds where its last request is as large as all before it; a single request may take all. Several that arrive one after
/// the other each get about half of what is left, and `k` of them whose use comes and goes approach `1 / (k + 1)` each.
/// So newcomers find something left, and an operator has no limit per account to choose.
pub fn is_within_share(own: usize, wanted: usize, used: usize, max: usize) -> bool {
    own.saturating_add(wanted) <= max.saturating_sub(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes one at a time for an account until the rule refuses it.
    fn take_all(used: &mut usize, max: usize) -> usize {
        let mut own = 0;
        while is_within_share(own, 1, *used, max) {
            own += 1;
            *used += 1;
        }
        own
    }

    #[test]
    fn one_greedy_account_leaves_half_and_the_next_a_quarter() {
        let mut used = 0;
        assert_eq!(take_all(&mut used, 1_000), 500);
        assert_eq!(take_all(&mut used, 1_000), 250);
        assert_eq!(take_all(&mut used, 1_000), 125);
    }

    #[test]
    fn a_single_place_can_be_taken() {
        let mut used = 0;
        assert_eq!(take_all(&mut used, 1), 1);
        assert_eq!(take_all(&mut used, 1), 0);
    }

    #[test]
    fn nothing_overflows() {
        assert!(!is_within_share(usize::MAX, usize::MAX, 0, 100));
        assert!(!is_within_share(0, 1, usize::MAX, 100));
    }
}
