CREATE TABLE store_state (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    revision BIGINT NOT NULL,
    hash_key BYTEA NOT NULL CHECK (length(hash_key) = 32)
);

CREATE TABLE accounts (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    plan TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('active', 'suspended')),
    created_at BIGINT NOT NULL,
    revision BIGINT NOT NULL
);
CREATE INDEX accounts_by_revision ON accounts (revision, id);

CREATE TABLE api_keys (
    id TEXT COLLATE "C" PRIMARY KEY,
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    name TEXT NOT NULL,
    prefix TEXT NOT NULL,
    hash BYTEA NOT NULL UNIQUE CHECK (length(hash) = 32),
    created_at BIGINT NOT NULL,
    last_used_at BIGINT,
    expires_at BIGINT,
    status TEXT NOT NULL CHECK (status IN ('active', 'revoked')),
    settings TEXT NOT NULL,
    revision BIGINT NOT NULL
);
CREATE INDEX api_keys_by_revision ON api_keys (revision, id);
CREATE INDEX api_keys_by_account ON api_keys (account_id, id);

CREATE TABLE audit_entries (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    details TEXT NOT NULL
);

CREATE TABLE usage_minutes (
    account TEXT COLLATE "C" NOT NULL,
    starts_at BIGINT NOT NULL,
    network TEXT COLLATE "C" NOT NULL,
    key_id TEXT COLLATE "C" NOT NULL,
    method TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    calls BIGINT NOT NULL,
    credits BIGINT NOT NULL,
    bytes_in BIGINT NOT NULL,
    bytes_out BIGINT NOT NULL,
    latency_ns BIGINT NOT NULL,
    latency_0 BIGINT NOT NULL,
    latency_1 BIGINT NOT NULL,
    latency_2 BIGINT NOT NULL,
    latency_3 BIGINT NOT NULL,
    latency_4 BIGINT NOT NULL,
    latency_5 BIGINT NOT NULL,
    latency_6 BIGINT NOT NULL,
    latency_7 BIGINT NOT NULL,
    latency_8 BIGINT NOT NULL,
    latency_9 BIGINT NOT NULL,
    latency_10 BIGINT NOT NULL,
    latency_11 BIGINT NOT NULL,
    latency_12 BIGINT NOT NULL,
    latency_13 BIGINT NOT NULL,
    latency_14 BIGINT NOT NULL,
    PRIMARY KEY (account, starts_at, network, key_id, method, outcome)
);
CREATE INDEX usage_minutes_by_time ON usage_minutes (starts_at);

CREATE TABLE usage_hours (
    account TEXT COLLATE "C" NOT NULL,
    starts_at BIGINT NOT NULL,
    network TEXT COLLATE "C" NOT NULL,
    key_id TEXT COLLATE "C" NOT NULL,
    method TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    calls BIGINT NOT NULL,
    credits BIGINT NOT NULL,
    bytes_in BIGINT NOT NULL,
    bytes_out BIGINT NOT NULL,
    latency_ns BIGINT NOT NULL,
    latency_0 BIGINT NOT NULL,
    latency_1 BIGINT NOT NULL,
    latency_2 BIGINT NOT NULL,
    latency_3 BIGINT NOT NULL,
    latency_4 BIGINT NOT NULL,
    latency_5 BIGINT NOT NULL,
    latency_6 BIGINT NOT NULL,
    latency_7 BIGINT NOT NULL,
    latency_8 BIGINT NOT NULL,
    latency_9 BIGINT NOT NULL,
    latency_10 BIGINT NOT NULL,
    latency_11 BIGINT NOT NULL,
    latency_12 BIGINT NOT NULL,
    latency_13 BIGINT NOT NULL,
    latency_14 BIGINT NOT NULL,
    PRIMARY KEY (account, starts_at, network, key_id, method, outcome)
);
CREATE INDEX usage_hours_by_time ON usage_hours (starts_at);

CREATE TABLE usage_days (
    account TEXT COLLATE "C" NOT NULL,
    starts_at BIGINT NOT NULL,
    network TEXT COLLATE "C" NOT NULL,
    key_id TEXT COLLATE "C" NOT NULL,
    method TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    calls BIGINT NOT NULL,
    credits BIGINT NOT NULL,
    bytes_in BIGINT NOT NULL,
    bytes_out BIGINT NOT NULL,
    latency_ns BIGINT NOT NULL,
    latency_0 BIGINT NOT NULL,
    latency_1 BIGINT NOT NULL,
    latency_2 BIGINT NOT NULL,
    latency_3 BIGINT NOT NULL,
    latency_4 BIGINT NOT NULL,
    latency_5 BIGINT NOT NULL,
    latency_6 BIGINT NOT NULL,
    latency_7 BIGINT NOT NULL,
    latency_8 BIGINT NOT NULL,
    latency_9 BIGINT NOT NULL,
    latency_10 BIGINT NOT NULL,
    latency_11 BIGINT NOT NULL,
    latency_12 BIGINT NOT NULL,
    latency_13 BIGINT NOT NULL,
    latency_14 BIGINT NOT NULL,
    PRIMARY KEY (account, starts_at, network, key_id, method, outcome)
);
CREATE INDEX usage_days_by_time ON usage_days (starts_at);

CREATE TABLE usage_flushes (
    instance TEXT COLLATE "C" NOT NULL,
    epoch BIGINT NOT NULL,
    through BIGINT NOT NULL,
    flushed_at BIGINT NOT NULL,
    PRIMARY KEY (instance, epoch)
);

CREATE TABLE users (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email TEXT COLLATE "C" NOT NULL UNIQUE,
    role TEXT NOT NULL CHECK (role IN ('developer', 'operator')),
    account_id BIGINT REFERENCES accounts (id),
    password_hash TEXT,
    status TEXT NOT NULL CHECK (status IN ('active', 'blocked')),
    created_at BIGINT NOT NULL,
    CHECK (role = 'operator' OR account_id IS NOT NULL)
);
CREATE INDEX users_by_account ON users (account_id, id);

CREATE TABLE sessions (
    id TEXT COLLATE "C" PRIMARY KEY,
    user_id BIGINT NOT NULL REFERENCES users (id),
    hash BYTEA NOT NULL UNIQUE CHECK (length(hash) = 32),
    browser TEXT NOT NULL,
    address TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL
);
CREATE INDEX sessions_by_user ON sessions (user_id, id);
CREATE INDEX sessions_by_last_use ON sessions (last_used_at);

CREATE TABLE links (
    hash BYTEA PRIMARY KEY CHECK (length(hash) = 32),
    kind TEXT NOT NULL CHECK (kind IN ('invitation', 'reset', 'operator')),
    email TEXT,
    user_id BIGINT REFERENCES users (id),
    account TEXT,
    plan TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX links_by_expiry ON links (expires_at);

CREATE TABLE store_version (version BIGINT NOT NULL);
INSERT INTO store_version (version) VALUES (3);
INSERT INTO store_state (id, revision, hash_key) VALUES (1, 3, '\x4242424242424242424242424242424242424242424242424242424242424242');
INSERT INTO accounts (name, plan, status, created_at, revision) VALUES ('acme', 'team', 'active', 1700000000, 1);
INSERT INTO accounts (name, plan, status, created_at, revision) VALUES ('beta', 'core', 'suspended', 1700000001, 2);
INSERT INTO api_keys (id, account_id, name, prefix, hash, created_at, last_used_at, expires_at, status, settings, revision)
VALUES ('k_000000000001', 1, 'laptop', '0a1b2c', '\x0101010101010101010101010101010101010101010101010101010101010101',
        1700000002, 1700000009, NULL, 'active', '{"rules":{"credits_per_second":7}}', 3);
INSERT INTO audit_entries (at, actor, action, subject, details) VALUES (1700000002, 'cli', 'key.create', 'k_000000000001', '{}');
INSERT INTO usage_days VALUES ('acme', 1700006400, 'mainnet', 'k_000000000001', 'eth_call', 'ok', 3, 240, 300, 600, 9000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
INSERT INTO usage_flushes VALUES ('0011223344556677', 1700000000000, 3, 1700006500);
