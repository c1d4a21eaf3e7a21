//! Links that are valid once: invitations, new passwords, and new operators.

use crate::backend::each_backend;
use crate::columns::hash_bytes;
use crate::failure::StoreFailure;
use crate::hash_key::HASH_BYTES;
use crate::operation_timeout::within_timeout;
use crate::store::Store;
use crate::transaction::StoreTransaction;

/// A link that is valid once. It is deleted when it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRecord {
    /// The keyed hash of the token in the link.
    pub hash: [u8; HASH_BYTES],
    pub kind: LinkKind,
    /// The email address of the only person who may use an invitation.
    pub email: Option<String>,
    /// The user who gets a new password.
    pub user_id: Option<i64>,
    /// The name of the account that an invitation leads to.
    pub account: Option<String>,
    /// The plan of that account, if the invitation creates it.
    pub plan: Option<String>,
    pub created_at: i64,
    pub expires_at: i64,
}

/// What a link is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// Makes a developer of an account.
    Invitation,
    /// Sets a new password.
    Reset,
    /// Makes an operator.
    Operator,
}

impl LinkKind {
    const ALL: [Self; 3] = [Self::Invitation, Self::Reset, Self::Operator];

    pub fn name(self) -> &'static str {
        match self {
            Self::Invitation => "invitation",
            Self::Reset => "reset",
            Self::Operator => "operator",
        }
    }

    fn named(name: &str) -> Result<Self, StoreFailure> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| StoreFailure::Refused("a link has an unknown kind".to_owned()))
    }
}

type LinkColumns = (Vec<u8>, String, Option<String>, Option<i64>, Option<String>, Option<String>, i64, i64);

fn link(columns: LinkColumns) -> Result<LinkRecord, StoreFailure> {
    let (hash, kind, email, user_id, account, plan, created_at, expires_at) = columns;
    let (hash, kind) = (hash_bytes(hash)?, LinkKind::named(&kind)?);
    Ok(LinkRecord { hash, kind, email, user_id, account, plan, created_at, expires_at })
}

impl Store {
    /// The link with this hash, expired or not.
    pub async fn link_with_hash(&self, hash: &[u8; HASH_BYTES]) -> Result<Option<LinkRecord>, StoreFailure> {
        let query = "SELECT hash, kind, email, user_id, account, plan, created_at, expires_at FROM links \
                     WHERE hash = $1";
        let row: Option<LinkColumns> = each_backend!(self.pool().await?, pool => {
            within_timeout(sqlx::query_as(query).bind(&hash[..]).fetch_optional(pool)).await?
        });
        row.map(link).transpose()
    }
}

impl StoreTransaction {
    pub async fn insert_link(&mut self, link: &LinkRecord) -> Result<(), StoreFailure> {
        let insert = "INSERT INTO links (hash, kind, email, user_id, account, plan, created_at, expires_at) \
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        each_backend!(self.backend(), connection => {
            let insert = sqlx::query(insert)
                .bind(&link.hash[..]).bind(link.kind.name()).bind(&link.email).bind(link.user_id)
                .bind(&link.account).bind(&link.plan).bind(link.created_at).bind(link.expires_at);
            within_timeout(insert.execute(&mut **connection)).await.map(drop)
        })
    }

    /// Deletes a link and returns it, expired or not: whoever gets it is the only one.
    pub async fn take_link(&mut self, hash: &[u8; HASH_BYTES]) -> Result<Option<LinkRecord>, StoreFailure> {
        let delete = "DELETE FROM links WHERE hash = $1 \
                      RETURNING hash, kind, email, user_id, account, plan, created_at, expires_at";
        let row: Option<LinkColumns> = each_backend!(self.backend(), connection => {
            within_timeout(sqlx::query_as(delete).bind(&hash[..]).fetch_optional(&mut **connection)).await?
        });
        row.map(link).transpose()
    }

    /// Deletes the links that have expired by `now`.
    pub async fn delete_expired_links(&mut self, now: i64) -> Result<(), StoreFailure> {
        let delete = "DELETE FROM links WHERE expires_at <= $1";
        each_backend!(self.backend(), connection => {
            within_timeout(sqlx::query(delete).bind(now).execute(&mut **connection)).await.map(drop)
        })
    }

    /// Deletes all links that set a new password of a user.
    pub async fn delete_reset_links(&mut self, user_id: i64) -> Result<(), StoreFailure> {
        let delete = "DELETE FROM links WHERE user_id = $1 AND kind = 'reset'";
        each_backend!(self.backend(), connection => {
            within_timeout(sqlx::query(delete).bind(user_id).execute(&mut **connection)).await.map(drop)
        })
    }
}
