//! Every promise about the demo chain, kept.
