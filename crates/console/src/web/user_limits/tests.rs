use std::net::SocketAddr;
use std::pin::Pin;

use axum::body::Body;
use callers::Plans;
use callers::administration::Administration;
use callers::people::Visitor;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use gateway::GatewaySnapshot;
use http::{Request, StatusCode};
use resources::Supervisor;
use store::{Store, StoreLocation};

use super::*;
use crate::web::dispatch::Dispatch;
use crate::web::{ConsoleSettings, ConsoleSite, LiveSource, SignUpMode, SiteFacts};

type WaitingRequest<'a> = Pin<Box<dyn Future<Output = Result<UserPermit, PageError>> + 'a>>;

/// As many requests of a user as are answered at once.
async fn running(limits: &UserLimits, email: &str) -> Vec<UserPermit> {
    let mut running = Vec::new();
    for _ in 0..RUNNING_MAX {
        running.push(limits.begin_request(email).await.unwrap());
    }
    running
}

/// As many further requests of the user as may wait.
fn waiting<'a>(limits: &'a UserLimits, email: &'a str) -> Vec<WaitingRequest<'a>> {
    let one = |_| {
        let mut request: WaitingRequest<'a> = Box::pin(limits.begin_request(email));
        assert!((&mut request).now_or_never().is_none(), "it waits");
        request
    };
    (0..WAITING_MAX).map(one).collect()
}

#[tokio::test]
async fn requests_of_a_user_wait_for_each_other_and_not_for_those_of_others() {
    let limits = UserLimits::default();
    let mut running = running(&limits, "ada").await;
    let mut waiting = waiting(&limits, "ada");
    assert!(matches!(limits.begin_request("ada").await, Err(PageError::TooManyRequests { .. })));
    assert!(limits.begin_request("bob").await.is_ok());
    running.pop();
    assert!(waiting.remove(0).await.is_ok(), "the first that waits is next");
    // Whoever goes away leaves the queue.
    drop((running, waiting));
    assert!(limits.users.lock().is_empty());
    assert!(limits.begin_request("ada").await.is_ok());
}

#[test]
fn a_user_who_changes_much_is_slowed_down_and_others_are_not() {
    let limits = UserLimits::default();
    let allowed = (0..10_000).filter(|_| limits.allow_change("ada")).count() as u64;
    assert!((CHANGES.capacity..10_000).contains(&allowed), "{allowed}");
    assert!(limits.allow_change("bob"));
}

#[test]
fn a_user_has_one_download_at_a_time() {
    let limits = UserLimits::default();
    let first = limits.begin_download("ada").unwrap();
    assert!(matches!(limits.begin_download("ada"), Err(PageError::TooManyRequests { .. })));
    assert!(limits.begin_download("bob").is_ok());
    drop(first);
    assert!(limits.begin_download("ada").is_ok());
}

#[test]
fn all_users_together_have_few_downloads() {
    let limits = UserLimits::default();
    let mut open: Vec<_> =
        (0..DOWNLOADS_MAX).map(|number| limits.begin_download(&number.to_string()).unwrap()).collect();
    assert!(matches!(limits.begin_download("ada"), Err(PageError::Status(503))));
    open.pop();
    assert!(limits.begin_download("ada").is_ok());
}

fn site(folder: &std::path::Path) -> ConsoleSite {
    let settings = ConsoleSettings {
        url: None,
        public_url: None,
        sign_up: SignUpMode::Open,
        sign_up_plan: "developer".to_owned(),
    };
    let facts = SiteFacts {
        network: "demo".to_owned(),
        base_url: "http://127.0.0.1:8545/v3/".to_owned(),
        example_key: None,
        methods: Vec::new(),
        config_file: None,
        configuration: Vec::new(),
    };
    let address = SocketAddr::from(([127, 0, 0, 1], 8547));
    let administration =
        Administration::new(Store::new(StoreLocation::in_data_dir(folder)), Plans::default());
    let clients = Box::new(|peer: SocketAddr, _: &http::HeaderMap| peer.ip());
    let changes = Box::new(|| stream::pending().boxed());
    let live = LiveSource { snapshot: Box::new(GatewaySnapshot::default), changes };
    ConsoleSite::new(&settings, address, administration, facts, live, clients, Supervisor::default())
}

/// One user who asked for many reports at once took all connections to the store, so that nobody else could use the console.
#[tokio::test]
async fn the_pages_of_a_user_with_many_requests_are_refused_and_those_of_others_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let site = Arc::new(site(folder.path()));
    let dispatch = Dispatch::new(Arc::clone(&site));
    let visitor = Visitor { address: [192, 0, 2, 1].into(), browser: String::new() };
    let mut tokens = Vec::new();
    for name in ["ada", "bob"] {
        let email = format!("{name}@example.com");
        tokens.push(site.people.sign_up(&email, "correct horse", name, &visitor).await.unwrap().token);
    }
    let status = async |user: usize, path: &str| {
        let cookie = format!("chaingate={}", tokens[user]);
        let request = Request::get(path).header("host", "localhost").header("cookie", cookie);
        dispatch.respond(request.body(Body::empty()).unwrap()).await.status()
    };
    let limits = site.user_limits.clone();
    let running = running(&limits, "ada@example.com").await;
    let waiting = waiting(&limits, "ada@example.com");
    for path in ["/", "/keys", "/usage", "/usage.csv", "/settings"] {
        assert_eq!(status(0, path).await, StatusCode::TOO_MANY_REQUESTS, "{path}");
        assert_eq!(status(1, path).await, StatusCode::OK, "{path}");
    }
    drop((running, waiting));
    assert_eq!(status(0, "/usage").await, StatusCode::OK);
}

/// A request that waited for others was answered after its session had ended.
#[tokio::test]
async fn a_request_whose_session_ends_while_it_waits_is_not_answered() {
    let folder = tempfile::tempdir().unwrap();
    let site = Arc::new(site(folder.path()));
    let dispatch = Dispatch::new(Arc::clone(&site));
    let visitor = Visitor { address: [192, 0, 2, 1].into(), browser: String::new() };
    let email = "ada@example.com";
    let token = site.people.sign_up(email, "correct horse", "ada", &visitor).await.unwrap().token;
    let session = site.people.session(&token, &visitor).await.unwrap().unwrap();
    let limits = site.user_limits.clone();
    let running = running(&limits, email).await;
    let request = Request::get("/keys").header("host", "localhost");
    let request = request.header("cookie", format!("chaingate={token}")).body(Body::empty()).unwrap();
    let waiting = tokio::spawn(async move { dispatch.respond(request).await.status() });
    while limits.users.lock()[email].requests == RUNNING_MAX {
        tokio::task::yield_now().await;
    }
    site.people.sign_out(&session).await.unwrap();
    drop(running);
    assert_eq!(waiting.await.unwrap(), StatusCode::SEE_OTHER);
}
