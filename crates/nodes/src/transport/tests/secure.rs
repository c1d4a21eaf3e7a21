//! TLS, and HTTP/2 where it is agreed on.
