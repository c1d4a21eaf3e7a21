//! Listeners.

use std::io;
use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::policy::BACKLOG;

/// Whether two listeners would get each other's connections. Port 0 never overlaps, because each listener gets a new port.
pub fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    // By default, `[::]` also accepts IPv4.
    let covers = |one: IpAddr, other: IpAddr| one.is_unspecified() && (one.is_ipv6() || other.is_ipv4());
    let (ip, other_ip) = (one.ip().to_canonical(), other.ip().to_canonical());
    one.port() == other.port()
        && one.port() != 0
        && (ip == other_ip || covers(ip, other_ip) || covers(other_ip, ip))
}

/// Opens one listener for each worker. All share the port of the first.
pub fn bind_workers(address: SocketAddr, workers: usize) -> io::Result<Vec<std::net::TcpListener>> {
    check_free(address)?;
    let first = bind(address)?;
    let shared = first.local_addr()?;
    let mut listeners = vec![first];
    for _ in 1..workers {
        listeners.push(bind(shared)?);
    }
    Ok(listeners)
}

/// Prepares a listener that another process has opened.
pub fn adopt(listener: &std::net::TcpListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    limit_unsent_bytes(&SockRef::from(listener))
}

/// Opens a listener that shares its port with the other listeners of this process (`SO_REUSEPORT`).
pub fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let listen = || {
        let socket = bind_socket(address, true)?;
        socket.set_nonblocking(true)?;
        limit_unsent_bytes(&socket)?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    listen().map_err(|error| cannot_listen(address, error))
}

/// Unsent bytes that the kernel buffers for a connection. Without this limit it buffers megabytes, and a caller that does not
/// read is noticed too late.
#[cfg(target_os = "linux")]
const UNSENT_BYTES_MAX: u32 = 64 << 10;

/// Sets the limit on the listener; the connections that it accepts inherit it.
#[cfg(target_os = "linux")]
fn limit_unsent_bytes(listener: &Socket) -> io::Result<()> {
    listener.set_tcp_notsent_lowat(UNSENT_BYTES_MAX)
}

/// Other systems have no such limit, but smaller send buffers.
#[cfg(not(target_os = "linux"))]
fn limit_unsent_bytes(_: &Socket) -> io::Result<()> {
    Ok(())
}

/// Checks that no other process listens on the address. With `SO_REUSEPORT`, binding would succeed, and two gateways would
/// each get some of the connections.
pub fn check_free(address: SocketAddr) -> io::Result<()> {
    bind_socket(address, false).map(drop).map_err(|error| cannot_listen(address, error))
}

fn bind_socket(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn cannot_listen(address: SocketAddr, error: io::Error) -> io::Error {
    with_context(&format!("cannot listen on {address}"), error)
}

/// Prefixes the message of an error.
pub(crate) fn with_context(context: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{context}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_overlap_if_one_socket_would_get_the_connections_of_the_other() {
        let overlaps = |one: &str, other: &str| {
            let (one, other) = (one.parse().unwrap(), other.parse().unwrap());
            assert_eq!(overlap(one, other), overlap(other, one));
            overlap(one, other)
        };
        for (one, other) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("[::]:80", "127.0.0.1:80"),
            ("[::]:80", "0.0.0.0:80"),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1:80"),
        ] {
            assert!(overlaps(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("127.0.0.1:80", "127.0.0.1:81"),
            ("127.0.0.1:80", "127.0.0.2:80"),
            ("0.0.0.0:80", "[::1]:80"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("0.0.0.0:0", "127.0.0.1:0"),
        ] {
            assert!(!overlaps(one, other), "{one} {other}");
        }
    }
}
