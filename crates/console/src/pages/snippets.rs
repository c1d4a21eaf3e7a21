//! Code with which a developer uses a key.
