//! Blocks below the window: all nodes are asked, and what they say is counted.

use std::time::Duration;

use alloy_primitives::B256;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep, timeout_at};

use super::{Pool, PoolNode};
use crate::attempt::Failed;
use crate::call::{BlockId, Call, Class, Fault, Needs, Reply};
use crate::check::{Expect, Verdict, check};
use crate::health::Grade;
use crate::view::Canon;

/// When a block is asked of all nodes, how long the others have once the first has answered.
const STRAGGLER_PATIENCE: Duration = Duration::from_secs(2);

/// A node that could not say is asked once more, after this.
const ASKED_AGAIN_AFTER: Duration = Duration::from_millis(200);

impl Pool {
    /// Asks which block has a number below the window. What the nodes do not agree on is not learned.
    pub async fn learn_number(&self, canon: &Canon, number: u64, deadline: Instant) -> Result<(), Failed> {
        let params = Bytes::from(format!("[\"{number:#x}\",false]"));
        let found = self.agree("eth_getBlockByNumber", params, None, Some(number), deadline).await?;
        match found {
            Agreed::Surely(Some(block)) => canon.learn(block),
            Agreed::ForNow(Some(block)) => canon.hear(block),
            Agreed::Surely(None) | Agreed::ForNow(None) => {}
        }
        Ok(())
    }

    /// Asks for the block of a hash. It is learned only if it turns out to be canonical.
    pub async fn learn_hash(&self, canon: &Canon, hash: B256, deadline: Instant) -> Result<(), Failed> {
        let params = Bytes::from(format!("[\"{hash}\",false]"));
        let (Agreed::Surely(block) | Agreed::ForNow(block)) =
            self.agree("eth_getBlockByHash", params, Some(hash), None, deadline).await?;
        let Some(block) = block else { return Ok(()) };
        if block.number < canon.lowest() && !canon.is_sure_of(block.number) {
            self.learn_number(canon, block.number, deadline).await?;
        }
        Ok(())
    }

    /// The block that the nodes agree on; none when they agree that there is none.
    async fn agree(
        &self,
        method: &'static str,
        params: Bytes,
        hash: Option<B256>,
        number: Option<u64>,
        deadline: Instant,
    ) -> Result<Agreed, Failed> {
        let call = Call { method, params, class: Class::Quick, needs: Needs::default(), may_hedge: false };
        let expect = Expect::Block { hash, number, full: false };
        let everyone_is_down = self.is_out();
        let ask = |node| {
            let reply = ask_twice(node, &call, deadline);
            let counts = everyone_is_down || node.grade(Instant::now()) != Grade::Down;
            async move { (node, counts, reply.await) }
        };
        // All at once, or one that hangs would take the time of all others. Those that are down too: one may be back.
        let mut replies: FuturesUnordered<_> = self.of_this_chain().map(|node| ask(&**node)).collect();
        let voters = if everyone_is_down { replies.len() } else { self.members().count() };
        let mut tally = Tally::new(self.view.quorum_of(voters));
        let quorum_of_all = self.view.quorum_of(replies.len());
        let mut patience = deadline;
        while let Ok(Some((node, counts, reply))) = timeout_at(patience, replies.next()).await {
            let Ok(Reply::Result(result)) = reply else { continue };
            patience = patience.min(Instant::now() + STRAGGLER_PATIENCE);
            let block = match check(&expect, &result, self.family) {
                // The hash proves the block, so one node that has it is enough.
                Verdict::Sound(facts) if hash.is_some() => return Ok(Agreed::Surely(facts.block)),
                Verdict::Sound(facts) => facts.block,
                // There is a block of every number below the head: this node has dropped it.
                Verdict::Null if number.is_some() => continue,
                // However many do not have it: one may.
                Verdict::Null => {
                    tally.add(None, false);
                    continue;
                }
                _ => {
                    node.bad(Fault::Wrong, Instant::now());
                    continue;
                }
            };
            if tally.add(block, counts) {
                let surely = tally.votes(block) >= quorum_of_all;
                return Ok(if surely { Agreed::Surely(block) } else { Agreed::ForNow(block) });
            }
        }
        tally.undisputed().map(Agreed::ForNow).ok_or(Failed::Out { tried: 0, lack: None })
    }
}

/// What the nodes say of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agreed {
    /// A quorum of all nodes says so.
    Surely(Option<BlockId>),
    /// Those who could say anything say so, and they are fewer.
    ForNow(Option<BlockId>),
}

/// A moment's trouble must not leave the word to others.
async fn ask_twice(node: &PoolNode, call: &Call, deadline: Instant) -> Result<Reply, Fault> {
    match node.ask(call, deadline).await {
        Ok(Reply::Error(_)) | Err(Fault::Status(_) | Fault::RateLimited | Fault::Garbled | Fault::Closed) => {
            sleep(ASKED_AGAIN_AFTER).await;
            node.ask(call, deadline).await
        }
        reply => reply,
    }
}

/// Who says what about one block.
#[derive(Debug)]
struct Tally {
    quorum: usize,
    /// What was said, and how many said it whose word counts.
    said: Vec<(Option<BlockId>, usize)>,
}

impl Tally {
    fn new(quorum: usize) -> Self {
        Self { quorum, said: Vec::new() }
    }

    /// Adds a word; says whether that makes a quorum. One that is down is heard, but makes none.
    fn add(&mut self, block: Option<BlockId>, counts: bool) -> bool {
        let place = self.said.iter().position(|(said, _)| *said == block).unwrap_or_else(|| {
            self.said.push((block, 0));
            self.said.len() - 1
        });
        self.said[place].1 += usize::from(counts);
        self.said[place].1 >= self.quorum
    }

    fn votes(&self, block: Option<BlockId>) -> usize {
        self.said.iter().find(|(said, _)| *said == block).map_or(0, |(_, votes)| *votes)
    }

    /// What all say who could say anything. Where two say different things without a quorum, nobody knows who is right.
    fn undisputed(&self) -> Option<Option<BlockId>> {
        match self.said[..] {
            [(block, _)] => Some(block),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(hash: u8) -> Option<BlockId> {
        Some(BlockId { number: 7, hash: B256::repeat_byte(hash) })
    }

    #[test]
    fn a_quorum_settles_it_whatever_others_say() {
        let mut tally = Tally::new(2);
        assert_eq!([1, 2, 1].map(|hash| tally.add(block(hash), true)), [false, false, true]);
    }

    #[test]
    fn what_nobody_disputes_needs_no_quorum() {
        let mut tally = Tally::new(2);
        assert_eq!(tally.undisputed(), None, "nobody has said anything");
        assert!(!tally.add(block(1), true));
        assert_eq!(tally.undisputed(), Some(block(1)));
    }

    #[test]
    fn two_opinions_without_a_quorum_are_none() {
        let mut tally = Tally::new(3);
        assert!(![1, 1, 2].into_iter().any(|hash| tally.add(block(hash), true)));
        assert_eq!(tally.undisputed(), None);
    }

    #[test]
    fn one_that_is_down_makes_no_quorum_and_may_dispute() {
        let mut tally = Tally::new(1);
        assert!(!tally.add(block(1), false));
        assert_eq!(tally.undisputed(), Some(block(1)), "one that is back");
        let mut tally = Tally::new(2);
        assert!(!tally.add(block(1), true) && !tally.add(block(2), false));
        assert_eq!(tally.undisputed(), None);
    }
}
