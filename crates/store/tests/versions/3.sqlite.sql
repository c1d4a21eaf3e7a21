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

CREATE TABLE usage_minutes (
    account TEXT NOT NULL,
    starts_at INTEGER NOT NULL,
    network TEXT NOT NULL,
    key_id TEXT NOT NULL,
    method TEXT NOT NULL,
    outcome TEXT NOT NULL,
    calls INTEGER NOT NULL,
    credits INTEGER NOT NULL,
    bytes_in INTEGER NOT NULL,
    bytes_out INTEGER NOT NULL,
    latency_ns INTEGER NOT NULL,
    latency_0 INTEGER NOT NULL,
    latency_1 INTEGER NOT NULL,
    latency_2 INTEGER NOT NULL,
    latency_3 INTEGER NOT NULL,
    latency_4 INTEGER NOT NULL,
    latency_5 INTEGER NOT NULL,
    latency_6 INTEGER NOT NULL,
    latency_7 INTEGER NOT NULL,
    latency_8 INTEGER NOT NULL,
    latency_9 INTEGER NOT NULL,
    latency_10 INTEGER NOT NULL,
    latency_11 INTEGER NOT NULL,
    latency_12 INTEGER NOT NULL,
    latency_13 INTEGER NOT NULL,
    latency_14 INTEGER NOT NULL,
    PRIMARY KEY (account, starts_at, network, key_id, method, outcome)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_minutes_by_time ON usage_minutes (starts_at);

CREATE TABLE usage_hours (
    account TEXT NOT NULL,
    starts_at INTEGER NOT NULL,
    network TEXT NOT NULL,
    key_id TEXT NOT NULL,
    method TEXT NOT NULL,
    outcome TEXT NOT NULL,
    calls INTEGER NOT NULL,
    credits INTEGER NOT NULL,
    bytes_in INTEGER NOT NULL,
    bytes_out INTEGER NOT NULL,
    latency_ns INTEGER NOT NULL,
    latency_0 INTEGER NOT NULL,
    latency_1 INTEGER NOT NULL,
    latency_2 INTEGER NOT NULL,
    latency_3 INTEGER NOT NULL,
    latency_4 INTEGER NOT NULL,
    latency_5 INTEGER NOT NULL,
    latency_6 INTEGER NOT NULL,
    latency_7 INTEGER NOT NULL,
    latency_8 INTEGER NOT NULL,
    latency_9 INTEGER NOT NULL,
    latency_10 INTEGER NOT NULL,
    latency_11 INTEGER NOT NULL,
    latency_12 INTEGER NOT NULL,
    latency_13 INTEGER NOT NULL,
    latency_14 INTEGER NOT NULL,
    PRIMARY KEY (account, starts_at, network, key_id, method, outcome)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_hours_by_time ON usage_hours (starts_at);

CREATE TABLE usage_days (
    account TEXT NOT NULL,
    starts_at INTEGER NOT NULL,
    network TEXT NOT NULL,
    key_id TEXT NOT NULL,
    method TEXT NOT NULL,
    outcome TEXT NOT NULL,
    calls INTEGER NOT NULL,
    credits INTEGER NOT NULL,
    bytes_in INTEGER NOT NULL,
    bytes_out INTEGER NOT NULL,
    latency_ns INTEGER NOT NULL,
    latency_0 INTEGER NOT NULL,
    latency_1 INTEGER NOT NULL,
    latency_2 INTEGER NOT NULL,
    latency_3 INTEGER NOT NULL,
    latency_4 INTEGER NOT NULL,
    latency_5 INTEGER NOT NULL,
    latency_6 INTEGER NOT NULL,
    latency_7 INTEGER NOT NULL,
    latency_8 INTEGER NOT NULL,
    latency_9 INTEGER NOT NULL,
    latency_10 INTEGER NOT NULL,
    latency_11 INTEGER NOT NULL,
    latency_12 INTEGER NOT NULL,
    latency_13 INTEGER NOT NULL,
    latency_14 INTEGER NOT NULL,
    PRIMARY KEY (account, starts_at, network, key_id, method, outcome)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_days_by_time ON usage_days (starts_at);

CREATE TABLE usage_flushes (
    instance TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    through INTEGER NOT NULL,
    flushed_at INTEGER NOT NULL,
    PRIMARY KEY (instance, epoch)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE store_version (version BIGINT NOT NULL);
INSERT INTO store_version (version) VALUES (3);
INSERT INTO store_state (id, revision, hash_key) VALUES (1, 3, X'4242424242424242424242424242424242424242424242424242424242424242');
INSERT INTO accounts (name, plan, status, created_at, revision) VALUES ('acme', 'team', 'active', 1700000000, 1);
INSERT INTO accounts (name, plan, status, created_at, revision) VALUES ('beta', 'core', 'suspended', 1700000001, 2);
INSERT INTO api_keys (id, account_id, name, prefix, hash, created_at, last_used_at, expires_at, status, settings, revision)
VALUES ('k_000000000001', 1, 'laptop', '0a1b2c', X'0101010101010101010101010101010101010101010101010101010101010101',
        1700000002, 1700000009, NULL, 'active', '{"rules":{"credits_per_second":7}}', 3);
INSERT INTO audit_entries (at, actor, action, subject, details) VALUES (1700000002, 'cli', 'key.create', 'k_000000000001', '{}');
INSERT INTO usage_days VALUES ('acme', 1700006400, 'mainnet', 'k_000000000001', 'eth_call', 'ok', 3, 240, 300, 600, 9000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
INSERT INTO usage_flushes VALUES ('0011223344556677', 1700000000000, 3, 1700006500);
