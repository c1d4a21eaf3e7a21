//! The admin API on a real store, without sockets.

use std::sync::Arc;

use callers::{CallersFeed, CurrentPlans, Directory, FeedConfig, Plans};
use resources::{DiskHealth, Supervisor};
use serde_json::{Value, json};
use store::{Store, StoreLocation};
use tempfile::TempDir;

use super::*;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// An API on a store of its own.
struct TestApi {
    api: AdminApi,
    _folder: TempDir,
}

impl TestApi {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(StoreLocation::in_data_dir(folder.path()));
        let administration = Administration::new(store, Plans::default());
        Self { api: AdminApi::new(AdminToken::from_text(TOKEN), administration), _folder: folder }
    }

    /// The status and the JSON of a reply.
    async fn send(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("content-type", "application/json")
            .body(body);
        let response = self.api.answer(request.unwrap()).await;
        assert_eq!(response.headers()["content-type"], "application/json", "{method} {path}");
        (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap())
    }
}

fn error(status: u16, code: &str, reply: &(u16, Value)) -> Value {
    let (found, body) = reply;
    assert_eq!((*found, body["error"]["code"].as_str()), (status, Some(code)), "{body}");
    body["error"].clone()
}

#[tokio::test]
async fn an_account_and_its_keys_are_created_changed_and_audited() {
    let api = TestApi::new();
    let (status, account) =
        api.send("POST", "/admin/v1/accounts", json!({"name": "a/b", "plan": "core"})).await;
    assert_eq!((status, &account["name"], &account["status"]), (201, &json!("a/b"), &json!("active")));
    let (_, list) = api.send("GET", "/admin/v1/accounts", Value::Null).await;
    assert_eq!(list["accounts"].as_array().unwrap().len(), 1);
    assert_eq!(list.get("next"), None, "it is the last page");

    let keys = "/admin/v1/accounts/a%2Fb/keys";
    let settings = json!({"methods": ["eth_call"], "secret": "hunter2hunter2"});
    let (status, new) = api.send("POST", keys, json!({"name": "web", "settings": settings})).await;
    let (id, key) = (new["id"].as_str().unwrap(), new["key"].as_str().unwrap());
    assert_eq!((status, key.len(), &new["settings"]["has_secret"]), (201, 32, &json!(true)));

    let path = |operation: &str| format!("/admin/v1/keys/{id}/{operation}");
    let (_, changed) =
        api.send("PATCH", &path("settings"), json!({"methods": null, "credits_per_day": 9})).await;
    assert_eq!(changed["settings"], json!({"has_secret": true, "credits_per_day": 9}));
    let (_, renamed) = api.send("PUT", &path("name"), json!({"name": "site"})).await;
    assert_eq!(renamed["name"], "site");
    let rotation = json!({"overlap_seconds": 60, "secret": "another-secret"});
    let (status, rotated) = api.send("POST", &path("rotate"), rotation).await;
    assert_eq!((status, rotated["key"].as_str().unwrap() != key), (201, true));
    let (_, revoked) = api.send("POST", &path("revoke"), Value::Null).await;
    assert_eq!(revoked["status"], "revoked");
    for (operation, status) in [("suspend", "suspended"), ("resume", "active")] {
        let (_, account) =
            api.send("POST", &format!("/admin/v1/accounts/a%2Fb/{operation}"), json!({})).await;
        assert_eq!(account["status"], status);
    }
    let (_, account) = api.send("PUT", "/admin/v1/accounts/a%2Fb/plan", json!({"plan": "team"})).await;
    assert_eq!(account["plan"], "team");

    let (_, listed) = api.send("GET", keys, Value::Null).await;
    assert_eq!(listed["keys"].as_array().unwrap().len(), 2);
    assert_eq!(listed.get("next"), None, "it is the last page");
    let (_, audit) = api.send("GET", "/admin/v1/audit?limit=1000", Value::Null).await;
    let actions: Vec<_> = audit["entries"].as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    assert_eq!(actions.len(), 9, "{actions:?}");
    assert_eq!(audit.get("next"), None, "it is the last page");
    let (_, newest) = api.send("GET", "/admin/v1/audit?limit=9", Value::Null).await;
    assert_eq!(newest.get("next"), None, "a full page can be the last");
    let (_, newest) = api.send("GET", "/admin/v1/audit?limit=8", Value::Null).await;
    assert_eq!(newest["next"], newest["entries"][7]["id"]);
    for shown in [listed, audit] {
        assert!(!shown.to_string().contains(key) && !shown.to_string().contains("hunter2"), "{shown}");
    }
}

/// A change was answered with 200 although the gateway could not follow the store, and the revoked key was accepted.
#[tokio::test]
async fn a_change_that_is_not_in_effect_yet_is_202_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::in_data_dir(folder.path());
    let config = FeedConfig {
        location: location.clone(),
        data_dir: folder.path().to_owned(),
        plans: CurrentPlans::default(),
        network: "demo".to_owned(),
        is_required: true,
        copy_age_max: None,
    };
    let (directory, disk) = (Arc::new(Directory::new(&[])), DiskHealth::new(folder.path()));
    let feed = CallersFeed::start(config, directory, &Supervisor::default(), disk).unwrap();
    let administration = Administration::new(Store::new(location), Plans::default()).with_feed(feed.handle());
    let api = TestApi { api: AdminApi::new(AdminToken::from_text(TOKEN), administration), _folder: folder };
    let (status, created) =
        api.send("POST", "/admin/v1/accounts", json!({"name": "a", "plan": "core"})).await;
    assert_eq!((status, &created["not_in_effect_because"]), (201, &Value::Null));
    let (_, key) = api.send("POST", "/admin/v1/accounts/a/keys", json!({"name": "k"})).await;
    // The feed ends, as after a panic.
    drop(feed);
    let path = format!("/admin/v1/keys/{}/revoke", key["id"].as_str().unwrap());
    let (status, revoked) = api.send("POST", &path, Value::Null).await;
    assert_eq!((status, &revoked["status"]), (202, &json!("revoked")), "{revoked}");
    assert!(revoked["not_in_effect_because"].as_str().unwrap().contains("this gateway"), "{revoked}");
    let (status, here) = api.send("POST", "/admin/v1/local-revocations", json!({"id": key["id"]})).await;
    assert_eq!((status, &here["id"]), (200, &key["id"]));
    let named = json!({"account": "a", "name": "none"});
    error(404, "not_found", &api.send("POST", "/admin/v1/local-revocations", named).await);
    error(422, "invalid", &api.send("POST", "/admin/v1/local-revocations", json!({})).await);
}

#[tokio::test]
async fn errors_name_what_is_wrong() {
    let api = TestApi::new();
    let account = json!({"name": "a", "plan": "core"});
    api.send("POST", "/admin/v1/accounts", account.clone()).await;
    error(409, "already_exists", &api.send("POST", "/admin/v1/accounts", account).await);
    let unknown = api.send("POST", "/admin/v1/accounts", json!({"name": "b", "plan": "golden"})).await;
    assert_eq!(error(422, "invalid", &unknown)["field"], "plan");
    let misspelt = api.send("POST", "/admin/v1/accounts", json!({"nmae": "b"})).await;
    assert!(error(400, "invalid_body", &misspelt)["message"].as_str().unwrap().contains("nmae"));
    let settings = json!({"name": "k", "settings": {"methods": ["eth_cal"]}});
    let invalid = api.send("POST", "/admin/v1/accounts/a/keys", settings).await;
    assert_eq!(error(422, "invalid", &invalid)["field"], "methods");
    error(404, "not_found", &api.send("POST", "/admin/v1/keys/k_0/revoke", Value::Null).await);
    error(404, "not_found", &api.send("GET", "/admin/v1/accounts/none/keys", Value::Null).await);
    error(404, "no_such_path", &api.send("GET", "/admin/v1/other", Value::Null).await);
    error(404, "no_such_path", &api.send("GET", "/admin", Value::Null).await);
    error(405, "no_such_method", &api.send("PUT", "/admin/v1/accounts", json!({})).await);
    error(400, "invalid_query", &api.send("GET", "/admin/v1/audit?limit=many", Value::Null).await);
}

/// A path that is not UTF-8 was answered with plain text. PostgreSQL refuses a NUL byte, which was reported as an outage of the
/// store.
#[tokio::test]
async fn addresses_that_name_nothing_get_an_error_of_the_usual_form() {
    let api = TestApi::new();
    for path in ["accounts/%FF/suspend", "keys/%FF/revoke", "accounts/%00/suspend", "keys/k%00/revoke"] {
        let reply = api.send("POST", &format!("/admin/v1/{path}"), Value::Null).await;
        error(404, "not_found", &reply);
    }
    for path in ["usage?account=%00", "usage?key=k%00", "audit?%00", "accounts/a/keys?after=%00"] {
        let reply = api.send("GET", &format!("/admin/v1/{path}"), Value::Null).await;
        error(400, "invalid_query", &reply);
    }
}

#[tokio::test]
async fn a_plan_bounds_the_keys_of_an_account() {
    let api = TestApi::new();
    api.send("POST", "/admin/v1/accounts", json!({"name": "a", "plan": "core"})).await;
    let mut replies = Vec::new();
    for number in 0..200 {
        let reply = api.send("POST", "/admin/v1/accounts/a/keys", json!({"name": number.to_string()})).await;
        let refused = reply.0 != 201;
        replies.push(reply);
        if refused {
            break;
        }
    }
    error(409, "too_many_keys", replies.last().unwrap());
}

/// Each path and method of the document is answered, and none without the token.
#[tokio::test]
async fn the_document_describes_every_route() {
    let api = TestApi::new();
    let request = Request::builder().uri(OPENAPI_PATH).body(Bytes::new()).unwrap();
    let document: Value = serde_json::from_slice(api.api.answer(request).await.body()).unwrap();
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    let mut operations = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(operation["responses"]["default"].is_object(), "{method} {path}");
            assert!(
                operation["operationId"].is_string() && operation["summary"].is_string(),
                "{method} {path}"
            );
            operations += 1;
            let (_, body) = api.send(&method.to_uppercase(), &path.replace(['{', '}'], "_"), json!({})).await;
            let code = body["error"]["code"].as_str().unwrap_or("ok");
            assert!(!code.starts_with("no_such"), "{method} {path}: {body}");
            let request =
                Request::builder().method(method.to_uppercase().as_str()).uri(path.replace(['{', '}'], "_"));
            let refused = TestApi::new().api.answer(request.body(Bytes::new()).unwrap()).await;
            assert_eq!(refused.status(), 401, "{method} {path}");
        }
    }
    assert_eq!(operations, 15, "an operation of the administration is missing here or there");
}
