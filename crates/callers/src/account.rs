//! Accounts, with the limits that all keys of an account share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use arc_swap::{ArcSwap, Guard};
use resources::{AccountId, MonoTime, Rest};

use crate::credit_limits::CreditLimits;
use crate::plans::Plan;

/// An account, with the limits that all of its keys share. It lives as long as the process knows the account: a change of plan
/// does not forget what was used.
#[derive(Debug)]
pub struct Account {
    pub id: AccountId,
    pub name: String,
    /// The id in the store; `None` for accounts of the configuration.
    pub stored_id: Option<i64>,
    plan: ArcSwap<Plan>,
    is_suspended: AtomicBool,
    pub credit_limits: CreditLimits,
    pub calls_in_flight: AtomicUsize,
    /// While it lasts, pooled calls of this account are not tried inline; `answers` extends it.
    pub inline_tries_rest: Rest,
}

impl Account {
    pub fn new(name: String, plan: Plan) -> Self {
        let credit_limits = CreditLimits::new(plan.credits_per_second, plan.credits_per_day);
        Self {
            id: AccountId::unique(),
            name,
            stored_id: None,
            plan: ArcSwap::from_pointee(plan),
            is_suspended: AtomicBool::new(false),
            credit_limits,
            calls_in_flight: AtomicUsize::new(0),
            inline_tries_rest: Rest::default(),
        }
    }

    /// An account of the store.
    pub(crate) fn stored(id: i64, name: String, plan: Plan) -> Self {
        Self { stored_id: Some(id), ..Self::new(name, plan) }
    }

    pub fn plan(&self) -> Guard<Arc<Plan>> {
        self.plan.load()
    }

    /// Moves the account to a plan. Credits used in the current second and day stay used.
    pub(crate) fn set_plan(&self, plan: &Plan, now: MonoTime) {
        if **self.plan() == *plan {
            return;
        }
        self.credit_limits.set_limits(plan.credits_per_second, plan.credits_per_day, now);
        self.plan.store(Arc::new(plan.clone()));
    }

    /// Whether no key of the account is accepted.
    pub fn is_suspended(&self) -> bool {
        self.is_suspended.load(Relaxed)
    }

    pub(crate) fn set_suspended(&self, is_suspended: bool) {
        self.is_suspended.store(is_suspended, Relaxed);
    }
}
