//! The two kinds of databases. Every statement is written once: `$1` marks an argument in both.

use sqlx::{Database, PgPool, Pool, Postgres, Sqlite, SqlitePool, Transaction};

/// A value of SQLite's type or its PostgreSQL counterpart.
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

/// A target that executes statements: a pool, or the connection of a transaction.
pub(crate) trait Executes {
    type Executor;

    fn executor(self) -> Self::Executor;
}

impl<D: Database> Executes for &Pool<D> {
    type Executor = Self;

    fn executor(self) -> Self {
        self
    }
}

impl<'a, D: Database> Executes for &'a mut Transaction<'static, D> {
    type Executor = &'a mut D::Connection;

    fn executor(self) -> Self::Executor {
        self
    }
}

/// Runs a query with its arguments on a pool or in a transaction, and reads its rows with the given method of `sqlx`.
macro_rules! fetch {
    ($fetch:ident, $on:expr, $query:expr $(, $argument:expr)*) => {
        $crate::backend::each_backend!($on, on => {
            let query = sqlx::query_as($query)$(.bind($argument))*;
            let on = $crate::backend::Executes::executor(on);
            $crate::operation_timeout::within_timeout(query.$fetch(on)).await
        })
    };
}
pub(crate) use fetch;

/// Runs a query that finds one value.
macro_rules! fetch_value {
    ($($query:expr),*) => {
        $crate::backend::fetch!(fetch_one, $($query),*).map(|(value,)| value)
    };
}
pub(crate) use fetch_value;

/// Runs a statement with its arguments on a pool or in a transaction, and returns how many rows it changed.
macro_rules! execute {
    ($on:expr, $statement:expr $(, $argument:expr)*) => {
        $crate::backend::each_backend!($on, on => {
            let statement = sqlx::query($statement)$(.bind($argument))*;
            let on = $crate::backend::Executes::executor(on);
            let done = $crate::operation_timeout::within_timeout(statement.execute(on)).await;
            done.map(|done| done.rows_affected())
        })
    };
}
pub(crate) use execute;
