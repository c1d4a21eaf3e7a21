//! The program: the command line, the configuration file, and the wiring. Only its own tests, the fuzz targets and the generator
//! of the documents import it.
//!
//! ```no_run
//! let config = chaingate::config::Config::parse("[network]\nname = \"demo\"").unwrap();
//! assert!(config.serves_demo_chain());
//! ```

pub mod config; // the configuration file
pub mod source; // opens the archive or the nodes
pub mod reload; // the configuration file read again, while calls go on
mod private_socket; // sockets for commands that need what the gateway has open
mod import_socket; // imports into an archive that is being served
mod backup; // copies of everything that a gateway needs
mod listening_sockets; // sockets that are opened or inherited
mod handover; // the listening sockets go to another process
pub mod cli; // the command line

#[cfg(test)]
mod tests;
