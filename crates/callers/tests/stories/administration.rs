use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use callers::KeyPatch;
use callers::administration::{AccountCounts, AdministrationError, KeyCreation};
use serde_json::{Value, json};

use crate::place::{Place, account_with_key, creation, run};

fn patch(members: Value) -> KeyPatch {
    serde_json::from_value(members).unwrap()
}

#[test]
fn a_key_is_shown_once_and_never_stored() {
    let place = Place::new();
    let administration = place.administration();
    run(async {
        let new = account_with_key(&administration, "acme").await;
        assert_eq!(new.key.len(), 32);
        assert!(new.key.bytes().all(|letter| matches!(letter, b'0'..=b'9' | b'a'..=b'f')));
        assert_eq!(new.summary.prefix, new.key[..6]);
        assert!(new.summary.id.starts_with("k_") && new.summary.id.len() == 14);
        assert!(!format!("{new:?}").contains(&new.key));
        let listed = administration.list_keys("acme", "").await.unwrap().rows;
        assert_eq!(listed, [new.summary]);
        for name in ["callers.sqlite", "callers.sqlite-wal"] {
            let bytes = std::fs::read(place.file(name)).unwrap();
            assert!(!bytes.windows(32).any(|part| part == new.key.as_bytes()), "{name}");
        }
    });
}

#[test]
fn wrong_changes_are_refused_with_their_reason() {
    let place = Place::new();
    let administration = place.administration();
    run(async {
        account_with_key(&administration, "acme").await;
        let again = administration.create_account("test", "acme", "core").await.unwrap_err();
        assert_eq!(again.to_string(), "the account `acme` exists already");
        for (name, plan, field) in
            [("", "core", "name"), (" a", "core", "name"), ("a\n", "core", "name"), ("b", "gold", "plan")]
        {
            let refused = administration.create_account("test", name, plan).await;
            assert!(
                matches!(&refused, Err(AdministrationError::Invalid { field: found, .. }) if *found == field),
                "{refused:?}"
            );
        }
        let unknown = administration.create_key("test", &creation("nobody", "k")).await;
        assert!(matches!(unknown, Err(AdministrationError::NotFound { what: "account", .. })), "{unknown:?}");
        let unknown = administration.revoke_key("test", "k_000000000000").await;
        assert!(matches!(unknown, Err(AdministrationError::NotFound { what: "key", .. })), "{unknown:?}");
        let expired = KeyCreation { expires_at: Some(1), ..creation("acme", "k") };
        let expired = administration.create_key("test", &expired).await;
        assert!(
            matches!(expired, Err(AdministrationError::Invalid { field: "expires_at", .. })),
            "{expired:?}"
        );
    });
}

#[test]
fn a_plan_limits_the_keys_of_an_account() {
    let place = Place::new();
    let administration = place.administration();
    run(async {
        administration.create_account("test", "acme", "core").await.unwrap();
        let first = administration.create_key("test", &creation("acme", "first")).await.unwrap();
        let too_many = Err(AdministrationError::TooManyKeys { plan: "core".to_owned(), max: 1 });
        assert_eq!(administration.create_key("test", &creation("acme", "second")).await, too_many);
        // A rotation may exceed the limit until the overlap ends, but not twice.
        let second = administration.rotate_key("test", &first.summary.id, 3_600, None).await.unwrap();
        assert_eq!(administration.rotate_key("test", &second.summary.id, 3_600, None).await, too_many);
        administration.revoke_key("test", &first.summary.id).await.unwrap();
        let third = administration.rotate_key("test", &second.summary.id, 0, None).await.unwrap();
        administration.revoke_key("test", &third.summary.id).await.unwrap();
        administration.create_key("test", &creation("acme", "second")).await.unwrap();
        administration.set_plan("test", "acme", "developer").await.unwrap();
        administration.create_key("test", &creation("acme", "third")).await.unwrap();
        let back = administration.set_plan("test", "acme", "core").await;
        assert!(matches!(back, Err(AdministrationError::TooManyKeys { .. })), "{back:?}");
    });
}

/// An account could take the name of an account of the configuration file. It then saw the usage of that account and shared
/// its daily credits.
#[test]
fn the_names_of_accounts_in_the_configuration_are_taken() {
    let place = Place::new();
    let administration = place.administration().with_configured_accounts(["acme", "globex"].into_iter());
    run(async {
        for name in ["acme", "globex"] {
            let refused = administration.create_account("test", name, "core").await.unwrap_err();
            assert_eq!(refused.to_string(), format!("the account `{name}` exists already"));
        }
        administration.create_account("test", "initech", "core").await.unwrap();
        assert_eq!(administration.list_accounts(0).await.unwrap().rows.len(), 1);
    });
}

/// Plans without `keys_max` allowed any number of keys, with 64 KiB of settings each.
#[test]
fn an_account_has_at_most_ten_thousand_valid_keys() {
    let place = Place::new();
    let administration = place.administration();
    run(async {
        let first = account_with_key(&administration, "acme").await.summary.clone();
        place
            .execute(
                "WITH RECURSIVE numbers(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10000) \
                 INSERT INTO api_keys (id, account_id, name, prefix, hash, created_at, status, settings, revision) \
                 SELECT printf('k_%012x', n), 1, 'key ' || n, 'abcdef', randomblob(32), 0, 'active', '{}', 2 FROM numbers",
            )
            .await;
        let too_many = Err(AdministrationError::TooManyKeys { plan: "team".to_owned(), max: 10_000 });
        assert_eq!(administration.create_key("test", &creation("acme", "one more")).await, too_many);
        let second = administration.rotate_key("test", &first.id, 3_600, None).await.unwrap().summary.clone();
        assert_eq!(administration.rotate_key("test", &second.id, 3_600, None).await, too_many);
        administration.revoke_key("test", &first.id).await.unwrap();
        administration.revoke_key("test", &second.id).await.unwrap();
        administration.create_key("test", &creation("acme", "one more")).await.unwrap();
    });
}

/// A store that was replaced by another one got hashes with the key of the old one: new keys did not work until a restart.
#[test]
fn keys_are_hashed_with_the_hash_key_that_the_store_has_now() {
    let place = Place::new();
    let administration = place.administration();
    run(async {
        account_with_key(&administration, "acme").await;
        place.execute("UPDATE store_state SET hash_key = zeroblob(32)").await;
        let new = administration.create_key("test", &creation("acme", "second")).await.unwrap();
        let (_feed, directory) = place.follow();
        assert!(directory.find(new.key.as_bytes()).is_some());
    });
}

/// Each change of long settings added them to the audit log, 64 KiB at a time.
#[test]
fn the_audit_log_has_only_the_beginning_of_long_settings() {
    let place = Place::new();
    let administration = place.administration();
    run(async {
        let id = account_with_key(&administration, "acme").await.summary.id;
        let agents: Vec<_> = (0..100).map(|number| format!("ü{number:0>400}")).collect();
        let change = patch(json!({ "user_agents": agents }));
        administration.set_key_settings("ops", &id, &change).await.unwrap();
        let entry = administration.audit_entries(None, None, 1).await.unwrap().rows.remove(0);
        let settings = entry.details["settings"].as_str().unwrap();
        assert!(settings.starts_with(r#"{"user_agents":["ü000"#), "{settings}");
        assert!(settings.ends_with(" bytes more)") && settings.len() < 2_100, "{settings}");
        assert_eq!(entry.details["secret"], "unchanged");
    });
}

#[test]
fn two_at_once_cannot_exceed_the_keys_of_a_plan() {
    let place = Place::new();
    let administration = place.administration();
    run(async {
        administration.create_account("test", "acme", "core").await.unwrap();
        let creation = creation("acme", "k");
        let (one, other) = tokio::join!(
            administration.create_key("test", &creation),
            administration.create_key("test", &creation)
        );
        assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
    });
}

#[test]
fn a_rotation_keeps_name_and_settings() {
    let place = Place::new();
    let administration = place.administration();
    run(async {
        administration.create_account("test", "acme", "team").await.unwrap();
        let settings = patch(json!({"secret": "hunter2", "origins": ["https://app.example.com"]}));
        let old = KeyCreation { settings, ..creation("acme", "web") };
        let old = administration.create_key("test", &old).await.unwrap().made.summary;
        let without_secret = administration.rotate_key("test", &old.id, 60, None).await;
        assert!(matches!(without_secret, Err(AdministrationError::Invalid { field: "secret", .. })));
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
        let before = now();
        let new = administration.rotate_key("test", &old.id, 60, Some("hunter3")).await.unwrap().made.summary;
        assert_eq!((&new.name, &new.settings, new.has_secret), (&old.name, &old.settings, true));
        let keys = administration.list_keys("acme", "").await.unwrap().rows;
        let expires_at = keys.iter().find(|key| key.id == old.id).unwrap().expires_at.unwrap();
        // The overlap is not shorter than asked for, and ends with a second.
        assert!((before + 60..=now() + 61).contains(&expires_at), "{before} {expires_at}");
        assert_eq!(new.expires_at, None);
    });
}

#[test]
fn settings_are_checked_like_those_of_the_configuration() {
    let place = Place::new();
    let administration = place.administration();
    run(async {
        let id = account_with_key(&administration, "acme").await.summary.id;
        for (json, field) in [
            (r#"{"origins": []}"#, "origins"),
            (r#"{"origins": ["https://a/b"]}"#, "origins"),
            (r#"{"addresses": ["0x12"]}"#, "addresses"),
            (r#"{"methods": ["eth_none"]}"#, "methods"),
            (r#"{"secret_required": true}"#, "secret_required"),
            (r#"{"secret": ""}"#, "secret"),
            (r#"{"jwt_audience": "a"}"#, "jwt_audience"),
            (r#"{"jwt_public_keys": ["none"]}"#, "jwt_public_keys"),
            (r#"{"credits_per_day": 18446744073709551615}"#, "credits_per_day"),
        ] {
            let change: KeyPatch = serde_json::from_str(json).unwrap();
            let refused = administration.set_key_settings("test", &id, &change).await;
            assert!(
                matches!(&refused, Err(AdministrationError::Invalid { field: found, .. }) if *found == field),
                "{json} {refused:?}"
            );
        }
        for json in [r#"{"origin": []}"#, r#"{"credits_per_day": -1}"#] {
            assert!(serde_json::from_str::<KeyPatch>(json).is_err(), "{json}");
        }
        let set = |json: &str| serde_json::from_str::<KeyPatch>(json).unwrap();
        let change = set(r#"{"credits_per_second": 7, "methods": ["eth_chainId"]}"#);
        administration.set_key_settings("test", &id, &change).await.unwrap();
        let changed =
            administration.set_key_settings("test", &id, &set(r#"{"methods": null}"#)).await.unwrap();
        assert_eq!((changed.settings.credits_per_second, &changed.settings.methods), (Some(7), &None));
    });
}

/// The pages of the console read all keys with all their settings, hundreds of megabytes for some thousand keys.
#[test]
fn a_list_of_keys_is_bounded_and_has_the_keys_that_work_first() {
    let place = Place::new();
    let administration = place.administration();
    run(async {
        let first = account_with_key(&administration, "acme").await;
        let second = administration.create_key("test", &creation("acme", "second")).await.unwrap();
        administration.revoke_key("test", &first.summary.id).await.unwrap();
        let account = administration.account("acme").await.unwrap();
        let listed = administration.keys_by_age(&account, None, 10).await.unwrap().rows;
        let found: Vec<_> = listed.iter().map(|key| (key.id.as_str(), key.status)).collect();
        assert_eq!(found, [(second.summary.id.as_str(), "active"), (first.summary.id.as_str(), "revoked")]);
        let page = administration.keys_by_age(&account, None, 1).await.unwrap();
        assert_eq!((page.rows.as_slice(), page.has_more), (&listed[..1], true));
        let counts = AccountCounts { valid_keys: 1, keys: 2, users: 0 };
        assert_eq!(administration.account_counts(&account).await, Ok(counts));
        for search in [first.key.as_str(), &first.key[..4], &first.summary.id] {
            let found = administration.keys_by_prefix(&search.to_uppercase()).await.unwrap();
            assert_eq!(found.rows[0].key, listed[1], "{search}");
            assert_eq!(found.rows[0].account, account);
        }
    });
}

/// With 4,000 origins, each refused request of a key took 50 ms from the calls of everybody.
#[test]
fn lists_that_make_the_check_of_a_key_slow_are_refused() {
    let place = Place::new();
    let administration = place.administration();
    run(async {
        let new = account_with_key(&administration, "acme").await;
        // The head of an Ed25519 key, and any 32 bytes.
        let der = [&b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00"[..], &[7; 32]].concat();
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der));
        let list =
            |count: usize, entry: fn(usize) -> String| json!((0..count).map(entry).collect::<Vec<_>>());
        let origin = |number| format!("*.a{number}.example");
        let allowed = patch(json!({
            "origins": list(100, origin),
            "user_agents": list(100, |number| format!("agent {number}")),
            "addresses": list(1_000, |number| format!("0x{number:040x}")),
            "jwt_public_keys": vec![pem.clone(); 8],
        }));
        administration.set_key_settings("test", &new.summary.id, &allowed).await.unwrap();
        for (field, entries) in [
            ("origins", list(101, origin)),
            ("user_agents", list(101, origin)),
            ("jwt_public_keys", json!(vec![pem; 9])),
        ] {
            let change = patch(json!({ field: entries }));
            let refused = administration.set_key_settings("test", &new.summary.id, &change).await;
            let Err(AdministrationError::Invalid { field: found, message }) = refused else {
                panic!("{field} is accepted")
            };
            assert_eq!(found, field);
            assert!(message.contains("at most"), "{message}");
        }
    });
}

/// `acme` with an invisible character looked like the account `acme`.
#[test]
fn names_have_no_invisible_characters() {
    let place = Place::new();
    let administration = place.administration();
    run(async {
        for name in ["acme\u{200b}", "\u{202e}emca", "\u{feff}acme", "ac\u{ad}me"] {
            assert!(administration.create_account("test", name, "core").await.is_err(), "{name:?}");
        }
        administration.create_account("test", "Ünïcödé 🚀 账户", "core").await.unwrap();
    });
}

/// Browsers leave `..` out of the path of an account, so that the account could not be suspended.
#[test]
fn names_do_not_consist_of_dots() {
    let place = Place::new();
    let administration = place.administration();
    run(async {
        for name in [".", "..", "..."] {
            assert!(administration.create_account("test", name, "core").await.is_err(), "{name}");
        }
        administration.create_account("test", "..acme", "core").await.unwrap();
    });
}

#[test]
fn every_change_is_in_the_audit_log_without_secrets() {
    let place = Place::new();
    let administration = place.administration();
    run(async {
        let new = account_with_key(&administration, "acme").await;
        let id = &new.summary.id;
        let change = serde_json::from_str(r#"{"secret": "hunter2"}"#).unwrap();
        administration.set_key_settings("ops", id, &change).await.unwrap();
        administration.rename_key("ops", id, "laptop").await.unwrap();
        administration.suspend_account("ops", "acme").await.unwrap();
        administration.resume_account("ops", "acme").await.unwrap();
        administration.set_plan("ops", "acme", "growth").await.unwrap();
        administration.rotate_key("ops", id, 60, Some("hunter3")).await.unwrap();
        administration.revoke_key("ops", id).await.unwrap();
        let entries = administration.audit_entries(None, None, 100).await.unwrap().rows;
        let actions: Vec<_> = entries.iter().rev().map(|entry| entry.action.as_str()).collect();
        let expected = [
            "account.create",
            "key.create",
            "key.settings",
            "key.rename",
            "account.suspend",
            "account.resume",
            "account.plan",
            "key.rotate",
            "key.revoke",
        ];
        assert_eq!(actions, expected);
        assert!(entries.iter().all(|entry| entry.at > 1_700_000_000));
        let shown = format!("{entries:?}");
        for secret in [new.key.as_str(), "hunter2", "hunter3"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        let older = administration.audit_entries(None, Some(entries[0].id), 2).await.unwrap();
        assert_eq!((older.rows.as_slice(), older.has_more), (&entries[1..3], true));
        let found = administration.audit_entries(Some("Key.Revoke"), None, 2).await.unwrap();
        assert_eq!((found.rows.as_slice(), found.has_more), (&entries[..1], false));
        assert_eq!(administration.count_audit_entries(Some("acme")).await, Ok(4));
        assert_eq!(administration.count_audit_entries(None).await, Ok(9));
    });
}

#[test]
fn without_the_store_a_change_fails_clearly() {
    let place = Place::new();
    std::fs::create_dir(place.file("callers.sqlite")).unwrap();
    let failed = run(place.administration().create_account("test", "acme", "core")).unwrap_err();
    assert!(failed.to_string().starts_with("the store of accounts and keys cannot be reached: "), "{failed}");
}
