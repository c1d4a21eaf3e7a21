//! Foreign providers, within their budgets.
