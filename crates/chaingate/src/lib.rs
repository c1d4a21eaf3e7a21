//! The program: the command line, the configuration file, the wiring, and the generated documents. Only its own tests and the
//! fuzz targets import it.

pub mod config; // the configuration file
pub mod source; // opens the archive or the nodes
mod import_socket; // imports into an archive that is being served
pub mod docs; // the generated documents
pub mod cli; // the command line

#[cfg(test)]
mod tests;
