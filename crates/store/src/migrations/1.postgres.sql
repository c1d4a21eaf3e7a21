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
