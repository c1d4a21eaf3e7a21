//! JSON-RPC 2.0 wire types.
