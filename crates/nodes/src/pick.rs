//! Which node next.
