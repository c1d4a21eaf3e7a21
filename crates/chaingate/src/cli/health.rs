//! `chaingate health`: whether callers should be sent to a running gateway, for health checks of containers.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use clap::Args;
use http::Uri;

use super::{ConfigOptions, say};

/// Longer than `/ready` ever takes, and shorter than the timeouts of health checks.
const TIMEOUT: Duration = Duration::from_secs(3);

/// A reply of `/ready` is a line of text.
const REPLY_BYTES_MAX: u64 = 16 << 10;

/// Ask a running gateway whether it is ready; exit with 0 if it is, else with 1
#[derive(Debug, Args)]
pub(super) struct HealthArguments {
    /// Address of the operator, such as http://127.0.0.1:8546; without it, that of the configuration
    #[arg(value_name = "URL")]
    url: Option<Uri>,
    #[command(flatten)]
    settings: ConfigOptions,
}

pub(super) fn run(arguments: HealthArguments) -> Result<(), String> {
    let target = match &arguments.url {
        Some(url) => target(url)?,
        None => reachable(arguments.settings.parse()?.0.listen.operator.address).to_string(),
    };
    let reply = ask(&target).map_err(|error| format!("{target} does not answer: {error}"))?;
    let (status, reason) = status_and_body(&reply).ok_or_else(|| format!("{target} does not speak HTTP"))?;
    if status != 200 {
        return Err(format!("{target} is not ready: {reason}"));
    }
    say(reason);
    Ok(())
}

/// The host and port of a URL. Its path is ignored: `/ready` is the only one that says what is asked here.
fn target(url: &Uri) -> Result<String, String> {
    let authority = url.authority().filter(|_| url.scheme_str().is_none_or(|scheme| scheme == "http"));
    let authority = authority
        .ok_or_else(|| format!("{url} is no URL of an operator's address: it begins with http://"))?;
    Ok(match authority.port() {
        Some(_) => authority.to_string(),
        None => format!("{authority}:80"),
    })
}

/// An address under which a listener can be reached, which may listen on all addresses.
fn reachable(listener: SocketAddr) -> SocketAddr {
    let host = match listener.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(host, listener.port())
}

/// The whole reply of `/ready`. HTTP/1.0 ends it with the connection, and needs no `Host`, which would have to be an allowed one.
fn ask(target: &str) -> std::io::Result<String> {
    let mut last_error = std::io::Error::other("its name has no address");
    for address in target.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => return exchange(stream),
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}

fn exchange(mut stream: TcpStream) -> std::io::Result<String> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(b"GET /ready HTTP/1.0\r\n\r\n")?;
    let mut reply = String::new();
    stream.take(REPLY_BYTES_MAX).read_to_string(&mut reply)?;
    Ok(reply)
}

fn status_and_body(reply: &str) -> Option<(u16, &str)> {
    let (head, body) = reply.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?;
    Some((status.parse().ok()?, body.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_host_and_port() {
        let of = |url: &str| target(&url.parse().unwrap());
        assert_eq!(of("http://gateway:8546").unwrap(), "gateway:8546");
        assert_eq!(of("http://127.0.0.1:8546/ready").unwrap(), "127.0.0.1:8546");
        assert_eq!(of("127.0.0.1:8546").unwrap(), "127.0.0.1:8546");
        assert_eq!(of("http://[::1]").unwrap(), "[::1]:80");
        assert!(of("https://gateway:8546").is_err() && of("/ready").is_err());
    }

    #[test]
    fn a_listener_on_all_addresses_is_asked_on_loopback() {
        let of = |listener: &str| reachable(listener.parse().unwrap()).to_string();
        assert_eq!(of("0.0.0.0:8546"), "127.0.0.1:8546");
        assert_eq!(of("[::]:8546"), "[::1]:8546");
        assert_eq!(of("10.0.0.7:8546"), "10.0.0.7:8546");
    }

    #[test]
    fn only_replies_of_http_have_a_status() {
        let ready = "HTTP/1.0 200 OK\r\ncontent-length: 6\r\n\r\nready\n";
        assert_eq!(status_and_body(ready), Some((200, "ready")));
        assert_eq!(status_and_body("HTTP/1.1 503 \r\n\r\ndraining\n"), Some((503, "draining")));
        assert_eq!(status_and_body("SSH-2.0-OpenSSH\r\n"), None);
        assert_eq!(status_and_body("HTTP/1.1 nonsense\r\n\r\n"), None);
    }
}
