//! A reply may come in any pieces.
