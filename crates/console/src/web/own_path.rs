//! Paths of this site, to which a browser may be sent.

/// Bytes of a path that is remembered through a sign-in.
const PATH_BYTES_MAX: usize = 2_048;

/// The path, if it certainly stays on this site; otherwise the start page.
///
/// `//host` and `/\host` are other sites for browsers, which also drop tabs and line breaks from addresses.
pub(super) fn or_start(path: &str) -> &str {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    let is_own = path.starts_with('/')
        && !path.starts_with("//")
        && path.len() <= PATH_BYTES_MAX
        && path.bytes().all(is_plain);
    if is_own { path } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_sites_become_the_start_page() {
        for own in ["/", "/keys", "/usage?range=1h&key=k_1", "/try?params=%5B%5D"] {
            assert_eq!(or_start(own), own);
        }
        for other in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "javascript:alert(1)",
            "evil.example",
            "/\t/evil.example",
            "/\n/evil.example",
            "\\/evil.example",
            " /keys",
            "/k\u{e9}ys",
        ] {
            assert_eq!(or_start(other), "/", "{other:?}");
        }
    }
}
