//! HTTP: paths, statuses, headers, limits.

use testkit::http::{TestConnection, get, post, request};

use crate::demo::{metric, until};
use crate::gateway_under_test::{Gateway, block, call, chain_id};

#[test]
fn a_result_is_200_and_says_where_it_came_from() {
    let gateway = Gateway::start();
    let reply =
        gateway.post(call("eth_getBalance", r#"["0x00000000000000000000000000000000000000aa","0x5"]"#));
    assert_eq!(reply.status, 200);
    assert_eq!(reply.text(), r#"{"jsonrpc":"2.0","id":1,"result":"0x5"}"#);
    assert_eq!(reply.header("chaingate-source"), Some("archive"));
    assert_eq!(reply.header("chaingate-block"), Some(format!("0x5 {}", block(5).hash).as_str()));
    assert_eq!(reply.header("vary"), Some("Origin"));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(reply.header("content-type"), Some("application/json"));
}

#[test]
fn a_json_rpc_error_is_200() {
    let gateway = Gateway::start();
    let reply = gateway.post(call("eth_nonsense", "[]"));
    assert_eq!(reply.status, 200);
    assert_eq!(reply.error(), "-32601 the method eth_nonsense does not exist/is not available");
}

#[test]
fn a_body_that_is_not_json_is_400() {
    let gateway = Gateway::start();
    for body in
        [&b""[..], b"{", b"nonsense", b"\xff\xfe", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_\xff\"}"]
    {
        let reply = gateway.post(body);
        assert_eq!((reply.status, reply.error().as_str()), (400, "-32700 parse error"), "{body:?}");
        assert!(reply.json()["id"].is_null());
    }
}

#[test]
fn json_that_is_no_call_is_400() {
    let gateway = Gateway::start();
    for body in ["1", "\"x\"", "null", "true"] {
        let reply = gateway.post(body);
        assert_eq!((reply.status, reply.json()["error"]["code"].as_i64()), (400, Some(-32600)), "{body}");
    }
    let reply = gateway.post("[]");
    assert_eq!((reply.status, reply.error().as_str()), (400, "-32600 empty batch"));
}

#[test]
fn no_key_is_401() {
    let gateway = Gateway::start();
    for path in ["/v3", "/v3/"] {
        let reply = post(gateway.public, path, chain_id("1"));
        assert_eq!(
            (reply.status, reply.error().as_str()),
            (401, "-32002 project id required in the URL"),
            "{path}"
        );
    }
}

#[test]
fn an_unknown_key_is_401_with_a_challenge() {
    let gateway = Gateway::start();
    for key in ["nobody", "DEMO", "demo%20", "dem%6f", &"x".repeat(5_000)] {
        let reply = post(gateway.public, &format!("/v3/{key}"), chain_id("1"));
        assert_eq!((reply.status, reply.error().as_str()), (401, "-32002 invalid project id"), "{key}");
        assert_eq!(reply.header("www-authenticate"), Some("Basic realm=\"chaingate\""));
    }
}

#[test]
fn other_methods_are_405() {
    let gateway = Gateway::start();
    for method in ["GET", "PUT", "DELETE", "TRACE", "PATCH"] {
        let mut wire = TestConnection::connect(gateway.public);
        let reply = wire.send(format!("{method} /v3/demo HTTP/1.1\r\nhost: x\r\n\r\n")).reply();
        assert_eq!((reply.status, reply.header("allow")), (405, Some("POST, OPTIONS")), "{method}");
        assert_eq!(reply.json()["error"]["code"], -32600);
    }
}

#[test]
fn other_paths_and_versions_are_404_and_name_the_right_one() {
    let gateway = Gateway::start();
    for path in [
        "/",
        "/v2/demo",
        "/v4/demo",
        "/v3/demo/x",
        "/v3/demo//",
        "//v3/demo",
        "/v3//demo",
        "/health",
        "/metrics",
    ] {
        let reply = post(gateway.public, path, chain_id("1"));
        assert_eq!(reply.status, 404, "{path}");
        assert!(
            reply.error().starts_with("-32600 ") && reply.error().contains("{base_url}/v3/<API_KEY>"),
            "{path}"
        );
    }
}

/// Clients that join URLs append a slash, and some services expect a query string. Both were answered with 404.
#[test]
fn a_slash_or_a_query_string_behind_a_key_changes_nothing() {
    let gateway = Gateway::start();
    for path in ["/v3/demo/", "/v3/demo?x=1", "/v3/demo/?x=1&y", "/v3/demo?"] {
        assert_eq!(post(gateway.public, path, chain_id("1")).json()["result"], "0x539", "{path}");
    }
    for path in ["/v3/dem/?o", "/v3/dem?o", "/v3/demo%2f", "/v3/demo%3fx", "/v3/demo;x"] {
        assert_eq!(post(gateway.public, path, chain_id("1")).status, 401, "{path} is another key");
    }
    for path in ["/v3?demo", "/v3/?demo", "/v3/?/demo"] {
        let reply = post(gateway.public, path, chain_id("1"));
        assert_eq!(reply.error(), "-32002 project id required in the URL", "{path}");
    }
}

#[test]
fn other_content_types_are_415() {
    let gateway = Gateway::start();
    let typed = |line: &str| {
        let body = chain_id("1");
        let head =
            format!("POST /v3/demo HTTP/1.1\r\nhost: x\r\n{line}content-length: {}\r\n\r\n", body.len());
        TestConnection::connect(gateway.public).send(head + &body).reply()
    };
    let reply = typed("content-type: text/plain\r\n");
    let expected = "-32600 invalid content type, only application/json is supported";
    assert_eq!((reply.status, reply.error().as_str()), (415, expected));
    for bad in ["text/html", "multipart/form-data", "application/xml", "application/jsonx", "json", "*/*"] {
        assert_eq!(typed(&format!("content-type: {bad}\r\n")).status, 415, "{bad}");
    }
    for good in [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/json-rpc",
        "application/jsonrequest",
        "application/x-www-form-urlencoded",
    ] {
        assert_eq!(typed(&format!("content-type: {good}\r\n")).status, 200, "{good}");
    }
    assert_eq!(typed("").status, 200, "none at all");
}

#[test]
fn a_body_over_the_limit_is_413_whether_it_says_so_or_not() {
    let gateway = Gateway::with("body_bytes_max = 1000", "");
    let large = format!("{}{}", chain_id("1"), " ".repeat(1_000));
    let reply = gateway.post(&large);
    assert_eq!((reply.status, reply.error().as_str()), (413, "-32600 content length too large"));

    let mut wire = TestConnection::connect(gateway.public);
    wire.send("POST /v3/demo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    for _ in 0..20 {
        wire.send(format!("64\r\n{}\r\n", " ".repeat(100)));
    }
    let reply = wire.reply();
    assert_eq!((reply.status, reply.error().as_str()), (413, "-32600 content length too large"));
    wire.closed_after();
}

#[test]
fn a_body_at_the_limit_of_5_mib_is_read() {
    let gateway = Gateway::start();
    let body = chain_id("1");
    let padded = |len: usize| format!("{body}{}", " ".repeat(len - body.len()));
    assert_eq!(gateway.post(padded(5 << 20)).status, 200);
    assert_eq!(gateway.post(padded((5 << 20) + 1)).status, 413);
}

#[test]
fn over_the_limit_of_connections_is_503() {
    let other_key = "[[key]]\nkey = \"other\"\naccount = \"other\"";
    let gateway = Gateway::with("connections_max = 2", other_key);
    let mut held: Vec<_> = (0..2).map(|_| TestConnection::connect(gateway.public)).collect();
    for (number, wire) in held.iter_mut().enumerate() {
        // An account with more than half of all connections would make room, too.
        let path = ["/v3/demo", "/v3/other"][number];
        assert_eq!(wire.post(path, chain_id("1")).status, 200);
        // Idle connections would make room for others.
        let endless = call("eth_call", &format!(r#"[{{"data":"0x02{number:02x}"}}]"#));
        wire.send(request(path, "", endless.as_bytes()));
    }
    until("calls run on all connections", || metric(gateway.operator, "chaingate_calls_in_flight") == 2.0);
    let mut wire = TestConnection::connect(gateway.public);
    let reply = wire.reply();
    assert_eq!((reply.status, reply.error().as_str()), (503, "-32005 over capacity"));
    assert_eq!(reply.header("retry-after"), Some("1"));
    drop((held, wire));
    until("places are given back", || gateway.post(chain_id("1")).status == 200);
}

#[test]
fn no_source_is_an_error_of_the_call() {
    let gateway = Gateway::start();
    assert_eq!(gateway.error("eth_call", r#"[{"data":"0x05"}]"#), "-32002 resource unavailable");
}

#[test]
fn a_preflight_is_204_with_cors_headers() {
    let gateway = Gateway::start();
    let mut wire = TestConnection::connect(gateway.public);
    let preflight = "OPTIONS /v3/demo HTTP/1.1\r\nhost: x\r\norigin: https://dapp.example\r\naccess-control-request-method: POST\r\n\r\n";
    let reply = wire.send(preflight).reply();
    assert_eq!((reply.status, reply.body.len()), (204, 0));
    assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
    assert_eq!(reply.header("access-control-allow-methods"), Some("POST, OPTIONS"));
    assert!(reply.header("access-control-allow-headers").unwrap().contains("content-type"));
    assert_eq!(wire.post("/v3/demo", chain_id("1")).status, 200, "the connection goes on");
}

#[test]
fn cors_headers_and_the_rest_stand_on_every_reply_also_on_errors() {
    let rest = "[plans.tiny]\ncredits_per_day = 1\n[plans.slow]\ncredits_per_second = 1\n\
                [[key]]\nkey = \"tiny\"\nplan = \"tiny\"\n[[key]]\nkey = \"slow\"\nplan = \"slow\"\n\
                [[key]]\nkey = \"elsewhere\"\nnetworks = [\"x\"]";
    let gateway = Gateway::with("body_bytes_max = 1000", rest);
    let posted = |path: &str| post(gateway.public, path, chain_id("1"));
    posted("/v3/slow");
    let statuses = [
        (posted("/v3/demo"), 200),
        (gateway.post(format!("[{}]", chain_id("1"))), 200),
        (gateway.post(r#"{"jsonrpc":"2.0","method":"eth_chainId"}"#), 204),
        (posted("/v3/tiny"), 402),
        (posted("/v3/elsewhere"), 403),
        (gateway.post(" ".repeat(2_000)), 413),
        (posted("/v3/slow"), 429),
    ];
    for (reply, status) in &statuses {
        assert_eq!(reply.status, *status);
    }
    let errors = [
        gateway.post("nonsense"),
        post(gateway.public, "/v3/nobody", chain_id("1")),
        post(gateway.public, "/nowhere", chain_id("1")),
        get(gateway.public, "/v3/demo"),
    ];
    for reply in statuses.into_iter().map(|(reply, _)| reply).chain(errors) {
        assert_eq!(reply.header("content-type").is_some(), !reply.body.is_empty(), "{reply:?}");
        assert_eq!(reply.header("access-control-allow-origin"), Some("*"), "{reply:?}");
        assert_eq!(reply.header("vary"), Some("Origin"), "{reply:?}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{reply:?}");
    }
}

#[test]
fn pipelined_requests_are_answered_in_order_also_after_early_replies() {
    let gateway = Gateway::start();
    let mut wire = TestConnection::connect(gateway.public);
    let unknown = request("/v3/nobody", "", chain_id("1").as_bytes());
    let known = |id: &str| request("/v3/demo", "", chain_id(id).as_bytes());
    wire.send([known("\"a\""), unknown.clone(), known("\"b\""), unknown, known("\"c\"")].concat());
    let statuses: Vec<_> =
        (0..5).map(|_| wire.reply()).map(|reply| (reply.status, reply.json()["id"].clone())).collect();
    assert_eq!(statuses[0], (200, "a".into()));
    assert_eq!(statuses[1].0, 401);
    assert_eq!(statuses[2], (200, "b".into()));
    assert_eq!(statuses[3].0, 401);
    assert_eq!(statuses[4], (200, "c".into()));
}

#[test]
fn who_expects_100_continue_is_told_to_go_on_unless_refused() {
    let gateway = Gateway::start();
    let body = chain_id("7");
    let head = |path: &str| {
        let len = body.len();
        format!("POST {path} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: {len}\r\n\r\n")
    };
    let mut wire = TestConnection::connect(gateway.public);
    assert_eq!(wire.send(head("/v3/demo")).reply().status, 100);
    assert_eq!(wire.send(&body).reply().json()["id"], 7);

    let mut refused = TestConnection::connect(gateway.public);
    assert_eq!(refused.send(head("/v3/nobody")).reply().status, 401);
    assert!(refused.is_closed(), "the body that never came cannot be told from the next request");
}

#[test]
fn a_connection_ends_politely_after_its_share_of_requests() {
    let gateway = Gateway::with("requests_per_connection_max = 3", "");
    let mut wire = TestConnection::connect(gateway.public);
    for last in [false, false, true] {
        let reply = wire.post("/v3/demo", chain_id("1"));
        assert_eq!((reply.status, reply.header("connection") == Some("close")), (200, last));
    }
    assert!(wire.is_closed());
}

#[test]
fn heads_that_are_too_large_are_refused() {
    let gateway = Gateway::start();
    let long = format!("x-long: {}\r\n", "y".repeat(20_000));
    let many = "x: y\r\n".repeat(200);
    for headers in [long, many] {
        let mut wire = TestConnection::connect(gateway.public);
        let reply = wire.send(request("/v3/demo", &headers, chain_id("1").as_bytes())).reply();
        assert_eq!((reply.status, reply.header("connection")), (431, Some("close")));
        assert_eq!(reply.error(), "-32600 the head of the request is too large");
    }
}

#[test]
fn many_headers_are_read_up_to_the_limit() {
    let gateway = Gateway::start();
    let headers: String = (0..90).map(|number| format!("x-{number}: y\r\n")).collect();
    let reply = TestConnection::connect(gateway.public)
        .send(request("/v3/demo", &headers, chain_id("1").as_bytes()))
        .reply();
    assert_eq!(reply.json()["result"], "0x539");
}

#[test]
fn what_is_no_http_is_400() {
    let gateway = Gateway::start();
    for head in
        ["nonsense\r\n\r\n", "POST /v3/demo HTTP/3.0\r\n\r\n", "POST /v3/demo HTTP/1.1\r\nno colon\r\n\r\n"]
    {
        let mut wire = TestConnection::connect(gateway.public);
        let reply = wire.send(head).reply();
        assert_eq!(
            (reply.status, reply.error().as_str()),
            (400, "-32600 the head of the request is not HTTP"),
            "{head}"
        );
        assert!(wire.is_closed());
    }
}

// Without a Host, or with two, a proxy in front may have meant another virtual server.
#[test]
fn http_1_1_without_exactly_one_valid_host_is_400() {
    let gateway = Gateway::start();
    let body = chain_id("1");
    for host in ["", "host: a\r\nhost: a\r\n", "host: a b\r\n", "host: a/b\r\n", "host:\r\n", "host: u@a\r\n"]
    {
        let mut wire = TestConnection::connect(gateway.public);
        let head = format!("POST /v3/demo HTTP/1.1\r\n{host}content-length: {}\r\n\r\n", body.len());
        let reply = wire.send(head).send(&body).reply();
        assert_eq!(reply.error(), "-32600 HTTP/1.1 needs exactly one valid Host header", "{host:?}");
        assert_eq!((reply.status, reply.header("connection")), (400, Some("close")), "{host:?}");
        assert!(wire.is_closed());
    }
}

#[test]
fn a_reply_to_head_has_no_body() {
    let gateway = Gateway::start();
    let mut wire = TestConnection::connect(gateway.public);
    wire.send("HEAD /v3/demo HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let text = String::from_utf8(wire.rest()).unwrap();
    assert!(text.starts_with("HTTP/1.1 405 Method Not Allowed\r\n") && text.ends_with("\r\n\r\n"), "{text}");
}

#[test]
fn http_1_0_is_answered_and_stays_only_if_it_asks_to() {
    let gateway = Gateway::start();
    let body = chain_id("1");
    let head = |connection: &str| {
        format!("POST /v3/demo HTTP/1.0\r\n{connection}content-length: {}\r\n\r\n{body}", body.len())
    };
    let mut wire = TestConnection::connect(gateway.public);
    for _ in 0..2 {
        let reply = wire.send(head("connection: Keep-Alive\r\n")).reply();
        assert_eq!((reply.status, reply.header("connection")), (200, Some("keep-alive")));
    }
    let reply = wire.send(head("")).reply();
    assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
    assert!(wire.is_closed());
}

#[test]
fn a_whole_url_is_a_path_too() {
    let gateway = Gateway::start();
    let reply = post(gateway.public, "http://gateway.example/v3/demo", chain_id("1"));
    assert_eq!(reply.json()["result"], "0x539");
}
