-- Gateways of an earlier version, which would add usage without its sums, find no table for it. Their usage waits in their spools.
ALTER TABLE usage_flushes RENAME TO usage_processes;

CREATE TABLE usage_account_minutes (
    account TEXT NOT NULL,
    starts_at INTEGER NOT NULL,
    network TEXT NOT NULL,
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
    PRIMARY KEY (account, starts_at, network, method, outcome)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_account_minutes_by_time ON usage_account_minutes (starts_at, account);

CREATE TABLE usage_account_hours (
    account TEXT NOT NULL,
    starts_at INTEGER NOT NULL,
    network TEXT NOT NULL,
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
    PRIMARY KEY (account, starts_at, network, method, outcome)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_account_hours_by_time ON usage_account_hours (starts_at, account);

CREATE TABLE usage_account_days (
    account TEXT NOT NULL,
    starts_at INTEGER NOT NULL,
    network TEXT NOT NULL,
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
    PRIMARY KEY (account, starts_at, network, method, outcome)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_account_days_by_time ON usage_account_days (starts_at, account);

CREATE TABLE usage_network_minutes (
    starts_at INTEGER NOT NULL,
    network TEXT NOT NULL,
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
    PRIMARY KEY (starts_at, network, method, outcome)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage_network_hours (
    starts_at INTEGER NOT NULL,
    network TEXT NOT NULL,
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
    PRIMARY KEY (starts_at, network, method, outcome)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage_network_days (
    starts_at INTEGER NOT NULL,
    network TEXT NOT NULL,
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
    PRIMARY KEY (starts_at, network, method, outcome)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage_day_accounts (
    account TEXT NOT NULL,
    day INTEGER NOT NULL,
    credits INTEGER NOT NULL,
    PRIMARY KEY (account, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_day_accounts_by_day ON usage_day_accounts (day, account);

CREATE TABLE usage_day_keys (
    account TEXT NOT NULL,
    key_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    credits INTEGER NOT NULL,
    PRIMARY KEY (account, key_id, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_day_keys_by_day ON usage_day_keys (day, account, key_id);
CREATE INDEX usage_day_keys_by_key ON usage_day_keys (key_id, account);

CREATE TABLE usage_fills (
    step TEXT PRIMARY KEY NOT NULL,
    account TEXT NOT NULL,
    starts_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO usage_fills (step, account, starts_at) SELECT 'minute', '', 0 WHERE EXISTS (SELECT 1 FROM usage_minutes);
INSERT INTO usage_fills (step, account, starts_at) SELECT 'hour', '', 0 WHERE EXISTS (SELECT 1 FROM usage_hours);
INSERT INTO usage_fills (step, account, starts_at) SELECT 'day', '', 0 WHERE EXISTS (SELECT 1 FROM usage_days);
