//! The canonical chain as the nodes agree on it.
