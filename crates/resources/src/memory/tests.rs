use super::*;

const LARGE: usize = 20_000;

fn large() -> Bytes {
    Bytes::from(vec![7; LARGE])
}

/// Takes large buffers for several accounts, for each until it is refused.
fn greedy(budget: &MemoryBudget, accounts: usize) -> Vec<Bytes> {
    let mut held = Vec::new();
    for _ in 0..accounts {
        let account = AccountId::unique();
        while let Ok(bytes) = budget.of(account).hold(large()) {
            held.push(bytes);
        }
    }
    held
}

#[test]
fn bytes_are_charged_until_the_last_clone_of_them_is_dropped() {
    let budget = MemoryBudget::new(1 << 20);
    let first = budget.of(AccountId::unique()).hold(large()).unwrap();
    let slice = first.slice(5..10);
    drop(first);
    assert_eq!(budget.bytes(), LARGE);
    drop(slice);
    assert_eq!(budget.bytes(), 0);
    assert!(budget.shared.lock().by_account.is_empty(), "accounts without buffers have no entry");
}

/// One account could fill the memory for replies, and all others were refused.
#[test]
fn a_greedy_account_takes_half_and_leaves_room_for_others() {
    let budget = MemoryBudget::new(100 * LARGE);
    let held = greedy(&budget, 1);
    assert_eq!(held.len(), 50);
    let others = greedy(&budget, 2);
    assert_eq!(others.len(), 25 + 13);
    assert!(budget.of(AccountId::unique()).hold(large()).is_ok(), "there is room for one more account");
    assert_eq!(budget.refused(), 3);
}

#[test]
fn small_buffers_are_never_refused() {
    let budget = MemoryBudget::new(0);
    let memory = budget.of(AccountId::unique());
    let small = Bytes::from(vec![0; CHARGED_BYTES_MIN - 1]);
    assert_eq!(memory.hold(small.clone()), Ok(small.clone()));
    assert_eq!(memory.lend(&small, &ChargedReaders::default()), Ok(small));
    assert_eq!(memory.hold(large()), Err(OverBudget));
}

/// A hundred requests on one HTTP/2 connection could hold a hundred small bodies or replies without a charge.
#[test]
fn small_buffers_of_one_connection_are_charged_beyond_its_uncharged_bytes() {
    const SMALL: usize = 5_000;
    let (budget, uncharged) = (MemoryBudget::new(1 << 20), Arc::<UnchargedBytes>::default());
    let memory = budget.of(AccountId::unique()).counting_small(Some(&uncharged));
    let hold = || memory.hold(Bytes::from(vec![7; SMALL])).unwrap();
    let free = [(); 6].map(|()| hold());
    assert_eq!(budget.bytes(), 0);
    let charged = hold();
    assert_eq!(budget.bytes(), SMALL);
    drop(free);
    let free_again = hold();
    assert_eq!(budget.bytes(), SMALL);
    drop((charged, free_again));
    assert_eq!((budget.bytes(), uncharged.0.load(Relaxed)), (0, 0));
}

#[test]
fn a_buffer_that_grows_large_is_charged_as_a_whole_and_frees_its_uncharged_bytes() {
    let (budget, uncharged) = (MemoryBudget::new(100_000), Arc::<UnchargedBytes>::default());
    let memory = budget.of(AccountId::unique()).counting_small(Some(&uncharged));
    let mut charge = MemoryCharge::default();
    for (bytes, expected) in
        [(100, (0, 100)), (16_000, (0, 16_000)), (20_000, (20_000, 0)), (30_000, (30_000, 0))]
    {
        assert_eq!(memory.grow(&mut charge, bytes), Ok(()));
        assert_eq!((budget.bytes(), uncharged.0.load(Relaxed)), expected);
    }
    assert_eq!(memory.grow(&mut charge, 200_000), Err(OverBudget));
    assert_eq!(budget.bytes(), 30_000, "a refused request changes nothing");
    drop(charge);
    assert_eq!(budget.bytes(), 0);
}

#[test]
fn each_account_that_reads_shared_bytes_is_charged_once() {
    let budget = MemoryBudget::new(1 << 20);
    let (kept, readers) = (large(), ChargedReaders::default());
    let (first, other) = (AccountId::unique(), AccountId::unique());
    let twice = [(); 2].map(|()| budget.of(first).lend(&kept, &readers).unwrap());
    assert_eq!(budget.bytes(), LARGE);
    let foreign = budget.of(other).lend(&kept, &readers).unwrap();
    assert_eq!(budget.bytes(), 2 * LARGE);
    drop(twice);
    assert_eq!(
        (budget.bytes(), foreign.len()),
        (LARGE, LARGE),
        "each account is charged for its own readers only"
    );
    drop(foreign);
    assert_eq!(budget.bytes(), 0);
    assert_eq!(budget.of(first).lend(&kept, &readers), Ok(kept));
}

#[test]
fn a_buffer_is_charged_before_it_grows() {
    let budget = MemoryBudget::new(200_000);
    let memory = budget.of(AccountId::unique());
    let mut buffer = ChargedBuffer::default();
    let refused = loop {
        if buffer.reserve(memory, 4_096, 1 << 20).is_err() {
            break buffer.bytes().len();
        }
        assert!(buffer.bytes.capacity() < CHARGED_BYTES_MIN || budget.bytes() == buffer.bytes.capacity());
        buffer.bytes_mut().extend_from_slice(&[0; 4_096]);
    };
    // Half, or two thirds if the last step is as large as all earlier ones together.
    assert!((60_000..=133_000).contains(&refused), "{refused}");
    drop(buffer);
    assert_eq!(budget.bytes(), 0);
}

#[test]
fn a_buffer_does_not_grow_beyond_its_maximum() {
    let budget = MemoryBudget::new(1 << 20);
    let memory = budget.of(AccountId::unique());
    let mut buffer = ChargedBuffer::default();
    for _ in 0..10 {
        buffer.reserve(memory, 5_000, 50_000).unwrap();
        buffer.bytes_mut().extend_from_slice(&[0; 5_000]);
    }
    assert_eq!((buffer.bytes().len(), buffer.bytes.capacity()), (50_000, 50_000));
}
