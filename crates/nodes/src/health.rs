//! How well a node is.
