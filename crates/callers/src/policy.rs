//! Times and limits of this crate: what happens at each, and why it has its value.

use std::time::Duration;

// Limits that several instances share.

/// Time between two exchanges with Redis. Several of them pass in the time in which the parts have to follow callers that move.
pub(crate) const EXCHANGE_PAUSE: Duration = Duration::from_millis(200);

/// A limit that is used for the first time is reported after this time, together with others.
pub(crate) const WAKE_PAUSE: Duration = Duration::from_millis(5);

/// Limits without refusals and changes are reported after this time, others at every exchange.
pub(crate) const CALM_REPORT: Duration = Duration::from_millis(400);

/// Limits that are reported in one exchange; the others wait for the next, the one that waited longest first. In the 3 seconds
/// for which nobody gets more after Redis has lost its data, about 28,000 limits are reported.
pub(crate) const LIMITS_PER_EXCHANGE_MAX: usize = 2_000;

/// Limits in one call of the script, which blocks Redis for about a millisecond with so many.
pub(crate) const ITEMS_PER_CALL_MAX: usize = 200;

/// Redis counts as gone when it has not answered by then: longer than a round trip over any network on which limits should be
/// shared, and short enough that an instance that has lost an answer reports again within `SETTLE_MS` of `divide.lua`.
pub(crate) const REDIS_ANSWER_MAX: Duration = Duration::from_millis(500);

/// The start of a gateway waits so long until Redis divides limits, so that its first callers get their part: a little longer than
/// `SETTLE_MS` of `divide.lua`.
pub(crate) const REDIS_READY_MAX: Duration = Duration::from_secs(4);

/// The end of a gateway waits so long for Redis to take back its parts; otherwise others get them when it has been silent for long.
pub(crate) const LEAVE_REDIS_TIMEOUT: Duration = Duration::from_millis(500);

/// An instance keeps its part of a limit for so long after the last call.
pub(crate) const LEAVE_LIMIT_AFTER: Duration = Duration::from_secs(60);

/// Instances that Redis has not given a part use this part of a limit together, on top of what others hold. So the sum stays within
/// 1.2 times the limit, also if instances that started together know of 1, 2, 3, … others.
pub(crate) const LEAST_PARTS: u64 = 10;

/// The least number of instances by which that is divided, because some may not be known yet.
pub(crate) const LEAST_PARTS_INSTANCES_MIN: u64 = 4;

/// Demand is averaged over about this time: longer than the pauses between the calls of a busy caller, and short enough to follow
/// callers that move from one instance to another.
pub(crate) const DEMAND_AVERAGED_OVER: Duration = Duration::from_secs(1);

/// Callers that were silent for so long have moved, or make a call now and then: their demand is at most that of one call.
pub(crate) const SILENT_AFTER: Duration = Duration::from_secs(1);

/// Demand is not measured over shorter times, because one call would look like a flood.
pub(crate) const DEMAND_MEASURED_MIN: Duration = Duration::from_millis(10);

// The feed of accounts and keys.

/// How often the store is asked for changes. Notifications are faster, but can get lost.
pub(crate) const FEED_POLL_INTERVAL: Duration = Duration::from_millis(400);

/// How long the feed waits after a failure.
pub(crate) const FEED_RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// How long the store may take for a question about changes. A connection that hangs is then replaced.
pub(crate) const FEED_STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a lost connection for notifications is not opened again.
pub(crate) const LISTEN_RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// How long a connection for notifications is used: one that hangs looks like one without notifications.
pub(crate) const LISTEN_TIME_MAX: Duration = Duration::from_secs(60);

/// How often the times of the last use of keys are stored.
pub(crate) const RECORD_USES_INTERVAL: Duration = Duration::from_secs(10);

/// Keys whose last use is stored before changes have their turn again: one statement of some milliseconds.
pub(crate) const RECORDED_USES_MAX: usize = 1_000;

/// How long a key that was revoked here, and that the store did not take, is not sent again.
pub(crate) const REVOCATION_RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// How long the start of the gateway waits for the first attempt to load the store; a million keys take seconds.
pub(crate) const FIRST_LOAD_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a change waits until the directory of this process has it. The change is stored by then in any case.
pub(crate) const APPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the end of the feed waits until the local copy has the last changes.
pub(crate) const COPY_STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a feed that has loaded the store may neither read anything nor fail. Each of its questions to the store takes seconds
/// at most.
pub(crate) const FEED_STANDSTILL_MAX: Duration = Duration::from_secs(60);

/// Keys that one statement reads when changes are followed. Each can have settings of 64 KiB, which makes 3 MiB: slow networks
/// carry that within the bound.
pub(crate) const CHANGED_KEYS_MAX: i64 = 50;

/// Pages of a load that wait until they are applied.
pub(crate) const FEED_PAGES_WAITING_MAX: usize = 2;

/// How long after its expiry a key stays in memory, in case the clock of this machine was wrong.
pub(crate) const EXPIRED_KEPT_SECONDS: i64 = 24 * 60 * 60;

/// Refused rows whose ids are remembered; further ones are only logged.
pub(crate) const BAD_ROWS_MAX: usize = 10_000;

/// Keys that are named in the log after the store has lost changes; all are counted.
pub(crate) const LOST_KEYS_LOGGED_MAX: usize = 20;

/// Used keys that wait until the time of their use is stored; what exceeds it is recorded with a later use.
pub(crate) const USED_KEYS_MAX: usize = 100_000;

// The local copy.

/// Changes that wait for the disk. With more of them, everything is written anew.
pub(crate) const COPY_CHANGES_WAITING_MAX: usize = 10_000;

/// How often the copy is told that the store was followed, and so how exact its age is.
pub(crate) const COPY_TIME_INTERVAL: Duration = Duration::from_secs(60);

/// How long a copy that could not be written is not tried again.
pub(crate) const COPY_RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// Rows of the copy that are applied together: 32 MiB, if all are keys with the longest settings.
pub(crate) const COPY_BATCH_ROWS: usize = 500;

/// Changed rows after which the copy is written anew, if they are also more than its other rows.
pub(crate) const COPY_CHANGED_ROWS_MAX: u64 = 10_000;

/// Bytes of changed rows after which the copy is written anew: a row can have 64 KiB of settings.
pub(crate) const COPY_CHANGED_BYTES_MAX: u64 = 16 << 20;

// Keys and their settings.

/// Valid keys of one account, whatever its plan allows: people and programs can still read a list of them.
pub(crate) const KEYS_OF_ACCOUNT_MAX: u64 = 10_000;

/// The longest time for which an old key is accepted after a rotation.
pub(crate) const OVERLAP_SECONDS_MAX: u64 = 30 * 24 * 60 * 60;

/// Keys that a search for first characters shows; more than that need another character.
pub(crate) const KEYS_FOUND_MAX: i64 = 20;

/// People that a search among all accounts shows; more than that need another character.
pub(crate) const USERS_FOUND_MAX: i64 = 20;

/// Bytes of one detail of an entry of the audit log. Settings of a key can have 64 KiB, and each change of them adds an entry.
pub(crate) const AUDIT_DETAIL_BYTES_MAX: usize = 2 << 10;

/// Keys that are refused on one gateway. They are kept after the store has them, because a copy that takes the place of the store
/// can lack their revocation; only the oldest make room for others.
pub(crate) const LOCAL_REVOCATIONS_MAX: usize = 10_000;

/// Keys of one import. It is one change of the store, and others wait for it: some seconds.
pub(crate) const IMPORTED_KEYS_MAX: usize = 10_000;

/// Characters that a key of another gateway must have. Six of them are shown to people, and the others are still out of reach of
/// guesses.
pub(crate) const IMPORTED_KEY_BYTES_MIN: usize = 20;

/// Bytes of the settings of one key, so that a million keys fit into memory. A long list of addresses has a few kilobytes.
pub(crate) const SETTINGS_BYTES_MAX: usize = 64 << 10;

/// Bytes of a secret; HTTP headers are limited as well.
pub(crate) const SECRET_BYTES_MAX: usize = 512;

/// The largest number of credits: sums of such numbers stay within 64 bits.
pub(crate) const CREDITS_MAX: u64 = 1 << 50;

/// Entries of an allow-list that is compared with a request one by one, so that nobody can make the check of their key slow.
pub(crate) const COMPARED_ENTRIES_MAX: usize = 100;

/// Entries of an allow-list that is looked up by hash.
pub(crate) const HASHED_ENTRIES_MAX: usize = 1_000;

/// Public keys that sign tokens: each is tried with a token. A deployment has one, and two while it changes it.
pub(crate) const PUBLIC_KEYS_MAX: usize = 8;

/// Bytes of a `User-Agent` header in which a list is looked for; those of browsers have about 120.
pub(crate) const AGENT_BYTES_MAX: usize = 512;

/// Bytes of an `Origin` header; a host name has at most 253.
pub(crate) const ORIGIN_BYTES_MAX: usize = 300;

/// Tolerated difference between the clock of the signer and the clock of this machine.
pub(crate) const TOKEN_LEEWAY_S: u64 = 5;

// Usage.

/// How often usage is written: a process that is killed loses what it counted since the last time.
pub(crate) const COLLECTION_INTERVAL: Duration = Duration::from_millis(100);

/// Collections after which a spool that takes nothing is tried again at the latest: five seconds.
pub(crate) const COLLECTIONS_SKIPPED_MAX: u32 = 50;

/// How often usage is moved to the store.
pub(crate) const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// How often the flusher looks for spools of processes that have ended, deletes old usage, and raises the limits of all keys.
pub(crate) const USAGE_UPKEEP_INTERVAL: Duration = Duration::from_secs(30);

/// How long the program waits for the store when it stops. Usage that is not stored by then stays in the spool.
pub(crate) const FLUSHER_STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the program waits for the store to take usage in memory, which is lost if neither the store nor the spool takes it.
pub(crate) const MEMORY_STOP_TIMEOUT: Duration = Duration::from_secs(15);

/// How long the store remembers a process, and how old an entry of its spool may be to be added: an older one could have been
/// added before.
pub(crate) const FLUSHES_KEPT_SECONDS: u64 = 400 * 24 * 60 * 60;

/// Times that some old usage of one step is deleted before new usage has its turn again.
pub(crate) const DELETIONS_MAX: usize = 20;

/// Characters of a tag: a name, or a number that a program has.
pub(crate) const TAG_BYTES_MAX: usize = 64;

/// Tags of one key on one day, in one process. Each makes rows of its own in the store.
pub(crate) const TAGS_OF_KEY_MAX: usize = 32;

/// Keys whose tags one process remembers on one day: 30 MB. The tags of further keys count as others.
pub(crate) const TAGGED_KEYS_MAX: usize = 10_000;

/// Groups that a shard counts between two collections: 16 MiB. Only a collector that is stuck lets a shard grow so large.
pub(crate) const SHARD_GROUPS_MAX: usize = 1 << 16;

/// Groups that wait in memory while the spool cannot be written. Further groups are lost.
pub(crate) const WAITING_GROUPS_MAX: usize = 1 << 16;

/// The size at which a new file of the spool is begun. Files are deleted as a whole, so this much may stay on disk although it is stored.
pub(crate) const SPOOL_FILE_BYTES: u64 = 4 << 20;

/// Rows of usage in one transaction at most, or those of one entry: a transaction of the store takes a second with them, and not a minute.
pub(crate) const USAGE_BATCH_ROWS_MAX: usize = 8_192;

/// How many bytes of usage wait on disk for a store that is down: days of usage of thousands of keys.
pub(crate) const SPOOL_BYTES_MAX: u64 = 1 << 30;

/// How long usage by minute is kept, in days.
pub(crate) const MINUTES_KEPT_DAYS: u64 = 2;

/// How long usage by hour is kept, in days.
pub(crate) const HOURS_KEPT_DAYS: u64 = 60;

/// The longest time for which usage can be kept, in days: a hundred years.
pub(crate) const KEPT_DAYS_MAX: u64 = 36_525;

/// Accounts or keys that are looked up together, if each has one time. More times make them fewer, so that no statement reads
/// more than some thousand rows.
pub(crate) const LOOKUPS_MAX: u64 = 500;

/// Lookups for one page at most. Those that find nothing must not keep a page from ending.
pub(crate) const LOOKUPS_OF_PAGE_MAX: usize = 400;

/// Accounts with keys of the same id; only keys of configuration files can have one.
pub(crate) const ACCOUNTS_WITH_KEY_MAX: usize = 1_000;

// People who sign in.

/// Attempts to sign in with one email address from one network address before the first wait. People try a handful of passwords.
pub(crate) const FREE_BY_EMAIL: u32 = 8;

/// Attempts to sign in with one email address from all network addresses before the first wait.
pub(crate) const FREE_BY_EMAIL_ANYWHERE: u32 = 16;

/// Attempts to sign in from one network address before the first wait; an office shares one.
pub(crate) const FREE_BY_ADDRESS: u32 = 24;

/// The first wait after too many attempts to sign in. Each further attempt doubles it.
pub(crate) const FIRST_WAIT_S: u64 = 5;

/// The longest wait before an attempt to sign in, so that nobody is locked out for long by the attempts of somebody else.
pub(crate) const WAIT_S_MAX: u64 = 15 * 60;

/// Attempts to sign in are forgotten after this time without another one.
pub(crate) const FORGOTTEN_AFTER_S: u64 = 60 * 60;

/// Entries of each table of attempts to sign in. The one with the fewest attempts makes room for a new one, the oldest first among equals.
pub(crate) const THROTTLE_ENTRIES_MAX: usize = 10_000;

/// A session ends when it was not used for this long.
pub(crate) const SESSION_IDLE_S: i64 = 12 * 60 * 60;

/// A session ends this long after it began.
pub(crate) const SESSION_AGE_S: i64 = 30 * 24 * 60 * 60;

/// The use of a session is recorded once in this time.
pub(crate) const SESSION_USE_RECORDED_S: i64 = 60;

/// Sessions of one user. The one that was not used for longest makes room for a new one.
pub(crate) const SESSIONS_MAX: i64 = 50;

/// Characters of the description of a browser that are stored.
pub(crate) const BROWSER_CHARACTERS_MAX: usize = 200;

/// Names that are tried for the account of a new operator.
pub(crate) const ACCOUNT_NAMES_TRIED: u32 = 100;

/// How long an invitation is valid.
pub(crate) const INVITATION_S: i64 = 7 * 24 * 60 * 60;

/// How long the links are valid with which a password is set: whoever has one is signed in by it.
pub(crate) const PASSWORD_LINK_S: i64 = 24 * 60 * 60;

/// The longest password, so that hashing takes the same time for all.
pub(crate) const PASSWORD_BYTES_MAX: usize = 256;

/// The most memory that a stored hash may ask for, so that a row of the store cannot exhaust the process.
pub(crate) const HASH_MEMORY_KIB_MAX: u32 = 256 * 1_024;

/// Threads that hash passwords, and so hashes at once: each takes 19 MiB and a core.
pub(crate) const HASHER_THREADS: usize = 2;

/// Passwords that wait to be hashed at most; at 30 ms each the last one waits for a quarter of a second.
pub(crate) const HASHES_WAITING_MAX: usize = 16;

/// How long a thread waits for a password before it shows again that it is alive.
pub(crate) const HASHER_ALIVE_INTERVAL: Duration = Duration::from_millis(500);

/// The longest address that mail servers accept.
pub(crate) const EMAIL_BYTES_MAX: usize = 254;
