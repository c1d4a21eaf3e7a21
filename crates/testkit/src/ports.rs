//! Ports for programs that cannot tell which port the system gave them, or that have to find their port free again after a
//! restart.
//!
//! Nothing but the standard library is used here, because `redis` uses it.

use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;

/// Ports that the system gives to nobody by itself. Another connection could take one of those while it is not in use, and an
/// attempt to connect to it could even reach itself.
const PORTS: Range<u16> = 20_000..30_000;

/// A port of this machine on which nobody listens.
pub fn free_port() -> u16 {
    let [port] = free_ports();
    port
}

/// Different ports where nobody listens.
pub fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| listen_anywhere());
    listeners.map(|listener| listener.local_addr().expect("it is bound").port())
}

fn listen_anywhere() -> TcpListener {
    let random_port = || {
        // A new state is random, so its hash of nothing is, too.
        let random = RandomState::new().hash_one(()) % u64::from(PORTS.end - PORTS.start);
        PORTS.start + u16::try_from(random).unwrap_or_default()
    };
    let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok();
    std::iter::repeat_with(random_port).find_map(bind).expect("there are endless tries")
}
