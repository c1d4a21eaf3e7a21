-- Sums up what builds with version 4 or earlier have stored, as far as those after them have not done so piece by piece. What these
-- have summed up of a step is summed up again. The table usage_fills stays, empty, for gateways with version 6 that still run.

DELETE FROM usage_account_minutes WHERE EXISTS (SELECT 1 FROM usage_fills WHERE step = 'minute');
INSERT INTO usage_account_minutes (
    account, starts_at, network, method, outcome, calls, credits, bytes_in, bytes_out, latency_ns, latency_0,
    latency_1, latency_2, latency_3, latency_4, latency_5, latency_6, latency_7, latency_8, latency_9, latency_10,
    latency_11, latency_12, latency_13, latency_14
)
SELECT
    account, starts_at, network, method, outcome, CAST(SUM(calls) AS BIGINT), CAST(SUM(credits) AS BIGINT),
    CAST(SUM(bytes_in) AS BIGINT), CAST(SUM(bytes_out) AS BIGINT),
    CASE WHEN SUM(latency_ns / 1000) >= 9223372036854775 THEN 9223372036854775807
        ELSE CAST(SUM(latency_ns / 1000) * 1000 + SUM(latency_ns % 1000) AS BIGINT) END,
    CAST(SUM(latency_0) AS BIGINT), CAST(SUM(latency_1) AS BIGINT), CAST(SUM(latency_2) AS BIGINT),
    CAST(SUM(latency_3) AS BIGINT), CAST(SUM(latency_4) AS BIGINT), CAST(SUM(latency_5) AS BIGINT),
    CAST(SUM(latency_6) AS BIGINT), CAST(SUM(latency_7) AS BIGINT), CAST(SUM(latency_8) AS BIGINT),
    CAST(SUM(latency_9) AS BIGINT), CAST(SUM(latency_10) AS BIGINT), CAST(SUM(latency_11) AS BIGINT),
    CAST(SUM(latency_12) AS BIGINT), CAST(SUM(latency_13) AS BIGINT), CAST(SUM(latency_14) AS BIGINT)
FROM usage_minutes WHERE EXISTS (SELECT 1 FROM usage_fills WHERE step = 'minute')
GROUP BY account, starts_at, network, method, outcome;

DELETE FROM usage_network_minutes WHERE EXISTS (SELECT 1 FROM usage_fills WHERE step = 'minute');
INSERT INTO usage_network_minutes (
    starts_at, network, method, outcome, calls, credits, bytes_in, bytes_out, latency_ns, latency_0, latency_1,
    latency_2, latency_3, latency_4, latency_5, latency_6, latency_7, latency_8, latency_9, latency_10, latency_11,
    latency_12, latency_13, latency_14
)
SELECT
    starts_at, network, method, outcome, CAST(SUM(calls) AS BIGINT), CAST(SUM(credits) AS BIGINT),
    CAST(SUM(bytes_in) AS BIGINT), CAST(SUM(bytes_out) AS BIGINT),
    CASE WHEN SUM(latency_ns / 1000) >= 9223372036854775 THEN 9223372036854775807
        ELSE CAST(SUM(latency_ns / 1000) * 1000 + SUM(latency_ns % 1000) AS BIGINT) END,
    CAST(SUM(latency_0) AS BIGINT), CAST(SUM(latency_1) AS BIGINT), CAST(SUM(latency_2) AS BIGINT),
    CAST(SUM(latency_3) AS BIGINT), CAST(SUM(latency_4) AS BIGINT), CAST(SUM(latency_5) AS BIGINT),
    CAST(SUM(latency_6) AS BIGINT), CAST(SUM(latency_7) AS BIGINT), CAST(SUM(latency_8) AS BIGINT),
    CAST(SUM(latency_9) AS BIGINT), CAST(SUM(latency_10) AS BIGINT), CAST(SUM(latency_11) AS BIGINT),
    CAST(SUM(latency_12) AS BIGINT), CAST(SUM(latency_13) AS BIGINT), CAST(SUM(latency_14) AS BIGINT)
FROM usage_minutes WHERE EXISTS (SELECT 1 FROM usage_fills WHERE step = 'minute')
GROUP BY starts_at, network, method, outcome;

DELETE FROM usage_account_hours WHERE EXISTS (SELECT 1 FROM usage_fills WHERE step = 'hour');
INSERT INTO usage_account_hours (
    account, starts_at, network, method, outcome, calls, credits, bytes_in, bytes_out, latency_ns, latency_0,
    latency_1, latency_2, latency_3, latency_4, latency_5, latency_6, latency_7, latency_8, latency_9, latency_10,
    latency_11, latency_12, latency_13, latency_14
)
SELECT
    account, starts_at, network, method, outcome, CAST(SUM(calls) AS BIGINT), CAST(SUM(credits) AS BIGINT),
    CAST(SUM(bytes_in) AS BIGINT), CAST(SUM(bytes_out) AS BIGINT),
    CASE WHEN SUM(latency_ns / 1000) >= 9223372036854775 THEN 9223372036854775807
        ELSE CAST(SUM(latency_ns / 1000) * 1000 + SUM(latency_ns % 1000) AS BIGINT) END,
    CAST(SUM(latency_0) AS BIGINT), CAST(SUM(latency_1) AS BIGINT), CAST(SUM(latency_2) AS BIGINT),
    CAST(SUM(latency_3) AS BIGINT), CAST(SUM(latency_4) AS BIGINT), CAST(SUM(latency_5) AS BIGINT),
    CAST(SUM(latency_6) AS BIGINT), CAST(SUM(latency_7) AS BIGINT), CAST(SUM(latency_8) AS BIGINT),
    CAST(SUM(latency_9) AS BIGINT), CAST(SUM(latency_10) AS BIGINT), CAST(SUM(latency_11) AS BIGINT),
    CAST(SUM(latency_12) AS BIGINT), CAST(SUM(latency_13) AS BIGINT), CAST(SUM(latency_14) AS BIGINT)
FROM usage_hours WHERE EXISTS (SELECT 1 FROM usage_fills WHERE step = 'hour')
GROUP BY account, starts_at, network, method, outcome;

DELETE FROM usage_network_hours WHERE EXISTS (SELECT 1 FROM usage_fills WHERE step = 'hour');
INSERT INTO usage_network_hours (
    starts_at, network, method, outcome, calls, credits, bytes_in, bytes_out, latency_ns, latency_0, latency_1,
    latency_2, latency_3, latency_4, latency_5, latency_6, latency_7, latency_8, latency_9, latency_10, latency_11,
    latency_12, latency_13, latency_14
)
SELECT
    starts_at, network, method, outcome, CAST(SUM(calls) AS BIGINT), CAST(SUM(credits) AS BIGINT),
    CAST(SUM(bytes_in) AS BIGINT), CAST(SUM(bytes_out) AS BIGINT),
    CASE WHEN SUM(latency_ns / 1000) >= 9223372036854775 THEN 9223372036854775807
        ELSE CAST(SUM(latency_ns / 1000) * 1000 + SUM(latency_ns % 1000) AS BIGINT) END,
    CAST(SUM(latency_0) AS BIGINT), CAST(SUM(latency_1) AS BIGINT), CAST(SUM(latency_2) AS BIGINT),
    CAST(SUM(latency_3) AS BIGINT), CAST(SUM(latency_4) AS BIGINT), CAST(SUM(latency_5) AS BIGINT),
    CAST(SUM(latency_6) AS BIGINT), CAST(SUM(latency_7) AS BIGINT), CAST(SUM(latency_8) AS BIGINT),
    CAST(SUM(latency_9) AS BIGINT), CAST(SUM(latency_10) AS BIGINT), CAST(SUM(latency_11) AS BIGINT),
    CAST(SUM(latency_12) AS BIGINT), CAST(SUM(latency_13) AS BIGINT), CAST(SUM(latency_14) AS BIGINT)
FROM usage_hours WHERE EXISTS (SELECT 1 FROM usage_fills WHERE step = 'hour')
GROUP BY starts_at, network, method, outcome;

DELETE FROM usage_account_days WHERE EXISTS (SELECT 1 FROM usage_fills WHERE step = 'day');
INSERT INTO usage_account_days (
    account, starts_at, network, method, outcome, calls, credits, bytes_in, bytes_out, latency_ns, latency_0,
    latency_1, latency_2, latency_3, latency_4, latency_5, latency_6, latency_7, latency_8, latency_9, latency_10,
    latency_11, latency_12, latency_13, latency_14
)
SELECT
    account, starts_at, network, method, outcome, CAST(SUM(calls) AS BIGINT), CAST(SUM(credits) AS BIGINT),
    CAST(SUM(bytes_in) AS BIGINT), CAST(SUM(bytes_out) AS BIGINT),
    CASE WHEN SUM(latency_ns / 1000) >= 9223372036854775 THEN 9223372036854775807
        ELSE CAST(SUM(latency_ns / 1000) * 1000 + SUM(latency_ns % 1000) AS BIGINT) END,
    CAST(SUM(latency_0) AS BIGINT), CAST(SUM(latency_1) AS BIGINT), CAST(SUM(latency_2) AS BIGINT),
    CAST(SUM(latency_3) AS BIGINT), CAST(SUM(latency_4) AS BIGINT), CAST(SUM(latency_5) AS BIGINT),
    CAST(SUM(latency_6) AS BIGINT), CAST(SUM(latency_7) AS BIGINT), CAST(SUM(latency_8) AS BIGINT),
    CAST(SUM(latency_9) AS BIGINT), CAST(SUM(latency_10) AS BIGINT), CAST(SUM(latency_11) AS BIGINT),
    CAST(SUM(latency_12) AS BIGINT), CAST(SUM(latency_13) AS BIGINT), CAST(SUM(latency_14) AS BIGINT)
FROM usage_days WHERE EXISTS (SELECT 1 FROM usage_fills WHERE step = 'day')
GROUP BY account, starts_at, network, method, outcome;

DELETE FROM usage_network_days WHERE EXISTS (SELECT 1 FROM usage_fills WHERE step = 'day');
INSERT INTO usage_network_days (
    starts_at, network, method, outcome, calls, credits, bytes_in, bytes_out, latency_ns, latency_0, latency_1,
    latency_2, latency_3, latency_4, latency_5, latency_6, latency_7, latency_8, latency_9, latency_10, latency_11,
    latency_12, latency_13, latency_14
)
SELECT
    starts_at, network, method, outcome, CAST(SUM(calls) AS BIGINT), CAST(SUM(credits) AS BIGINT),
    CAST(SUM(bytes_in) AS BIGINT), CAST(SUM(bytes_out) AS BIGINT),
    CASE WHEN SUM(latency_ns / 1000) >= 9223372036854775 THEN 9223372036854775807
        ELSE CAST(SUM(latency_ns / 1000) * 1000 + SUM(latency_ns % 1000) AS BIGINT) END,
    CAST(SUM(latency_0) AS BIGINT), CAST(SUM(latency_1) AS BIGINT), CAST(SUM(latency_2) AS BIGINT),
    CAST(SUM(latency_3) AS BIGINT), CAST(SUM(latency_4) AS BIGINT), CAST(SUM(latency_5) AS BIGINT),
    CAST(SUM(latency_6) AS BIGINT), CAST(SUM(latency_7) AS BIGINT), CAST(SUM(latency_8) AS BIGINT),
    CAST(SUM(latency_9) AS BIGINT), CAST(SUM(latency_10) AS BIGINT), CAST(SUM(latency_11) AS BIGINT),
    CAST(SUM(latency_12) AS BIGINT), CAST(SUM(latency_13) AS BIGINT), CAST(SUM(latency_14) AS BIGINT)
FROM usage_days WHERE EXISTS (SELECT 1 FROM usage_fills WHERE step = 'day')
GROUP BY starts_at, network, method, outcome;

DELETE FROM usage_day_accounts WHERE account <> '' AND EXISTS (SELECT 1 FROM usage_fills WHERE step = 'day');
INSERT INTO usage_day_accounts (account, day, credits)
SELECT account, starts_at, CAST(SUM(credits) AS BIGINT) FROM usage_days WHERE EXISTS (SELECT 1 FROM usage_fills WHERE step = 'day')
GROUP BY account, starts_at;

DELETE FROM usage_day_keys WHERE account <> '' AND EXISTS (SELECT 1 FROM usage_fills WHERE step = 'day');
INSERT INTO usage_day_keys (account, key_id, day, credits)
SELECT account, key_id, starts_at, CAST(SUM(credits) AS BIGINT) FROM usage_days WHERE EXISTS (SELECT 1 FROM usage_fills WHERE step = 'day')
GROUP BY account, key_id, starts_at;

DELETE FROM usage_fills;
