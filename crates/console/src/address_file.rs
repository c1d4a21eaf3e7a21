//! Files that tell commands where the admin API and the console of a running gateway are.
//!
//! The gateway keeps them locked while it runs. A file without a lock is of a gateway that has ended: another program may
//! listen on its port by now, and must not get the token.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// A listener whose address commands look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnouncedListener {
    Admin,
    Console,
}

impl AnnouncedListener {
    fn file_name(self) -> &'static str {
        match self {
            Self::Admin => "admin-address",
            Self::Console => "console-address",
        }
    }
}

/// Bytes of the file that are read; an address has at most 60.
const FILE_BYTES_MAX: u64 = 256;

/// Time between two attempts, and their number: a command holds the lock for microseconds to test it, and a gateway writes its
/// address at once after it has locked the file.
const RETRY_PAUSE: Duration = Duration::from_millis(50);
const ATTEMPTS_MAX: usize = 20;

/// The locked file of a running gateway.
#[derive(Debug)]
pub struct AddressFile {
    _locked: File,
}

impl AddressFile {
    /// Tells where this process listens, until the value is dropped.
    pub fn write(data_dir: &Path, listener: AnnouncedListener, address: SocketAddr) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(data_dir.join(listener.file_name()))?;
        lock(&file)?;
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(format!("{}\n", reachable_address(address)).as_bytes())?;
        Ok(Self { _locked: file })
    }

    /// The address of the gateway that runs with this data directory; `None` if none runs.
    pub fn find_running(data_dir: &Path, listener: AnnouncedListener) -> io::Result<Option<SocketAddr>> {
        let mut file = match File::open(data_dir.join(listener.file_name())) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        for _ in 0..ATTEMPTS_MAX {
            match file.try_lock_shared() {
                Ok(()) => return Ok(None),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
            if let Some(address) = read(&mut file)? {
                return Ok(Some(address));
            }
            thread::sleep(RETRY_PAUSE);
        }
        let message = format!("{} contains no address", listener.file_name());
        Err(io::Error::new(io::ErrorKind::InvalidData, message))
    }
}

fn lock(file: &File) -> io::Result<()> {
    for _ in 0..ATTEMPTS_MAX {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => thread::sleep(RETRY_PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    let message = "another gateway uses this data directory";
    Err(io::Error::new(io::ErrorKind::AddrInUse, message))
}

/// The address in the file, if it has been written completely.
fn read(file: &mut File) -> io::Result<Option<SocketAddr>> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text.strip_suffix('\n').and_then(|address| address.parse().ok()))
}

/// Where a command on the same machine reaches a listener.
pub fn reachable_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::AnnouncedListener::{Admin, Console};
    use super::*;

    #[test]
    fn a_gateway_is_found_only_while_it_runs() {
        let folder = tempfile::tempdir().unwrap();
        let find = || AddressFile::find_running(folder.path(), Admin).unwrap();
        assert_eq!(find(), None);
        let address: SocketAddr = "127.0.0.1:4321".parse().unwrap();
        let gateway = AddressFile::write(folder.path(), Admin, address).unwrap();
        assert_eq!(find(), Some(address));
        assert_eq!(AddressFile::find_running(folder.path(), Console).unwrap(), None);
        drop(gateway);
        assert!(fs::read_to_string(folder.path().join("admin-address")).unwrap().contains("4321"));
        assert_eq!(find(), None, "the file of a gateway that has ended is ignored");
        let next = "[::1]:99".parse().unwrap();
        let _gateway = AddressFile::write(folder.path(), Admin, next).unwrap();
        assert_eq!(find(), Some(next), "nothing is left of a longer address");
    }

    #[test]
    fn a_listener_on_all_addresses_is_reached_over_loopback() {
        for (listens, reached) in [
            ("0.0.0.0:8546", "127.0.0.1:8546"),
            ("[::]:8546", "[::1]:8546"),
            ("192.0.2.1:8546", "192.0.2.1:8546"),
        ] {
            assert_eq!(reachable_address(listens.parse().unwrap()), reached.parse().unwrap());
        }
    }

    #[test]
    fn a_second_gateway_in_the_same_directory_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let address = "127.0.0.1:1".parse().unwrap();
        let _first = AddressFile::write(folder.path(), Admin, address).unwrap();
        let error = AddressFile::write(folder.path(), Admin, address).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
