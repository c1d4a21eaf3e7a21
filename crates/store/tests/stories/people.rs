use store::{LinkKind, LinkRecord, ListedUser, SessionRecord, StoreFailure, UserStatus};

use crate::databases::{account, on_each_database, user};

fn session(user_id: i64, number: u8) -> SessionRecord {
    SessionRecord {
        id: format!("s_{number:012x}"),
        user_id,
        hash: [number; 32],
        browser: "Firefox on Linux".to_owned(),
        address: "192.0.2.1".to_owned(),
        created_at: 1_000 + i64::from(number),
        last_used_at: 2_000 + i64::from(number),
    }
}

fn link(number: u8, expires_at: i64) -> LinkRecord {
    LinkRecord {
        hash: [number; 32],
        kind: LinkKind::Invitation,
        email: Some("ada@example.com".to_owned()),
        user_id: None,
        account: Some("acme".to_owned()),
        plan: None,
        created_at: 1_000,
        expires_at,
    }
}

#[test]
fn users_are_found_by_address_and_by_account() {
    on_each_database(|store| async move {
        let mut change = store.begin_change().await.unwrap();
        let acme = change.insert_account(&account("acme")).await.unwrap();
        let mut ada = user("ada@example.com", Some(acme));
        ada.id = change.insert_user(&ada).await.unwrap();
        change.commit().await.unwrap();
        assert_eq!(store.user(ada.id).await, Ok(Some(ada.clone())));
        assert_eq!(store.user_with_email("ada@example.com").await, Ok(Some(ada.clone())));
        assert_eq!(store.user_with_email("Ada@example.com").await, Ok(None));
        let listed = store.users_by_email(Some(acme), "", None, 10).await.unwrap().rows;
        assert_eq!(listed, [ListedUser { user: ada.clone(), last_seen_at: None }]);
        assert_eq!(store.account(acme).await.unwrap().unwrap().name, "acme");
        assert_eq!(store.has_operator().await, Ok(false));
        let mut change = store.begin_change().await.unwrap();
        change.insert_user(&user("root@example.com", None)).await.unwrap();
        (ada.status, ada.password_hash) = (UserStatus::Blocked, None);
        change.update_user(&ada).await.unwrap();
        assert_eq!(change.user_with_email("ada@example.com").await, Ok(Some(ada.clone())));
        assert_eq!(change.user(ada.id).await, Ok(Some(ada.clone())));
        change.commit().await.unwrap();
        assert_eq!(store.has_operator().await, Ok(true));
        assert!(!format!("{ada:?}").contains("argon2"));
        let mut change = store.begin_change().await.unwrap();
        let again = change.insert_user(&user("ada@example.com", Some(acme))).await;
        assert_eq!(again, Err(StoreFailure::AlreadyExists));
    });
}

#[test]
fn sessions_end_alone_together_and_with_age() {
    on_each_database(|store| async move {
        let mut change = store.begin_change().await.unwrap();
        let ada = change.insert_user(&user("ada@example.com", None)).await.unwrap();
        let bob = change.insert_user(&user("bob@example.com", None)).await.unwrap();
        for number in 1..=5 {
            change.insert_session(&session(ada, number)).await.unwrap();
        }
        change.insert_session(&session(bob, 9)).await.unwrap();
        assert_eq!(change.delete_session(bob, "s_000000000001").await, Ok(false));
        assert_eq!(change.has_session(bob, "s_000000000001").await, Ok(false));
        assert_eq!(change.has_session(ada, "s_000000000001").await, Ok(true));
        assert_eq!(change.delete_session(ada, "s_000000000001").await, Ok(true));
        assert_eq!(change.has_session(ada, "s_000000000001").await, Ok(false));
        change.commit().await.unwrap();
        let ids = async || {
            let sessions = store.sessions_of(ada).await.unwrap();
            sessions.into_iter().map(|session| session.id[13..].to_owned()).collect::<Vec<_>>().concat()
        };
        assert_eq!(ids().await, "5432");
        store.record_session_use("s_000000000002", "192.0.2.9", 9_000).await.unwrap();
        store.record_session_use("s_000000000002", "192.0.2.7", 8_000).await.unwrap();
        let used = store.session_with_hash(&[2; 32]).await.unwrap().unwrap();
        assert_eq!((used.last_used_at, used.address.as_str()), (9_000, "192.0.2.9"));
        let mut change = store.begin_change().await.unwrap();
        change.delete_surplus_sessions(ada, 3).await.unwrap();
        change.commit().await.unwrap();
        assert_eq!(ids().await, "254");
        let mut change = store.begin_change().await.unwrap();
        change.delete_old_sessions(2_005, 0).await.unwrap();
        change.commit().await.unwrap();
        assert_eq!(ids().await, "25");
        let mut change = store.begin_change().await.unwrap();
        assert_eq!(change.delete_other_sessions(ada, "s_000000000005").await, Ok(1));
        change.commit().await.unwrap();
        assert_eq!(ids().await, "5");
        assert_eq!(store.sessions_of(bob).await.unwrap(), [session(bob, 9)]);
    });
}

#[test]
fn a_link_is_taken_once() {
    on_each_database(|store| async move {
        let mut change = store.begin_change().await.unwrap();
        change.insert_link(&link(1, 5_000)).await.unwrap();
        change.insert_link(&link(2, 6_000)).await.unwrap();
        change.insert_link(&link(3, 7_000)).await.unwrap();
        change.delete_expired_links(5_000).await.unwrap();
        change.commit().await.unwrap();
        assert_eq!(store.link_with_hash(&[1; 32]).await, Ok(None));
        assert_eq!(store.link_with_hash(&[2; 32]).await, Ok(Some(link(2, 6_000))));
        let mut change = store.begin_change().await.unwrap();
        assert_eq!(change.take_link(&[2; 32]).await, Ok(Some(link(2, 6_000))));
        assert_eq!(change.take_link(&[2; 32]).await, Ok(None));
        drop(change);
        let mut change = store.begin_change().await.unwrap();
        assert_eq!(change.take_link(&[2; 32]).await, Ok(Some(link(2, 6_000))), "the drop undid it");
        change.commit().await.unwrap();
        assert_eq!(store.link_with_hash(&[2; 32]).await, Ok(None));
    });
}

#[test]
fn links_for_a_new_password_of_a_user_are_deleted_together() {
    on_each_database(|store| async move {
        let mut change = store.begin_change().await.unwrap();
        let ada = change.insert_user(&user("ada@example.com", None)).await.unwrap();
        let reset = LinkRecord { kind: LinkKind::Reset, user_id: Some(ada), ..link(1, 5_000) };
        change.insert_link(&reset).await.unwrap();
        change.insert_link(&link(2, 5_000)).await.unwrap();
        change.delete_reset_links(ada).await.unwrap();
        change.commit().await.unwrap();
        assert_eq!(store.link_with_hash(&[1; 32]).await, Ok(None));
        assert!(store.link_with_hash(&[2; 32]).await.unwrap().is_some());
    });
}
