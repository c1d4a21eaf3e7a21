//! The HTTP server: sockets, TLS, HTTP/1.1, HTTP/2, limits, compression and drain. It does not know JSON-RPC, Ethereum or
//! callers: a [`Service`] answers the requests, and accounts are ids for sharing memory and threads.
//!
//! `gateway` implements [`Service`] for callers. The operator's pages and the console use a [`SmallListener`]. Both bind their address
//! like this:
//!
//! ```no_run
//! let address = "127.0.0.1:8545".parse().unwrap();
//! http_server::check_free(address)?;
//! let listener = http_server::bind(address)?;
//! # std::io::Result::Ok(())
//! ```

mod config; // listener settings
mod address_set; // addresses and networks of the configuration
mod limits; // limits of connections and requests
mod head; // the head of a request
mod policy; // times and limits that no setting changes
mod refused; // why a request is refused
mod connection_state; // state shared by a socket and its requests
mod peers; // limits per address
mod counts; // counters of a worker
mod server_state; // state shared by all connections
mod connection; // one connection, as its requests see it
mod content_coding; // compressions of requests and replies
mod inflate; // compressed request bodies
mod request_body; // the body of a request
mod compress; // compressed replies
mod reply_parts; // the body of a reply
mod service; // the trait that answers requests
mod drain; // stages of a shutdown
mod socket; // timeouts of a connection
mod date; // the date header
mod http1; // HTTP/1 connections
mod http2; // HTTP/2 connections
mod tls; // certificates
mod bind; // listeners
mod worker; // accepts, serves and drains connections
mod server; // starts and stops the workers

mod small_listener; // the operator's port and the console

type BoxError = Box<dyn std::error::Error + Send + Sync>;

pub use bind::{adopt, bind, bind_workers, check_free, overlap};
pub use compress::{accepted_encoding, compress};
pub use config::HttpConfig;
pub use connection::{Connection, RequestId};
pub use content_coding::{ReplyCoding, RequestCoding};
pub use counts::HttpCounts;
pub use drain::ListenerEnd;
pub use head::{Headers, RequestHead, RequestMethod};
pub use http1::framed_requests;
pub use inflate::inflate;
pub use limits::{HEADER_BYTES_MAX, HEADERS_MAX, HttpLimits};
pub use peers::{ProxyConfig, TooManyUnauthenticated};
pub use policy::INLINE_BODY_BYTES_MAX;
pub use refused::Refused;
pub use reply_parts::ReplyParts;
pub use request_body::{ReceivedBody, RequestBody};
pub use server::{HttpServer, serve_stream};
pub use server_state::ServerState;
pub use service::{HeaderWriter, Service, ServiceReply};
pub use small_listener::{IncomingBody, SmallListener, SmallListenerLimits};
pub use tls::{ServedCertificate, TlsConfig};
