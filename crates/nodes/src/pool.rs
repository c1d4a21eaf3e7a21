//! All nodes of this network.
