//! One node.
