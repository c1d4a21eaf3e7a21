//! Web origins that may use a key: `https://app.example.com`, `*.example.com`, `localhost:3000`.

use crate::policy::ORIGIN_BYTES_MAX;

/// One entry of a list of origins. Without a scheme or a port, it matches any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OriginPattern {
    scheme: Option<String>,
    /// Whether the pattern matches all subdomains of `host`, and not `host` itself.
    subdomains: bool,
    host: String,
    port: Option<u16>,
}

impl OriginPattern {
    /// `None` if `text` is not a valid pattern.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme.to_owned()), rest),
            None => (None, text.as_str()),
        };
        let (subdomains, rest) = rest.strip_prefix("*.").map_or((false, rest), |rest| (true, rest));
        let (host, port) = host_and_port(rest)?;
        Some(Self { scheme, subdomains, host: host.to_owned(), port })
    }

    pub(crate) fn matches(&self, origin: &RequestOrigin) -> bool {
        let RequestOrigin { scheme, host, port } = origin;
        let host_matches = if self.subdomains {
            host.strip_suffix(&self.host).is_some_and(|labels| labels.len() > 1 && labels.ends_with('.'))
        } else {
            *host == self.host
        };
        host_matches
            && self.scheme.as_ref().is_none_or(|expected| expected == scheme)
            && (self.port.is_none() || self.port == *port)
    }
}

/// The `Origin` header of a request, in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestOrigin {
    scheme: String,
    host: String,
    port: Option<u16>,
}

impl RequestOrigin {
    /// `None` if `text` is no origin.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.len() > ORIGIN_BYTES_MAX {
            return None;
        }
        let text = text.to_ascii_lowercase();
        let (scheme, rest) = text.split_once("://")?;
        let (host, port) = host_and_port(rest)?;
        Some(Self { scheme: scheme.to_owned(), host: host.to_owned(), port })
    }
}

/// Splits off the port. Only characters that are valid in a host are accepted, so the host cannot contain a path or a user.
fn host_and_port(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse().ok()?)),
        _ => (text, None),
    };
    let is_valid = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.bytes().all(|letter| letter.is_ascii_hexdigit() || letter == b':'),
        None => host.bytes().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'.')),
    };
    (is_valid && !host.is_empty()).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, origin: &str) -> bool {
        let pattern = OriginPattern::parse(pattern).unwrap();
        RequestOrigin::parse(origin).is_some_and(|origin| pattern.matches(&origin))
    }

    #[test]
    fn omitted_parts_of_a_pattern_match_anything() {
        assert!(matches("https://app.example.com", "https://app.example.com"));
        assert!(matches("https://App.Example.com", "https://app.example.com:8443"));
        assert!(matches("app.example.com", "http://app.example.com"));
        assert!(matches("localhost:3000", "http://localhost:3000"));
        assert!(matches("http://[::1]:3000", "http://[::1]:3000"));
        assert!(matches("https://*.example.com", "https://a.b.example.com"));
        for (pattern, origin) in [
            ("https://app.example.com", "http://app.example.com"),
            ("localhost:3000", "http://localhost:3001"),
            ("localhost:3000", "http://localhost"),
            ("*.example.com", "https://example.com"),
            ("*.example.com", "https://.example.com"),
            ("*.example.com", "https://evilexample.com"),
            ("*.example.com", "https://example.com.evil"),
            ("*.example.com", "https://evil/x.example.com"),
            ("*.example.com", "https://evil#x.example.com"),
            ("example.com", "https://x@example.com"),
            ("example.com", "null"),
            ("example.com", "example.com"),
            ("example.com", ""),
        ] {
            assert!(!matches(pattern, origin), "{pattern} {origin}");
        }
    }

    #[test]
    fn an_origin_that_is_longer_than_any_host_name_matches_nothing() {
        assert!(matches("*.ex", &format!("https://{}ex", "a.".repeat(100))));
        assert!(!matches("*.ex", &format!("https://{}ex", "a.".repeat(7_000))));
    }

    #[test]
    fn invalid_patterns_are_refused() {
        for text in ["", "*", "https://", "https://a b", "https://a/", "https://a:port", "a.*.example.com"] {
            assert_eq!(OriginPattern::parse(text), None, "{text}");
        }
    }
}
