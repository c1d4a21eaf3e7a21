use bytes::Bytes;
use futures_util::FutureExt;
use proptest::prelude::*;
use tokio::sync::oneshot;

use super::super::buffer::ReplyBuffers;
use super::super::limits::EndpointLimits;
use super::*;
use crate::call::{Class, Needs, RpcCall, RpcReply};
use crate::transport::Endpoint;

/// One step of the simulation. A number chooses among what there is, counted around.
#[derive(Clone, Copy, Debug)]
enum QueueEvent {
    Push(usize),
    Abandon(usize),
    /// A task that has no exchange under way looks for calls.
    Look(usize),
    /// A task without a connection cannot make one.
    FailToConnect(usize),
    EndExchange {
        task: usize,
        is_connection_kept: bool,
    },
}

fn step() -> impl Strategy<Value = QueueEvent> {
    prop_oneof![
        6 => (0..4_usize).prop_map(QueueEvent::Push),
        1 => (0..100_usize).prop_map(QueueEvent::Abandon),
        3 => (0..100_usize).prop_map(QueueEvent::Look),
        1 => (0..100_usize).prop_map(QueueEvent::FailToConnect),
        3 => (0..100_usize, any::<bool>())
            .prop_map(|(task, is_connection_kept)| QueueEvent::EndExchange { task, is_connection_kept }),
    ]
}

#[derive(Default)]
struct Task {
    wake: Arc<Notify>,
    /// The account of the exchange under way.
    exchange: Option<AccountId>,
    is_idle: bool,
    is_woken: bool,
    is_connected: bool,
}

/// A queue with simulated connection tasks.
struct Simulation {
    queue: CallQueue,
    accounts: [AccountId; 4],
    tasks: Vec<Task>,
    callers: Vec<oneshot::Receiver<Result<RpcReply, Fault>>>,
    /// Whether a task could not connect. Its calls then wait for the connections that there are.
    has_failed_to_connect: bool,
}

impl Simulation {
    fn new() -> Self {
        let limits = EndpointLimits {
            connections_max: 5,
            near_connections_max: 5,
            near: Duration::from_millis(10),
            queue_calls_max: 12,
            ..EndpointLimits::default()
        };
        let endpoint = Endpoint::parse("http://127.0.0.1:1").unwrap();
        let memory = ReplyBuffers::new(1 << 20).for_endpoint(1);
        let setup = Arc::new(EndpointSetup::new(endpoint, limits, None, memory));
        Self {
            queue: CallQueue::new(setup, QueueKind::Evm),
            accounts: std::array::from_fn(|_| AccountId::unique()),
            tasks: Vec::new(),
            callers: Vec::new(),
            has_failed_to_connect: false,
        }
    }

    fn push(&mut self, account: usize) {
        let (class, needs, account) = (Class::Evm, Needs::default(), self.accounts[account]);
        let call = RpcCall {
            method: "m",
            params: Bytes::new(),
            class,
            needs,
            may_hedge: false,
            account,
            block_by_hash: None,
            trace: None,
        };
        let (call, reply) = PendingCall::new(&call, Instant::now() + Duration::from_secs(60));
        if let Ok(is_task_needed) = self.queue.push(call) {
            self.callers.push(reply);
            self.tasks.extend(is_task_needed.then(Task::default));
        }
    }

    /// Lets a task look for calls. Returns whether there was something for it to do.
    fn look(&mut self, task: usize) -> bool {
        let task = &mut self.tasks[task];
        task.is_woken |= task.is_idle && task.wake.notified().now_or_never().is_some();
        if task.exchange.is_some() || task.is_idle && !task.is_woken {
            return false;
        }
        task.is_connected = true;
        let reason = if task.is_woken { WakeReason::Woken } else { WakeReason::Free };
        (task.is_idle, task.is_woken) = (false, false);
        let mut calls = Vec::new();
        match self.queue.next_step(&mut calls, &task.wake, reason) {
            NextStep::Send { account, is_task_needed, .. } => {
                assert!(!calls.is_empty() && calls.iter().all(|call| call.account == account));
                task.exchange = Some(account);
                self.tasks.extend(is_task_needed.then(Task::default));
            }
            NextStep::Idle => task.is_idle = true,
            NextStep::Stop => unreachable!("the queue is not closed"),
        }
        true
    }

    fn fail_to_connect(&mut self, task: usize) {
        let is_other_connected =
            self.tasks.iter().enumerate().any(|(other, state)| other != task && state.is_connected);
        let Task { exchange, is_idle, is_connected, .. } = self.tasks[task];
        if exchange.is_some() || is_idle || is_connected {
            return;
        }
        self.tasks.remove(task);
        self.has_failed_to_connect = true;
        self.queue.counters.connections_open.store(usize::from(is_other_connected), Relaxed);
        self.queue.record_unreachable(Fault::Connect);
    }

    fn end_exchange(&mut self, task: usize, is_connection_kept: bool) {
        let Some(account) = self.tasks[task].exchange.take() else { return };
        self.queue.end_exchange(account, Duration::from_millis(5), 100);
        if !is_connection_kept {
            self.tasks[task].is_connected = false;
            if !self.queue.is_connection_needed() {
                self.tasks.remove(task);
            }
        } else {
            self.look(task);
        }
    }

    fn run(&mut self, step: QueueEvent) {
        let tasks = self.tasks.len();
        match step {
            QueueEvent::Push(account) => self.push(account),
            QueueEvent::Abandon(caller) if !self.callers.is_empty() => {
                self.callers.swap_remove(caller % self.callers.len());
            }
            QueueEvent::Look(task) if tasks > 0 => _ = self.look(task % tasks),
            QueueEvent::FailToConnect(task) if tasks > 0 => self.fail_to_connect(task % tasks),
            QueueEvent::EndExchange { task, is_connection_kept } if tasks > 0 => {
                self.end_exchange(task % tasks, is_connection_kept);
            }
            QueueEvent::Abandon(_)
            | QueueEvent::Look(_)
            | QueueEvent::FailToConnect(_)
            | QueueEvent::EndExchange { .. } => {}
        }
    }

    /// Lets all tasks look for calls until none has anything to do.
    fn settle(&mut self) {
        while (0..self.tasks.len()).any(|task| self.look(task)) {}
    }
}

proptest! {
    /// Whatever happens, no call is left alone that could be sent: a task looks for it, or all connections are in use.
    #[test]
    fn no_call_is_forgotten(steps in proptest::collection::vec(step(), 0..150)) {
        let mut simulation = Simulation::new();
        for step in steps {
            simulation.run(step);
            let running = simulation.tasks.iter().filter(|task| task.exchange.is_some()).count();
            for account in simulation.accounts {
                let of_account = |task: &&Task| task.exchange == Some(account);
                prop_assert!(simulation.tasks.iter().filter(of_account).count() <= 3);
            }
            prop_assert!(running <= 5 && simulation.tasks.len() <= 5);
        }
        simulation.settle();
        let can_start = simulation.queue.state.lock().calls.can_start();
        prop_assert!(!can_start || simulation.has_failed_to_connect);
        while simulation.tasks.iter().any(|task| task.exchange.is_some()) {
            (0..simulation.tasks.len()).for_each(|task| simulation.end_exchange(task, true));
            simulation.settle();
        }
        prop_assert_eq!(simulation.queue.state.lock().calls.waiting(), 0);
    }
}
