//! Limits of connections and requests.

use std::time::Duration;

use settings::Section;

use crate::address_set::AddressSet;

/// Bytes of the head of a request. Common servers and proxies accept 8 to 32 KiB.
pub const HEADER_BYTES_MAX: usize = 16 << 10;

/// Headers of a request, as in common servers.
pub const HEADERS_MAX: usize = 100;

/// Limits of connections and requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Connections at the same time.
    pub connections_max: usize,
    /// Connections at the same time from one address. The default is a tenth of all, so that one address cannot take them all.
    pub connections_per_address_max: Option<u64>,
    /// Requests per second without a valid key from one address; far more than misconfigured clients send, and far less than
    /// a flood.
    pub unauthenticated_per_second_max: Option<u64>,
    /// Addresses without the two limits above. The default is loopback, where a proxy or a tunnel may forward many callers.
    pub address_limits_exempt: AddressSet,
    /// Time until the first byte of a new connection.
    pub first_byte_timeout: Duration,
    /// Time from the first to the last byte of a head.
    pub header_timeout: Duration,
    /// Time from the end of the head to the end of the body.
    pub body_timeout: Duration,
    /// Interval over which the rate at which a caller reads its replies is measured.
    pub write_timeout: Duration,
    /// Minimum rate at which a caller has to read a reply, in bytes per second. Slower readers are disconnected, because they
    /// hold the memory of their reply (slow-read attack). The default is about the slowest mobile connection.
    pub read_rate_min_bytes: u64,
    /// Idle time between requests; the default is above the 60 s of common load balancers.
    pub keep_alive_timeout: Duration,
    /// Requests on one connection; load balancers distribute callers again when they reconnect.
    pub requests_per_connection_max: u64,
    /// Requests at the same time on one HTTP/2 connection.
    pub h2_streams_max: u32,
    /// How long connections are accepted after the signal to stop, so that load balancers notice that `/ready` fails.
    pub drain_delay: Duration,
    /// How long running requests may take after `drain_delay`.
    pub drain_timeout: Duration,
}

impl Default for HttpLimits {
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
            h2_streams_max: 100,
            drain_delay: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(30),
        }
    }
}

impl HttpLimits {
    /// Time from the accept of a connection to the end of its first head, with everything before it: the PROXY protocol
    /// header, the TLS handshake and the first byte. Their timeouts would otherwise add up.
    pub(crate) fn first_head_timeout(&self) -> Duration {
        self.first_byte_timeout.max(self.header_timeout)
    }

    pub fn read(section: &mut Section<'_>) -> Self {
        let default = Self::default();
        section.removed("header_bytes_max", "the head of a request may have 16 KiB");
        section.removed("headers_max", "a request may have 100 headers");
        Self {
            connections_max: section.size("connections_max", default.connections_max),
            connections_per_address_max: section
                .limit("connections_per_address_max", default.connections_per_address_max),
            unauthenticated_per_second_max: section
                .limit("unauthenticated_per_second_max", default.unauthenticated_per_second_max),
            address_limits_exempt: AddressSet::read(section, "address_limits_exempt")
                .unwrap_or(default.address_limits_exempt),
            first_byte_timeout: section.milliseconds("first_byte_timeout_ms", default.first_byte_timeout),
            header_timeout: section.milliseconds("header_timeout_ms", default.header_timeout),
            body_timeout: section.milliseconds("body_timeout_ms", default.body_timeout),
            write_timeout: section.milliseconds("write_timeout_ms", default.write_timeout),
            read_rate_min_bytes: section.number("read_rate_min_bytes", default.read_rate_min_bytes),
            keep_alive_timeout: section.milliseconds("keep_alive_timeout_ms", default.keep_alive_timeout),
            requests_per_connection_max: section
                .number("requests_per_connection_max", default.requests_per_connection_max),
            h2_streams_max: section.number_up_to(
                "h2_streams_max",
                default.h2_streams_max.into(),
                u32::MAX.into(),
            ) as u32,
            drain_delay: section.delay("drain_delay_ms", default.drain_delay),
            drain_timeout: section.milliseconds("drain_timeout_ms", default.drain_timeout),
        }
    }
}
