//! How long a node's answers take, by cost class.
