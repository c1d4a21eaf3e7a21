//! The PROXY protocol, versions 1 and 2: a header at the start of a connection, in which a TCP proxy reports its caller.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncRead, AsyncReadExt};

/// The shortest header of version 1, `PROXY UNKNOWN\r\n`. Version 2 needs one byte more, so this many bytes can be read
/// without reading past the header.
const BYTES_MIN: usize = 15;

/// The longest line of version 1, as the PROXY protocol defines it.
const LINE_BYTES_MAX: usize = 107;

/// Maximum length of a version 2 header after its fixed part. Addresses take up to 216 bytes, extensions a few dozen.
const V2_REST_BYTES_MAX: usize = 2 << 10;

const V2_SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Reads the header and nothing after it. `None`: the proxy connects for itself, or the header has no IP address.
pub(super) async fn read_header(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<IpAddr>> {
    let mut start = [0; BYTES_MIN];
    stream.read_exact(&mut start).await?;
    if start.starts_with(V2_SIGNATURE) {
        read_v2(stream, &start).await
    } else if start.starts_with(b"PROXY ") {
        read_v1(stream, &start).await
    } else {
        Err(invalid("no PROXY protocol header"))
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

/// Reads byte by byte to the end of the line, because the bytes after it belong to TLS or HTTP.
async fn read_v1(stream: &mut (impl AsyncRead + Unpin), start: &[u8]) -> io::Result<Option<IpAddr>> {
    let mut line = start.to_vec();
    while !line.ends_with(b"\r\n") {
        if line.len() == LINE_BYTES_MAX {
            return Err(invalid("the PROXY protocol line is too long"));
        }
        line.push(stream.read_u8().await?);
    }
    let line = std::str::from_utf8(&line[..line.len() - 2]);
    line.ok().and_then(source_of_line).ok_or_else(|| invalid("malformed PROXY protocol line"))
}

/// Parses `PROXY TCP4 source destination source-port destination-port`.
fn source_of_line(line: &str) -> Option<Option<IpAddr>> {
    let mut words = line.split(' ');
    let (Some("PROXY"), Some(family)) = (words.next(), words.next()) else { return None };
    if family == "UNKNOWN" {
        return Some(None);
    }
    let words: Vec<_> = words.collect();
    let [source, destination, source_port, destination_port] = words[..] else { return None };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    if !is_port(source_port) || !is_port(destination_port) {
        return None;
    }
    match family {
        "TCP4" => {
            let _checked: Ipv4Addr = destination.parse().ok()?;
            source.parse::<Ipv4Addr>().ok().map(|source| Some(source.into()))
        }
        "TCP6" => {
            let _checked: Ipv6Addr = destination.parse().ok()?;
            source.parse::<Ipv6Addr>().ok().map(|source| Some(source.into()))
        }
        _ => None,
    }
}

async fn read_v2(
    stream: &mut (impl AsyncRead + Unpin),
    start: &[u8; BYTES_MIN],
) -> io::Result<Option<IpAddr>> {
    let low = stream.read_u8().await?;
    let (version_and_command, family) = (start[12], start[13]);
    let length = usize::from(u16::from_be_bytes([start[14], low]));
    if length > V2_REST_BYTES_MAX {
        return Err(invalid("the PROXY protocol header is too long"));
    }
    let mut rest = vec![0; length];
    stream.read_exact(&mut rest).await?;
    match version_and_command {
        // LOCAL: the proxy connects for itself, for example to check the gateway's health.
        0x20 => Ok(None),
        0x21 => {
            source_of_addresses(family, &rest).ok_or_else(|| invalid("malformed PROXY protocol addresses"))
        }
        _ => Err(invalid("unknown PROXY protocol version or command")),
    }
}

/// Parses the source, which comes first. Address families other than IP are valid, but have no IP address.
fn source_of_addresses(family: u8, rest: &[u8]) -> Option<Option<IpAddr>> {
    match family >> 4 {
        1 => {
            let source: [u8; 4] = rest.get(..12)?.first_chunk().copied()?;
            Some(Some(Ipv4Addr::from(source).into()))
        }
        2 => {
            let source: [u8; 16] = rest.get(..36)?.first_chunk().copied()?;
            Some(Some(Ipv6Addr::from(source).into()))
        }
        _ => Some(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The source in a header, and the number of bytes left after it.
    async fn read(bytes: &[u8]) -> Result<(Option<String>, usize), String> {
        let mut left = bytes;
        let source = read_header(&mut left).await.map_err(|error| error.to_string())?;
        Ok((source.map(|source| source.to_string()), left.len()))
    }

    fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = (rest.len() as u16).to_be_bytes();
        [&V2_SIGNATURE[..], &[command, family], &length, rest].concat()
    }

    #[tokio::test]
    async fn the_source_is_read_from_version_1() {
        let behind = b"POST /v3/demo";
        for (line, source) in [
            ("PROXY TCP4 192.0.2.1 192.0.2.2 1 65535\r\n", Some("192.0.2.1")),
            ("PROXY TCP6 2001:db8::1 ::1 443 443\r\n", Some("2001:db8::1")),
            ("PROXY UNKNOWN\r\n", None),
            ("PROXY UNKNOWN anything at all\r\n", None),
        ] {
            let read = read(&[line.as_bytes(), behind].concat()).await;
            assert_eq!(read, Ok((source.map(str::to_owned), behind.len())), "{line:?}");
        }
    }

    #[tokio::test]
    async fn malformed_version_1_is_refused() {
        for line in [
            "PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 1 65536\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 +1 2\r\n",
            "PROXY TCP4 192.0.2.1  192.0.2.2 1 2\r\n",
            "PROXY TCP4 192.0.2.256 192.0.2.2 1 2\r\n",
            "PROXY TCP4 2001:db8::1 ::1 1 2\r\n",
            "PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n",
            "PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n",
            "proxy TCP4 192.0.2.1 192.0.2.2 1 2\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n",
            "POST /v3/demo HTTP/1.1\r\n",
        ] {
            assert!(read(line.as_bytes()).await.is_err(), "{line:?}");
        }
        let endless = format!("PROXY UNKNOWN {}", "x".repeat(1_000));
        assert_eq!(read(endless.as_bytes()).await, Err("the PROXY protocol line is too long".to_owned()));
    }

    #[tokio::test]
    async fn the_source_is_read_from_version_2() {
        let v4 = [&[192, 0, 2, 1][..], &[192, 0, 2, 2], &[0, 1, 0, 2]].concat();
        let v6 = [&Ipv6Addr::LOCALHOST.octets()[..], &[0; 20]].concat();
        let with_extension = [&v4[..], &[0x04, 0, 3, 1, 2, 3]].concat();
        for (header, source) in [
            (v2(0x21, 0x11, &v4), Some("192.0.2.1")),
            (v2(0x21, 0x12, &v4), Some("192.0.2.1")),
            (v2(0x21, 0x21, &v6), Some("::1")),
            (v2(0x21, 0x11, &with_extension), Some("192.0.2.1")),
            (v2(0x21, 0x31, &[0; 216]), None),
            (v2(0x21, 0x00, &[]), None),
            (v2(0x20, 0x00, &[]), None),
            (v2(0x20, 0x11, &v4), None),
        ] {
            let read = read(&[&header[..], b"behind"].concat()).await;
            assert_eq!(read, Ok((source.map(str::to_owned), 6)), "{header:?}");
        }
    }

    #[tokio::test]
    async fn malformed_version_2_is_refused() {
        for header in [
            v2(0x11, 0x11, &[0; 12]),
            v2(0x22, 0x11, &[0; 12]),
            v2(0x21, 0x11, &[0; 11]),
            v2(0x21, 0x21, &[0; 35]),
            v2(0x21, 0x11, &[0; V2_REST_BYTES_MAX + 1]),
            v2(0x21, 0x11, &[0; 12])[..20].to_vec(),
            V2_SIGNATURE.to_vec(),
            Vec::new(),
        ] {
            assert!(read(&header).await.is_err(), "{header:?}");
        }
    }
}
