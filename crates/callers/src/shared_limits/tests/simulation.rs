//! Instances, callers and a network with faults, in virtual time, around a [`ModelRedis`].

use std::collections::BTreeMap;

use resources::MonoTime;

use super::super::exchange::{self, ScriptItem};
use super::super::redis_link::ScriptReply;
use super::model_redis::{ModelRedis, ModelReport};
use crate::limit_share::SharingState;
use crate::limit_state::{LimitState, RateReport};
use crate::policy::{REDIS_ANSWER_MAX, REDIS_READY_MAX};

pub(super) const STEP_MS: u64 = 5;
const EXCHANGE_MS: u64 = 205;
/// The start of a gateway waits a moment for Redis.
const READY_MAX_MS: u64 = REDIS_READY_MAX.as_millis() as u64;
const ANSWER_MAX_MS: u64 = REDIS_ANSWER_MAX.as_millis() as u64;
const FAILED_IN_A_ROW_MAX: usize = 1;
pub(super) const PRICE: u64 = 80;

/// The faults of one exchange.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NetworkFault {
    pub(super) out_ms: u64,
    pub(super) back_ms: u64,
    pub(super) is_lost: bool,
    pub(super) is_reply_lost: bool,
}

impl NetworkFault {
    fn is_failure(&self) -> bool {
        self.is_lost || self.is_reply_lost || self.out_ms + self.back_ms >= ANSWER_MAX_MS
    }
}

/// When Redis cannot be reached, and whether it forgets what it knew.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outage {
    pub(super) from_ms: u64,
    pub(super) to_ms: u64,
    pub(super) forgets: bool,
}

/// One simulated deployment with a single limit.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) per_second: u64,
    /// For each instance: when it starts, and the credits per second that callers ask for, by second.
    pub(super) instances: Vec<(u64, Vec<u64>)>,
    /// Used in turn.
    pub(super) faults: Vec<NetworkFault>,
    pub(super) outages: Vec<Outage>,
}

#[derive(Debug)]
struct Instance {
    name: String,
    starts_ms: u64,
    /// When it begins to serve callers.
    serves_ms: u64,
    demands: Vec<u64>,
    asked: u64,
    state: LimitState,
    others: SharingState,
    has_failed: bool,
    sequence: u64,
    next_exchange_ms: u64,
    exchange: Option<Exchange>,
    failed_in_a_row: usize,
}

#[derive(Clone, Debug)]
struct Exchange {
    sent_ms: u64,
    report: Option<RateReport>,
    reply: Option<DelayedReply>,
}

#[derive(Clone, Debug)]
struct DelayedReply {
    at_ms: u64,
    reply: ScriptReply,
}

/// A report on its way to Redis.
#[derive(Debug)]
struct Message {
    at_ms: u64,
    from: usize,
    report: ModelReport,
    items: Vec<ScriptItem>,
    fault: NetworkFault,
}

/// The credits that were granted, by step.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) granted: Vec<u64>,
    /// The largest sum of the rates of all instances that Redis has told one, or that know that it is gone.
    pub(super) rates_max: u64,
    /// Whether an instance granted anything, by instance and second.
    pub(super) served: Vec<BTreeMap<u64, u64>>,
}

impl Outcome {
    pub(super) fn granted_between(&self, from_ms: u64, to_ms: u64) -> u64 {
        let index = |ms: u64| usize::try_from(ms / STEP_MS).unwrap();
        self.granted[index(from_ms)..index(to_ms)].iter().sum()
    }
}

pub(super) struct Simulation {
    scenario: Scenario,
    redis: ModelRedis,
    instances: Vec<Instance>,
    messages: Vec<Message>,
    exchanges: usize,
    outcome: Outcome,
}

impl Simulation {
    pub(super) fn run(scenario: Scenario, duration_ms: u64) -> Outcome {
        let instances = scenario.instances.iter().enumerate().map(|(index, (starts_ms, demands))| {
            let mut state = LimitState::default();
            state.set_limits(Some(scenario.per_second), None, MonoTime::default());
            state.share_as("limit");
            Instance {
                name: format!("instance-{index}"),
                starts_ms: *starts_ms,
                serves_ms: *starts_ms + READY_MAX_MS,
                demands: demands.clone(),
                asked: 0,
                state,
                others: SharingState::default(),
                has_failed: false,
                sequence: 0,
                next_exchange_ms: *starts_ms,
                exchange: None,
                failed_in_a_row: 0,
            }
        });
        let instances: Vec<Instance> = instances.collect();
        let outcome = Outcome { served: vec![BTreeMap::new(); instances.len()], ..Outcome::default() };
        let redis = ModelRedis::default();
        let mut simulation = Self { scenario, redis, instances, messages: Vec::new(), exchanges: 0, outcome };
        for now_ms in (0..duration_ms).step_by(STEP_MS as usize) {
            simulation.step(now_ms);
        }
        simulation.outcome
    }

    fn step(&mut self, now_ms: u64) {
        if self
            .scenario
            .outages
            .iter()
            .any(|outage| outage.forgets && outage.from_ms / STEP_MS == now_ms / STEP_MS)
        {
            // A server that has lost its memory was started again, and with it all connections.
            self.redis = ModelRedis::default();
            self.messages.clear();
        }
        self.deliver(now_ms);
        self.outcome.granted.push(0);
        for index in 0..self.instances.len() {
            if self.instances[index].starts_ms <= now_ms {
                self.receive(index, now_ms);
                self.call(index, now_ms);
                self.send(index, now_ms);
            }
        }
        let rates = self.instances.iter().filter(|instance| instance.starts_ms <= now_ms).map(|instance| {
            let is_told = |has_joined| has_joined || instance.has_failed && !instance.others.is_connected;
            instance
                .state
                .rate_in_use()
                .map_or(0, |(rate, has_joined)| if is_told(has_joined) { rate } else { 0 })
        });
        self.outcome.rates_max = self.outcome.rates_max.max(rates.sum());
    }

    fn is_down(&self, now_ms: u64) -> bool {
        self.scenario.outages.iter().any(|outage| (outage.from_ms..outage.to_ms).contains(&now_ms))
    }

    /// Redis executes what has arrived.
    fn deliver(&mut self, now_ms: u64) {
        let (due, later) =
            std::mem::take(&mut self.messages).into_iter().partition(|message| message.at_ms <= now_ms);
        self.messages = later;
        let due: Vec<Message> = due;
        for mut message in due {
            if self.is_down(now_ms) {
                continue;
            }
            message.report.now = 1_000_000 + now_ms;
            let reply = self.redis.divide(&message.report, &message.items);
            let instance = &mut self.instances[message.from];
            if let Some(exchange) = &mut instance.exchange
                && message.report.sequence == instance.sequence
                && !message.fault.is_reply_lost
            {
                exchange.reply = Some(DelayedReply { at_ms: now_ms + message.fault.back_ms, reply });
            }
        }
    }

    fn receive(&mut self, index: usize, now_ms: u64) {
        let instance = &mut self.instances[index];
        let Some(exchange) = instance.exchange.clone() else { return };
        let now = MonoTime(now_ms * 1_000_000);
        if let Some(DelayedReply { at_ms, reply }) = exchange.reply
            && at_ms <= now_ms
        {
            if reply.is_settled {
                instance.serves_ms = instance.serves_ms.min(now_ms);
            }
            instance.others =
                SharingState { is_connected: true, is_settled: reply.is_settled, instances: reply.instances };
            if let (Some(report), Some(&Some(rate))) = (exchange.report, reply.rates.first())
                && !report.is_leaving
            {
                instance.state.apply(rate, now);
            }
        } else if now_ms - exchange.sent_ms >= ANSWER_MAX_MS {
            (instance.others.is_connected, instance.has_failed) = (false, true);
            instance.serves_ms = instance.serves_ms.min(now_ms);
            instance.state.lose_redis(instance.others, now);
        } else {
            return;
        }
        instance.exchange = None;
        instance.next_exchange_ms = now_ms + EXCHANGE_MS;
    }

    fn call(&mut self, index: usize, now_ms: u64) {
        let instance = &mut self.instances[index];
        if now_ms < instance.serves_ms {
            return;
        }
        let second = usize::try_from(now_ms / 1_000).unwrap();
        let now = MonoTime(now_ms * 1_000_000);
        instance.asked += instance.demands[second % instance.demands.len()] * STEP_MS;
        while instance.asked >= PRICE * 1_000 {
            instance.asked -= PRICE * 1_000;
            if instance.state.is_to_be_activated() {
                instance.state.activate(instance.others, now);
                instance.next_exchange_ms = now_ms;
            }
            if instance.state.take(now, || 0, PRICE).is_ok() {
                *self.outcome.granted.last_mut().unwrap() += PRICE;
                *self.outcome.served[index].entry(now_ms / 1_000).or_default() += PRICE;
            }
        }
    }

    fn send(&mut self, index: usize, now_ms: u64) {
        let instance = &mut self.instances[index];
        if instance.exchange.is_some() || instance.next_exchange_ms > now_ms {
            return;
        }
        let is_active = !instance.state.is_to_be_activated();
        let report = if is_active {
            instance.state.report(instance.others, MonoTime(now_ms * 1_000_000))
        } else {
            None
        };
        let items = report.iter().map(|report| exchange::item("limit", report)).collect();
        instance.sequence += 1;
        instance.exchange = Some(Exchange { sent_ms: now_ms, report, reply: None });
        let report = ModelReport { instance: instance.name.clone(), sequence: instance.sequence, now: 0 };
        let fault = self.scenario.faults[self.exchanges % self.scenario.faults.len()];
        self.exchanges += 1;
        // An instance that is cut off alone for long is taken for one that has ended.
        let is_good = instance.failed_in_a_row >= FAILED_IN_A_ROW_MAX || !fault.is_failure();
        let fault = if is_good && fault.is_failure() { NetworkFault::default() } else { fault };
        instance.failed_in_a_row = if is_good { 0 } else { instance.failed_in_a_row + 1 };
        if !fault.is_lost {
            let at_ms = now_ms + fault.out_ms;
            self.messages.push(Message { at_ms, from: index, report, items, fault });
        }
    }
}
