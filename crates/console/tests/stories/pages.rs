//! What developers and operators do with the console.

use crate::console_under_test::{ConsoleUnderTest, PASSWORD};

#[test]
fn a_developer_signs_up_and_manages_a_key() {
    let console = ConsoleUnderTest::start();
    let mut developer = console.browser();
    let fields = format!("email=ada%40example.com&account=acme&password={}", PASSWORD.replace(' ', "+"));
    let reply = developer.post_from("/sign-up", "/sign-up", &fields);
    assert_eq!((reply.status, reply.header("location")), (303, Some("/")));
    assert_eq!(developer.get("/").status, 200);
    let created = developer.post_from("/keys", "/keys", "name=laptop");
    assert_eq!(created.status, 200);
    let list = developer.get("/keys");
    let (_, rest) = list.text().split_once("/keys/k_").unwrap();
    let id = format!("k_{}", &rest[..12]);
    let page = format!("/keys/{id}");
    let renamed = developer.post_from(&page, &format!("{page}/rename"), "name=desktop");
    assert_eq!(renamed.header("location"), Some(format!("{page}?done=key-renamed").as_str()));
    assert!(developer.get(&format!("{page}?done=key-renamed")).text().contains("Key renamed."));
    let wrong = developer.post_from(&page, &format!("{page}/settings"), "methods=eth_cal");
    assert!(wrong.status == 422 && wrong.text().contains("eth_cal"), "{}", wrong.status);
    let saved = developer.post_from(
        &page,
        &format!("{page}/settings"),
        "methods=eth_call%0D%0Aeth_getLogs&secret=hunter2hunter2&secret_required=on",
    );
    assert_eq!(saved.status, 303);
    let shown = developer.get(&page);
    assert!(shown.text().contains("eth_getLogs") && !shown.text().contains("hunter2"));
    let unconfirmed = developer.post_from(&page, &format!("{page}/revoke"), "confirm=");
    assert_eq!(unconfirmed.status, 422);
    let rotated =
        developer.post_from(&page, &format!("{page}/rotate"), "overlap_hours=24&secret=hunter3hunter3");
    assert_eq!(rotated.status, 200);
    let revoked = developer.post_from(&page, &format!("{page}/revoke"), "confirm=revoke");
    assert_eq!(revoked.header("location"), Some("/keys?done=key-revoked"));
    let csv = developer.get("/usage.csv?range=7d");
    assert!(csv.header("content-type").unwrap().starts_with("text/csv"));
    assert_eq!(developer.get("/usage?range=forever").status, 400);
    assert_eq!(developer.get("/usage?key=k_ffffffffffff").status, 404);
    let audited = console.run(console.administration.audit_entries(None, 50)).unwrap();
    for action in ["key.create", "key.rename", "key.settings", "key.rotate", "key.revoke"] {
        let entry = audited.iter().find(|entry| entry.action == action).unwrap();
        assert_eq!(entry.actor, "user:ada@example.com");
    }
}

// The account was made, the page said that nothing was saved, and a second attempt was refused because the account existed.
#[test]
fn an_account_with_a_wrong_invitation_is_not_made() {
    let console = ConsoleUnderTest::start();
    let mut operator = console.operator();
    let refused = operator.post_from("/accounts", "/accounts", "name=acme&plan=core&invite_email=ada");
    assert_eq!(refused.status, 422);
    assert!(refused.text().contains("must be an email address such as ada@example.com"));
    assert_eq!(operator.get("/accounts/acme").status, 404);
}

// The form of an error page had no token, so that signing out on it was refused.
#[test]
fn an_error_page_has_no_form_that_cannot_be_sent() {
    let console = ConsoleUnderTest::start();
    let mut operator = console.operator();
    assert!(operator.get("/accounts").text().contains("action=\"/sign-out\""));
    let missing = operator.get("/nothing");
    assert_eq!(missing.status, 404);
    assert!(!missing.text().contains("<form"));
}

#[test]
fn an_operator_invites_a_developer_and_resets_their_password() {
    let console = ConsoleUnderTest::start();
    let mut operator = console.operator();
    let page =
        operator.post_from("/accounts", "/accounts", "name=acme&plan=core&invite_email=ada%40example.com");
    assert_eq!(page.status, 200);
    let link = |text: &str| {
        let (_, rest) = text.split_once(&format!("http://{}/link/", console.address)).expect("a link");
        format!("/link/{}", &rest[..64])
    };
    let invitation = link(page.text());
    let mut ada = console.browser();
    let password = PASSWORD.replace(' ', "+");
    assert_eq!(ada.post_from(&invitation, &invitation, &format!("password={password}")).status, 303);
    assert_eq!(ada.get("/keys").status, 200);
    let page = operator.post_from("/accounts/acme", "/accounts/acme/reset", "email=ada%40example.com");
    let reset = link(page.text());
    assert_eq!(console.browser().post_from(&reset, &reset, "password=battery+staple").status, 303);
    assert_eq!(ada.get("/keys").status, 303, "the old session has ended");
    assert_eq!(operator.post_from("/accounts/acme", "/accounts/acme/suspend", "confirm=suspend").status, 303);
    assert!(operator.get("/accounts").text().contains("uspended"));
    for path in ["/live", "/audit", "/configuration"] {
        assert_eq!(operator.get(path).status, 200, "{path}");
    }
}

/// There was no way to keep somebody out of the console.
#[test]
fn an_operator_blocks_and_unblocks_a_user() {
    let console = ConsoleUnderTest::start();
    let (mut operator, mut ada) = (console.operator(), console.developer("acme"));
    let page = "/accounts/acme";
    let sign_in = || {
        let fields = format!("email=acme%40example.com&password={}", PASSWORD.replace(' ', "+"));
        console.browser().post_from("/sign-in", "/sign-in", &fields).status
    };
    let blocked = operator.post_from(page, "/accounts/acme/block", "email=acme%40example.com");
    assert_eq!(blocked.header("location"), Some("/accounts/acme?done=user-blocked"));
    assert_eq!((ada.get("/keys").status, sign_in()), (303, 422));
    assert!(operator.get(page).text().contains("/accounts/acme/unblock"));
    let unblocked = operator.post_from(page, "/accounts/acme/unblock", "email=acme%40example.com");
    assert_eq!(unblocked.header("location"), Some("/accounts/acme?done=user-unblocked"));
    assert_eq!((ada.get("/keys").status, sign_in()), (303, 303));
    let own = "/accounts/root%40example.com";
    assert!(!operator.get(own).text().contains("/block\""));
    for (page, path, email) in [
        (own, "/accounts/root%40example.com/block", "root"),
        (page, "/accounts/acme/block", "root"),
        (page, "/accounts/acme/block", "nobody"),
    ] {
        let refused = operator.post_from(page, path, &format!("email={email}%40example.com"));
        assert!(matches!(refused.status, 400 | 404), "{path} {email}: {}", refused.status);
    }
    assert_eq!(operator.get("/live").status, 200);
}

/// A link ends all sessions of its user. In a browser where they were signed in, ending the earlier session then failed: the
/// page was 404, without the cookie of the new session, and the link was used up.
#[test]
fn a_link_works_in_a_browser_where_its_user_is_signed_in() {
    let console = ConsoleUnderTest::start();
    let mut developer = console.developer("acme");
    let reset = console.run(console.people.create_reset_link("test", "acme@example.com")).unwrap().path();
    let mut operator = console.operator();
    let again = console.run(console.people.create_operator_link("test")).unwrap().path();
    for (browser, link, fields) in [
        (&mut developer, reset, "password=battery+staple"),
        (&mut operator, again, "email=root%40example.com&password=battery+staple"),
    ] {
        let earlier = browser.cookie("chaingate").unwrap().to_owned();
        let reply = browser.post_from(&link, &link, fields);
        assert_eq!((reply.status, reply.header("location")), (303, Some("/")), "{link}");
        assert_ne!(browser.cookie("chaingate"), Some(earlier.as_str()));
        assert_eq!(browser.get("/settings").status, 200);
    }
}

/// The usage of a key was not found if the account had 500 newer ones.
#[test]
fn the_usage_of_every_own_key_is_shown() {
    let console = ConsoleUnderTest::start();
    let (mut developer, _other) = (console.developer("acme"), console.developer("other"));
    let (own, foreign) = (console.key("acme", "the oldest key"), console.key("other", "first"));
    console.execute(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 500)
         INSERT INTO api_keys (id, account_id, name, prefix, hash, created_at, status, settings, revision)
         SELECT 'k_' || n, 1, 'key ' || n, '000000', randomblob(32), unixepoch() + 3600, 'active', '{}', 1 FROM numbers",
    );
    assert!(!developer.get("/usage").text().contains("the oldest key"));
    let page = developer.get(&format!("/usage?key={own}"));
    assert!(page.status == 200 && page.text().contains("the oldest key"), "{}", page.status);
    assert_eq!(developer.get(&format!("/usage.csv?key={own}")).status, 200);
    assert_eq!(developer.get(&format!("/usage?key={foreign}")).status, 404);
}

/// The list asked for the usage of all accounts, which was refused once they had 100,000 rows in a day.
#[test]
fn the_accounts_are_listed_however_many_callers_there_are() {
    let console = ConsoleUnderTest::start();
    let mut operator = console.operator();
    console.developer("acme");
    // The row of tomorrow is for a test that runs over midnight.
    console.execute(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100001),
         used (account, day, calls) AS (SELECT 'account ' || n, 0, 1 FROM numbers
             UNION ALL SELECT 'acme', 0, 76543 UNION ALL SELECT 'acme', 1, 76543)
         INSERT INTO usage_days SELECT account, unixepoch() / 86400 * 86400 + 86400 * day, 'demo', 'k_1', 'eth_call', 'ok',
             calls, calls, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM used",
    );
    let page = operator.get("/accounts");
    assert_eq!(page.status, 200);
    assert!(page.text().contains("76,543"), "{}", page.text());
}

/// A path that is not UTF-8 was answered with plain text. PostgreSQL refuses a NUL byte, which was reported as an outage of the
/// store.
#[test]
fn addresses_that_name_nothing_get_a_page() {
    let console = ConsoleUnderTest::start();
    let mut operator = console.operator();
    for (path, status) in [
        ("/accounts/%FF", 404),
        ("/accounts/%00", 404),
        ("/keys/k%00", 404),
        ("/usage?key=%00", 400),
        ("/accounts?after=%00", 400),
    ] {
        let reply = operator.get(path);
        assert_eq!(reply.status, status, "{path}");
        assert!(reply.header("content-type").unwrap().starts_with("text/html"), "{path}");
    }
    let reply = operator.post_from("/accounts", "/accounts/%FF/suspend", "confirm=suspend");
    assert!(reply.status == 404 && reply.text().contains("<html"), "{}", reply.text());
}

#[test]
fn the_live_view_streams_and_ends_with_the_console() {
    let console = ConsoleUnderTest::start();
    let operator = console.operator();
    let mut lines = operator.lines_of("/live/events");
    assert!(lines.any(|line| line == "event: status"));
    assert!(lines.any(|line| line.starts_with("data: ")));
    let stopped = std::thread::spawn(move || drop(console));
    assert!(lines.count() < 1_000, "the stream ends");
    stopped.join().unwrap();
}

#[test]
fn a_form_that_is_too_large_is_refused() {
    let console = ConsoleUnderTest::start();
    let mut developer = console.developer("acme");
    assert_eq!(
        developer.post_from("/settings", "/keys", &format!("name={}", "x".repeat(70_000))).status,
        413
    );
}
