-- Gateways of an earlier version, which would add usage without its sums, find no table for it. Their usage waits in their spools.
ALTER TABLE usage_flushes RENAME TO usage_processes;

CREATE TABLE usage_account_minutes (
    account TEXT COLLATE "C" NOT NULL,
    starts_at BIGINT NOT NULL,
    network TEXT COLLATE "C" NOT NULL,
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
    PRIMARY KEY (account, starts_at, network, method, outcome)
);
CREATE INDEX usage_account_minutes_by_time ON usage_account_minutes (starts_at, account);

CREATE TABLE usage_account_hours (
    account TEXT COLLATE "C" NOT NULL,
    starts_at BIGINT NOT NULL,
    network TEXT COLLATE "C" NOT NULL,
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
    PRIMARY KEY (account, starts_at, network, method, outcome)
);
CREATE INDEX usage_account_hours_by_time ON usage_account_hours (starts_at, account);

CREATE TABLE usage_account_days (
    account TEXT COLLATE "C" NOT NULL,
    starts_at BIGINT NOT NULL,
    network TEXT COLLATE "C" NOT NULL,
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
    PRIMARY KEY (account, starts_at, network, method, outcome)
);
CREATE INDEX usage_account_days_by_time ON usage_account_days (starts_at, account);

CREATE TABLE usage_network_minutes (
    starts_at BIGINT NOT NULL,
    network TEXT COLLATE "C" NOT NULL,
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
    PRIMARY KEY (starts_at, network, method, outcome)
);

CREATE TABLE usage_network_hours (
    starts_at BIGINT NOT NULL,
    network TEXT COLLATE "C" NOT NULL,
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
    PRIMARY KEY (starts_at, network, method, outcome)
);

CREATE TABLE usage_network_days (
    starts_at BIGINT NOT NULL,
    network TEXT COLLATE "C" NOT NULL,
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
    PRIMARY KEY (starts_at, network, method, outcome)
);

CREATE TABLE usage_day_accounts (
    account TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    credits BIGINT NOT NULL,
    PRIMARY KEY (account, day)
);
CREATE INDEX usage_day_accounts_by_day ON usage_day_accounts (day, account);

CREATE TABLE usage_day_keys (
    account TEXT COLLATE "C" NOT NULL,
    key_id TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    credits BIGINT NOT NULL,
    PRIMARY KEY (account, key_id, day)
);
CREATE INDEX usage_day_keys_by_day ON usage_day_keys (day, account, key_id);
CREATE INDEX usage_day_keys_by_key ON usage_day_keys (key_id, account);

CREATE TABLE usage_fills (
    step TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    account TEXT COLLATE "C" NOT NULL,
    starts_at BIGINT NOT NULL
);
INSERT INTO usage_fills (step, account, starts_at) SELECT 'minute', '', 0 WHERE EXISTS (SELECT 1 FROM usage_minutes);
INSERT INTO usage_fills (step, account, starts_at) SELECT 'hour', '', 0 WHERE EXISTS (SELECT 1 FROM usage_hours);
INSERT INTO usage_fills (step, account, starts_at) SELECT 'day', '', 0 WHERE EXISTS (SELECT 1 FROM usage_days);
