ALTER TABLE accounts ADD COLUMN folded_name TEXT COLLATE "C" NOT NULL GENERATED ALWAYS AS (lower(name COLLATE "C")) STORED;
CREATE INDEX accounts_by_name ON accounts (folded_name, id);

ALTER TABLE api_keys
    ALTER COLUMN prefix TYPE TEXT COLLATE "C",
    ADD COLUMN folded_name TEXT COLLATE "C" NOT NULL GENERATED ALWAYS AS (lower(name COLLATE "C")) STORED,
    ADD COLUMN is_active BIGINT NOT NULL GENERATED ALWAYS AS (CASE status WHEN 'active' THEN 1 ELSE 0 END) STORED;
CREATE INDEX api_keys_by_age ON api_keys (account_id, is_active, created_at, id);
CREATE INDEX api_keys_by_name ON api_keys (account_id, folded_name, id);
CREATE INDEX api_keys_by_prefix ON api_keys (prefix, id);
CREATE INDEX api_keys_by_account_and_prefix ON api_keys (account_id, prefix, id);

CREATE INDEX users_by_account_and_email ON users (account_id, email, id);

ALTER TABLE audit_entries
    ADD COLUMN folded_subject TEXT COLLATE "C" NOT NULL GENERATED ALWAYS AS (lower(subject COLLATE "C")) STORED;
CREATE INDEX audit_entries_by_subject ON audit_entries (folded_subject, id);
CREATE INDEX audit_entries_by_actor ON audit_entries (actor, id);
CREATE INDEX audit_entries_by_action ON audit_entries (action, id);
