//! The hand-over of the listening sockets from a running gateway to the one that takes over, through a socket in the data directory that
//! only the gateway's user can open.
//!
//! The running gateway writes a byte with each listening socket, and a last byte. The other one prepares itself, and then writes what it
//! needs ([`TakeOverRequest`]). The running one confirms it, drains, and ends; the end of its process ends the connection. Without the
//! confirmation nothing was handed over.

mod predecessor; // in the process that takes over
mod successor; // in the process that is taken over

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::cmsg_space;
use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use rustix::process::geteuid;

pub(crate) use predecessor::Predecessor;
pub(crate) use successor::{HandOverSocket, Successor};

/// The socket, beside the archive.
const SOCKET_FILE: &str = "handover.sock";

/// Comes after the last socket, if nobody else has them.
const ALL_SENT: u8 = b'.';

/// Comes after the last socket, if they stay open elsewhere.
const ALL_SENT_SHARED: u8 = b's';

/// The running gateway begins to drain.
const CONFIRMED: u8 = b'k';

/// The request of the process that takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakeOverRequest {
    /// It needs files that only one process can open, and accepts connections when the running gateway has ended.
    AfterTheEnd,
    /// It accepts connections already.
    Now,
}

impl TakeOverRequest {
    fn byte(self) -> u8 {
        match self {
            Self::AfterTheEnd => b'e',
            Self::Now => b'n',
        }
    }

    fn of_byte(byte: u8) -> Option<Self> {
        [Self::AfterTheEnd, Self::Now].into_iter().find(|request| request.byte() == byte)
    }
}

/// Whether the process at the other end belongs to the user of this one.
fn is_same_user(stream: &UnixStream) -> io::Result<bool> {
    Ok(rustix::net::sockopt::socket_peercred(stream)?.uid == geteuid())
}

/// Writes one byte, with a file descriptor.
fn send(stream: &UnixStream, byte: u8, file: Option<&impl AsFd>) -> io::Result<()> {
    let files = file.map(AsFd::as_fd);
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    if !files.as_slice().is_empty() && !message.push(SendAncillaryMessage::ScmRights(files.as_slice())) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let sent =
        retry_on_intr(|| sendmsg(stream, &[IoSlice::new(&[byte])], &mut message, SendFlags::NOSIGNAL))?;
    if sent == 1 { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Reads one byte, and the file descriptor that comes with it. `None` at the end of the connection.
fn receive(stream: &UnixStream) -> io::Result<Option<(u8, Option<OwnedFd>)>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut messages = RecvAncillaryBuffer::new(&mut space);
    let received = retry_on_intr(|| {
        recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut messages, RecvFlags::CMSG_CLOEXEC)
    })?;
    let files = messages.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let file = files.flatten().next();
    Ok((received.bytes == 1).then_some((byte[0], file)))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_socket_arrives_with_its_byte() {
        let (one, other) = UnixStream::pair().unwrap();
        assert!(is_same_user(&one).unwrap());
        let sockets = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        send(&one, b'p', Some(&sockets[0])).unwrap();
        send(&one, b'o', Some(&sockets[1])).unwrap();
        send(&one, ALL_SENT, None::<&TcpListener>).unwrap();
        for (byte, sent) in [b'p', b'o'].into_iter().zip(&sockets) {
            let (received, file) = receive(&other).unwrap().unwrap();
            let socket = TcpListener::from(file.unwrap());
            assert_eq!((received, socket.local_addr().unwrap()), (byte, sent.local_addr().unwrap()));
        }
        assert!(matches!(receive(&other).unwrap(), Some((ALL_SENT, None))));
        drop(one);
        assert!(receive(&other).unwrap().is_none());
    }
}
