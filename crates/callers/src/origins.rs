//! Which web pages may use a key: `https://app.example.com`, `*.example.com`, `localhost:3000`.

/// One entry of a list of origins. What it leaves out (scheme, port) may be anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OriginPattern {
    scheme: Option<String>,
    /// Whether it stands for every name below the host, and not for the host itself.
    below: bool,
    host: String,
    port: Option<u16>,
}

impl OriginPattern {
    /// `None` for what is no origin.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme.to_owned()), rest),
            None => (None, text.as_str()),
        };
        let (below, rest) = rest.strip_prefix("*.").map_or((false, rest), |rest| (true, rest));
        let (host, port) = host_and_port(rest)?;
        Some(Self { scheme, below, host: host.to_owned(), port })
    }

    pub(crate) fn matches(&self, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        let Some((scheme, rest)) = origin.split_once("://") else { return false };
        let Some((host, port)) = host_and_port(rest) else { return false };
        let named = if self.below {
            host.strip_suffix(&self.host).is_some_and(|labels| labels.len() > 1 && labels.ends_with('.'))
        } else {
            host == self.host
        };
        named
            && self.scheme.as_ref().is_none_or(|wanted| wanted == scheme)
            && (self.port.is_none() || self.port == port)
    }
}

/// Takes the port off. A host has only the letters that hosts have, so nothing can hide in it.
fn host_and_port(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse().ok()?)),
        _ => (text, None),
    };
    let letters = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.bytes().all(|letter| letter.is_ascii_hexdigit() || letter == b':'),
        None => host.bytes().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'.')),
    };
    (letters && !host.is_empty()).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, origin: &str) -> bool {
        OriginPattern::parse(pattern).unwrap().matches(origin)
    }

    #[test]
    fn what_an_entry_says_has_to_be_so_and_the_rest_is_free() {
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
    fn what_is_no_origin_is_no_entry() {
        for text in ["", "*", "https://", "https://a b", "https://a/", "https://a:port", "a.*.example.com"] {
            assert_eq!(OriginPattern::parse(text), None, "{text}");
        }
    }
}
