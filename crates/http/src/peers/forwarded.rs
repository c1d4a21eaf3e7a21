//! The address of the caller in the headers of trusted proxies.
//!
//! Each proxy appends the address that it was called from, so only the end of the list can be trusted. The list is read
//! from the right, past the trusted proxies, to the first address that is not trusted. The caller may have forged everything
//! before that address.

use std::net::{IpAddr, SocketAddr};

use http::header::{FORWARDED, HeaderName};
use settings::Section;

use crate::address_set::AddressSet;
use crate::head::Headers;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The header in which trusted proxies report their callers.
///
/// Only one is read, because a proxy that appends to one header passes on a forged other header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressHeader {
    XForwardedFor,
    Forwarded,
}

impl AddressHeader {
    pub(crate) fn read(section: &mut Section<'_>) -> Self {
        match section.text("proxy_header", "x-forwarded-for").to_ascii_lowercase().as_str() {
            "x-forwarded-for" => Self::XForwardedFor,
            "forwarded" => Self::Forwarded,
            _ => {
                section.error("proxy_header", "must be x-forwarded-for or forwarded");
                Self::XForwardedFor
            }
        }
    }

    /// The address of the caller of a request from `peer`.
    pub(crate) fn caller(self, peer: IpAddr, headers: Headers<'_>, trusted: &AddressSet) -> IpAddr {
        let mut caller = peer;
        let name = match self {
            Self::XForwardedFor => &X_FORWARDED_FOR,
            Self::Forwarded => &FORWARDED,
        };
        let lines: Vec<_> = headers.all(name).collect();
        for element in lines.iter().rev().flat_map(|line| line.rsplit(|&byte| byte == b',')) {
            if !trusted.contains(caller) {
                return caller;
            }
            let address = std::str::from_utf8(element).ok().and_then(|element| self.address(element.trim()));
            let Some(address) = address else { return caller };
            caller = address;
        }
        caller
    }

    /// The address in one element of the list.
    fn address(self, element: &str) -> Option<IpAddr> {
        match self {
            Self::XForwardedFor => address(element),
            Self::Forwarded => {
                let value = element.split(';').find_map(|pair| {
                    let (name, value) = pair.split_once('=')?;
                    name.trim().eq_ignore_ascii_case("for").then_some(value.trim())
                })?;
                address(value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value))
            }
        }
    }
}

/// Parses an address with or without a port; IPv6 may have brackets.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROXY: &str = "10.0.0.1";

    fn caller(header: AddressHeader, peer: &str, lines: &[(&str, &str)]) -> String {
        let lines: Vec<_> =
            lines.iter().map(|(name, value)| httparse::Header { name, value: value.as_bytes() }).collect();
        let config = "[listen]\ntrusted_proxies = [\"10.0.0.0/8\"]";
        let trusted =
            settings::read(config, |root| AddressSet::read(&mut root.section("listen"), "trusted_proxies"))
                .unwrap()
                .unwrap();
        header.caller(peer.parse().unwrap(), Headers::Lines(&lines), &trusted).to_string()
    }

    #[test]
    fn the_last_address_before_trusted_proxies_is_the_caller() {
        let header = AddressHeader::XForwardedFor;
        let via = |value| caller(header, PROXY, &[("X-Forwarded-For", value)]);
        assert_eq!(via("192.0.2.1"), "192.0.2.1");
        assert_eq!(via("198.51.100.9, 192.0.2.1"), "192.0.2.1", "the first address may be forged");
        assert_eq!(via("198.51.100.9, 192.0.2.1, 10.0.0.2,10.0.0.3"), "192.0.2.1");
        assert_eq!(via("192.0.2.1:4711"), "192.0.2.1");
        assert_eq!(via("[2001:db8::1]:4711"), "2001:db8::1");
        assert_eq!(via("2001:db8::1"), "2001:db8::1");
        assert_eq!(via("::ffff:192.0.2.1"), "192.0.2.1");
        let two = [("x-forwarded-for", "198.51.100.9"), ("X-Forwarded-For", "192.0.2.1")];
        assert_eq!(caller(header, PROXY, &two), "192.0.2.1", "several lines are one list");
    }

    #[test]
    fn reading_stops_at_an_invalid_address() {
        let via = |value| caller(AddressHeader::XForwardedFor, PROXY, &[("x-forwarded-for", value)]);
        for unreadable in ["", "unknown", "192.0.2", "192.0.2.1, ", "192.0.2.1, evil", "\u{e9}"] {
            assert_eq!(via(unreadable), PROXY, "{unreadable:?}");
        }
        assert_eq!(via("evil, 10.0.0.7"), "10.0.0.7", "the last valid address");
        assert_eq!(via("10.0.0.8, 10.0.0.7"), "10.0.0.8");
    }

    #[test]
    fn headers_of_untrusted_peers_are_ignored() {
        let lines = [("x-forwarded-for", "192.0.2.1"), ("forwarded", "for=192.0.2.1")];
        for header in [AddressHeader::XForwardedFor, AddressHeader::Forwarded] {
            assert_eq!(caller(header, "198.51.100.9", &lines), "198.51.100.9");
        }
        assert_eq!(
            caller(AddressHeader::XForwardedFor, PROXY, &lines[1..]),
            PROXY,
            "only one header is read"
        );
    }

    #[test]
    fn forwarded_is_read_as_in_rfc_7239() {
        let via = |value| caller(AddressHeader::Forwarded, PROXY, &[("Forwarded", value)]);
        assert_eq!(via("for=192.0.2.1"), "192.0.2.1");
        assert_eq!(via("proto=https;For=\"192.0.2.1:80\";by=10.0.0.1"), "192.0.2.1");
        assert_eq!(via("for=198.51.100.9, for=\"[2001:db8::1]\""), "2001:db8::1");
        for without_address in ["for=unknown", "for=_hidden", "by=192.0.2.1", "for"] {
            assert_eq!(via(without_address), PROXY, "{without_address}");
        }
    }
}
