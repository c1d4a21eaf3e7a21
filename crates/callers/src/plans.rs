//! Plans and their defaults.

use std::sync::Arc;

use arc_swap::ArcSwap;
use settings::Section;

/// The limits of an account. `None` is no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub name: String,
    pub credits_per_second: Option<u64>,
    pub credits_per_day: Option<u64>,
    pub keys_max: Option<u64>,
    /// Whether a partner may answer for this plan's callers during an outage.
    pub failover: bool,
}

/// All plans: the default ones, changed and extended by the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plans(Vec<Plan>);

/// The plans that are in force. Clones have the same plans, also after a reload.
#[derive(Clone, Debug, Default)]
pub struct CurrentPlans(Arc<ArcSwap<Plans>>);

impl CurrentPlans {
    pub fn now(&self) -> Arc<Plans> {
        self.0.load_full()
    }

    /// Accounts of the store follow when the feed is told.
    pub fn replace(&self, plans: Arc<Plans>) {
        self.0.store(plans);
    }
}

impl From<Plans> for CurrentPlans {
    fn from(plans: Plans) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(plans)))
    }
}

impl Default for Plans {
    fn default() -> Self {
        let plan = |name: &str, second, day, keys_max, failover| Plan {
            name: name.to_owned(),
            credits_per_second: second,
            credits_per_day: day,
            keys_max,
            failover,
        };
        Self(vec![
            plan("core", Some(500), Some(3_000_000), Some(1), false),
            plan("developer", Some(4_000), Some(15_000_000), Some(5), false),
            plan("team", Some(40_000), Some(75_000_000), None, false),
            plan("growth", Some(100_000), Some(250_000_000), None, true),
            plan("custom", None, None, None, true),
        ])
    }
}

impl Plans {
    pub fn named(&self, name: &str) -> Option<&Plan> {
        self.0.iter().find(|plan| plan.name == name)
    }

    /// All plans in the order of the defaults and of the configuration.
    pub fn each(&self) -> impl Iterator<Item = &Plan> {
        self.0.iter()
    }

    /// A plan without limits, or the first one.
    pub(crate) fn least_limited(&self) -> Option<&Plan> {
        let is_unlimited = |plan: &&Plan| {
            plan.keys_max.is_none() && plan.credits_per_second.is_none() && plan.credits_per_day.is_none()
        };
        self.0.iter().find(is_unlimited).or(self.0.first())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|plan| plan.name.as_str())
    }

    /// Reads the `[plans.NAME]` sections. A plan without a default starts without limits.
    pub fn read(section: &mut Section<'_>) -> Self {
        let mut plans = Self::default();
        for name in section.keys() {
            let mut section = section.section(&name);
            let plan = match plans.0.iter_mut().find(|plan| plan.name == name) {
                Some(plan) => plan,
                None => {
                    plans.0.push(Plan {
                        name: name.clone(),
                        credits_per_second: None,
                        credits_per_day: None,
                        keys_max: None,
                        failover: false,
                    });
                    let last = plans.0.len() - 1;
                    &mut plans.0[last]
                }
            };
            plan.credits_per_second = section.limit("credits_per_second", plan.credits_per_second);
            plan.credits_per_day = section.limit("credits_per_day", plan.credits_per_day);
            plan.keys_max = section.limit("keys_max", plan.keys_max);
            plan.failover = section.flag("failover", plan.failover);
        }
        plans
    }
}
