//! The admin API on the operator's listener: who may use it, and what it tells nobody.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use testkit::http::{ReceivedReply, TestConnection, get};

use crate::accounts::{account_with_key, status};
use crate::demo::until;
use crate::process::Process;

fn gateway(listen: &str, log: &str) -> Process {
    // The lines after the addresses of `[listen]` are still part of it.
    Process::start("127.0.0.1:0", listen, log)
}

fn token(gateway: &Process) -> String {
    fs::read_to_string(gateway.data_dir().join("admin-token")).unwrap().trim().to_owned()
}

/// Sends a request with these header lines.
fn send(operator: SocketAddr, method: &str, path: &str, headers: &[String], body: &str) -> ReceivedReply {
    let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let length = body.len();
    let request = format!("{method} {path} HTTP/1.1\r\n{headers}content-length: {length}\r\n\r\n{body}");
    TestConnection::connect(operator).send(request).reply()
}

/// The headers of an honest client.
fn honest(gateway: &Process) -> Vec<String> {
    vec![
        format!("host: {}", gateway.operator),
        format!("authorization: Bearer {}", token(gateway)),
        "content-type: application/json".to_owned(),
    ]
}

#[test]
fn the_api_needs_the_token_of_the_data_directory() {
    let gateway = gateway("", "info");
    let path = gateway.data_dir().join("admin-token");
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut headers = honest(&gateway);
    let list = |headers: &[String]| send(gateway.operator, "GET", "/admin/v1/accounts", headers, "");
    assert_eq!(list(&headers).json(), json!({"accounts": []}));
    let right = headers.remove(1);
    let refused = list(&headers);
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")));
    assert!(refused.error().contains("admin-token"), "{}", refused.error());
    headers.push("authorization: Bearer 00000000000000000000000000000000".to_owned());
    let statuses: Vec<_> = (0..100).map(|_| list(&headers).status).collect();
    assert!(statuses[..5].iter().all(|&status| status == 401), "{statuses:?}");
    assert!(statuses.contains(&429), "wrong tokens are limited: {statuses:?}");
    headers.pop();
    headers.push(right);
    assert_eq!(list(&headers).status, 200, "the right token still works");
    // The log is written beside the requests.
    until("wrong tokens are logged", || gateway.lines_with("without the right token") > 0);
    assert_eq!(gateway.lines_with("00000000000000000000000000000000"), 0);
}

#[test]
fn pages_of_other_origins_and_hosts_are_refused() {
    let gateway = gateway("operator_hosts = [\"console.example\"]\n", "info");
    let list = |host: &str, origin: Option<&str>| {
        let mut headers = honest(&gateway);
        headers[0] = format!("host: {host}");
        headers.extend(origin.map(|origin| format!("origin: {origin}")));
        send(gateway.operator, "GET", "/admin/v1/accounts", &headers, "").status
    };
    let operator = gateway.operator.to_string();
    assert_eq!(list(&operator, None), 200);
    assert_eq!(list(&operator, Some(&format!("http://{operator}"))), 200);
    assert_eq!(list("console.example", Some("https://console.example")), 200);
    assert_eq!(list("evil.example", None), 403);
    assert_eq!(list("evil.example", Some("http://evil.example")), 403);
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1", "http://localhost"] {
        assert_eq!(list(&operator, Some(origin)), 403, "{origin}");
    }
}

#[test]
fn changes_are_json_within_a_limit() {
    let gateway = gateway("", "info");
    let mut headers = honest(&gateway);
    let create =
        |headers: &[String], body: &str| send(gateway.operator, "POST", "/admin/v1/accounts", headers, body);
    let account = json!({"name": "acme", "plan": "core"}).to_string();
    headers[2] = "content-type: text/plain".to_owned();
    assert_eq!(create(&headers, &account).status, 415);
    headers[2] = "content-type: application/json".to_owned();
    assert_eq!(create(&headers, &format!("{}{account}", " ".repeat(70_000))).status, 413);
    assert_eq!(create(&headers, "{").status, 400);
    assert_eq!(create(&headers, &account).status, 201);
    assert_eq!(create(&headers, &account).status, 409);
    let reply = send(gateway.operator, "POST", "/admin/v1/accounts/acme/suspend", &headers, "");
    assert_eq!((reply.status, reply.header("cache-control")), (200, Some("no-store")));
    assert_eq!(get(gateway.operator, "/health").status, 200, "the other pages stay");
}

#[test]
fn the_openapi_document_needs_no_token() {
    let gateway = gateway("", "info");
    let document = get(gateway.operator, "/admin/v1/openapi.json").json();
    assert!(document["paths"]["/admin/v1/keys/{id}/revoke"]["post"].is_object());
}

#[test]
fn the_audit_log_tells_who_changed_what() {
    let gateway = gateway("", "info");
    let (_, id) = account_with_key(&gateway.data_dir(), "acme");
    let mut headers = honest(&gateway);
    let revoke = format!("/admin/v1/keys/{id}/revoke");
    assert_eq!(send(gateway.operator, "POST", &revoke, &headers, "").status, 200);
    headers.push("chaingate-actor: billing".to_owned());
    assert_eq!(send(gateway.operator, "POST", "/admin/v1/accounts/acme/suspend", &headers, "").status, 200);
    let audit = send(gateway.operator, "GET", "/admin/v1/audit", &headers, "").json();
    let entries = audit["entries"].as_array().unwrap();
    let told = |entry: &Value| {
        format!("{} {} by {}", text(entry, "action"), text(entry, "subject"), text(entry, "actor"))
    };
    let told: Vec<_> = entries.iter().map(told).collect();
    assert_eq!(
        told,
        [
            "account.suspend acme by billing, admin API from 127.0.0.1".to_owned(),
            format!("key.revoke {id} by admin API from 127.0.0.1"),
            format!("key.create {id} by command line, user alice, admin API from 127.0.0.1"),
            "account.create acme by command line, user alice, admin API from 127.0.0.1".to_owned(),
        ]
    );
}

fn text(entry: &Value, field: &str) -> String {
    entry[field].as_str().unwrap().to_owned()
}

#[test]
fn no_key_secret_or_token_is_in_a_log_at_trace_or_in_a_file() {
    let gateway = gateway("", "trace,hyper=trace,sqlx=trace,axum=trace");
    let headers = honest(&gateway);
    let (key, id) = account_with_key(&gateway.data_dir(), "acme");
    let body = json!({"secret": "canary-secret-771", "secret_required": false}).to_string();
    assert_eq!(
        send(gateway.operator, "PATCH", &format!("/admin/v1/keys/{id}/settings"), &headers, &body).status,
        200
    );
    until("the key is accepted", || status(&gateway, &key) == 200);
    let (token, operator, data_dir) = (token(&gateway), gateway.operator, gateway.data_dir());
    let metrics = get(operator, "/metrics").text().to_owned();
    until("the call is logged", || gateway.lines_with("\"answered\"") > 0);
    for canary in [key.as_str(), "canary-secret-771", token.as_str()] {
        assert_eq!(gateway.lines_with(canary), 0);
        assert!(!metrics.contains(canary));
    }
    for canary in [key.as_str(), "canary-secret-771"] {
        assert_eq!(files_with(&data_dir, canary), Vec::<String>::new());
    }
}

/// The files of a folder that contain a text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if fs::read(&path)
            .is_ok_and(|bytes| bytes.windows(text.len()).any(|part| part == text.as_bytes()))
        {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn the_token_can_come_from_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let (file, token) = (folder.path().join("token"), "another-token-of-the-operator-0001");
    fs::write(&file, token).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let gateway = gateway(&format!("admin_token_file = \"{}\"\n", file.display()), "info");
    let headers = [format!("host: {}", gateway.operator), format!("authorization: Bearer {token}")];
    assert_eq!(send(gateway.operator, "GET", "/admin/v1/accounts", &headers, "").status, 200);
    assert!(!gateway.data_dir().join("admin-token").exists());
}

#[test]
fn a_token_that_others_can_read_keeps_the_gateway_from_starting() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("admin-token"), "0123456789abcdef0123456789abcdef\n").unwrap();
    fs::set_permissions(folder.path().join("admin-token"), fs::Permissions::from_mode(0o644)).unwrap();
    let ended = std::process::Command::new(env!("CARGO_BIN_EXE_chaingate"))
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--operator",
            "127.0.0.1:0",
            "--console",
            "off",
            "--data-dir",
        ])
        .arg(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(!ended.status.success() && said.contains("chmod 600"), "{said}");
}
