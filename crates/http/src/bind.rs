//! Listeners: who may have which address.

use std::io;
use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};

/// Whether two listeners would share a port; port 0 is a new one for each.
pub fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    // `[::]` also takes IPv4, where the system does not say otherwise.
    let covers = |one: IpAddr, other: IpAddr| one.is_unspecified() && (one.is_ipv6() || other.is_ipv4());
    let (ip, other_ip) = (one.ip().to_canonical(), other.ip().to_canonical());
    one.port() == other.port()
        && one.port() != 0
        && (ip == other_ip || covers(ip, other_ip) || covers(other_ip, ip))
}

/// Connections that the kernel may hold for us; more than a burst of reconnecting callers.
const BACKLOG: i32 = 1_024;

/// A listener that shares its port with others of this process.
pub fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let listen = || {
        let socket = bound(address, true)?;
        socket.set_nonblocking(true)?;
        limit_unsent_bytes(&socket)?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    listen().map_err(|error| named(address, error))
}

/// Bytes of replies that the kernel takes before the network does. Without this limit it takes megabytes, and whether a
/// caller reads at all is seen much too late.
#[cfg(target_os = "linux")]
const UNSENT_BYTES_MAX: u32 = 64 << 10;

/// Sets the limit for all connections that the listener will accept; they inherit it.
#[cfg(target_os = "linux")]
fn limit_unsent_bytes(listener: &Socket) -> io::Result<()> {
    listener.set_tcp_notsent_lowat(UNSENT_BYTES_MAX)
}

/// Other systems have no such limit. Their send buffers are smaller, too.
#[cfg(not(target_os = "linux"))]
fn limit_unsent_bytes(_: &Socket) -> io::Result<()> {
    Ok(())
}

/// Whether nobody else listens there. Listeners that share a port, as those of the workers do, are not told of each
/// other: two gateways would each get some of the connections, and nobody would know.
pub fn check_free(address: SocketAddr) -> io::Result<()> {
    bound(address, false).map(drop).map_err(|error| named(address, error))
}

fn bound(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn named(address: SocketAddr, error: io::Error) -> io::Error {
    explained(&format!("cannot listen on {address}"), error)
}

/// The same error, with what could not be done.
pub(crate) fn explained(what: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_overlap_where_one_socket_would_get_the_connections_of_the_other() {
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
