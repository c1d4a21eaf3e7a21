//! Where an HTTP/1 message ends, and whether another one may follow it on the same connection.
//!
//! The server for callers and the client for nodes both use it, so that there is one rule for each question. The rules are
//! strict: request smuggling needs two readers that disagree on where a message ends, and proxies between them may be strict
//! or lenient. A message that could end in two places is therefore refused. This crate reads no sockets, parses no heads and
//! allocates nothing.
//!
//! `http_server` reads requests with it, and `nodes` replies:
//!
//! ```
//! use http1_framing::{BodyFraming, FramingHeaders};
//!
//! let mut headers = FramingHeaders::default();
//! headers.read("content-length", b"5").unwrap();
//! assert_eq!(headers.request_body(false), Ok(BodyFraming::Bytes(5)));
//! assert!(headers.read("content-length", b"6").is_err(), "two lengths");
//! ```

mod chunk_decoder; // chunked bodies
mod headers; // headers that determine the length of a body, and whether the connection stays open

pub use chunk_decoder::{ChunkDecoder, ChunkStep, LineLimit};
pub use headers::{BodyFraming, FramingHeaders};

/// Why the end of a message cannot be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramingError {
    /// Two readers could disagree on where the message ends.
    Ambiguous,
    /// The lines of a chunked body are longer than [`LineLimit`] allows.
    LinesTooLong,
}
