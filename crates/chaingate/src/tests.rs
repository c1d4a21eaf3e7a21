//! Tests that need the whole gateway, and look into it.

mod accounts_in_front_of_nodes;
