//! How many extra calls there may be.
