//! Attacks by other sites, and by people who guess.

use console::{ConsoleSettings, ROUTES};

use crate::console_under_test::{ConsoleUnderTest, PASSWORD, settings, visitor};

/// CSRF: a form of another site has no token, or that of another browser.
#[test]
fn a_form_without_the_token_of_its_browser_is_refused() {
    let console = ConsoleUnderTest::start();
    let (mut victim, mut attacker) = (console.developer("acme"), console.developer("evil"));
    let foreign = attacker.csrf("/settings");
    let anonymous = console.browser().csrf("/sign-in");
    for token in [String::new(), "0".repeat(64), foreign, anonymous] {
        let reply = victim.send("POST", "/keys", &format!("name=planted&csrf={token}"));
        assert_eq!(reply.status, 403, "{token}");
    }
    assert_eq!(victim.send("POST", "/keys", "name=planted").status, 403);
    assert!(!victim.get("/keys").text().contains("planted"));
    assert_eq!(victim.post_from("/settings", "/keys", "name=mine").status, 200);
    // Every change needs the token.
    let mut operator = console.operator();
    for route in ROUTES.iter().filter(|route| route.method == "POST") {
        let path = route
            .path
            .replace("{id}", "k_000000000000")
            .replace("{token}", &"0".repeat(64))
            .replace("{name}", "acme");
        assert_eq!(victim.send("POST", &path, "csrf=wrong").status, 403, "{route:?}");
        assert_eq!(operator.send("POST", &path, "csrf=wrong").status, 403, "{route:?}");
    }
}

/// CSRF: even a form with the token is refused if a page of another site sends it.
#[test]
fn a_form_of_another_origin_is_refused() {
    let console = ConsoleUnderTest::start();
    let mut victim = console.developer("acme");
    let csrf = victim.csrf("/settings");
    let own = format!("origin: http://{}", console.address);
    let own_and_foreign = format!("{own}\r\norigin: http://evil.example");
    for (header, status) in [
        (own.as_str(), 200),
        (own_and_foreign.as_str(), 403),
        ("sec-fetch-site: same-origin\r\nsec-fetch-site: cross-site", 403),
        ("origin: http://evil.example", 403),
        ("origin: https://127.0.0.1", 403),
        ("origin: null", 403),
        ("sec-fetch-site: cross-site", 403),
        ("sec-fetch-site: same-site", 403),
        ("sec-fetch-site: same-origin", 200),
    ] {
        victim.headers = vec![header.to_owned()];
        let reply = victim.send("POST", "/keys", &format!("name=k&csrf={csrf}"));
        assert_eq!(reply.status, status, "{header}");
    }
    victim.headers = Vec::new();
    let json = "POST /keys HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    assert_eq!(testkit::http::TestConnection::connect(console.address).send(json).reply().status, 400);
}

/// The oldest of 129 connections was closed without a reply, and so were all later ones.
#[test]
fn more_connections_than_places_are_answered() {
    let console = ConsoleUnderTest::start();
    let request = "GET /sign-in HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let begin = |_| {
        let mut connection = testkit::http::TestConnection::connect(console.address);
        connection.send(request);
        connection
    };
    let mut burst: Vec<_> = (0..300).map(begin).collect();
    assert!(burst.iter_mut().all(|connection| connection.reply().status == 200));
}

/// Whoever had copied the cookie stayed signed in after the browser had begun another session.
#[test]
fn signing_in_again_ends_the_earlier_session_of_the_browser() {
    let console = ConsoleUnderTest::start();
    let mut browser = console.developer("acme");
    let mut copy = browser.clone();
    let fields = format!("email=acme%40example.com&password={PASSWORD}");
    assert_eq!(browser.post_from("/settings", "/sign-in", &fields).status, 303);
    assert_eq!((browser.get("/").status, copy.get("/").status), (200, 303));
}

/// The live view went on after its operator had signed out.
#[test]
fn the_live_view_ends_with_its_session() {
    let console = ConsoleUnderTest::start();
    let mut operator = console.operator();
    let mut lines = operator.lines_of("/live/events");
    assert!(lines.any(|line| line.starts_with("event: status")));
    assert_eq!(operator.post_from("/settings", "/sign-out", "").status, 303);
    let later = lines.filter(|line| line.starts_with("event: status")).take(30).count();
    assert!(later < 30, "it goes on");
}

/// Fixation: a session that an attacker plants in a browser is not the one that its user gets.
#[test]
fn signing_in_always_begins_a_new_session() {
    let console = ConsoleUnderTest::start();
    let attacker = console.developer("evil");
    let planted = attacker.cookie("chaingate").unwrap().to_owned();
    console.developer("acme");
    let mut victim = console.browser();
    for value in ["0".repeat(64), "planted".to_owned()] {
        victim.set_cookie("chaingate", &value);
        let reply = victim.post_from(
            "/sign-in",
            "/sign-in",
            &format!("email=acme%40example.com&password={PASSWORD}"),
        );
        assert_eq!((reply.status, reply.header("location")), (303, Some("/")));
        let token = victim.cookie("chaingate").unwrap();
        assert!(token != value && token != planted && token.len() == 64);
    }
    // A planted text for forms is never a session either.
    let mut browser = console.browser();
    browser.set_cookie("chaingate-form", &planted);
    assert_eq!(browser.get("/keys").header("location"), Some("/sign-in?next=%2Fkeys"));
    // The session ends with the sign-out, not only in the browser.
    let old = victim.cookie("chaingate").unwrap().to_owned();
    assert_eq!(victim.post_from("/settings", "/sign-out", "").status, 303);
    assert_eq!(victim.cookie("chaingate"), Some(""));
    victim.set_cookie("chaingate", &old);
    assert_eq!(victim.get("/keys").status, 303);
}

#[test]
fn a_sign_in_leads_to_pages_of_this_site_only() {
    let console = ConsoleUnderTest::start();
    console.developer("acme");
    for (next, leads_to) in [
        ("%2Fusage%3Frange%3D1h", "/usage?range=1h"),
        ("%2F%2Fevil.example", "/"),
        ("https%3A%2F%2Fevil.example", "/"),
        ("%2F%5Cevil.example", "/"),
        ("%2F%09%2Fevil.example", "/"),
        ("%2F%0D%0ASet-Cookie%3A%20a%3Db", "/"),
        ("javascript%3Aalert(1)", "/"),
        ("", "/"),
    ] {
        let mut browser = console.browser();
        let fields = format!("email=acme%40example.com&password={PASSWORD}&next={next}");
        let reply = browser.post_from("/sign-in", "/sign-in", &fields);
        assert_eq!((reply.status, reply.header("location")), (303, Some(leads_to)), "{next}");
        let again = browser.get(&format!("/sign-in?next={next}"));
        assert_eq!(again.header("location"), Some(leads_to), "{next}");
        let form = console.browser().get(&format!("/sign-in?next={next}"));
        assert!(!form.text().contains("evil.example"), "{next}");
    }
}

/// Clickjacking, sniffing and leaks: every reply has the headers, whatever it is.
#[test]
fn every_reply_forbids_frames_and_foreign_content() {
    let console = ConsoleUnderTest::start();
    let mut developer = console.developer("acme");
    let style = {
        let page = developer.get("/keys");
        let (_, rest) = page.text().split_once("href=\"/assets/").unwrap();
        format!("/assets/{}", rest.split('"').next().unwrap())
    };
    let mut foreign = console.browser();
    foreign.headers = vec!["host: evil.example".to_owned()];
    let replies = [
        developer.get("/keys"),
        developer.get("/live"),
        developer.get("/nothing"),
        developer.send("POST", "/keys", ""),
        developer.send("DELETE", "/keys", ""),
        console.browser().get("/sign-in"),
        console.browser().get("/keys"),
        developer.get(&style),
        foreign.get("/sign-in"),
    ];
    for reply in &replies {
        let policy = reply.header("content-security-policy").unwrap();
        for part in ["default-src 'none'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"]
        {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.header("x-frame-options"), Some("DENY"));
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("referrer-policy"), Some("same-origin"));
    }
    assert_eq!(replies[0].header("cache-control"), Some("no-store"));
    assert!(replies[7].header("cache-control").unwrap().contains("immutable"));
    assert_eq!((replies[4].status, replies[2].status), (405, 404));
}

/// Rebinding: a name of an attacker that points at this address is refused.
#[test]
fn only_known_host_names_are_answered() {
    let console = ConsoleUnderTest::start();
    let mut developer = console.developer("acme");
    let port = console.address.port();
    for (host, status) in [
        (format!("localhost:{port}"), 200),
        (format!("127.0.0.1:{port}"), 200),
        ("[::1]".to_owned(), 200),
        ("evil.example".to_owned(), 403),
        (format!("evil.example:{port}"), 403),
        ("localhost.evil.example".to_owned(), 403),
        ("console.example".to_owned(), 403),
        (String::new(), 403),
    ] {
        developer.headers = vec![format!("host: {host}")];
        assert_eq!(developer.get("/keys").status, status, "{host}");
    }
    developer.headers = vec!["host: localhost".to_owned(), "host: evil.example".to_owned()];
    assert_ne!(developer.get("/keys").status, 200);
}

/// Brute force: guesses get slower, and the page does not tell who has an account.
#[test]
fn guesses_of_passwords_are_slowed_down() {
    let console = ConsoleUnderTest::start();
    console.developer("acme");
    let mut guesser = console.browser();
    let csrf = guesser.csrf("/sign-in");
    let mut guess = |email: &str, password: &str| {
        let body = format!("csrf={csrf}&email={email}%40example.com&password={password}");
        let reply = guesser.send("POST", "/sign-in", &body);
        // A page about guesses that came too fast had the status of a form that has to be corrected.
        let wait = reply.header("retry-after").map(|seconds| seconds.parse::<u64>().unwrap());
        assert_eq!(wait.is_some_and(|seconds| seconds > 0), reply.status == 429);
        (
            reply.status,
            reply.text().contains("Too many attempts"),
            reply.text().contains("Email or password is wrong"),
        )
    };
    let (known, unknown) = (guess("acme", "wrong"), guess("nobody", "wrong"));
    assert_eq!(known, (422, false, true));
    assert_eq!(unknown, known);
    let slowed = (0..20).any(|_| guess("acme", "wrong").1);
    assert!(slowed);
    assert_eq!(guess("acme", PASSWORD), (429, true, false), "the right password waits, too");
    // Another person is not affected.
    console.developer("other");
    let mut other = console.browser();
    let fields = format!("email=other%40example.com&password={PASSWORD}");
    assert_eq!(other.post_from("/sign-in", "/sign-in", &fields).status, 303);
}

#[test]
fn cookies_are_hidden_from_scripts_and_bound_to_tls() {
    let console = ConsoleUnderTest::start();
    console.developer("acme");
    let mut browser = console.browser();
    let form = browser.get("/sign-in");
    let cookie = form.header("set-cookie").unwrap();
    assert!(
        cookie.starts_with("chaingate-form=") && cookie.contains("HttpOnly; SameSite=Strict"),
        "{cookie}"
    );
    let fields = format!("email=acme%40example.com&password={PASSWORD}");
    let reply = browser.post_from("/sign-in", "/sign-in", &fields);
    let cookie = reply.header("set-cookie").unwrap();
    assert!(
        cookie.starts_with("chaingate=") && cookie.contains("; Path=/; HttpOnly; SameSite=Lax"),
        "{cookie}"
    );
    assert!(!cookie.contains("Secure") && !cookie.contains("Domain"), "{cookie}");

    let https = ConsoleSettings { url: Some("https://console.example".to_owned()), ..settings() };
    let console = ConsoleUnderTest::with(&https);
    console.developer("acme");
    let mut browser = console.browser();
    browser.headers = vec!["host: console.example".to_owned(), "origin: https://console.example".to_owned()];
    let reply = browser.post_from("/sign-in", "/sign-in", &fields);
    let cookie = reply.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-chaingate=") && cookie.contains("; Secure"), "{cookie}");
    assert!(reply.header("strict-transport-security").is_some());
    assert_eq!(browser.get("/keys").status, 200);
    for foreign in ["http://console.example", "https://console.example:9999", "https://evil.example"] {
        browser.headers = vec!["host: console.example".to_owned(), format!("origin: {foreign}")];
        assert_eq!(browser.post_from("/keys", "/keys", "name=planted").status, 403, "{foreign}");
    }
}

#[test]
fn a_link_works_once_and_for_a_limited_time() {
    let console = ConsoleUnderTest::start();
    let link = console.run(console.people.create_operator_link("test")).unwrap();
    let (path, fields) =
        (link.path(), format!("email=root%40example.com&password={}", PASSWORD.replace(' ', "+")));
    let mut operator = console.browser();
    assert_eq!(operator.get(&path).status, 200);
    let short = operator.post_from(&path, &path, "email=root%40example.com&password=short");
    assert_eq!(short.status, 422, "a mistake does not use the link");
    assert_eq!(operator.post_from(&path, &path, &fields).status, 303);
    assert_eq!(operator.get("/live").status, 200);
    let mut second = console.browser();
    assert_eq!(second.get(&path).status, 404);
    assert_eq!(second.post_from("/sign-in", &path, &fields).status, 404);
    let late = console.run(console.people.create_operator_link("test")).unwrap();
    console.execute("UPDATE links SET expires_at = expires_at - 86400");
    assert_eq!(second.get(&late.path()).status, 404);
    assert_eq!(second.post_from("/sign-in", &late.path(), &fields).status, 404);
}

/// XSS: names that people choose are shown as text.
#[test]
fn hostile_names_are_shown_as_text() {
    let console = ConsoleUnderTest::start();
    let hostile = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>";
    let visitor = visitor();
    let signed_up = console.people.sign_up("acme@example.com", PASSWORD, hostile, &visitor);
    let session = console.run(signed_up).unwrap();
    let mut developer = crate::browser::Browser::with_session(console.address, &session.token);
    let id = console.key(hostile, hostile);
    let mut operator = console.operator();
    let encoded = "%3Cscript%3Ealert(1)%3C%2Fscript%3E%22%27%3E%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E";
    let pages = [
        developer.get("/"),
        developer.get("/keys"),
        developer.get(&format!("/keys/{id}")),
        developer.get("/usage"),
        developer.get("/settings"),
        developer.get(&format!("/try?method={encoded}&params={encoded}")),
        developer.get(&format!("/keys?done={encoded}")),
        developer.post_from("/settings", "/keys", &format!("name={}", encoded.repeat(3))),
        console.browser().get(&format!("/sign-in?next={encoded}")),
        console.browser().post_from("/sign-in", "/sign-in", &format!("email={encoded}&password=x")),
        operator.get("/accounts"),
        operator.get(&format!("/accounts/{encoded}")),
        operator.get("/audit"),
    ];
    for (number, page) in pages.iter().enumerate() {
        assert!(matches!(page.status, 200 | 422), "page {number}: {}", page.status);
        let text = page.text();
        assert!(!text.contains("<script>alert") && !text.contains("<img src=x"), "page {number}");
    }
    assert!(pages[1].text().contains("&#60;script&#62;") || pages[1].text().contains("&lt;script&gt;"));
}
