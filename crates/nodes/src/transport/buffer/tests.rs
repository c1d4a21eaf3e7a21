use super::*;

const MIB: usize = 1 << 20;

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

fn memory(bytes: usize) -> EndpointMemory {
    ReplyBuffers::new(bytes).for_endpoint(1)
}

/// A buffer for a reply of this length to an account that has no others.
fn buffer(memory: &EndpointMemory, length: usize) -> Result<Buffer, Fault> {
    memory.for_account(AccountId::unique()).buffer(length)
}

/// A buffer for a reply of this length that has arrived.
async fn arrived(memory: &EndpointMemory, length: usize) -> Result<Buffer, Fault> {
    let mut buffer = buffer(memory, length)?;
    buffer.reserve(length, soon()).await?;
    buffer.bytes.resize(length, 7);
    Ok(buffer)
}

/// Nodes that announced large replies and sent nothing held all memory, and two of five nodes had all of it together.
#[tokio::test(start_paused = true)]
async fn lying_nodes_do_not_hold_all_memory() {
    let shared = ReplyBuffers::new(120 * MIB);
    let announced = shared.for_endpoint(5).buffer(40 * MIB).unwrap();
    assert_eq!(shared.used_bytes(), 0, "nothing has arrived");
    let liars = [shared.for_endpoint(5), shared.for_endpoint(5)];
    drop(announced);
    let mut held = Vec::new();
    for liar in &liars {
        held.push(arrived(liar, 40 * MIB).await.unwrap());
        assert_eq!(arrived(liar, MIB).await.err(), Some(Fault::NoMemory));
    }
    arrived(&shared.for_endpoint(5), 40 * MIB).await.unwrap();
    for (endpoints, parts) in [(1, 1), (2, 2), (3, 2), (4, 2), (5, 3), (7, 4), (100, 4)] {
        let share = shared.for_endpoint(endpoints).share_steps;
        assert_eq!(share * parts, shared.budget_steps, "{endpoints} endpoints");
    }
}

/// The replies that one account held while it waited for more, such as the parts of its searches for logs, used up the memory
/// of all.
#[tokio::test(start_paused = true)]
async fn an_account_leaves_memory_to_others() {
    let memory = memory(256 * MIB);
    let greedy = memory.for_account(AccountId::unique());
    let mut held = Vec::new();
    let refused = loop {
        let mut buffer = greedy.buffer(10 * MIB).unwrap();
        match buffer.reserve(10 * MIB, soon()).await {
            Ok(()) => held.push(buffer),
            Err(fault) => break fault,
        }
    };
    assert_eq!((refused, (10..=12).contains(&held.len())), (Fault::NoMemory, true));
    let began = Instant::now();
    arrived(&memory, 100 * MIB).await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    drop(held);
    assert!(memory.shared.used.lock().by_account.is_empty());
}

/// Replies of known length took their memory by and by, waited for each other, and failed together.
#[tokio::test(start_paused = true)]
async fn replies_of_known_length_do_not_wait_for_each_other() {
    let memory = memory(64 * MIB);
    let mut replies = Vec::new();
    for _ in 0..8 {
        let mut buffer = buffer(&memory, 20 * MIB).unwrap();
        buffer.reserve(FIRST_BYTES, soon()).await.unwrap();
        buffer.bytes.resize(FIRST_BYTES, 7);
        replies.push(buffer);
    }
    let began = Instant::now();
    let rest = replies.into_iter().map(async |mut buffer| {
        buffer.reserve(20 * MIB - FIRST_BYTES, soon()).await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
        Ok::<_, Fault>(())
    });
    assert!(futures_util::future::join_all(rest).await.iter().all(Result::is_ok));
    // Two fit at once.
    assert_eq!(began.elapsed(), Duration::from_secs(2));
    assert_eq!(memory.shared.used_bytes(), 0);
}

/// Two replies that need nearly everything each held a little of what the other one needed.
#[tokio::test(start_paused = true)]
async fn replies_that_need_all_memory_of_a_node_come_one_after_the_other() {
    let memory = memory(64 * MIB);
    let replies = (0..2).map(async |_| arrived(&memory, 60 * MIB).await.map(drop));
    assert!(futures_util::future::join_all(replies).await.iter().all(Result::is_ok));
    let mut begun = Vec::new();
    for _ in 0..2 {
        let mut buffer = buffer(&memory, 60 * MIB).unwrap();
        buffer.bytes.resize(FIRST_BYTES, 7);
        begun.push(buffer);
    }
    let rest = begun.into_iter().map(async |mut buffer| buffer.reserve(59 * MIB, soon()).await);
    assert!(futures_util::future::join_all(rest).await.iter().all(Result::is_ok));
}

/// A reply that waited for memory took all that was free, and smaller ones waited behind it until its time was over.
#[tokio::test(start_paused = true)]
async fn small_replies_do_not_wait_behind_large_ones() {
    let memory = memory(64 * MIB);
    let held = arrived(&memory, 40 * MIB).await.unwrap();
    let large = tokio::spawn({
        let memory = memory.clone();
        async move { arrived(&memory, 30 * MIB).await.is_ok() }
    });
    tokio::task::yield_now().await;
    let (began, used) = (Instant::now(), memory.shared.used_bytes());
    drop(arrived(&memory, 10 * MIB).await.unwrap());
    assert_eq!((began.elapsed(), memory.shared.used_bytes()), (Duration::ZERO, used));
    assert_eq!(used, held.bytes.capacity(), "what waits holds nothing");
    drop(held);
    assert!(large.await.unwrap());
    assert_eq!(memory.shared.used_bytes(), 0);
}

/// A node that announces a reply and does not send it holds nothing; what has begun to arrive is counted as a whole.
#[tokio::test(start_paused = true)]
async fn a_reply_of_known_length_is_counted_when_it_arrives() {
    let memory = memory(64 * MIB);
    let mut buffer = buffer(&memory, 20 * MIB).unwrap();
    let mut addresses = std::collections::BTreeSet::new();
    while buffer.bytes.len() < 20 * MIB {
        buffer.reserve(10_240, soon()).await.unwrap();
        buffer.bytes.resize(buffer.bytes.len() + 10_240, 7);
        let (used, arrived) = (memory.shared.used_bytes(), buffer.bytes.len());
        let counted = if arrived <= FIRST_BYTES { 0 } else { (20 + 20 / 8) * MIB + MIB / 2 };
        assert_eq!(used, counted, "{arrived} bytes have arrived");
        addresses.insert(buffer.bytes.as_ptr());
    }
    assert_eq!(addresses.len(), 2, "only its first part was copied");
    drop(buffer);
    assert_eq!(memory.shared.used_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn buffers_are_used_again() {
    let memory = memory(16 * MIB);
    let bytes = arrived(&memory, 3 * MIB).await.unwrap().freeze();
    let address = bytes.as_ptr();
    drop(bytes);
    let again = arrived(&memory, 3 * MIB - 5).await.unwrap();
    assert_eq!(again.bytes.as_ptr(), address);
}

/// A compressed reply waited for memory that it held itself, until its call was over.
#[tokio::test(start_paused = true)]
async fn a_reply_does_not_wait_for_memory_that_it_holds_itself() {
    let memory = memory(8 * MIB);
    let compressed = arrived(&memory, 2 * MIB).await.unwrap().freeze();
    let began = Instant::now();
    let too_large = memory.buffer_beside(&compressed, 7 * MIB, soon()).await;
    assert_eq!((too_large.err(), began.elapsed()), (Some(Fault::LargerThanMemory), Duration::ZERO));
    // Together with its compressed form it takes all that there is.
    memory.buffer_beside(&compressed, 5 * MIB + MIB / 2, soon()).await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    // Others hold the rest, and may wait for this one as it does for them.
    let _others = arrived(&memory, 4 * MIB).await.unwrap();
    let waited = memory.buffer_beside(&compressed, 5 * MIB, soon()).await;
    assert_eq!((waited.err(), began.elapsed()), (Some(Fault::NoMemory), GROWTH_TIMEOUT));
}

/// A compressed reply that was larger than announced asked for what its compressed form held, and failed after a second.
#[tokio::test(start_paused = true)]
async fn a_reply_that_grows_does_not_wait_for_its_compressed_form() {
    let memory = memory(8 * MIB);
    let compressed = arrived(&memory, 2 * MIB).await.unwrap().freeze();
    let mut inflated = memory.buffer_beside(&compressed, 2 * MIB, soon()).await.unwrap();
    inflated.bytes.resize(2 * MIB, 7);
    let began = Instant::now();
    inflated.reserve(MIB, soon()).await.unwrap();
    assert_eq!((inflated.bytes.len(), began.elapsed()), (2 * MIB, Duration::ZERO));
}

/// A reply that had waited for a second went on without a permit, so there was no bound at all.
#[tokio::test(start_paused = true)]
async fn what_does_not_fit_waits_and_then_fails() {
    let memory = memory(8 * MIB);
    let held = arrived(&memory, 7 * MIB + MIB / 2).await.unwrap().freeze();
    let began = Instant::now();
    assert_eq!(arrived(&memory, 5 * MIB).await.err(), Some(Fault::NoMemory));
    assert_eq!(began.elapsed(), Duration::from_secs(5), "it waits as long as it may");
    assert_eq!(buffer(&memory, 80 * MIB).err(), Some(Fault::LargerThanMemory), "and not for what cannot be");
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    let waiting = tokio::spawn({
        let memory = memory.clone();
        async move { arrived(&memory, 5 * MIB).await.is_ok() }
    });
    tokio::task::yield_now().await;
    drop(held);
    assert!(waiting.await.unwrap(), "it gets what others give back");
    assert_eq!(memory.shared.used_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_endpoint_leaves_half_to_the_others() {
    let shared = ReplyBuffers::new(8 * MIB);
    let (greedy, other) = (shared.for_endpoint(3), shared.for_endpoint(3));
    let _held = arrived(&greedy, 3 * MIB).await.unwrap();
    assert!(arrived(&greedy, 3 * MIB).await.is_err());
    assert!(arrived(&other, 3 * MIB).await.is_ok());
}

/// Reads a reply of unknown length in pieces of 10,000 bytes.
async fn grow_to(memory: &EndpointMemory, bytes: usize) -> Result<Buffer, Fault> {
    let mut growing = buffer(memory, 0)?;
    while growing.bytes.len() < bytes {
        let piece = 10_000.min(bytes - growing.bytes.len());
        growing.reserve(piece, soon()).await?;
        growing.bytes.resize(growing.bytes.len() + piece, 7);
    }
    Ok(growing)
}

/// A reply of known length had 8/9 of what its node may use, and one of unknown length between a third and two thirds;
/// where it ended, it waited for memory that it had itself.
#[tokio::test(start_paused = true)]
async fn a_reply_may_use_the_share_of_its_node_or_half_of_it_if_its_length_is_unknown() {
    for mib in 1..=20 {
        let shared = ReplyBuffers::new(2 * mib * MIB);
        let (memory, began) = (shared.for_endpoint(2), Instant::now());
        assert!(arrived(&memory, mib * MIB).await.is_ok());
        assert_eq!(buffer(&memory, mib * MIB + 1).err(), Some(Fault::LargerThanMemory));
        let grown = grow_to(&memory, mib * MIB / 2).await.unwrap();
        assert!(grown.bytes.iter().all(|byte| *byte == 7) && shared.used_bytes() <= mib * MIB);
        drop(grown);
        assert_eq!(grow_to(&memory, mib * MIB).await.err(), Some(Fault::LargerThanMemory));
        assert_eq!((began.elapsed(), shared.used_bytes()), (Duration::ZERO, 0));
    }
}

/// Copying 32 MiB takes ten milliseconds, in which nobody else on the thread was served.
#[tokio::test(start_paused = true)]
async fn others_get_their_turn_while_a_growing_reply_is_copied() {
    let memory = memory(64 * MIB);
    let mut growing = arrived(&memory, 8 * MIB).await.unwrap();
    growing.bytes.resize(growing.bytes.capacity(), 7);
    let turns = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&turns);
    let other = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    growing.reserve(1, soon()).await.unwrap();
    other.abort();
    let turns = turns.load(std::sync::atomic::Ordering::Relaxed);
    assert!(turns >= 8 * MIB / COPIED_AT_ONCE_BYTES - 1, "{turns} turns");
}

#[tokio::test(start_paused = true)]
async fn growing_keeps_the_bytes_and_gives_back_what_was_outgrown() {
    let memory = memory(16 * MIB);
    let mut growing = buffer(&memory, 5).unwrap();
    for part in 0..400_u32 {
        growing.reserve(9_000, soon()).await.unwrap();
        growing.bytes.extend_from_slice(&[part as u8; 9_000]);
    }
    let parts: Vec<u8> = growing.bytes.chunks(9_000).map(|part| part[8_999]).collect();
    assert_eq!(parts, (0..400_u32).map(|part| part as u8).collect::<Vec<_>>());
    drop(growing);
    assert_eq!(memory.shared.used_bytes(), 0);
    assert!(memory.shared.spare.lock().bytes <= SPARE_BYTES_MAX);
}

/// Replies that all have something and want more would wait for each other until their time is over.
#[tokio::test(start_paused = true)]
async fn growing_replies_do_not_wait_for_each_other_for_long() {
    let memory = memory(8 * MIB);
    let began = Instant::now();
    let grow = |memory: EndpointMemory| async move {
        let mut growing = arrived(&memory, 3 * MIB).await?;
        tokio::task::yield_now().await;
        growing.reserve(3 * MIB, soon()).await
    };
    let (one, other) = tokio::join!(grow(memory.clone()), grow(memory.clone()));
    assert!(one.is_err() || other.is_err());
    assert!(began.elapsed() <= GROWTH_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn what_is_handed_over_is_not_counted_any_more() {
    let memory = memory(8 * MIB);
    let buffer = || async { arrived(&memory, 4 * MIB).await.unwrap().freeze() };
    let large = buffer().await;
    let result = memory.shared.hand_over(large.slice(10..));
    assert_eq!((result.len(), memory.shared.used_bytes()), (4 * MIB - 10, 0));
    let whole = buffer().await;
    let part = memory.shared.hand_over(whole.slice(100..5_000));
    assert!(memory.shared.used_bytes() > 0, "a part is copied");
    drop(whole);
    assert_eq!((part.len(), memory.shared.used_bytes()), (4_900, 0));
    drop((large, result));
    assert!(memory.shared.counted.lock().is_empty());
    assert_eq!(memory.shared.hand_over(Bytes::from(vec![1; 9_000])), vec![1; 9_000]);
}
