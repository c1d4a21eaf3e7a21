//! Tests.
pub mod http;
