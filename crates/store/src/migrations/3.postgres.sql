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
