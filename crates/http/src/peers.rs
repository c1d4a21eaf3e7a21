//! How much of the gateway one address may take, and which address a caller has.
//!
//! A caller without a key is known by its address alone. One address may have a bounded number of connections, and a
//! bounded rate of requests without a valid key. A request with a valid key is never refused for the requests of others at
//! its address, but a new connection may be, because no key is known yet. When all places are taken, the oldest connection
//! on which no valid key was sent is closed, or an idle one of the accounts with most connections.

mod closable; // connections that make room for others
mod forwarded; // callers as trusted proxies name them
mod proxy_protocol; // the same for proxies that only pass bytes on

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::net::TcpStream;

use crate::address_set::AddressSet;
use crate::head::Headers;
use crate::limits::Limits;
use resources::{Bucket, Moment, RateExceeded, RepeatedWarning};
use settings::Section;

pub(crate) use closable::ClosableConnections;
pub use forwarded::AddressHeader;

/// The proxies in front of the gateway, and how they name their callers.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    /// Proxies that are believed; the limits of an address apply to their callers instead.
    pub trusted: AddressSet,
    /// Whether connections from them start with a PROXY protocol header.
    pub protocol: bool,
    pub header: AddressHeader,
}

impl ProxyConfig {
    pub(crate) fn read(section: &mut Section<'_>) -> Self {
        let trusted = AddressSet::read(section, "trusted_proxies").unwrap_or_default();
        let protocol = section.flag("proxy_protocol", false);
        if protocol && trusted.is_empty() {
            section.mistake(
                "proxy_protocol",
                "needs trusted_proxies, because headers of other peers are ignored",
            );
        }
        Self { trusted, protocol, header: AddressHeader::read(section) }
    }
}

/// What is known of the addresses that have connections, or were refused lately.
#[derive(Debug)]
pub(crate) struct Peers {
    proxies: ProxyConfig,
    exempt: AddressSet,
    connections_max: Option<u64>,
    unauthenticated_per_second_max: Option<u64>,
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
    pub(crate) fn new(proxies: &ProxyConfig, limits: &Limits) -> Self {
        Self {
            proxies: proxies.clone(),
            exempt: limits.address_limits_exempt.clone(),
            connections_max: limits.connections_per_address_max,
            unauthenticated_per_second_max: limits.unauthenticated_per_second_max,
            connections: Mutex::default(),
            refused: Mutex::default(),
            connections_refused: RepeatedWarning::default(),
            callers_without_address: RepeatedWarning::default(),
        }
    }

    /// The address of the caller behind a new connection: the peer's own, or the one in the PROXY protocol header of a
    /// trusted proxy.
    pub(super) async fn caller_of_connection(
        &self,
        peer: IpAddr,
        stream: &mut TcpStream,
    ) -> io::Result<IpAddr> {
        if !self.starts_with_proxy_header(peer) {
            return Ok(peer);
        }
        let source = proxy_protocol::read_header(stream).await?;
        Ok(source.map_or(peer, |source| source.to_canonical()))
    }

    pub(super) fn starts_with_proxy_header(&self, peer: IpAddr) -> bool {
        self.proxies.protocol && self.proxies.trusted.contains(peer)
    }

    /// The address from which a request comes, on a connection from `peer`.
    pub(super) fn caller_of_request(&self, peer: IpAddr, headers: Headers<'_>) -> IpAddr {
        self.proxies.header.caller(peer, headers, &self.proxies.trusted)
    }

    /// Counts one more connection of an address. `None`: it has as many as it may have.
    pub(super) fn enter(&self, address: IpAddr) -> Option<CountedAddress> {
        let Some(most) = self.connections_max else { return Some(CountedAddress::NONE) };
        if self.exempt.contains(address) || self.proxies.trusted.contains(address) {
            return Some(CountedAddress::NONE);
        }
        let group = AddressGroup::of(address);
        let mut connections = self.connections.lock();
        let open = connections.entry(group).or_default();
        if *open < most {
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

    /// Takes back what [`Self::enter`] counted.
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

    /// Counts a request without a valid key, and refuses it if there were too many from its address.
    pub(super) fn count_unauthenticated(
        &self,
        address: IpAddr,
        now: Moment,
    ) -> Result<(), TooManyUnauthenticated> {
        let Some(per_second) = self.unauthenticated_per_second_max else { return Ok(()) };
        if self.exempt.contains(address) {
            return Ok(());
        }
        if self.proxies.trusted.contains(address) {
            // One rate for all callers of a proxy would let any of them use it up for the others.
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

/// A connection that is counted for an address, or for none.
#[derive(Debug)]
pub(super) struct CountedAddress {
    group: Option<AddressGroup>,
}

impl CountedAddress {
    pub(super) const NONE: Self = Self { group: None };
}

/// Addresses that count as one caller: an IPv4 address, or the /64 network of an IPv6 address, of which every customer of a
/// provider has at least one.
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

/// Addresses whose rate is remembered. Each takes some 40 bytes.
const REFUSED_ADDRESSES_MAX: usize = 1 << 16;

/// How often a full table is cleared of addresses whose rate has recovered.
const CLEAR_INTERVAL_NS: u64 = 100_000_000;

/// The rates of requests without a valid key, by address.
#[derive(Debug, Default)]
struct RefusedRates {
    by_address: HashMap<AddressGroup, Bucket>,
    /// Shared by all addresses for which there is no room.
    others: Option<Bucket>,
    cleared_at: Moment,
}

impl RefusedRates {
    fn take(
        &mut self,
        group: AddressGroup,
        per_second: u64,
        now: Moment,
    ) -> Result<(), TooManyUnauthenticated> {
        let is_full = self.by_address.len() >= REFUSED_ADDRESSES_MAX;
        if is_full && now.0 >= self.cleared_at.0.saturating_add(CLEAR_INTERVAL_NS) {
            self.by_address.retain(|_, bucket| !bucket.is_full(now));
            self.cleared_at = now;
        }
        let has_room = self.by_address.len() < REFUSED_ADDRESSES_MAX;
        let bucket = if has_room || self.by_address.contains_key(&group) {
            self.by_address.entry(group).or_insert_with(|| Bucket::new(per_second))
        } else {
            self.others.get_or_insert_with(|| Bucket::new(per_second))
        };
        match bucket.take(now, 1) {
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
            Peers::new(&proxies, &Limits::read(&mut root.section("limits")))
        };
        settings::read(config, read).unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_has_its_number_of_connections_and_no_more() {
        let peers = peers("[limits]\nconnections_per_address_max = 2");
        let first = peers.enter(ip("192.0.2.1")).unwrap();
        let _second = peers.enter(ip("::ffff:192.0.2.1")).unwrap();
        assert!(peers.enter(ip("192.0.2.1")).is_none());
        assert!(peers.enter(ip("192.0.2.2")).is_some(), "the next address is somebody else");
        peers.leave(first);
        assert!(peers.enter(ip("192.0.2.1")).is_some());
    }

    #[test]
    fn an_ipv6_network_of_a_customer_counts_as_one_address() {
        let peers = peers("[limits]\nconnections_per_address_max = 1");
        let first = peers.enter(ip("2001:db8:0:1::1")).unwrap();
        assert!(peers.enter(ip("2001:db8:0:1:ffff::2")).is_none());
        assert!(peers.enter(ip("2001:db8:0:2::1")).is_some());
        peers.leave(first);
        assert!(peers.enter(ip("2001:db8:0:1:ffff::2")).is_some());
    }

    #[test]
    fn loopback_and_trusted_proxies_are_not_counted_and_nothing_is_left_behind() {
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
    fn requests_without_a_key_have_a_rate_for_each_address() {
        let peers = peers("[limits]\nunauthenticated_per_second_max = 10");
        let count = |address: &str, ms: u64| {
            let now = Moment((1_000 + ms) * 1_000_000);
            (0..100).filter(|_| peers.count_unauthenticated(ip(address), now).is_ok()).count()
        };
        assert_eq!((count("192.0.2.1", 0), count("192.0.2.2", 0)), (10, 10));
        assert_eq!((count("192.0.2.1", 500), count("192.0.2.1", 2_000)), (5, 10));
        assert_eq!(count("127.0.0.1", 0), 100, "this machine is exempt");
    }

    /// All callers of a proxy that does not name them once shared one rate, so any of them could use it up for the others.
    #[test]
    fn a_trusted_proxy_that_names_no_caller_has_no_rate() {
        let peers = peers(
            "[listen]\ntrusted_proxies = [\"10.0.0.0/8\"]\n[limits]\nunauthenticated_per_second_max = 1",
        );
        let count = |address: &str| {
            (0..100)
                .filter(|_| peers.count_unauthenticated(ip(address), Moment(5_000_000_000)).is_ok())
                .count()
        };
        assert_eq!((count("10.1.2.3"), count("192.0.2.1")), (100, 1));
    }

    /// A million addresses must not take a million entries.
    #[test]
    fn the_table_of_rates_is_bounded_and_empties_itself() {
        let mut rates = RefusedRates::default();
        let group = |number: u32| AddressGroup::V4(Ipv4Addr::from_bits(number));
        let mut take = |number, now| {
            let taken = rates.take(group(number), 10, Moment(now));
            (taken.is_ok(), rates.by_address.len())
        };
        let start = 5_000_000_000;
        let served = (0..1_000_000).filter(|&number| take(number, start).0).count();
        assert_eq!(served, REFUSED_ADDRESSES_MAX + 10, "addresses without room share one rate");
        assert_eq!(take(1_000_000, start).1, REFUSED_ADDRESSES_MAX);
        assert_eq!(take(1_000_000, start + 2_000_000_000), (true, 1));
    }

    #[test]
    fn zero_switches_a_limit_off() {
        let peers = peers("[limits]\nconnections_per_address_max = 0\nunauthenticated_per_second_max = 0");
        assert!((0..100).all(|_| peers.enter(ip("192.0.2.1")).is_some()));
        assert!((0..100).all(|_| peers.count_unauthenticated(ip("192.0.2.1"), Moment(0)).is_ok()));
    }
}
