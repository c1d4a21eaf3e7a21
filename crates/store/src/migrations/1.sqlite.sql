CREATE TABLE store_state (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    revision INTEGER NOT NULL,
    hash_key BLOB NOT NULL CHECK (length(hash_key) = 32)
) STRICT;

CREATE TABLE accounts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    plan TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('active', 'suspended')),
    created_at INTEGER NOT NULL,
    revision INTEGER NOT NULL
) STRICT;
CREATE INDEX accounts_by_revision ON accounts (revision, id);

CREATE TABLE api_keys (
    id TEXT PRIMARY KEY NOT NULL,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    name TEXT NOT NULL,
    prefix TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    expires_at INTEGER,
    status TEXT NOT NULL CHECK (status IN ('active', 'revoked')),
    settings TEXT NOT NULL,
    revision INTEGER NOT NULL
) STRICT;
CREATE INDEX api_keys_by_revision ON api_keys (revision, id);
CREATE INDEX api_keys_by_account ON api_keys (account_id, id);

CREATE TABLE audit_entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    details TEXT NOT NULL
) STRICT;
