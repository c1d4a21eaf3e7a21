use std::net::SocketAddr;
use std::pin::Pin;

use axum::body::Body;
use callers::Plans;
use callers::administration::Administration;
use callers::people::Visitor;
use futures_util::FutureExt as _;
use http::{Request, StatusCode};
use resources::Supervisor;
use store::{Store, StoreLocation};

use super::*;
use crate::pages::live::LiveStatus;
use crate::web::dispatch::Dispatch;
use crate::web::{ConsoleSettings, ConsoleSite, LiveSource, SignUpMode, SiteFacts};

type WaitingRequest<'a> = Pin<Box<dyn Future<Output = Result<UserPermit, PageError>> + 'a>>;

/// As many requests of a user as are answered at once.
async fn running(permits: &UserPermits, email: &str) -> Vec<UserPermit> {
    let mut running = Vec::new();
    for _ in 0..RUNNING_MAX {
        running.push(permits.begin(email).await.unwrap());
    }
    running
}

/// As many further requests of the user as may wait.
fn waiting<'a>(permits: &'a UserPermits, email: &'a str) -> Vec<WaitingRequest<'a>> {
    let one = |_| {
        let mut request: WaitingRequest<'a> = Box::pin(permits.begin(email));
        assert!((&mut request).now_or_never().is_none(), "it waits");
        request
    };
    (0..WAITING_MAX).map(one).collect()
}

#[tokio::test]
async fn requests_of_a_user_wait_for_each_other_and_not_for_those_of_others() {
    let permits = UserPermits::default();
    let mut running = running(&permits, "ada").await;
    let mut waiting = waiting(&permits, "ada");
    assert!(matches!(permits.begin("ada").await, Err(PageError::TooManyRequests { .. })));
    assert!(permits.begin("bob").await.is_ok());
    running.pop();
    assert!(waiting.remove(0).await.is_ok(), "the first that waits is next");
    // Whoever goes away leaves the queue.
    drop((running, waiting));
    assert!(permits.0.lock().is_empty());
    assert!(permits.begin("ada").await.is_ok());
}

#[derive(Debug)]
struct NothingHappens;

impl LiveSource for NothingHappens {
    fn status(&self) -> LiveStatus {
        LiveStatus {
            now: 1,
            not_ready_because: None,
            tasks_down: Vec::new(),
            traffic: Default::default(),
            errors: Vec::new(),
            chain: Default::default(),
            nodes: Vec::new(),
            partners: Vec::new(),
            last_partner_answer: None,
            storage: None,
            instances: Vec::new(),
        }
    }
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
    let live = Arc::new(NothingHappens);
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
    let permits = site.user_permits.clone();
    let running = running(&permits, "ada@example.com").await;
    let waiting = waiting(&permits, "ada@example.com");
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
    let permits = site.user_permits.clone();
    let running = running(&permits, email).await;
    let request = Request::get("/keys").header("host", "localhost");
    let request = request.header("cookie", format!("chaingate={token}")).body(Body::empty()).unwrap();
    let waiting = tokio::spawn(async move { dispatch.respond(request).await.status() });
    while permits.0.lock()[email].requests == RUNNING_MAX {
        tokio::task::yield_now().await;
    }
    site.people.sign_out(&session).await.unwrap();
    drop(running);
    assert_eq!(waiting.await.unwrap(), StatusCode::SEE_OTHER);
}
