use store::{KeyRecord, KeyStatus};

use super::*;
use crate::account::Account;
use crate::plans::Plans;

fn account() -> Arc<Account> {
    Arc::new(Account::stored(1, "a".into(), Plans::default().named("core").unwrap().clone()))
}

fn added(hash_key: &HashKey, number: u32, account: &Arc<Account>) -> KeyChange {
    let hash = hash_key.hash_key(text(number).as_bytes());
    let row = KeyRecord {
        id: format!("k_{number:012x}"),
        account_id: 1,
        name: "laptop".to_owned(),
        prefix: "000000".to_owned(),
        hash,
        created_at: 0,
        last_used_at: None,
        expires_at: None,
        status: KeyStatus::Active,
        settings: "{}".to_owned(),
    };
    KeyChange { hash, key: Some(Arc::new(ApiKey::stored(&row, Arc::clone(account), None))) }
}

fn text(number: u32) -> String {
    format!("{number:032x}")
}

#[test]
fn keys_are_found_after_any_order_of_changes() {
    let (hash_key, account) = (HashKey::from_bytes([7; 32]), account());
    let mut builder = StoredKeysBuilder::new(hash_key.clone());
    (0..1_000).for_each(|number| builder.change(&added(&hash_key, number, &account)));
    let keys = builder.build();
    keys.change((1_000..3_000).map(|number| added(&hash_key, number, &account)).collect());
    let removed = |number: &u32| number.is_multiple_of(3);
    keys.change(
        (0..3_000)
            .filter(removed)
            .map(|number| KeyChange { key: None, ..added(&hash_key, number, &account) })
            .collect(),
    );
    assert_eq!(keys.len(), 2_000);
    for number in 0..4_000 {
        let is_present = number < 3_000 && !removed(&number);
        let found = keys.find(text(number).as_bytes());
        assert_eq!(found.map(|key| key.id.to_string()), is_present.then(|| format!("k_{number:012x}")));
    }
}

#[test]
fn half_of_a_hash_is_not_enough() {
    let (hash_key, account) = (HashKey::from_bytes([7; 32]), account());
    let mut builder = StoredKeysBuilder::new(hash_key.clone());
    let change = added(&hash_key, 1, &account);
    builder.change(&change);
    let keys = builder.build();
    let mut other = change.hash;
    other[31] ^= 1;
    assert!(keys.with_hash(&change.hash).is_some());
    assert!(keys.with_hash(&other).is_none());
}
