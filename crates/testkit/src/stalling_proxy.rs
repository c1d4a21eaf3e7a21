//! A proxy in front of a PostgreSQL server that can stop forwarding: its connections stay open, and nothing comes through them.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

/// A proxy from a port to the socket of a server.
#[derive(Debug)]
pub struct StallingProxy {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    /// Connections with a lower number forward nothing.
    stalled_below: Arc<AtomicUsize>,
}

impl StallingProxy {
    /// Forwards connections to a socket of the file system until the process ends.
    pub fn start(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (accepted, stalled_below) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let proxy =
            Self { address, accepted: Arc::clone(&accepted), stalled_below: Arc::clone(&stalled_below) };
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let number = accepted.fetch_add(1, SeqCst);
                let Ok(server) = UnixStream::connect(&socket) else { continue };
                forward(client, server, number, &stalled_below);
            }
        });
        proxy
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The connections of now forward nothing any more; new ones do.
    pub fn stall(&self) {
        self.stalled_below.store(self.accepted.load(SeqCst), SeqCst);
    }
}

fn forward(client: TcpStream, server: UnixStream, number: usize, stalled_below: &Arc<AtomicUsize>) {
    let (Ok(client_again), Ok(server_again)) = (client.try_clone(), server.try_clone()) else { return };
    let (one, other) = (Arc::clone(stalled_below), Arc::clone(stalled_below));
    let (end_server, end_client) = (server.try_clone(), client.try_clone());
    thread::spawn(move || {
        copy(client, server_again, || number < one.load(SeqCst));
        // The other end may have ended already.
        let _ended = end_server.map(|server| server.shutdown(Shutdown::Both));
    });
    thread::spawn(move || {
        copy(server, client_again, || number < other.load(SeqCst));
        let _ended = end_client.map(|client| client.shutdown(Shutdown::Both));
    });
}

/// Copies until one side ends. Bytes that come while the connection is stalled are lost.
fn copy(mut from: impl Read, mut to: impl Write, is_stalled: impl Fn() -> bool) {
    let mut buffer = [0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if !is_stalled() && to.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}
