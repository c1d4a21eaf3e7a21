//! A set of IP addresses and networks.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use settings::Section;

/// Single addresses and networks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressSet {
    networks: Vec<IpNet>,
}

impl AddressSet {
    /// All loopback addresses.
    pub(crate) fn loopback() -> Self {
        Self { networks: ["127.0.0.0/8", "::1/128"].iter().filter_map(|text| network(text)).collect() }
    }

    /// The array of strings under `key`, such as `["10.0.0.0/8", "192.0.2.7"]`.
    pub(crate) fn read(section: &mut Section<'_>, key: &str) -> Option<Self> {
        let texts = section.texts(key)?;
        let networks: Option<_> = texts.iter().map(|text| network(text)).collect();
        if networks.is_none() {
            section.error(key, "must be addresses or networks, such as 192.0.2.7 or 10.0.0.0/8");
        }
        Some(Self { networks: networks.unwrap_or_default() })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.networks.is_empty()
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|network| network.contains(&address))
    }
}

fn network(text: &str) -> Option<IpNet> {
    let network = text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))?;
    Some(match network {
        IpNet::V4(_) => network,
        IpNet::V6(mapped) => ipv4_of(mapped).map_or(network, IpNet::V4),
    })
}

/// Bits before the IPv4 address in an IPv4-mapped IPv6 address (`::ffff:192.0.2.7`).
const MAPPED_PREFIX_BITS: u8 = 96;

/// Converts an IPv4-mapped network to IPv4. Addresses are compared as IPv4, so the mapped network would never match.
fn ipv4_of(network: Ipv6Net) -> Option<Ipv4Net> {
    let bits = network.prefix_len().checked_sub(MAPPED_PREFIX_BITS)?;
    Ipv4Net::new(network.addr().to_ipv4_mapped()?, bits).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_networks_are_parsed() {
        let networks = ["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"].map(|text| network(text).unwrap());
        let set = AddressSet { networks: networks.to_vec() };
        for inside in ["10.255.0.1", "192.0.2.7", "2001:db8:1::1", "::ffff:10.1.2.3"] {
            assert!(set.contains(inside.parse().unwrap()), "{inside}");
        }
        for outside in ["11.0.0.1", "192.0.2.8", "2001:db9::1", "::1"] {
            assert!(!set.contains(outside.parse().unwrap()), "{outside}");
        }
        for wrong in ["", "10.0.0.0/33", "10.0.0", "example.com", "10.0.0.1:80"] {
            assert_eq!(network(wrong), None, "{wrong:?}");
        }
    }

    /// Such entries were accepted and never matched, because only the addresses of callers were converted to IPv4.
    #[test]
    fn ipv4_mapped_entries_match() {
        for (entry, same) in [
            ("::ffff:192.0.2.7", "192.0.2.7/32"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("::ffff:0:0/96", "0.0.0.0/0"),
            ("::ffff:192.0.2.7/128", "192.0.2.7/32"),
            ("2001:db8::/100", "2001:db8::/100"),
            ("::/0", "::/0"),
        ] {
            assert_eq!(network(entry).map(|network| network.to_string()).as_deref(), Some(same), "{entry}");
        }
        let set = AddressSet { networks: vec![network("::ffff:10.0.0.0/104").unwrap()] };
        assert!(
            set.contains("10.1.2.3".parse().unwrap()) && set.contains("::ffff:10.1.2.3".parse().unwrap())
        );
        assert!(!set.contains("11.0.0.1".parse().unwrap()));
    }

    #[test]
    fn all_of_127_is_loopback() {
        assert!(AddressSet::loopback().contains("127.9.9.9".parse().unwrap()));
    }
}
