//! The names under which the listeners for people answer: that of the operator and the console.
//!
//! A web page can point a name of its own at a private address and then read what is there (DNS rebinding). The browser
//! still sends that name as `Host`, so requests under unknown names are refused. An IP address needs no check, because no
//! name was resolved.

use std::net::{IpAddr, Ipv6Addr};

/// The names that are allowed besides `localhost` and IP addresses.
#[derive(Clone, Debug, Default)]
pub struct AllowedHosts {
    names: Vec<String>,
}

impl AllowedHosts {
    pub fn new(names: &[String]) -> Self {
        Self { names: names.to_vec() }
    }

    /// Whether a request with this `Host` is answered.
    pub fn allow(&self, host: &str) -> bool {
        let Some(name) = without_port(host) else { return false };
        if let Some(inside) = name.strip_prefix('[') {
            return inside.strip_suffix(']').is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
        }
        name.parse::<IpAddr>().is_ok_and(|address| address.is_ipv4())
            || name.eq_ignore_ascii_case("localhost")
            || self.names.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
    }

    /// Whether a page of this `Origin` may send requests to `host`: only pages of the same host and port, and those under
    /// configured names. Other addresses are not allowed, because any page can be served under an address.
    pub fn allow_origin(&self, origin: &str, host: &str) -> bool {
        let Some(authority) = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))
        else {
            return false;
        };
        let is_configured = |name: &str| self.names.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
        authority.eq_ignore_ascii_case(host) || without_port(authority).is_some_and(is_configured)
    }
}

/// The name in `name` or `name:port`.
fn without_port(host: &str) -> Option<&str> {
    let end = if host.starts_with('[') { host.find(']')? + 1 } else { host.find(':').unwrap_or(host.len()) };
    let (name, port) = host.split_at(end);
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.len() <= 5;
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(name)
}

/// Why an entry of the configuration is not a host name; `None` if it is one.
pub(crate) fn invalid_host_reason(name: &str) -> Option<&'static str> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let valid = !name.is_empty() && name.bytes().all(is_name);
    (!valid).then_some("must be host names without scheme and port, such as metrics.example.com")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_loopback_names_and_configured_names_pass_and_nothing_else() {
        let hosts = AllowedHosts::new(&["metrics.example".to_owned()]);
        for allowed in [
            "localhost",
            "LOCALHOST:8546",
            "127.0.0.1",
            "127.0.0.1:8546",
            "10.1.2.3:80",
            "[::1]",
            "[::1]:8546",
            "[fe80::1]",
            "metrics.example",
            "Metrics.Example:9090",
        ] {
            assert!(hosts.allow(allowed), "{allowed}");
        }
        for refused in [
            "",
            "evil.example",
            "localhost.evil.example",
            "evil-localhost",
            "localhost.",
            "xlocalhost",
            "metrics.example.evil",
            "127.0.0.1.evil.example",
            "127.0.0.1@evil.example",
            "user@localhost",
            "localhost:8546:1",
            "localhost:80x",
            "localhost:123456",
            "[::1",
            "[::1]x",
            "[evil]",
            "[127.0.0.1]",
            "::1",
            "2130706433",
            "0x7f.1",
            "127.1",
            "localhost/",
            "localhost evil.example",
            "localhost,evil.example",
        ] {
            assert!(!hosts.allow(refused), "{refused}");
        }
    }

    #[test]
    fn only_pages_of_the_same_host_and_of_configured_names_may_send_requests() {
        let hosts = AllowedHosts::new(&["console.example".to_owned()]);
        for allowed in ["http://127.0.0.1:8546", "https://console.example", "http://Console.Example:9000"] {
            assert!(hosts.allow_origin(allowed, "127.0.0.1:8546"), "{allowed}");
        }
        assert!(hosts.allow_origin("http://localhost:8546", "LOCALHOST:8546"));
        for refused in [
            "null",
            "",
            "http://",
            "http://127.0.0.1:8547",
            "http://192.0.2.7",
            "http://localhost:8546",
            "http://evil.example",
            "http://console.example.evil",
            "http://evil.example/console.example",
            "ftp://console.example",
            "console.example",
        ] {
            assert!(!hosts.allow_origin(refused, "127.0.0.1:8546"), "{refused}");
        }
    }

    #[test]
    fn an_entry_is_a_bare_name() {
        assert_eq!(invalid_host_reason("metrics.example-1.com"), None);
        for wrong in ["", "metrics:80", "http://metrics", "a b", "*", "ü"] {
            assert!(invalid_host_reason(wrong).is_some(), "{wrong:?}");
        }
    }
}
