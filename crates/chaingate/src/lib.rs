//! The program: the command line, the configuration file, the wiring, and the documents that are made from the tables.
//! Nothing imports it but its own tests.

pub mod config; // one file, all mistakes at once
pub mod source; // who holds the chain
mod import_socket; // imports into an archive that is being served
pub mod docs; // the documents that are made from the tables
pub mod cli; // the command line

#[cfg(test)]
mod tests;
