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

CREATE TABLE store_version (version BIGINT NOT NULL);
INSERT INTO store_version (version) VALUES (1);
INSERT INTO store_state (id, revision, hash_key) VALUES (1, 3, '\x4242424242424242424242424242424242424242424242424242424242424242');
INSERT INTO accounts (name, plan, status, created_at, revision) VALUES ('acme', 'team', 'active', 1700000000, 1);
INSERT INTO accounts (name, plan, status, created_at, revision) VALUES ('beta', 'core', 'suspended', 1700000001, 2);
INSERT INTO api_keys (id, account_id, name, prefix, hash, created_at, last_used_at, expires_at, status, settings, revision)
VALUES ('k_000000000001', 1, 'laptop', '0a1b2c', '\x0101010101010101010101010101010101010101010101010101010101010101',
        1700000002, 1700000009, NULL, 'active', '{"rules":{"credits_per_second":7}}', 3);
INSERT INTO audit_entries (at, actor, action, subject, details) VALUES (1700000002, 'cli', 'key.create', 'k_000000000001', '{}');
