CREATE TABLE users (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    email TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL CHECK (role IN ('developer', 'operator')),
    account_id INTEGER REFERENCES accounts (id),
    password_hash TEXT,
    status TEXT NOT NULL CHECK (status IN ('active', 'blocked')),
    created_at INTEGER NOT NULL,
    CHECK (role = 'operator' OR account_id IS NOT NULL)
) STRICT;
CREATE INDEX users_by_account ON users (account_id, id);

CREATE TABLE sessions (
    id TEXT PRIMARY KEY NOT NULL,
    user_id INTEGER NOT NULL REFERENCES users (id),
    hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    browser TEXT NOT NULL,
    address TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_user ON sessions (user_id, id);
CREATE INDEX sessions_by_last_use ON sessions (last_used_at);

CREATE TABLE links (
    hash BLOB PRIMARY KEY NOT NULL CHECK (length(hash) = 32),
    kind TEXT NOT NULL CHECK (kind IN ('invitation', 'reset', 'operator')),
    email TEXT,
    user_id INTEGER REFERENCES users (id),
    account TEXT,
    plan TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX links_by_expiry ON links (expires_at);
