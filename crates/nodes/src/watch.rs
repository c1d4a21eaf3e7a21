//! Following every node's head.
