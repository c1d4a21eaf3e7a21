//! Links that are valid once: invitations, new passwords, and new operators.

use crate::backend::{execute, fetch};
use crate::columns::hash_bytes;
use crate::failure::StoreFailure;
use crate::hash_key::HASH_BYTES;
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
        let row: Option<LinkColumns> = fetch!(fetch_optional, self.pool().await?, query, &hash[..])?;
        row.map(link).transpose()
    }
}

impl StoreTransaction {
    pub async fn insert_link(&mut self, link: &LinkRecord) -> Result<(), StoreFailure> {
        let insert = "INSERT INTO links (hash, kind, email, user_id, account, plan, created_at, expires_at) \
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        execute!(
            self.backend(),
            insert,
            &link.hash[..],
            link.kind.name(),
            &link.email,
            link.user_id,
            &link.account,
            &link.plan,
            link.created_at,
            link.expires_at
        )
        .map(drop)
    }

    /// Deletes a link and returns it, expired or not: whoever gets it is the only one.
    pub async fn take_link(&mut self, hash: &[u8; HASH_BYTES]) -> Result<Option<LinkRecord>, StoreFailure> {
        let delete = "DELETE FROM links WHERE hash = $1 \
                      RETURNING hash, kind, email, user_id, account, plan, created_at, expires_at";
        let row: Option<LinkColumns> = fetch!(fetch_optional, self.backend(), delete, &hash[..])?;
        row.map(link).transpose()
    }

    pub async fn delete_expired_links(&mut self, now: i64) -> Result<(), StoreFailure> {
        let delete = "DELETE FROM links WHERE expires_at <= $1";
        execute!(self.backend(), delete, now).map(drop)
    }

    /// Deletes all links that set a new password of a user.
    pub async fn delete_reset_links(&mut self, user_id: i64) -> Result<(), StoreFailure> {
        let delete = "DELETE FROM links WHERE user_id = $1 AND kind = 'reset'";
        execute!(self.backend(), delete, user_id).map(drop)
    }
}
