//! Every route, as everybody. A new route needs a row.

use console::{Access, ROUTES};
use testkit::http::ReceivedReply;

use crate::browser::Browser;
use crate::console_under_test::{ConsoleUnderTest, PASSWORD, visitor};

/// The fate of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The browser is sent to the sign-in page.
    SignIn,
    /// The browser is sent to another page, because the request was done.
    Done,
    /// A page, or a form with what is wrong in it.
    Page,
    Refused,
    NotFound,
}

use Outcome::{Done, NotFound, Page, Refused, SignIn};

/// Method, path, form, and what happens to: nobody, an expired session, a developer of another account, the operator, and
/// the developer whose things the path names.
#[rustfmt::skip]
const EXPECTED: &[(&str, &str, &str, [Outcome; 5])] = &[
    ("GET",  "/sign-in",                 "",                  [Page, Page, Done, Done, Done]),
    ("POST", "/sign-in",                 "email=x&password=y",[Page, Page, Page, Page, Page]),
    ("GET",  "/sign-up",                 "",                  [Page, Page, Done, Done, Done]),
    ("POST", "/sign-up",                 "email=x",           [Page, Page, Page, Page, Page]),
    ("GET",  "/link/{token}",            "",                  [NotFound; 5]),
    ("POST", "/link/{token}",            "password=y",        [NotFound; 5]),
    ("GET",  "/assets/{name}",           "",                  [NotFound; 5]),
    ("GET",  "/",                        "",                  [SignIn, SignIn, Page, Page, Page]),
    ("GET",  "/keys",                    "",                  [SignIn, SignIn, Page, Page, Page]),
    ("POST", "/keys",                    "name=new",          [SignIn, SignIn, Page, Page, Page]),
    ("GET",  "/keys/{id}",               "",                  [SignIn, SignIn, NotFound, NotFound, Page]),
    ("POST", "/keys/{id}/rename",        "name=other",        [SignIn, SignIn, NotFound, NotFound, Done]),
    ("POST", "/keys/{id}/rotate",        "overlap_hours=1",   [SignIn, SignIn, NotFound, NotFound, Page]),
    ("POST", "/keys/{id}/revoke",        "confirm=revoke",    [SignIn, SignIn, NotFound, NotFound, Done]),
    ("POST", "/keys/{id}/settings",      "methods=eth_call",  [SignIn, SignIn, NotFound, NotFound, Done]),
    ("GET",  "/usage",                   "",                  [SignIn, SignIn, Page, Page, Page]),
    ("GET",  "/usage.csv",               "",                  [SignIn, SignIn, Page, Page, Page]),
    ("GET",  "/try",                     "",                  [SignIn, SignIn, Page, Page, Page]),
    ("GET",  "/settings",                "",                  [SignIn, SignIn, Page, Page, Page]),
    ("POST", "/settings/password",       "current_password=x&new_password=y", [SignIn, SignIn, Page, Page, Page]),
    ("POST", "/sessions/{id}/end",       "",                  [SignIn, SignIn, NotFound, NotFound, Done]),
    ("POST", "/sign-out",                "",                  [SignIn, SignIn, SignIn, SignIn, SignIn]),
    ("GET",  "/live",                    "",                  [SignIn, SignIn, Refused, Page, Refused]),
    ("GET",  "/live/events",             "",                  [SignIn, SignIn, Refused, Page, Refused]),
    ("GET",  "/accounts",                "",                  [SignIn, SignIn, Refused, Page, Refused]),
    ("POST", "/accounts",                "name=z&plan=core",  [SignIn, SignIn, Refused, Done, Refused]),
    ("GET",  "/accounts/{name}",         "",                  [SignIn, SignIn, Refused, Page, Refused]),
    ("GET",  "/accounts/{name}/users",   "",                  [SignIn, SignIn, Refused, Page, Refused]),
    ("GET",  "/accounts/{name}/keys",    "",                  [SignIn, SignIn, Refused, Page, Refused]),
    ("POST", "/accounts/{name}/keys",    "name=new",          [SignIn, SignIn, Refused, Page, Refused]),
    ("GET",  "/accounts/{name}/keys/{id}", "",                [SignIn, SignIn, Refused, Page, Refused]),
    ("POST", "/accounts/{name}/keys/{id}/rename", "name=other", [SignIn, SignIn, Refused, Done, Refused]),
    ("POST", "/accounts/{name}/keys/{id}/rotate", "overlap_hours=1", [SignIn, SignIn, Refused, Page, Refused]),
    ("POST", "/accounts/{name}/keys/{id}/revoke", "confirm=revoke", [SignIn, SignIn, Refused, Done, Refused]),
    ("POST", "/accounts/{name}/keys/{id}/settings", "methods=eth_call", [SignIn, SignIn, Refused, Done, Refused]),
    ("GET",  "/accounts/{name}/usage",   "",                  [SignIn, SignIn, Refused, Page, Refused]),
    ("GET",  "/accounts/{name}/usage.csv", "",                [SignIn, SignIn, Refused, Page, Refused]),
    ("POST", "/accounts/{name}/plan",    "plan=team",         [SignIn, SignIn, Refused, Done, Refused]),
    ("POST", "/accounts/{name}/suspend", "confirm=suspend",   [SignIn, SignIn, Refused, Done, Refused]),
    ("POST", "/accounts/{name}/resume",  "",                  [SignIn, SignIn, Refused, Done, Refused]),
    ("POST", "/accounts/{name}/invite",  "email=",            [SignIn, SignIn, Refused, Page, Refused]),
    ("POST", "/accounts/{name}/reset",   "email=acme%40example.com", [SignIn, SignIn, Refused, Page, Refused]),
    ("POST", "/accounts/{name}/block",   "email=acme%40example.com", [SignIn, SignIn, Refused, Done, SignIn]),
    ("POST", "/accounts/{name}/unblock", "email=acme%40example.com", [SignIn, SignIn, Refused, Done, Refused]),
    ("GET",  "/audit",                   "",                  [SignIn, SignIn, Refused, Page, Refused]),
    ("GET",  "/configuration",           "",                  [SignIn, SignIn, Refused, Page, Refused]),
];

#[test]
fn every_route_is_in_the_table_and_no_other() {
    let routes: Vec<_> = ROUTES.iter().map(|route| (route.method.as_str(), route.path)).collect();
    let expected: Vec<_> = EXPECTED.iter().map(|(method, path, ..)| (*method, *path)).collect();
    assert_eq!(routes, expected, "state above who may use a new route");
    for (route, (.., [nobody, expired, stranger, operator, _])) in ROUTES.iter().zip(EXPECTED) {
        assert_eq!(nobody, expired, "{route:?}");
        assert_eq!(*nobody == SignIn, route.access() != Access::Anyone, "{route:?}");
        assert_eq!(*stranger == Refused, route.access() == Access::Operator, "{route:?}");
        assert_ne!(*operator, Refused, "{route:?}");
    }
}

#[test]
fn everybody_gets_what_the_table_says() {
    for (method, path, form, expected) in EXPECTED {
        let console = ConsoleUnderTest::start();
        let mut developer = console.developer("acme");
        let key = console.key("acme", "first");
        console.run(console.people.sign_in("acme@example.com", PASSWORD, &visitor())).unwrap();
        let session = session_id(&mut developer);
        let mut expired = console.developer("gone");
        console.execute("UPDATE sessions SET last_used_at = last_used_at - 50000, created_at = created_at - 50000 WHERE user_id = 2");
        let (stranger, operator) = (console.developer("other"), console.operator());
        let id = if path.starts_with("/sessions") { session } else { key };
        let name = if path.starts_with("/assets") { "console-000000000000.css" } else { "acme" };
        let path = path.replace("{id}", &id).replace("{name}", name).replace("{token}", &"0".repeat(64));
        assert!(expired.get("/keys").header("location").is_some(), "the session has expired");
        let everybody = [console.browser(), expired, stranger, operator, developer];
        for ((mut browser, expected), who) in everybody.into_iter().zip(expected).zip([
            "nobody",
            "expired",
            "stranger",
            "operator",
            "developer",
        ]) {
            let found = ask(&mut browser, method, &path, form);
            assert_eq!(found, *expected, "{method} {path} as {who}");
        }
    }
}

/// A user sees the id of another session of theirs in the form that ends it.
fn session_id(browser: &mut Browser) -> String {
    let page = browser.get("/settings");
    let (_, rest) = page.text().split_once("action=\"/sessions/").expect("a form that ends a session");
    rest.split('/').next().unwrap().to_owned()
}

fn ask(browser: &mut Browser, method: &str, path: &str, form: &str) -> Outcome {
    if path == "/live/events" {
        return outcome(&browser.head_of(path));
    }
    let reply = match method {
        "GET" => browser.get(path),
        _ => {
            // A page with a form that everybody can open.
            let page = if browser.get("/settings").status == 200 { "/settings" } else { "/sign-in" };
            browser.post_from(page, path, form)
        }
    };
    outcome(&reply)
}

fn outcome(reply: &ReceivedReply) -> Outcome {
    match (reply.status, reply.header("location")) {
        (303, Some(location)) if location.starts_with("/sign-in") => SignIn,
        (303, Some(_)) => Done,
        (200 | 422, _) => Page,
        (403, _) => Refused,
        (404, _) => NotFound,
        (status, _) => panic!("status {status}: {}", reply.text()),
    }
}
