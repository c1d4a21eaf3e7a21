//! The rule that divides bounded resources (memory, threads, slots in a queue) between accounts.

/// Whether an account that uses `own` may take `wanted` more of a resource of which `used` of `max` are in use.
///
/// After the request, an account must not use more than what was free before it. One greedy account gets about half, or up
/// to two thirds if its last request is as large as all earlier ones together; a single request may take everything. Accounts
/// that arrive one after the other each get about half of what is left, and `k` accounts that take and release approach
/// `1 / (k + 1)` each. So something is left for new accounts, and operators need no limit per account.
pub fn is_within_share(own: usize, wanted: usize, used: usize, max: usize) -> bool {
    own.saturating_add(wanted) <= max.saturating_sub(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes units one at a time for an account until the rule refuses one.
    fn take_all(used: &mut usize, max: usize) -> usize {
        let mut own = 0;
        while is_within_share(own, 1, *used, max) {
            own += 1;
            *used += 1;
        }
        own
    }

    #[test]
    fn each_greedy_account_leaves_half_of_what_was_free() {
        let mut used = 0;
        assert_eq!(take_all(&mut used, 1_000), 500);
        assert_eq!(take_all(&mut used, 1_000), 250);
        assert_eq!(take_all(&mut used, 1_000), 125);
    }

    #[test]
    fn a_single_unit_can_be_taken() {
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
