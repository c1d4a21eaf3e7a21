//! A set of IP addresses, as operators write them: single addresses and networks.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::config::Section;

/// Single addresses and networks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressSet {
    networks: Vec<IpNet>,
}

impl AddressSet {
    /// This machine, under all of its loopback addresses.
    pub(crate) fn loopback() -> Self {
        Self { networks: ["127.0.0.0/8", "::1/128"].iter().filter_map(|text| network(text)).collect() }
    }

    /// The array of strings under `key`, such as `["10.0.0.0/8", "192.0.2.7"]`.
    pub(crate) fn read(section: &mut Section<'_>, key: &str) -> Option<Self> {
        let texts = section.texts(key)?;
        let networks: Option<_> = texts.iter().map(|text| network(text)).collect();
        if networks.is_none() {
            section.mistake(key, "expected addresses or networks, such as 192.0.2.7 or 10.0.0.0/8");
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
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_networks_are_understood() {
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
        assert!(AddressSet::loopback().contains("127.9.9.9".parse().unwrap()));
    }
}
