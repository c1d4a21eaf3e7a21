//! The two kinds of databases. Every statement is written once: `$1` marks an argument in both.

use sqlx::{PgPool, Postgres, Sqlite, SqlitePool, Transaction};

/// Something of SQLite or the same of PostgreSQL.
#[derive(Clone, Debug)]
pub(crate) enum OnBackend<S, P> {
    Sqlite(S),
    Postgres(P),
}

pub(crate) type BackendPool = OnBackend<SqlitePool, PgPool>;
pub(crate) type BackendTransaction = OnBackend<Transaction<'static, Sqlite>, Transaction<'static, Postgres>>;

/// Compiles an expression for both kinds of databases, whose types in `sqlx` have nothing in common.
macro_rules! each_backend {
    ($backend:expr, $name:ident => $body:expr) => {
        match $backend {
            $crate::backend::OnBackend::Sqlite($name) => $body,
            $crate::backend::OnBackend::Postgres($name) => $body,
        }
    };
}
pub(crate) use each_backend;
