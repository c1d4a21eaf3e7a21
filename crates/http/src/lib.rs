//! The HTTP server: sockets, TLS, HTTP/1.1, HTTP/2, limits, compression and drain. Knows nothing of JSON-RPC, Ethereum or
//! callers: a [`Service`] answers, and of accounts it knows the ids in whose share memory and threads are used.

mod config; // where to listen and with what
mod address_set; // addresses and networks of the configuration
mod limits; // what connections may take
mod head; // the head of a request
mod refused; // why a request is refused
mod connection_state; // what socket and requests tell each other
mod peers; // what one address may take
mod counts; // what a worker counts
mod server_state; // what all connections share
mod connection; // one connection, as its requests see it
mod inflate; // compressed request bodies
mod request_body; // the bytes of a request
mod compress; // smaller replies
mod service; // who answers
mod drain; // how the end of the gateway reaches connections
mod socket; // timeouts that are really armed
mod date; // the date of replies
mod http1; // requests one after another
mod http2; // requests side by side
mod tls; // certificates
mod bind; // listeners
mod worker; // accept, serve, drain
mod server; // all of it together

type BoxError = Box<dyn std::error::Error + Send + Sync>;

pub use address_set::AddressSet;
pub use bind::{bind, check_free, overlap};
pub use compress::{Encoding, accepted_encoding, compress};
pub use config::{Config, Runtime};
pub use connection::{Connection, RequestId};
pub use counts::HttpCounts;
pub use head::{Head, Headers, Verb};
pub use http1::{FramedRequest, framed_requests};
pub use limits::Limits;
pub use peers::{AddressHeader, ProxyConfig, TooManyUnauthenticated};
pub use refused::Refused;
pub use request_body::{Body, BodyRefused, INLINE_BODY_BYTES_MAX, ReceivedBody, read_body};
pub use server::{Server, serve_stream};
pub use server_state::ServerState;
pub use service::{Lines, Service, ServiceReply};
pub use tls::Tls;
