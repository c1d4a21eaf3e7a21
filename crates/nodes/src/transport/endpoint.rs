//! The address of a node, with its credentials.
//!
//! The path, the query and the headers of an endpoint may hold keys. They are written on the wire and nowhere else:
//! `Debug` and `Display` show scheme, host and port.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::uri::Authority;
use http::{HeaderName, HeaderValue, Uri, header};
use percent_encoding::percent_decode_str;

use crate::trace_context::TRACEPARENT;

/// A node's address with its credentials.
#[derive(Clone)]
pub struct Endpoint {
    scheme: Scheme,
    host: String,
    port: u16,
    /// Path and query.
    target: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    http2: bool,
    gzip: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
    Ws,
    Wss,
}

/// Why an endpoint cannot be used. The message never repeats the URL, because it may hold a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    #[error("invalid URL")]
    NoUrl,
    #[error("the URL must begin with http:// or https://")]
    NotHttp,
    #[error("the URL must begin with ws:// or wss://")]
    NotWebSocket,
    #[error("the user name or password in the URL is not well-formed")]
    BadCredentials,
    #[error("invalid header name")]
    BadHeaderName,
    #[error("this header is written by the gateway itself")]
    ReservedHeader,
    #[error("the value of the header has characters that cannot be sent")]
    BadHeaderValue,
}

/// Headers that frame the message, with other values in which requests and replies could not be matched, and the one that names the
/// trace of each request.
const RESERVED: [HeaderName; 8] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::ACCEPT_ENCODING,
    header::UPGRADE,
    TRACEPARENT,
];

impl Endpoint {
    /// Parses the URL of an HTTP endpoint: `http://` or `https://`, optionally with `user:password@`.
    pub fn parse(url: &str) -> Result<Self, EndpointError> {
        let endpoint = Self::read(url)?;
        if endpoint.is_websocket() { Err(EndpointError::NotHttp) } else { Ok(endpoint) }
    }

    /// Parses the URL of an endpoint that pushes new heads: `ws://` or `wss://`.
    pub fn parse_websocket(url: &str) -> Result<Self, EndpointError> {
        match Self::read(url) {
            Ok(endpoint) if endpoint.is_websocket() => Ok(endpoint),
            Ok(_) | Err(EndpointError::NotHttp) => Err(EndpointError::NotWebSocket),
            Err(error) => Err(error),
        }
    }

    fn read(url: &str) -> Result<Self, EndpointError> {
        let uri: Uri = url.trim().parse().map_err(|_| EndpointError::NoUrl)?;
        let scheme = match uri.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            Some("ws") => Scheme::Ws,
            Some("wss") => Scheme::Wss,
            Some(_) => return Err(EndpointError::NotHttp),
            None => return Err(EndpointError::NoUrl),
        };
        let authority = uri.authority().ok_or(EndpointError::NoUrl)?;
        if authority.host().is_empty() {
            return Err(EndpointError::NoUrl);
        }
        let usual_port = if matches!(scheme, Scheme::Https | Scheme::Wss) { 443 } else { 80 };
        Ok(Self {
            scheme,
            host: authority.host().to_owned(),
            port: port(authority)?.unwrap_or(usual_port),
            target: uri.path_and_query().map_or("/", |target| target.as_str()).to_owned(),
            headers: basic(authority)?.into_iter().collect(),
            http2: false,
            gzip: scheme == Scheme::Https,
        })
    }

    /// Adds a header to every request.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, EndpointError> {
        let name: HeaderName = name.parse().map_err(|_| EndpointError::BadHeaderName)?;
        if RESERVED.contains(&name) {
            return Err(EndpointError::ReservedHeader);
        }
        let mut value: HeaderValue = value.parse().map_err(|_| EndpointError::BadHeaderValue)?;
        value.set_sensitive(true);
        self.headers.retain(|(other, _)| *other != name);
        self.headers.push((name, value));
        Ok(self)
    }

    /// Speaks HTTP/2 without negotiation. Over TLS it is negotiated anyway.
    pub fn with_http2(mut self, http2: bool) -> Self {
        self.http2 = http2;
        self
    }

    /// Sets whether replies may be compressed. The default is only over TLS, where nodes are far away: for a node nearby, inflating
    /// costs more than sending the bytes.
    #[cfg(test)]
    pub(super) fn with_gzip(mut self, gzip: bool) -> Self {
        self.gzip = gzip;
        self
    }

    fn is_websocket(&self) -> bool {
        matches!(self.scheme, Scheme::Ws | Scheme::Wss)
    }

    pub(super) fn is_tls(&self) -> bool {
        matches!(self.scheme, Scheme::Https | Scheme::Wss)
    }

    pub(super) fn http2(&self) -> bool {
        self.http2
    }

    pub(super) fn gzip(&self) -> bool {
        self.gzip
    }

    /// The host without the brackets around an IPv6 address.
    pub(super) fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn target(&self) -> &str {
        &self.target
    }

    pub(super) fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.headers
    }

    /// Host and port as the `Host` header has them.
    pub(super) fn authority(&self) -> String {
        let usual_port = if self.is_tls() { 443 } else { 80 };
        if self.port == usual_port { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }

    fn scheme_name(&self) -> &'static str {
        match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::Ws => "ws",
            Scheme::Wss => "wss",
        }
    }

    /// The whole URL, secrets included.
    pub(super) fn url(&self) -> String {
        format!("{}://{}{}", self.scheme_name(), self.authority(), self.target)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}://{}:{}", self.scheme_name(), self.host, self.port)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Endpoint({self})")
    }
}

/// The port of a URL. An invalid one is an error, because the default port would belong to another service.
fn port(authority: &Authority) -> Result<Option<u16>, EndpointError> {
    let host_and_port = authority.as_str().rsplit_once('@').map_or(authority.as_str(), |(_, rest)| rest);
    match host_and_port[authority.host().len()..].strip_prefix(':') {
        None => Ok(None),
        Some(digits) => digits.parse().map(Some).map_err(|_| EndpointError::NoUrl),
    }
}

/// The header for the credentials in a URL.
fn basic(authority: &Authority) -> Result<Option<(HeaderName, HeaderValue)>, EndpointError> {
    let Some((credentials, _)) = authority.as_str().rsplit_once('@') else { return Ok(None) };
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    let plain = [&percent_decoded(user)?[..], b":", &percent_decoded(password)?].concat();
    let text = format!("Basic {}", STANDARD.encode(plain));
    let mut value: HeaderValue = text.parse().map_err(|_| EndpointError::BadCredentials)?;
    value.set_sensitive(true);
    Ok(Some((header::AUTHORIZATION, value)))
}

fn percent_decoded(text: &str) -> Result<Cow<'_, [u8]>, EndpointError> {
    let is_escape = |after: &str| after.get(..2).is_some_and(const_hex::check_raw);
    // The crate leaves a percent sign alone that begins no escape.
    let is_valid = text.split('%').skip(1).all(is_escape);
    is_valid.then(|| percent_decode_str(text).into()).ok_or(EndpointError::BadCredentials)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Endpoint {
        Endpoint::parse(url).unwrap()
    }

    #[test]
    fn a_url_is_taken_apart() {
        let endpoint = parse("https://user:p%40ss@node.example/v1/secret?key=secret");
        assert_eq!((endpoint.host(), endpoint.port()), ("node.example", 443));
        assert_eq!(endpoint.target(), "/v1/secret?key=secret");
        assert_eq!(endpoint.authority(), "node.example");
        let (name, value) = &endpoint.headers()[0];
        assert_eq!((name.as_str(), value.to_str().unwrap()), ("authorization", "Basic dXNlcjpwQHNz"));
        assert!(endpoint.is_tls() && endpoint.gzip());
    }

    #[test]
    fn addresses_and_ports_are_kept() {
        let endpoint = parse("http://[::1]:8545");
        assert_eq!((endpoint.host(), endpoint.port(), endpoint.target()), ("::1", 8545, "/"));
        assert_eq!(endpoint.authority(), "[::1]:8545");
        assert!(!endpoint.gzip());
    }

    #[test]
    fn no_secret_is_shown() {
        let endpoint = parse("https://user:secret@node.example:8443/secret?secret")
            .with_header("x-api-key", "secret")
            .unwrap();
        assert_eq!(format!("{endpoint}"), "https://node.example:8443");
        assert_eq!(format!("{endpoint:?}"), "Endpoint(https://node.example:8443)");
    }

    #[test]
    fn what_is_no_endpoint_is_refused_in_plain_words() {
        let refused = |url| Endpoint::parse(url).unwrap_err();
        assert_eq!(refused(""), EndpointError::NoUrl);
        assert_eq!(refused("node.example"), EndpointError::NoUrl);
        assert_eq!(refused("http://node:99999"), EndpointError::NoUrl);
        assert_eq!(refused("http://node:/"), EndpointError::NoUrl);
        assert_eq!(refused("ftp://node"), EndpointError::NotHttp);
        assert_eq!(refused("ws://node"), EndpointError::NotHttp);
        assert_eq!(refused("http://us%zzer@node"), EndpointError::BadCredentials);
        for url in ["http://node", "ftp://node"] {
            assert_eq!(Endpoint::parse_websocket(url).unwrap_err(), EndpointError::NotWebSocket);
        }
        assert!(Endpoint::parse_websocket("wss://node/ws").is_ok());
    }

    #[test]
    fn headers_that_frame_the_message_are_ours() {
        let with = |name, value| parse("http://node").with_header(name, value).map(|_| ());
        assert_eq!(with("Content-Length", "1"), Err(EndpointError::ReservedHeader));
        assert_eq!(with("a b", "1"), Err(EndpointError::BadHeaderName));
        assert_eq!(with("a", "1\r\nb: 2"), Err(EndpointError::BadHeaderValue));
        assert_eq!(with("authorization", "Bearer x"), Ok(()));
    }
}
