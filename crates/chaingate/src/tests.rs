//! What needs the whole gateway, and looks into it.

mod accounts_in_front_of_nodes;
