use std::sync::Arc;

use callers::administration::AdministrationError;
use callers::people::{
    ActiveSession, Invitation, InvitationTarget, LinkForm, LinkSummary, NewSession, People, PeopleError,
    SignUp, Visitor,
};

use crate::place::{Place, run};

const PASSWORD: &str = "correct horse";

fn people(place: &Place, sign_up: SignUp) -> People {
    People::new(Arc::new(place.administration()), sign_up, place.supervisor.clone())
}

fn open() -> SignUp {
    SignUp::Open { plan: "developer".to_owned() }
}

fn form(email: &str, password: &str) -> LinkForm {
    LinkForm { email: email.to_owned(), account: "acme".to_owned(), password: password.to_owned() }
}

fn visitor(last: u8) -> Visitor {
    Visitor { address: [192, 0, 2, last].into(), browser: "Firefox".to_owned() }
}

/// An operator who has used the link of the terminal.
async fn operator(people: &People) -> NewSession {
    let link = people.create_operator_link("test").await.unwrap();
    people.use_link(&link.token, &form("Root@Example.com", PASSWORD), &visitor(1)).await.unwrap()
}

async fn actions(place: &Place) -> Vec<String> {
    let entries = place.administration().audit_entries(None, None, 100).await.unwrap().rows;
    entries.into_iter().rev().map(|entry| format!("{} {}", entry.actor, entry.action)).collect()
}

#[test]
fn the_first_operator_comes_in_by_a_link_that_works_once() {
    let place = Place::new();
    let people = people(&place, SignUp::Invitation);
    run(async {
        assert_eq!(people.has_operator().await, Ok(false));
        let link = people.create_operator_link("terminal").await.unwrap();
        assert!(!format!("{link:?}").contains(&link.token));
        assert_eq!(people.link(&link.token).await, Ok(LinkSummary::Operator));
        assert_eq!(
            people.link(&link.token).await,
            Ok(LinkSummary::Operator),
            "looking at it does not use it"
        );
        let short = people.use_link(&link.token, &form("root@example.com", "short"), &visitor(1)).await;
        assert!(matches!(
            short,
            Err(PeopleError::Change(AdministrationError::Invalid { field: "password", .. }))
        ));
        let new =
            people.use_link(&link.token, &form("root@example.com", PASSWORD), &visitor(1)).await.unwrap();
        let again = people.use_link(&link.token, &form("eve@example.com", PASSWORD), &visitor(1)).await;
        assert_eq!(again.unwrap_err(), PeopleError::InvalidLink);
        assert_eq!(people.has_operator().await, Ok(true));
        let session = people.session(&new.token, &visitor(1)).await.unwrap().unwrap();
        assert!(session.is_operator());
        assert_eq!(session.account().unwrap().name, "root@example.com");
        assert_eq!(
            actions(&place).await,
            [
                "terminal user.operator_link",
                "user:root@example.com account.create",
                "user:root@example.com user.create",
                "user:root@example.com user.sign_in"
            ]
        );
    });
}

/// A change read the hash key on a second connection. When all connections were in changes that waited for that one, nobody got
/// further until they timed out.
#[test]
fn as_many_changes_at_once_as_there_are_connections_do_not_wait_for_each_other() {
    let place = Place::new();
    let people = people(&place, SignUp::Invitation);
    run(async {
        // Opens the store.
        people.create_operator_link("test").await.unwrap();
        for _ in 0..5 {
            let links = (0..12).map(|_| people.create_operator_link("test"));
            for link in futures_util::future::join_all(links).await {
                link.unwrap();
            }
        }
    });
}

#[test]
fn tokens_and_passwords_are_not_in_the_store() {
    let place = Place::new();
    let people = people(&place, SignUp::Invitation);
    run(async {
        let new = operator(&people).await;
        let link = people.create_operator_link("test").await.unwrap();
        for name in ["callers.sqlite", "callers.sqlite-wal"] {
            let bytes = std::fs::read(place.file(name)).unwrap();
            for secret in [&new.token, &link.token, PASSWORD] {
                assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()), "{name}");
            }
        }
    });
}

#[test]
fn an_invitation_leads_to_its_account() {
    let place = Place::new();
    let people = people(&place, SignUp::Invitation);
    run(async {
        let target = InvitationTarget::Account("acme".to_owned());
        let existing = Invitation { email: None, target };
        let refused = people.create_invitation("test", &existing).await.unwrap_err();
        assert!(matches!(
            refused,
            PeopleError::Change(AdministrationError::NotFound { what: "account", .. })
        ));
        let target = InvitationTarget::NewAccount { plan: "developer".to_owned() };
        let invitation = Invitation { email: Some("Ada@Example.com".to_owned()), target: target.clone() };
        let link = people.create_invitation("test", &invitation).await.unwrap();
        let shown = LinkSummary::Invitation { email: Some("ada@example.com".to_owned()), target };
        assert_eq!(people.link(&link.token).await, Ok(shown));
        let new =
            people.use_link(&link.token, &form("eve@example.com", PASSWORD), &visitor(1)).await.unwrap();
        let session = people.session(&new.token, &visitor(1)).await.unwrap().unwrap();
        assert_eq!((session.email(), session.is_operator()), ("ada@example.com", false));
        let account = session.account().unwrap();
        assert_eq!((account.name.as_str(), account.plan.as_str()), ("acme", "developer"));
        // A second person joins the account that exists now.
        let link = people.create_invitation("test", &existing).await.unwrap();
        let taken = people.use_link(&link.token, &form("ada@example.com", PASSWORD), &visitor(1)).await;
        assert!(matches!(
            taken,
            Err(PeopleError::Change(AdministrationError::AlreadyExists { what: "user", .. }))
        ));
        people.use_link(&link.token, &form("bob@example.com", PASSWORD), &visitor(1)).await.unwrap();
        let users = people.users_of(account.id, "", None, 10).await.unwrap().rows;
        let emails: Vec<_> = users.iter().map(|user| user.email.as_str()).collect();
        assert_eq!(emails, ["ada@example.com", "bob@example.com"]);
    });
}

#[test]
fn sign_up_is_open_only_if_the_operator_says_so() {
    let place = Place::new();
    run(async {
        let closed = people(&place, SignUp::Invitation);
        let refused = closed.sign_up("ada@example.com", PASSWORD, "acme", &visitor(1)).await;
        assert_eq!(refused.unwrap_err(), PeopleError::InvitationNeeded);
        let people = people(&place, open());
        let new = people.sign_up("ada@example.com", PASSWORD, "acme", &visitor(1)).await.unwrap();
        let session = people.session(&new.token, &visitor(1)).await.unwrap().unwrap();
        assert_eq!(session.account().unwrap().plan, "developer");
        for (email, account) in [("ada@example.com", "other"), ("bob@example.com", "acme")] {
            let taken = people.sign_up(email, PASSWORD, account, &visitor(1)).await;
            let is_taken =
                matches!(taken, Err(PeopleError::Change(AdministrationError::AlreadyExists { .. })));
            assert!(is_taken, "{email} {account}");
        }
        assert!(place.administration().account("other").await.is_err(), "a refused sign-up leaves nothing");
    });
}

#[test]
fn only_the_right_password_begins_a_session_and_each_is_new() {
    let place = Place::new();
    let people = people(&place, open());
    run(async {
        let first = people.sign_up("ada@example.com", PASSWORD, "acme", &visitor(1)).await.unwrap();
        let second = people.sign_in(" ADA@example.com", PASSWORD, &visitor(2)).await.unwrap();
        assert_ne!(first.token, second.token);
        assert!(!format!("{second:?}").contains(&second.token));
        for (email, password) in
            [("ada@example.com", "wrong horse"), ("eve@example.com", PASSWORD), ("not an address", PASSWORD)]
        {
            let refused = people.sign_in(email, password, &visitor(2)).await.unwrap_err();
            assert_eq!(refused, PeopleError::WrongCredentials, "{email}");
        }
        for wrong in ["", "x", &"0".repeat(64), &first.token.to_uppercase()] {
            assert!(people.session(wrong, &visitor(1)).await.unwrap().is_none(), "{wrong}");
        }
    });
}

/// Nobody could be locked out of the console: a new password, and no other way in, was all that an operator could give.
#[test]
fn an_operator_blocks_a_user_and_lets_them_in_again() {
    let place = Place::new();
    let people = people(&place, open());
    run(async {
        let new = people.sign_up("ada@example.com", PASSWORD, "acme", &visitor(1)).await.unwrap();
        let account = place.administration().account("acme").await.unwrap().id;
        let is_blocked =
            async || people.users_of(account, "", None, 10).await.unwrap().rows.remove(0).is_blocked;
        let reset = people.create_reset_link("test", "ada@example.com").await.unwrap();
        people.block_user("test", " ADA@example.com").await.unwrap();
        assert!(is_blocked().await);
        assert!(people.session(&new.token, &visitor(1)).await.unwrap().is_none());
        let refused = people.sign_in("ada@example.com", PASSWORD, &visitor(1)).await;
        assert_eq!(refused.unwrap_err(), PeopleError::WrongCredentials);
        assert_eq!(people.link(&reset.token).await, Err(PeopleError::InvalidLink));
        let refused = people.create_reset_link("test", "ada@example.com").await.unwrap_err();
        assert!(refused.to_string().contains("unblock"), "{refused}");
        people.unblock_user("test", "ada@example.com").await.unwrap();
        assert!(!is_blocked().await);
        assert!(people.session(&new.token, &visitor(1)).await.unwrap().is_none(), "the session has ended");
        people.sign_in("ada@example.com", PASSWORD, &visitor(1)).await.unwrap();
        for unknown in ["eve@example.com", "not an address"] {
            assert!(people.block_user("test", unknown).await.is_err(), "{unknown}");
        }
        let audited = actions(&place).await;
        let changes: Vec<_> = audited.iter().filter(|action| action.ends_with("block")).collect();
        assert_eq!(changes, ["test user.block", "test user.unblock"]);
    });
}

#[test]
fn guesses_are_slowed_down_and_blocked_people_stay_out() {
    let place = Place::new();
    let people = people(&place, open());
    run(async {
        let new = people.sign_up("ada@example.com", PASSWORD, "acme", &visitor(1)).await.unwrap();
        let mut last = PeopleError::WrongCredentials;
        for attempt in 0..20 {
            last = people.sign_in("ada@example.com", "a wrong guess", &visitor(attempt)).await.unwrap_err();
            if last != PeopleError::WrongCredentials {
                break;
            }
        }
        assert!(matches!(last, PeopleError::TooManyAttempts { wait_s: 1.. }), "{last:?}");
        let right = people.sign_in("ada@example.com", PASSWORD, &visitor(99)).await;
        assert!(right.is_err(), "the right password waits, too");
        assert!(people.session(&new.token, &visitor(1)).await.unwrap().is_some(), "sessions go on");
        place.execute("UPDATE users SET status = 'blocked'").await;
        assert!(people.session(&new.token, &visitor(1)).await.unwrap().is_none());
    });
}

#[test]
fn sessions_are_listed_ended_and_end_with_time() {
    let place = Place::new();
    let people = people(&place, open());
    run(async {
        let first = people.sign_up("ada@example.com", PASSWORD, "acme", &visitor(1)).await.unwrap();
        let second = people.sign_in("ada@example.com", PASSWORD, &visitor(2)).await.unwrap();
        let other = people.sign_up("bob@example.com", PASSWORD, "beta", &visitor(3)).await.unwrap();
        let current = people.session(&second.token, &visitor(2)).await.unwrap().unwrap();
        let listed = people.sessions(&current).await.unwrap();
        assert_eq!(listed.len(), 2);
        let first_id = &listed.iter().find(|session| !session.is_current).unwrap().id;
        let bob = people.session(&other.token, &visitor(3)).await.unwrap().unwrap();
        assert!(people.end_session(&bob, first_id).await.is_err(), "others cannot end it");
        people.end_session(&current, first_id).await.unwrap();
        assert!(people.session(&first.token, &visitor(1)).await.unwrap().is_none());
        people.sign_out(&bob).await.unwrap();
        assert!(people.session(&other.token, &visitor(3)).await.unwrap().is_none());
        place.execute("UPDATE sessions SET last_used_at = last_used_at - 12 * 3600 + 60").await;
        assert!(
            people.session(&second.token, &visitor(9)).await.unwrap().is_some(),
            "and counts as used now"
        );
        place.execute("UPDATE sessions SET last_used_at = last_used_at - 12 * 3600").await;
        assert!(people.session(&second.token, &visitor(2)).await.unwrap().is_none());
        place
            .execute("UPDATE sessions SET last_used_at = created_at, created_at = created_at - 30 * 86400")
            .await;
        assert!(people.session(&second.token, &visitor(2)).await.unwrap().is_none());
    });
}

/// A session that had ended in the meantime was an error, so that the browser kept its cookie.
#[test]
fn signing_out_of_a_session_that_has_ended_is_no_error() {
    let place = Place::new();
    let people = people(&place, open());
    run(async {
        let new = people.sign_up("ada@example.com", PASSWORD, "acme", &visitor(1)).await.unwrap();
        let current = people.session(&new.token, &visitor(1)).await.unwrap().unwrap();
        people.sign_out(&current).await.unwrap();
        people.sign_out(&current).await.unwrap();
        let ends = actions(&place).await.into_iter().filter(|action| action.ends_with("session.end"));
        assert_eq!(ends.count(), 1);
    });
}

/// On a store that could only be read, every page was an error for people who had not used the console for a minute.
#[test]
fn a_session_goes_on_while_its_use_cannot_be_recorded() {
    let place = Place::new();
    let people = people(&place, open());
    run(async {
        let new = people.sign_up("ada@example.com", PASSWORD, "acme", &visitor(1)).await.unwrap();
        place.execute("UPDATE sessions SET last_used_at = last_used_at - 3600").await;
        place
            .execute(
                "CREATE TRIGGER read_only BEFORE UPDATE ON sessions BEGIN SELECT RAISE(ABORT, 'read-only'); END",
            )
            .await;
        assert!(people.session(&new.token, &visitor(2)).await.unwrap().is_some());
        place.execute("DROP TRIGGER read_only").await;
        let session = people.session(&new.token, &visitor(3)).await.unwrap().unwrap();
        assert_eq!(people.sessions(&session).await.unwrap()[0].address, "192.0.2.3");
    });
}

#[test]
fn a_new_password_ends_the_other_sessions() {
    let place = Place::new();
    let people = people(&place, open());
    run(async {
        let first = people.sign_up("ada@example.com", PASSWORD, "acme", &visitor(1)).await.unwrap();
        let second = people.sign_in("ada@example.com", PASSWORD, &visitor(2)).await.unwrap();
        let current = people.session(&second.token, &visitor(2)).await.unwrap().unwrap();
        let wrong = people.change_password(&current, "wrong horse", "battery staple", &visitor(2)).await;
        assert!(wrong.is_err());
        people.change_password(&current, PASSWORD, "battery staple", &visitor(2)).await.unwrap();
        assert!(people.session(&first.token, &visitor(1)).await.unwrap().is_none());
        assert!(people.session(&second.token, &visitor(2)).await.unwrap().is_some());
        assert!(people.sign_in("ada@example.com", PASSWORD, &visitor(1)).await.is_err());
        // The link of an operator does the same, without the old password.
        let stale = people.create_reset_link("test", "ada@example.com").await.unwrap();
        let link = people.create_reset_link("test", "ADA@example.com").await.unwrap();
        assert_eq!(people.link(&stale.token).await, Err(PeopleError::InvalidLink));
        let email = "ada@example.com".to_owned();
        assert_eq!(people.link(&link.token).await, Ok(LinkSummary::Reset { email }));
        people.use_link(&link.token, &form("eve@example.com", "third password"), &visitor(4)).await.unwrap();
        assert!(people.session(&second.token, &visitor(2)).await.unwrap().is_none());
        people.sign_in("ada@example.com", "third password", &visitor(1)).await.unwrap();
        assert!(people.create_reset_link("test", "eve@example.com").await.is_err());
        let audited = actions(&place).await;
        // With a password, with the link, by signing up, and with the last password.
        let sign_ins = audited.iter().filter(|action| *action == "user:ada@example.com user.sign_in");
        assert_eq!(sign_ins.count(), 4);
        for expected in [
            "user:ada@example.com user.password",
            "test user.reset_link",
            "user:ada@example.com user.sign_in",
        ] {
            assert!(audited.iter().any(|action| action == expected), "{expected}: {audited:?}");
        }
    });
}

#[test]
fn links_expire() {
    let place = Place::new();
    let people = people(&place, SignUp::Invitation);
    run(async {
        let link = people.create_operator_link("test").await.unwrap();
        place.execute("UPDATE links SET expires_at = expires_at - 86400").await;
        assert_eq!(people.link(&link.token).await, Err(PeopleError::InvalidLink));
        let used = people.use_link(&link.token, &form("root@example.com", PASSWORD), &visitor(1)).await;
        assert_eq!(used.unwrap_err(), PeopleError::InvalidLink);
        for wrong in ["", "x", &"0".repeat(64)] {
            assert_eq!(people.link(wrong).await, Err(PeopleError::InvalidLink));
        }
    });
}

/// A stranger who had signed up with the address of the operator lost the user to the operator, but kept keys of the account
/// that then was the operator's.
#[test]
fn a_developer_becomes_an_operator_by_the_link_with_an_account_of_their_own() {
    let place = Place::new();
    let people = people(&place, open());
    run(async {
        let before = people.sign_up("ada@example.com", PASSWORD, "acme", &visitor(1)).await.unwrap();
        let link = people.create_operator_link("test").await.unwrap();
        let new = people
            .use_link(&link.token, &form("ada@example.com", "battery staple"), &visitor(1))
            .await
            .unwrap();
        let session = people.session(&new.token, &visitor(1)).await.unwrap().unwrap();
        let name_of = |session: &ActiveSession| session.account().unwrap().name.clone();
        assert_eq!((session.is_operator(), name_of(&session)), (true, "ada@example.com".to_owned()));
        assert!(people.session(&before.token, &visitor(1)).await.unwrap().is_none());
        let acme = place.administration().account("acme").await.unwrap();
        assert!(people.users_of(acme.id, "", None, 10).await.unwrap().rows.is_empty());
        // The account of an operator stays theirs if they use such a link again.
        let link = people.create_operator_link("test").await.unwrap();
        let again = people.use_link(&link.token, &form("ada@example.com", PASSWORD), &visitor(1)).await;
        let session = people.session(&again.unwrap().token, &visitor(1)).await.unwrap().unwrap();
        assert_eq!(name_of(&session), "ada@example.com");
    });
}

/// Somebody who had signed up with the address of the operator as the name of the account shared the operator's account.
#[test]
fn an_operator_never_joins_the_account_of_somebody_else() {
    let place = Place::new();
    let people = people(&place, open());
    run(async {
        people.sign_up("eve@example.com", PASSWORD, "root@example.com", &visitor(1)).await.unwrap();
        let new = operator(&people).await;
        let session = people.session(&new.token, &visitor(1)).await.unwrap().unwrap();
        assert_eq!(session.account().unwrap().name, "root@example.com 2");
    });
}

/// A link for a new password that was made before took over the operator.
#[test]
fn earlier_links_for_a_new_password_end_when_the_password_changes() {
    let place = Place::new();
    let people = people(&place, open());
    run(async {
        people.sign_up("ada@example.com", PASSWORD, "acme", &visitor(1)).await.unwrap();
        let reset = async || people.create_reset_link("test", "ada@example.com").await.unwrap().token;
        let (first, second) = (reset().await, reset().await);
        people.use_link(&second, &form("", "battery staple"), &visitor(1)).await.unwrap();
        assert_eq!(people.link(&first).await, Err(PeopleError::InvalidLink));
        let third = reset().await;
        let link = people.create_operator_link("test").await.unwrap();
        people.use_link(&link.token, &form("ada@example.com", PASSWORD), &visitor(1)).await.unwrap();
        assert_eq!(people.link(&third).await, Err(PeopleError::InvalidLink));
    });
}

/// Whoever had an invitation could ask without end which addresses are known, and keep the threads for passwords busy.
#[test]
fn failed_uses_of_a_link_are_slowed_down() {
    let place = Place::new();
    let people = people(&place, open());
    run(async {
        people.sign_up("ada@example.com", PASSWORD, "acme", &visitor(1)).await.unwrap();
        let target = InvitationTarget::Account("acme".to_owned());
        let link = people.create_invitation("test", &Invitation { email: None, target }).await.unwrap();
        let mut refused = None;
        for _ in 0..100 {
            let used = people.use_link(&link.token, &form("ada@example.com", PASSWORD), &visitor(7)).await;
            refused = Some(used.unwrap_err());
            if matches!(refused, Some(PeopleError::TooManyAttempts { .. })) {
                break;
            }
        }
        assert!(matches!(refused, Some(PeopleError::TooManyAttempts { .. })), "{refused:?}");
        people.use_link(&link.token, &form("bob@example.com", PASSWORD), &visitor(8)).await.unwrap();
    });
}

#[test]
fn a_form_token_belongs_to_one_cookie() {
    let place = Place::new();
    let people = people(&place, SignUp::Invitation);
    run(async {
        let token = people.form_token("one").await.unwrap();
        assert_eq!(people.is_form_token("one", &token).await, Ok(true));
        assert_eq!(people.is_form_token("two", &token).await, Ok(false));
        assert_eq!(people.is_form_token("one", "").await, Ok(false));
    });
}
