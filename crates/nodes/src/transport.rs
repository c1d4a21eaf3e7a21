//! Bytes to and from one endpoint.
