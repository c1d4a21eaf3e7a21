//! Limits per address, and the address of a caller.
//!
//! A caller without a key is identified only by its address. The number of connections of an address and its rate of requests
//! without a valid key are limited. A request with a valid key is never refused because of other requests from its address,
//! but a new connection may be, because its key is not known yet. When `connections_max` is reached, the oldest connection
//! without a valid key is closed, or an idle one of the accounts with most connections, or any of an account that has more
//! than half of all.

mod closable; // connections that can be closed to make room
mod forwarded; // headers of trusted proxies that name the caller
mod proxy_protocol; // the PROXY protocol

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::net::TcpStream;

use crate::address_set::AddressSet;
use crate::head::Headers;
use crate::limits::HttpLimits;
use crate::policy::{CLEAR_INTERVAL_NS, REFUSED_ADDRESSES_MAX};
use resources::{MonoTime, RateExceeded, RepeatedWarning, TokenBucket};
use settings::Section;

pub(crate) use closable::ClosableConnections;
use forwarded::AddressHeader;

/// The proxies in front of the gateway, and how they report their callers.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    /// Trusted proxies. Limits per address apply to their callers, not to them.
    pub trusted: AddressSet,
    /// Whether connections from trusted proxies start with a PROXY protocol header.
    pub protocol: bool,
    pub header: AddressHeader,
}

impl ProxyConfig {
    /// The address of the caller of a request on a connection from `peer`.
    pub fn caller(&self, peer: IpAddr, headers: Headers<'_>) -> IpAddr {
        self.header.caller(peer, headers, &self.trusted)
    }

    pub(crate) fn read(section: &mut Section<'_>) -> Self {
        let trusted = AddressSet::read(section, "trusted_proxies").unwrap_or_default();
        let protocol = section.flag("proxy_protocol", false);
        if protocol && trusted.is_empty() {
            section
                .error("proxy_protocol", "needs trusted_proxies, because headers of other peers are ignored");
        }
        Self { trusted, protocol, header: AddressHeader::read(section) }
    }
}

/// Limits per address, with the state of all addresses that have connections or were refused recently.
#[derive(Debug)]
pub(crate) struct Peers {
    proxies: ProxyConfig,
    limits: Arc<ArcSwap<HttpLimits>>,
    connections: Mutex<HashMap<AddressGroup, u64>>,
    refused: Mutex<RefusedRates>,
    connections_refused: RepeatedWarning,
    callers_without_address: RepeatedWarning,
}

/// Too many requests without a valid key came from one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyUnauthenticated {
    pub wait_ms: u64,
}

impl Peers {
    pub(crate) fn new(proxies: &ProxyConfig, limits: Arc<ArcSwap<HttpLimits>>) -> Self {
        Self {
            proxies: proxies.clone(),
            limits,
            connections: Mutex::default(),
            refused: Mutex::default(),
            connections_refused: RepeatedWarning::default(),
            callers_without_address: RepeatedWarning::default(),
        }
    }

    /// The address of the caller of a new connection whose peer is a trusted proxy: the one in its PROXY protocol header, or
    /// that of the proxy itself.
    pub(super) async fn caller_of_connection(proxy: IpAddr, stream: &mut TcpStream) -> io::Result<IpAddr> {
        let source = proxy_protocol::read_header(stream).await?;
        Ok(source.map_or(proxy, |source| source.to_canonical()))
    }

    pub(super) fn starts_with_proxy_header(&self, peer: IpAddr) -> bool {
        self.proxies.protocol && self.proxies.trusted.contains(peer)
    }

    /// The address of the caller of a request on a connection from `peer`.
    pub(super) fn caller_of_request(&self, peer: IpAddr, headers: Headers<'_>) -> IpAddr {
        self.proxies.caller(peer, headers)
    }

    /// Counts one more connection of an address. `None`: the address has reached its limit.
    pub(super) fn enter(&self, address: IpAddr) -> Option<CountedAddress> {
        let limits = self.limits.load();
        let Some(max) = limits.connections_per_address_max else { return Some(CountedAddress::NONE) };
        if limits.address_limits_exempt.contains(address) || self.proxies.trusted.contains(address) {
            return Some(CountedAddress::NONE);
        }
        let group = AddressGroup::of(address);
        let mut connections = self.connections.lock();
        let open = connections.entry(group).or_default();
        if *open < max {
            *open += 1;
            return Some(CountedAddress { group: Some(group) });
        }
        drop(connections);
        if let Some(refused) = self.connections_refused.count(Instant::now()) {
            tracing::warn!(
                %address,
                refused,
                "connections refused: this address has reached connections_per_address_max; if it is a proxy, add it to trusted_proxies"
            );
        }
        None
    }

    /// Addresses start anew with another rate. Connections that are open stay open, and count.
    pub(crate) fn limits_changed(&self, before: &HttpLimits) {
        let per_second = |limits: &HttpLimits| limits.unauthenticated_per_second_max;
        if per_second(before) != per_second(&self.limits.load()) {
            *self.refused.lock() = RefusedRates::default();
        }
    }

    /// Undoes [`Self::enter`].
    pub(super) fn leave(&self, counted: CountedAddress) {
        let Some(group) = counted.group else { return };
        let mut connections = self.connections.lock();
        if let Some(open) = connections.get_mut(&group) {
            *open -= 1;
            if *open == 0 {
                connections.remove(&group);
            }
        }
    }

    /// Counts a request without a valid key, or refuses it if its address made too many.
    pub(super) fn count_unauthenticated(
        &self,
        address: IpAddr,
        now: MonoTime,
    ) -> Result<(), TooManyUnauthenticated> {
        let limits = self.limits.load();
        let Some(per_second) = limits.unauthenticated_per_second_max else { return Ok(()) };
        if limits.address_limits_exempt.contains(address) {
            return Ok(());
        }
        if self.proxies.trusted.contains(address) {
            // With one rate for all callers of a proxy, one caller could use it up for the others.
            if let Some(requests) = self.callers_without_address.count(Instant::now()) {
                tracing::warn!(
                    proxy = %address,
                    requests,
                    "requests without a valid key and without the address of their caller: \
                     unauthenticated_per_second_max is not applied; let the proxy send the header that proxy_header names"
                );
            }
            return Ok(());
        }
        self.refused.lock().take(AddressGroup::of(address), per_second, now)
    }
}

/// A counted connection of an address, or an uncounted one.
#[derive(Debug)]
pub(super) struct CountedAddress {
    group: Option<AddressGroup>,
}

impl CountedAddress {
    pub(super) const NONE: Self = Self { group: None };
}

/// Addresses that count as one: an IPv4 address, or the /64 network of an IPv6 address, because providers give each customer
/// at least a /64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum AddressGroup {
    V4(Ipv4Addr),
    V6([u16; 4]),
}

impl AddressGroup {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self::V6([a, b, c, d])
            }
        }
    }
}

/// The rates of requests without a valid key, by address.
#[derive(Debug, Default)]
struct RefusedRates {
    by_address: HashMap<AddressGroup, TokenBucket>,
    /// Shared by all addresses that do not fit into the table.
    others: Option<TokenBucket>,
    cleared_at: MonoTime,
}

impl RefusedRates {
    fn take(
        &mut self,
        group: AddressGroup,
        per_second: u64,
        now: MonoTime,
    ) -> Result<(), TooManyUnauthenticated> {
        let is_full = self.by_address.len() >= REFUSED_ADDRESSES_MAX;
        if is_full && now.0 >= self.cleared_at.0.saturating_add(CLEAR_INTERVAL_NS) {
            self.by_address.retain(|_, bucket| !bucket.is_full(now));
            self.cleared_at = now;
        }
        let has_room = self.by_address.len() < REFUSED_ADDRESSES_MAX;
        let new_bucket = || TokenBucket::per_second(per_second.max(1));
        let bucket = if has_room || self.by_address.contains_key(&group) {
            self.by_address.entry(group).or_insert_with(new_bucket)
        } else {
            self.others.get_or_insert_with(new_bucket)
        };
        match bucket.take(1, now) {
            Err(RateExceeded { wait_ms, .. }) => Err(TooManyUnauthenticated { wait_ms }),
            Ok(()) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers(config: &str) -> Peers {
        let read = |root: &mut Section<'_>| {
            let proxies = ProxyConfig::read(&mut root.section("listen"));
            let limits = HttpLimits::read(&mut root.section("limits"));
            Peers::new(&proxies, Arc::new(ArcSwap::from_pointee(limits)))
        };
        settings::read(config, read).unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_connections_of_an_address_are_limited() {
        let peers = peers("[limits]\nconnections_per_address_max = 2");
        let first = peers.enter(ip("192.0.2.1")).unwrap();
        let _second = peers.enter(ip("::ffff:192.0.2.1")).unwrap();
        assert!(peers.enter(ip("192.0.2.1")).is_none());
        assert!(peers.enter(ip("192.0.2.2")).is_some(), "another address is not affected");
        peers.leave(first);
        assert!(peers.enter(ip("192.0.2.1")).is_some());
    }

    #[test]
    fn a_64_network_of_ipv6_counts_as_one_address() {
        let peers = peers("[limits]\nconnections_per_address_max = 1");
        let first = peers.enter(ip("2001:db8:0:1::1")).unwrap();
        assert!(peers.enter(ip("2001:db8:0:1:ffff::2")).is_none());
        assert!(peers.enter(ip("2001:db8:0:2::1")).is_some());
        peers.leave(first);
        assert!(peers.enter(ip("2001:db8:0:1:ffff::2")).is_some());
    }

    #[test]
    fn loopback_and_trusted_proxies_are_not_counted_and_entries_are_removed() {
        let peers =
            peers("[listen]\ntrusted_proxies = [\"10.0.0.0/8\"]\n[limits]\nconnections_per_address_max = 1");
        for address in ["127.0.0.1", "::1", "10.1.2.3"] {
            let entered: Vec<_> = (0..10).filter_map(|_| peers.enter(ip(address))).collect();
            assert_eq!(entered.len(), 10, "{address}");
        }
        let counted = peers.enter(ip("192.0.2.1")).unwrap();
        peers.leave(counted);
        assert!(peers.connections.lock().is_empty());
    }

    #[test]
    fn requests_without_a_key_have_a_rate_per_address() {
        let peers = peers("[limits]\nunauthenticated_per_second_max = 10");
        let count = |address: &str, ms: u64| {
            let now = MonoTime((1_000 + ms) * 1_000_000);
            (0..100).filter(|_| peers.count_unauthenticated(ip(address), now).is_ok()).count()
        };
        assert_eq!((count("192.0.2.1", 0), count("192.0.2.2", 0)), (10, 10));
        assert_eq!((count("192.0.2.1", 500), count("192.0.2.1", 2_000)), (5, 10));
        assert_eq!(count("127.0.0.1", 0), 100, "loopback is exempt");
    }

    /// All callers of a proxy that does not report their addresses shared one rate, so one could use it up for the others.
    #[test]
    fn a_trusted_proxy_that_does_not_report_callers_has_no_rate() {
        let peers = peers(
            "[listen]\ntrusted_proxies = [\"10.0.0.0/8\"]\n[limits]\nunauthenticated_per_second_max = 1",
        );
        let count = |address: &str| {
            (0..100)
                .filter(|_| peers.count_unauthenticated(ip(address), MonoTime(5_000_000_000)).is_ok())
                .count()
        };
        assert_eq!((count("10.1.2.3"), count("192.0.2.1")), (100, 1));
    }

    #[test]
    fn the_table_of_rates_is_bounded_and_removes_recovered_addresses() {
        let mut rates = RefusedRates::default();
        let group = |number: u32| AddressGroup::V4(Ipv4Addr::from_bits(number));
        let mut take = |number, now| {
            let taken = rates.take(group(number), 10, MonoTime(now));
            (taken.is_ok(), rates.by_address.len())
        };
        let start = 5_000_000_000;
        let served = (0..1_000_000).filter(|&number| take(number, start).0).count();
        assert_eq!(served, REFUSED_ADDRESSES_MAX + 10, "addresses beyond the table share one rate");
        assert_eq!(take(1_000_000, start).1, REFUSED_ADDRESSES_MAX);
        assert_eq!(take(1_000_000, start + 2_000_000_000), (true, 1));
    }

    #[test]
    fn zero_switches_a_limit_off() {
        let peers = peers("[limits]\nconnections_per_address_max = 0\nunauthenticated_per_second_max = 0");
        assert!((0..100).all(|_| peers.enter(ip("192.0.2.1")).is_some()));
        assert!((0..100).all(|_| peers.count_unauthenticated(ip("192.0.2.1"), MonoTime(0)).is_ok()));
    }
}
