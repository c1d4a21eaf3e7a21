//! Numbers, times and sizes as people read them.
