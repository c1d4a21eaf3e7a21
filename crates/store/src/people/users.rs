//! Users: who may sign in to the console.

use std::fmt;

use crate::backend::{each_backend, execute, fetch, fetch_value};
use crate::columns::is_storable;
use crate::failure::StoreFailure;
use crate::list_page::{ListPage, NamePosition, end_of};
use crate::operation_timeout::within_timeout;
use crate::policy::PAGE_ROWS;
use crate::store::Store;
use crate::transaction::StoreTransaction;

/// A user of the console.
#[derive(Clone, PartialEq, Eq)]
pub struct UserRecord {
    pub id: i64,
    /// In lower case, and unique in the store.
    pub email: String,
    pub role: UserRole,
    /// The account of a developer; `None` for an operator without one.
    pub account_id: Option<i64>,
    /// The argon2id hash of the password; `None` before the user has chosen one.
    pub password_hash: Option<String>,
    pub status: UserStatus,
    pub created_at: i64,
}

impl fmt::Debug for UserRecord {
    // The hash of the password is omitted, because weak passwords can be found from it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("UserRecord");
        shown.field("id", &self.id).field("email", &self.email).field("role", &self.role);
        shown.field("account_id", &self.account_id).field("status", &self.status).finish_non_exhaustive()
    }
}

/// A user in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedUser {
    pub user: UserRecord,
    /// When one of their sessions was used last.
    pub last_seen_at: Option<i64>,
}

/// The rights of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserRole {
    /// Things of one account.
    Developer,
    /// Everything.
    Operator,
}

impl UserRole {
    pub fn name(self) -> &'static str {
        match self {
            Self::Developer => "developer",
            Self::Operator => "operator",
        }
    }

    /// Any unknown text is a developer, so that a mistake in the table makes nobody an operator.
    fn named(name: &str) -> Self {
        if name == Self::Operator.name() { Self::Operator } else { Self::Developer }
    }
}

/// Whether a user may sign in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserStatus {
    Active,
    Blocked,
}

impl UserStatus {
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Blocked => "blocked",
        }
    }

    /// Any unknown text blocks the user, so that a mistake in the table lets nobody in.
    fn named(name: &str) -> Self {
        if name == Self::Active.name() { Self::Active } else { Self::Blocked }
    }
}

type UserColumns = (i64, String, String, Option<i64>, Option<String>, String, i64);

fn user((id, email, role, account_id, password_hash, status, created_at): UserColumns) -> UserRecord {
    let (role, status) = (UserRole::named(&role), UserStatus::named(&status));
    UserRecord { id, email, role, account_id, password_hash, status, created_at }
}

const SELECT_BY_ID: &str =
    "SELECT id, email, role, account_id, password_hash, status, created_at FROM users WHERE id = $1";
const SELECT_BY_EMAIL: &str =
    "SELECT id, email, role, account_id, password_hash, status, created_at FROM users WHERE email = $1";

const USERS_BY_EMAIL: &str = "SELECT id, email, role, account_id, password_hash, status, created_at, \
     (SELECT MAX(last_used_at) FROM sessions WHERE user_id = users.id) FROM users \
     WHERE (email, id) > ($1, $2) AND email < $3 ORDER BY email, id LIMIT $4";
const USERS_OF_ACCOUNT_BY_EMAIL: &str = "SELECT id, email, role, account_id, password_hash, status, created_at, \
     (SELECT MAX(last_used_at) FROM sessions WHERE user_id = users.id) FROM users \
     WHERE account_id = $5 AND (email, id) > ($1, $2) AND email < $3 ORDER BY email, id LIMIT $4";

impl Store {
    pub async fn user(&self, id: i64) -> Result<Option<UserRecord>, StoreFailure> {
        let row: Option<UserColumns> = fetch!(fetch_optional, self.pool().await?, SELECT_BY_ID, id)?;
        Ok(row.map(user))
    }

    pub async fn user_with_email(&self, email: &str) -> Result<Option<UserRecord>, StoreFailure> {
        if !is_storable(email) {
            return Ok(None);
        }
        let row: Option<UserColumns> = fetch!(fetch_optional, self.pool().await?, SELECT_BY_EMAIL, email)?;
        Ok(row.map(user))
    }

    /// Users whose email addresses begin with a text, in the order of these addresses, after a position: those of one account,
    /// or of all.
    pub async fn users_by_email(
        &self,
        account_id: Option<i64>,
        start: &str,
        after: Option<&NamePosition<i64>>,
        count: i64,
    ) -> Result<ListPage<ListedUser>, StoreFailure> {
        let count = count.clamp(0, PAGE_ROWS);
        let first = NamePosition::new(start, 0);
        let (end, after) = (end_of(&first.folded_name), after.unwrap_or(&first));
        if !is_storable(&end) || !is_storable(&after.folded_name) {
            return Ok(ListPage::default());
        }
        let statement = account_id.map_or(USERS_BY_EMAIL, |_| USERS_OF_ACCOUNT_BY_EMAIL);
        type Columns = (i64, String, String, Option<i64>, Option<String>, String, i64, Option<i64>);
        let rows: Vec<Columns> = each_backend!(self.pool().await?, pool => {
            let mut query = sqlx::query_as(statement)
                .bind(&after.folded_name).bind(after.id).bind(&end).bind(count + 1);
            if let Some(account_id) = account_id {
                query = query.bind(account_id);
            }
            within_timeout(query.fetch_all(pool)).await?
        });
        let listed = |(id, email, role, account, hash, status, created_at, last_seen_at)| ListedUser {
            user: user((id, email, role, account, hash, status, created_at)),
            last_seen_at,
        };
        Ok(ListPage::of(rows, count).map(listed))
    }

    /// How many users of an account have email addresses that begin with a text.
    pub async fn count_users(&self, account_id: i64, start: &str) -> Result<i64, StoreFailure> {
        let query = "SELECT COUNT(*) FROM users WHERE account_id = $1 AND email >= $2 AND email < $3";
        let first = NamePosition::new(start, 0);
        if !is_storable(start) {
            return Ok(0);
        }
        fetch_value!(self.pool().await?, query, account_id, &first.folded_name, end_of(&first.folded_name))
    }

    pub async fn has_operator(&self) -> Result<bool, StoreFailure> {
        let query = "SELECT COUNT(*) FROM users WHERE role = 'operator' AND status = 'active' \
                     AND password_hash IS NOT NULL";
        let count: i64 = fetch_value!(self.pool().await?, query)?;
        Ok(count > 0)
    }
}

impl StoreTransaction {
    pub async fn user(&mut self, id: i64) -> Result<Option<UserRecord>, StoreFailure> {
        let row: Option<UserColumns> = fetch!(fetch_optional, self.backend(), SELECT_BY_ID, id)?;
        Ok(row.map(user))
    }

    pub async fn user_with_email(&mut self, email: &str) -> Result<Option<UserRecord>, StoreFailure> {
        if !is_storable(email) {
            return Ok(None);
        }
        let row: Option<UserColumns> = fetch!(fetch_optional, self.backend(), SELECT_BY_EMAIL, email)?;
        Ok(row.map(user))
    }

    /// Adds a user and returns the id; `user.id` is ignored.
    pub async fn insert_user(&mut self, user: &UserRecord) -> Result<i64, StoreFailure> {
        let insert = "INSERT INTO users (email, role, account_id, password_hash, status, created_at) \
                      VALUES ($1, $2, $3, $4, $5, $6) RETURNING id";
        let UserRecord { id: _, email, role, account_id, password_hash, status, created_at } = user;
        fetch_value!(
            self.backend(),
            insert,
            email,
            role.name(),
            account_id,
            password_hash,
            status.name(),
            created_at
        )
    }

    /// Writes what can change of a user: the role, the account, the password and the status.
    pub async fn update_user(&mut self, user: &UserRecord) -> Result<(), StoreFailure> {
        let update =
            "UPDATE users SET role = $1, account_id = $2, password_hash = $3, status = $4 WHERE id = $5";
        execute!(
            self.backend(),
            update,
            user.role.name(),
            user.account_id,
            &user.password_hash,
            user.status.name(),
            user.id
        )
        .map(drop)
    }
}
