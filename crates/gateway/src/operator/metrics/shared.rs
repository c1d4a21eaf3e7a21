//! Metrics of limits that other instances use, too.

use callers::SharedLimitsStatus;

use super::one;

pub(super) fn write(out: &mut String, status: SharedLimitsStatus) {
    let SharedLimitsStatus { is_connected, instances, limits_in_use, exchanges, failures } = status;
    let mut metric = |name: &str, kind: &str, help: &str, value: u64| one(out, name, kind, help, value);
    metric(
        "chaingate_shared_limits_connected",
        "gauge",
        "1 while Redis answers, else 0: each instance then keeps its part of each limit.",
        is_connected.into(),
    );
    metric(
        "chaingate_shared_limits_instances",
        "gauge",
        "Instances that share limits over Redis, as far as this one knows; 0 before the first answer.",
        instances,
    );
    metric(
        "chaingate_shared_limits_in_use",
        "gauge",
        "Limits of accounts and keys of which this instance uses a part.",
        limits_in_use,
    );
    metric(
        "chaingate_shared_limits_exchanges_total",
        "counter",
        "Reports about shared limits that Redis has answered.",
        exchanges,
    );
    metric(
        "chaingate_shared_limits_failures_total",
        "counter",
        "Reports about shared limits that Redis has not answered, and connections to it that failed.",
        failures,
    );
}
