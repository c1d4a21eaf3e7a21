//! What connections may take.

use std::time::Duration;

use settings::Section;

use crate::address_set::AddressSet;

/// Bound of the limits on a request's head, which is held in memory while it arrives.
const HEADER_BYTES_BOUND: usize = 16 << 20;

/// The limits of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once. An idle one costs some 10 KB.
    pub connections_max: usize,
    /// Connections at once from one address; a tenth of all, so that no single address shuts out the others.
    pub connections_per_address_max: Option<u64>,
    /// Requests without a valid key from one address; far more than mistakes and far less than a flood.
    pub unauthenticated_per_second_max: Option<u64>,
    /// Addresses without such limits: this machine, where a proxy or a tunnel may speak for many callers.
    pub address_limits_exempt: AddressSet,
    /// How long a new connection may say nothing.
    pub first_byte_timeout: Duration,
    /// How long the head of a request may take, from its first byte to its last.
    pub header_timeout: Duration,
    /// How long the body may take, from the end of the head.
    pub body_timeout: Duration,
    /// Over how long the rate at which a caller reads its replies is measured.
    pub write_timeout: Duration,
    /// Bytes per second that a caller has to read while a reply waits for it. Slower readers are disconnected: they hold
    /// the memory of their reply (slow-read attack). About the slowest mobile connection.
    pub read_rate_min_bytes: u64,
    /// How long a connection may idle between requests; above the 60 s of common load balancers.
    pub keep_alive_timeout: Duration,
    /// Requests on one connection, so that load balancers spread again now and then.
    pub requests_per_connection_max: u64,
    /// Bytes of a request's head.
    pub header_bytes_max: usize,
    /// Headers of a request.
    pub headers_max: usize,
    /// Requests at once on one HTTP/2 connection.
    pub h2_streams_max: u32,
    /// How long callers are still let in after the signal to stop, so that load balancers can notice that `/ready` says no.
    pub drain_delay: Duration,
    /// How long running answers may take after that.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            connections_per_address_max: Some(1_000),
            unauthenticated_per_second_max: Some(100),
            address_limits_exempt: AddressSet::loopback(),
            first_byte_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(15),
            read_rate_min_bytes: 4 << 10,
            keep_alive_timeout: Duration::from_secs(75),
            requests_per_connection_max: 1_000_000,
            header_bytes_max: 16 << 10,
            headers_max: 100,
            h2_streams_max: 100,
            drain_delay: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(30),
        }
    }
}

impl Limits {
    pub fn read(section: &mut Section<'_>) -> Self {
        let usual = Self::default();
        Self {
            connections_max: section.size("connections_max", usual.connections_max),
            connections_per_address_max: section
                .limit("connections_per_address_max", usual.connections_per_address_max),
            unauthenticated_per_second_max: section
                .limit("unauthenticated_per_second_max", usual.unauthenticated_per_second_max),
            address_limits_exempt: AddressSet::read(section, "address_limits_exempt")
                .unwrap_or(usual.address_limits_exempt),
            first_byte_timeout: section.milliseconds("first_byte_timeout_ms", usual.first_byte_timeout),
            header_timeout: section.milliseconds("header_timeout_ms", usual.header_timeout),
            body_timeout: section.milliseconds("body_timeout_ms", usual.body_timeout),
            write_timeout: section.milliseconds("write_timeout_ms", usual.write_timeout),
            read_rate_min_bytes: section.number("read_rate_min_bytes", usual.read_rate_min_bytes),
            keep_alive_timeout: section.milliseconds("keep_alive_timeout_ms", usual.keep_alive_timeout),
            requests_per_connection_max: section
                .number("requests_per_connection_max", usual.requests_per_connection_max),
            header_bytes_max: section.size_up_to(
                "header_bytes_max",
                usual.header_bytes_max,
                HEADER_BYTES_BOUND,
            ),
            headers_max: section.size_up_to("headers_max", usual.headers_max, HEADER_BYTES_BOUND),
            h2_streams_max: section.number_up_to(
                "h2_streams_max",
                usual.h2_streams_max.into(),
                u32::MAX.into(),
            ) as u32,
            drain_delay: section.delay("drain_delay_ms", usual.drain_delay),
            drain_timeout: section.milliseconds("drain_timeout_ms", usual.drain_timeout),
        }
    }
}
