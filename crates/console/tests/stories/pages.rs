//! Uses of the console by developers and operators.

use std::time::{Duration, Instant};

use gateway::{GatewaySnapshot, NodeLimits, NodeSnapshot, NodesSnapshot, PoolNodeState, RemoteSnapshot};
use resources::{TaskReport, WhenDown};
use serde_json::{Value, json};

use crate::console_under_test::{ConsoleUnderTest, PASSWORD, settings};

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
    let audited = console.run(console.administration.audit_entries(None, None, 50)).unwrap().rows;
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
    assert!(!developer.get("/usage").text().contains("the oldest key"), "the list has the newest keys");
    let page = developer.get(&format!("/usage?key={own}"));
    assert!(page.status == 200 && page.text().contains("the oldest key"), "{}", page.status);
    assert_eq!(developer.get(&format!("/usage.csv?key={own}")).status, 200);
    assert_eq!(developer.get(&format!("/usage?key={foreign}")).status, 404);
}

/// The list of keys ended at 500, so that a leaked older key could not be found, and nobody could revoke it.
#[test]
fn a_leaked_key_is_found_among_many_by_its_first_characters_and_revoked() {
    let console = ConsoleUnderTest::start();
    let mut developer = console.developer("acme");
    let leaked = console.key("acme", "the leaked key");
    let prefix = console.run(console.administration.key_of("acme", &leaked)).unwrap().prefix;
    console.execute(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100000)
         INSERT INTO api_keys (id, account_id, name, prefix, hash, created_at, status, settings, revision)
         SELECT 'k_n' || n, 1, 'key ' || n, 'zzzzzz', randomblob(32), unixepoch() + 3600, 'active', '{}', 1 FROM numbers",
    );
    let list = developer.get("/keys");
    assert!(list.text().contains("100,001 in all") && !list.text().contains(&leaked));
    assert!(list.text().contains("rel=\"next\""));
    let mut operator = console.operator();
    for (browser, lists) in
        [(&mut developer, ["/keys", "/keys"]), (&mut operator, ["/accounts", "/accounts/acme/keys"])]
    {
        for list in lists {
            for search in [prefix.as_str(), &prefix.to_uppercase(), &leaked, "THE+LEAKED"] {
                let found = browser.get(&format!("{list}?q={search}"));
                let is_found = found.text().contains(&leaked);
                assert_eq!(is_found, list != "/accounts" || !search.contains('+'), "{list} {search}");
            }
        }
    }
    let page = format!("/accounts/acme/keys/{leaked}");
    let revoked = operator.post_from(&page, &format!("{page}/revoke"), "confirm=revoke");
    assert_eq!(revoked.header("location"), Some("/accounts/acme/keys?done=key-revoked"));
    assert!(developer.get(&format!("/keys/{leaked}")).text().contains("Revoked"));
    let changes = operator.get(&format!("/audit?q={leaked}"));
    assert!(changes.text().contains("key.revoke") && changes.text().contains("2 entries"));
}

/// Every key is on one page of the list, and each page leads to the next.
#[test]
fn the_pages_of_a_list_have_all_keys() {
    let console = ConsoleUnderTest::start();
    let mut operator = console.operator();
    console.developer("acme");
    console.run(console.administration.set_plan("test", "acme", "custom")).unwrap();
    let mut ids: Vec<_> = (0..120).map(|number| console.key("acme", &format!("key {number}"))).collect();
    for list in ["/accounts/acme/keys", "/accounts/acme/keys?q=KEY"] {
        let (mut found, mut path) = (Vec::new(), list.to_owned());
        loop {
            let page = operator.get(&path);
            let links = page.text().split("/accounts/acme/keys/").skip(1).map(|rest| rest[..14].to_owned());
            found.extend(links.filter(|id| id.starts_with("k_")));
            let Some((before, _)) = page.text().split_once("\" rel=\"next\"") else { break };
            path = before.rsplit("href=\"").next().unwrap().replace("&amp;", "&").replace("&#38;", "&");
        }
        found.sort();
        ids.sort();
        assert_eq!(found, ids, "{list}");
    }
    assert_eq!(operator.get("/accounts/acme/keys?after=x").status, 400);
}

/// An operator saw the keys of an account, and could do nothing about them.
#[test]
fn an_operator_limits_a_key_and_sees_its_usage() {
    let console = ConsoleUnderTest::start();
    let (mut operator, _ada) = (console.operator(), console.developer("acme"));
    let key = console.key("acme", "laptop");
    let page = format!("/accounts/acme/keys/{key}");
    assert!(operator.get("/accounts/acme").text().contains(&page));
    let limited =
        operator.post_from(&page, &format!("{page}/settings"), "credits_per_day=7&methods=eth_call");
    assert_eq!(limited.header("location"), Some(format!("{page}?done=settings-saved").as_str()));
    let stored = console.run(console.administration.key_of("acme", &key)).unwrap();
    assert_eq!(stored.settings.credits_per_day, Some(7));
    let shown = operator.get(&page);
    let usage = format!("/accounts/acme/usage?range=24h&amp;key={key}");
    assert!(shown.text().contains(&usage), "{}", shown.text());
    assert_eq!(operator.get(&format!("/accounts/acme/usage?key={key}")).status, 200);
    assert_eq!(operator.get(&format!("/accounts/root%40example.com/keys/{key}")).status, 404);
    assert_eq!(operator.get("/accounts/nobody/usage").status, 404);
    let entry =
        console.run(console.administration.audit_entries(Some(&key), None, 1)).unwrap().rows.remove(0);
    assert_eq!((entry.actor.as_str(), entry.action.as_str()), ("user:root@example.com", "key.settings"));
}

/// The page of a key had no forms while its account was suspended, so that a leaked key came back to life with the account.
#[test]
fn a_key_of_a_suspended_account_can_be_revoked() {
    let console = ConsoleUnderTest::start();
    let (mut operator, mut ada) = (console.operator(), console.developer("acme"));
    let key = console.key("acme", "laptop");
    console.run(console.administration.suspend_account("test", "acme")).unwrap();
    let page = format!("/accounts/acme/keys/{key}");
    let shown = operator.get(&page);
    assert!(shown.text().contains("The account is suspended") && shown.text().contains("/revoke\""));
    assert!(ada.get(&format!("/keys/{key}")).text().contains("ask the operator"));
    let revoked = operator.post_from(&page, &format!("{page}/revoke"), "confirm=revoke");
    assert_eq!(revoked.status, 303);
    let shown = operator.get(&page);
    assert!(!shown.text().contains("/revoke\""));
    assert!(shown.text().contains("<a href=\"/accounts/acme/keys\">Create a new key</a>"));
}

/// A search for first characters lists 20 keys at most. It said that those were all.
#[test]
fn a_search_says_that_more_keys_begin_with_the_same_characters() {
    let console = ConsoleUnderTest::start();
    let mut developer = console.developer("acme");
    console.execute(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 21)
         INSERT INTO api_keys (id, account_id, name, prefix, hash, created_at, status, settings, revision)
         SELECT 'k_' || n, 1, 'key ' || n, printf('ab%04d', n), randomblob(32), 0, 'active', '{}', 1 FROM numbers",
    );
    let found = developer.get("/keys?q=ab");
    assert!(found.text().contains("More than 20 keys found"), "{}", found.text());
    assert!(found.text().contains("Search for more characters"));
    let found = developer.get("/keys?q=ab000");
    assert!(found.text().contains("9 keys found") && !found.text().contains("More"), "{}", found.text());
}

/// An hour without errors was "No data", as if nothing had been measured.
#[test]
fn a_chart_without_errors_says_so() {
    let console = ConsoleUnderTest::start();
    let mut developer = console.developer("acme");
    console.execute(
        "INSERT INTO usage_minutes SELECT 'acme', unixepoch() / 60 * 60, 'demo', 'k_1', 'eth_call', 'ok',
             1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0",
    );
    console.sum_up_usage();
    let page = developer.get("/usage?range=1h");
    assert!(page.text().contains("No errors in this period"), "{}", page.text());
    assert!(!page.text().contains("No data"));
    assert!(page.text().contains("data-steps=\"60\""), "1 h has 60 minutes");
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
    console.sum_up_usage();
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

/// A node that was excluded for lying was shown as down, and nothing said what a node is and what it cannot do.
#[test]
fn the_live_view_says_what_each_node_is_and_cannot_do() {
    let liar = NodeSnapshot {
        name: "liar".to_owned(),
        state: PoolNodeState::Excluded,
        not_used_because: Some("one of its answers was proven wrong".to_owned()),
        last_fault: Some("its answer to eth_getBlockReceipts for block 0x5 is wrong (a log)".to_owned()),
        ..NodeSnapshot::default()
    };
    let ganache = NodeSnapshot {
        name: "ganache".to_owned(),
        client_version: Some("Ganache/v7.9.2".to_owned()),
        limits: NodeLimits {
            gas_per_call_max: Some(30_000_000),
            log_blocks_max: Some(10_000),
            proofs_from_block: Some(21_000_000),
            missing_methods: vec!["eth_getProof", "eth_getBlockReceipts"],
            methods_by_block_number: vec!["eth_call"],
        },
        history: [("state", json!(900)), ("tx", json!(5_000)), ("logs", json!(0)), ("blocks", Value::Null)]
            .map(|(kind, lowest)| (kind.to_owned(), lowest))
            .into_iter()
            .collect(),
        ..NodeSnapshot::default()
    };
    let nodes = NodesSnapshot { each: vec![liar, ganache], ..NodesSnapshot::default() };
    let remote = RemoteSnapshot { nodes, ..RemoteSnapshot::default() };
    let gateway = GatewaySnapshot { remote: Some(remote), ..GatewaySnapshot::default() };
    let page = ConsoleUnderTest::of(&settings(), gateway).operator().get("/live");
    for text in [
        "1 of 2 up",
        "bad\">Excluded<",
        "one of its answers was proven wrong",
        "Last fault: its answer to eth_getBlockReceipts for block 0x5 is wrong (a log)",
        "good\">Up<",
        "Ganache/v7.9.2",
        "Does not have eth_getProof, eth_getBlockReceipts.",
        "Takes block numbers, but no block hashes, in eth_call.",
        "Grants a call 30,000,000 gas at most.",
        "Searches logs of 10,000 blocks at most.",
        "Proves state from block 21,000,000 on.",
        "Has state from block 900 on.",
        "Has transactions by hash from block 5,000 on.",
    ] {
        assert!(page.text().contains(text), "no {text} in {}", page.text());
    }
    assert!(!page.text().contains("Down"), "{}", page.text());
}

/// The thread of the console ended with the first panic of what accepts its connections, or of what reads the live view.
#[test]
fn the_console_goes_on_after_panics() {
    const TASKS: [&str; 2] = ["listener of the console", "live view of the console"];
    let console = ConsoleUnderTest::start();
    let mut operator = console.operator();
    let mut lines = operator.lines_of("/live/events");
    let wait_until = |is_true: &dyn Fn(&TaskReport) -> bool| {
        let late = Instant::now() + Duration::from_secs(60);
        let tasks = || console.supervisor.report().into_iter().filter(|task| TASKS.contains(&&*task.name));
        while !tasks().all(|task| is_true(&task)) {
            assert!(Instant::now() < late, "{:?}", console.supervisor.report());
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    for task in TASKS {
        console.supervisor.inject_panics(task, 1);
    }
    wait_until(&|task| task.panics == 1);
    assert_eq!(operator.get("/live").status, 200);
    for _ in 0..3 {
        assert!(lines.any(|line| line == "event: status"), "the stream of before goes on");
    }
    for task in TASKS {
        console.supervisor.inject_panics(task, u32::MAX);
    }
    wait_until(&|task| task.is_down && task.when_down == WhenDown::Degraded);
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
