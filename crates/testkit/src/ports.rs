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
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let random_port = || {
        // A new state is random, so its hash of nothing is, too.
        let random = RandomState::new().hash_one(()) % u64::from(PORTS.end - PORTS.start);
        PORTS.start + u16::try_from(random).unwrap_or_default()
    };
    std::iter::repeat_with(random_port).find(is_free).expect("there are endless tries")
}
