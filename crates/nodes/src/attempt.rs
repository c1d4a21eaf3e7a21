//! One call over several nodes.
