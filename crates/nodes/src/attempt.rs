//! One call over several nodes.
//!
//! | what comes                           | it says about the node | and then                                         |
//! |--------------------------------------|------------------------|--------------------------------------------------|
//! | a result that is believed            | good                   | done                                             |
//! | a result that another may know better| good                   | kept as the fallback; another that has the block |
//! | a null where we know of something    | good                   | another                                          |
//! | a result that cannot be true         | a lie                  | another                                          |
//! | an error of the caller's own         | good                   | done, with that error                            |
//! | "not here"                           | good, and it is learned| another                                          |
//! | "too wide a range"                   | good, and it is learned| another; when none is left, the widest range     |
//! | "too many results"                   | good                   | another; when a second says so, done with that   |
//! | an error that a caller may have made | nothing                | another                                          |
//! | an error of the node's own, a fault  | bad                    | another                                          |
//! | nothing, for longer than is usual    | nothing yet            | another too, within the hedge budget             |
//! | nothing, for much longer             | mildly bad             | another too, within the retry budget; a fallback |
//! |                                      |                        | is not kept back for a silent node               |
//! | the deadline                         | mildly bad             | the fallback, or none                            |
//!
//! "Another" is within the retry budget, which counts what was asked in vain. A call that it refuses waits: for as long as
//! it has time if someone is well, and for a moment if all who are left seem to be down. When all were tried and some
//! failed or lied, those are tried once more. The first answer that is believed wins, and whoever is still at it is dropped.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};

use crate::budget::Budgets;
use crate::call::{Ask, Call, Fault, Reply, RpcError};
use crate::node::{Lack, Node};

mod meaning;
mod race;

#[cfg(test)]
pub(crate) mod script;
#[cfg(test)]
mod tests;

pub(crate) use meaning::read;
pub use meaning::{CallerError, Meaning, RangeLimit};
pub use race::NODES_MAX;
pub(crate) use race::ROUNDS_MAX;
use race::{Event, Race};

/// What a result is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    Believed,
    /// A null or empty result that another node may know better. Data always wins over it.
    Doubtful,
    /// A null where there is something, as the view knows: the node is late, or has lost it. No answer at all.
    Late,
    /// It cannot be true, and why. The words are for the log.
    Wrong(&'static str),
    /// It could not be checked, because no thread was free. That is not the node's fault.
    Unchecked,
}

/// A judgement, or the work that leads to one on another thread, for results that take long to check.
pub enum Judging<'j> {
    Done(Judgement),
    Elsewhere(Pin<Box<dyn Future<Output = Judgement> + Send + 'j>>),
}

impl fmt::Debug for Judging<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(judgement) => write!(out, "Done({judgement:?})"),
            Self::Elsewhere(_) => out.write_str("Elsewhere"),
        }
    }
}

impl From<Judgement> for Judging<'_> {
    fn from(judgement: Judgement) -> Self {
        Self::Done(judgement)
    }
}

pub type Judge<'a, 'j, A> = &'a (dyn Fn(&Node<A>, &Bytes) -> Judging<'j> + Sync);

/// What all calls of one pool have in common.
#[derive(Debug)]
pub struct Rules {
    pub budgets: Budgets,
    pub dice: Dice,
    /// What a node means by an error.
    pub read: fn(&RpcError, &Call) -> Meaning,
    /// How often all nodes are tried.
    pub rounds_max: u32,
}

/// What came of a call, as far as it was answered.
#[derive(Debug)]
pub struct Answered<A> {
    pub said: Said,
    pub node: Arc<Node<A>>,
    /// How many times a node was asked.
    pub tried: u32,
    /// False if it is a doubtful result that no other node could better.
    pub sure: bool,
    /// Whether every node of this chain was asked, and none had anything to say.
    pub nowhere: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Result(Bytes),
    /// The caller's own error.
    Error(CallerError),
    /// The call must be split before it is asked again.
    Limit(RangeLimit),
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// All who could be asked failed, or there are none. `lack` says so if none of them has what the call needs:
    /// then asking later will not help either.
    #[error("no node could answer ({tried} attempts)")]
    Out { tried: u32, lack: Option<Lack> },
    #[error("no answer before the deadline ({tried} attempts)")]
    Deadline { tried: u32 },
    #[error("an answer could not be checked in time ({tried} attempts)")]
    Unchecked { tried: u32 },
}

/// Asks nodes until one answers.
pub async fn ask<A: Ask>(
    nodes: &[Arc<Node<A>>],
    call: &Call,
    judge: Judge<'_, '_, A>,
    rules: &Rules,
    deadline: Instant,
) -> Result<Answered<A>, Failed> {
    let now = Instant::now();
    if now >= deadline {
        return Err(Failed::Deadline { tried: 0 });
    }
    let mut race = Race::new(nodes, call, rules, deadline);
    race.begin(now);
    while race.is_on() {
        match race.next().await {
            Event::Replied(by, reply) => match settle(&mut race, by, reply, judge).await {
                Next::Done(said) => return Ok(race.won(by, said)),
                Next::Another => race.ask_another(),
                Next::Unchecked => return race.end(|tried| Failed::Unchecked { tried }),
            },
            Event::Slow(runner) => race.hedge(runner),
            Event::Overdue(runner) => race.replace(runner),
            Event::BudgetMayBeBack => race.ask_another(),
            Event::Deadline => return race.end(|tried| Failed::Deadline { tried }),
        }
    }
    let lack = race.lack();
    race.grant_narrower_range();
    race.end(|tried| Failed::Out { tried, lack })
}

enum Next {
    Done(Said),
    Another,
    Unchecked,
}

/// What follows from a reply: for the node's health, for what is known of it, and for the call.
async fn settle<A: Ask>(
    race: &mut Race<'_, A>,
    by: race::By,
    reply: Result<Reply, Fault>,
    judge: Judge<'_, '_, A>,
) -> Next {
    let node = race.node(by);
    match reply {
        Ok(Reply::Result(result)) => weigh(race, by, result, judge).await,
        Ok(Reply::Error(error)) => match (race.rules.read)(&error, race.call) {
            Meaning::Node(fault) => {
                node.bad(fault, Instant::now());
                race.failed(by);
                Next::Another
            }
            Meaning::Unclear => {
                race.failed(by);
                Next::Another
            }
            Meaning::Caller(error) => {
                node.good(Instant::now());
                Next::Done(Said::Error(error))
            }
            Meaning::NotHere(lack) => {
                node.good(Instant::now());
                node.known().learn(lack, race.call.method, race.call.needs.block);
                race.lacks(lack);
                Next::Another
            }
            Meaning::Limit(limit) => {
                node.good(Instant::now());
                limit.blocks.into_iter().for_each(|blocks| node.known().narrow_log_range(blocks));
                race.limited(by, limit).map_or(Next::Another, |limit| Next::Done(Said::Limit(limit)))
            }
        },
        // The node has taken note of it.
        Err(_) => {
            race.failed(by);
            Next::Another
        }
    }
}

async fn weigh<A: Ask>(race: &mut Race<'_, A>, by: race::By, result: Bytes, judge: Judge<'_, '_, A>) -> Next {
    let node = race.node(by);
    let judgement = match judge(node, &result) {
        Judging::Done(judgement) => judgement,
        Judging::Elsewhere(work) => timeout_at(race.deadline(), work).await.unwrap_or(Judgement::Unchecked),
    };
    match judgement {
        Judgement::Believed => {
            node.good(Instant::now());
            Next::Done(Said::Result(result))
        }
        Judgement::Doubtful => {
            node.good(Instant::now());
            race.keep(by, result);
            Next::Another
        }
        Judgement::Late => {
            node.good(Instant::now());
            race.late(by);
            Next::Another
        }
        Judgement::Wrong(reason) => {
            tracing::warn!(node = node.name(), method = race.call.method, reason, "a node's answer is wrong");
            node.bad(Fault::Wrong, Instant::now());
            race.failed(by);
            Next::Another
        }
        Judgement::Unchecked => Next::Unchecked,
    }
}

/// Random numbers that a test can know beforehand (splitmix64). They choose nodes, and protect nothing.
#[derive(Debug)]
pub struct Dice(AtomicU64);

impl Dice {
    pub fn seeded(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    pub fn roll(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let z = self.0.fetch_add(STEP, Relaxed).wrapping_add(STEP);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
