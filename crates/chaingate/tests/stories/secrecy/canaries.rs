//! A thousand stored keys with their secrets, used in every way that callers and operators have. None of them is in the log,
//! in a metric, in a reply or in a file of the gateway.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use callers::administration::{Administration, KeyCreation};
use callers::{KeyPatch, Plans};
use rand::Rng as _;
use serde_json::json;
use store::{Store, StoreLocation};
use testkit::postgres::PostgresServer;
use testkit::redis::RedisServer;

use super::*;

const CANARIES: usize = 1_000;

/// Characters of a key and, in this test, of a secret.
const CANARY_BYTES: usize = 32;

struct Canary {
    key: String,
    secret: String,
}

/// Text that is searched for in everything that the gateway writes.
#[derive(Default)]
struct Needles(HashSet<Vec<u8>>);

impl Needles {
    /// The text itself and, since it is too long to be found otherwise, nothing shorter than [`CANARY_BYTES`].
    fn add(&mut self, text: &str) {
        for window in text.as_bytes().windows(CANARY_BYTES) {
            self.0.insert(window.to_ascii_lowercase());
        }
    }

    /// The place of the first one.
    fn position(&self, bytes: &[u8]) -> Option<usize> {
        let lower = bytes.to_ascii_lowercase();
        lower.windows(CANARY_BYTES).position(|window| self.0.contains(window))
    }

    fn assert_absent(&self, place: &str, bytes: &[u8]) {
        if let Some(position) = self.position(bytes) {
            let start = position.saturating_sub(80);
            let around = String::from_utf8_lossy(&bytes[start..position]);
            panic!("a key or secret is in {place}, after: {around}");
        }
    }
}

#[test]
fn no_file_log_metric_or_reply_shows_one_of_a_thousand_stored_keys_or_its_secret() {
    let mut canaries = Vec::new();
    let program = Program::start_prepared("", |data| {
        fs::create_dir_all(data).unwrap();
        canaries = create_canaries(StoreLocation::in_data_dir(data));
    });
    let needles = use_canaries(&program, &canaries);
    assert_no_file_shows(&needles, &program.folder.path().join("data"));
}

#[test]
fn neither_postgresql_nor_redis_gets_one_of_a_thousand_stored_keys_or_its_secret() {
    let (Some(postgres), Some(redis)) = (PostgresServer::start(), RedisServer::start()) else { return };
    let canaries = create_canaries(StoreLocation::parse(&postgres.url()).unwrap());
    let program = Program::start(&format!(
        "[store]\nurl = \"{}\"\n[shared]\nredis_url = \"{}\"",
        postgres.url(),
        redis.url()
    ));
    let needles = use_canaries(&program, &canaries);
    assert_no_file_shows(&needles, &program.folder.path().join("data"));
    until("the usage is stored", || postgres.run("SELECT COUNT(*) > 0 FROM usage_minutes") == "t");
    postgres.run("CHECKPOINT");
    assert_no_file_shows(&needles, &postgres.data());
    let snapshot = redis.snapshot();
    assert!(String::from_utf8_lossy(&snapshot).contains("chaingate:{limits}"), "limits are shared");
    needles.assert_absent("Redis", &snapshot);
}

/// Uses each key, and searches the log, the replies and the operator's pages.
fn use_canaries(program: &Program, canaries: &[Canary]) -> Needles {
    let (public, operator) = program.addresses();
    let mut needles = Needles::default();
    let mut replies = Vec::new();
    for (number, canary) in canaries.iter().enumerate() {
        needles.add(&canary.key);
        needles.add(&canary.secret);
        needles.add(&STANDARD.encode(format!(":{}", canary.secret)));
        needles.add(&STANDARD.encode(format!("{}:{}", canary.key, canary.secret)));
        replies.extend(use_canary(public, operator, number, canary));
    }
    assert!(needles.position(canaries[7].key.to_uppercase().as_bytes()).is_some(), "the search finds a key");
    replies.iter().for_each(|reply| needles.assert_absent("a reply", reply));
    for page in ["/metrics", "/status", "/health", "/admin"] {
        needles.assert_absent(page, &get(operator, page).body);
    }
    until("the last requests are logged", || program.log().matches("\"answered\"").count() >= CANARIES);
    needles.assert_absent("the log", program.log().as_bytes());
    needles
}

/// Stores an account with so many keys.
fn create_canaries(location: StoreLocation) -> Vec<Canary> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::new(location);
        let administration = Administration::new(store, Plans::default());
        administration.create_account("test", "canaries", "custom").await.unwrap();
        let mut canaries = Vec::new();
        for number in 0..CANARIES {
            let secret: String = (0..CANARY_BYTES)
                .map(|_| char::from(rand::rng().sample(rand::distr::Alphanumeric)))
                .collect();
            let settings = json!({ "secret": &secret, "secret_required": number.is_multiple_of(2) });
            let settings: KeyPatch = serde_json::from_value(settings).unwrap();
            let (account, name) = ("canaries".to_owned(), format!("canary {number}"));
            let creation = KeyCreation { account, name, settings, ..KeyCreation::default() };
            let created = administration.create_key("test", &creation).await.unwrap();
            canaries.push(Canary { key: created.made.key, secret });
        }
        canaries
    })
}

/// Uses a key and its secret in one of the ways that right and mistaken callers have. Gives the replies.
fn use_canary(public: SocketAddr, operator: SocketAddr, number: usize, canary: &Canary) -> Vec<Vec<u8>> {
    let Canary { key, secret } = canary;
    let (path, body) = (format!("/v3/{key}"), chain_id("1"));
    let requests = match number % 8 {
        0 => vec![(path.clone(), basic(secret), body.clone()), (path, basic(key), body)],
        1 => vec![
            (path.clone(), String::new(), body.clone()),
            (path, format!("x-api-key: {secret}\r\n"), body),
        ],
        2 => vec![(path, format!("authorization: Bearer {secret}\r\n"), body)],
        3 => vec![(format!("/v3/{key}?secret={secret}"), String::new(), body)],
        4 => vec![
            (format!("/v3/{key}/{secret}"), String::new(), body),
            (format!("/v2/{key}"), basic(secret), body_of(key)),
        ],
        5 => vec![(
            path,
            basic(secret),
            format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_call\",\"params\":[{secret}"),
        )],
        6 => vec![
            (format!("/v3/{}", &key[..31]), basic(secret), body.clone()),
            (format!("/v3/{key}0"), basic(secret), body),
        ],
        _ => vec![(
            path,
            format!("origin: https://{key}.example\r\nuser-agent: {secret}\r\ncookie: key={key}\r\n"),
            body,
        )],
    };
    let mut replies: Vec<_> = requests
        .iter()
        .map(|(path, headers, body)| {
            let request = request(path, headers, body.as_bytes());
            TestConnection::connect(public).send(request).reply().body
        })
        .collect();
    if number.is_multiple_of(100) {
        let head = format!(
            "GET /admin/v1/accounts?{key} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {secret}\r\n\r\n"
        );
        replies.push(TestConnection::connect(operator).send(head).rest());
    }
    replies
}

/// A call whose parameters are a key.
fn body_of(key: &str) -> String {
    call("eth_getBalance", &format!("[\"{key}\",\"latest\"]"))
}

fn assert_no_file_shows(needles: &Needles, folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_no_file_shows(needles, &path);
        } else if path.is_file() {
            needles.assert_absent(&path.display().to_string(), &fs::read(&path).unwrap());
        }
    }
}
