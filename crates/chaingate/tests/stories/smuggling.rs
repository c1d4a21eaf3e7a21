//! Requests that end in two places: at most one reply, never a 200, and the connection is closed.

use testkit::http::TestConnection;

use crate::gateway_under_test::{Gateway, chain_id};

/// The smuggled request, which is whole and must never be answered.
fn canary() -> String {
    let body = chain_id("\"canary\"");
    format!("POST /v3/demo HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn is_refused(gateway: &Gateway, head: &str) {
    let body = chain_id("1");
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for rest in
        [format!("{body}{}", canary()), format!("{chunked}{}", canary()), format!("0\r\n\r\n{}", canary())]
    {
        let mut wire = TestConnection::connect(gateway.public);
        wire.send(head.replace("LEN", &body.len().to_string())).send(&rest);
        let mut replies = Vec::new();
        while let Some(reply) = wire.next_reply() {
            replies.push(reply);
        }
        assert!(replies.len() <= 1, "{head:?}: {replies:?}");
        assert!(replies.iter().all(|reply| reply.status == 400), "{head:?}: {replies:?}");
    }
}

#[test]
fn both_lengths_in_either_order() {
    let gateway = Gateway::start();
    is_refused(
        &gateway,
        "POST /v3/demo HTTP/1.1\r\nhost: x\r\ncontent-length: LEN\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    is_refused(
        &gateway,
        "POST /v3/demo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ncontent-length: LEN\r\n\r\n",
    );
    is_refused(
        &gateway,
        "POST /v3/demo HTTP/1.1\r\nhost: x\r\nTransfer-Encoding:chunked\r\nContent-length:0\r\n\r\n",
    );
}

#[test]
fn a_length_said_twice() {
    let gateway = Gateway::start();
    is_refused(
        &gateway,
        "POST /v3/demo HTTP/1.1\r\nhost: x\r\ncontent-length: LEN\r\ncontent-length: LEN\r\n\r\n",
    );
    is_refused(
        &gateway,
        "POST /v3/demo HTTP/1.1\r\nhost: x\r\ncontent-length: LEN\r\ncontent-length: 0\r\n\r\n",
    );
    is_refused(&gateway, "POST /v3/demo HTTP/1.1\r\nhost: x\r\ncontent-length: LEN, LEN\r\n\r\n");
}

#[test]
fn a_length_that_is_no_plain_number() {
    let gateway = Gateway::start();
    for length in ["+LEN", "-1", "0x2a", "LEN ;", "1e1", "", "99999999999999999999"] {
        is_refused(
            &gateway,
            &format!("POST /v3/demo HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n"),
        );
    }
}

#[test]
fn transfer_encodings_that_another_reader_may_miss() {
    let gateway = Gateway::start();
    for encoding in
        ["xchunked", "chunked, identity", "identity, chunked", "gzip, chunked", "\"chunked\"", "chunked;q=1"]
    {
        is_refused(
            &gateway,
            &format!("POST /v3/demo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: {encoding}\r\n\r\n"),
        );
    }
    is_refused(
        &gateway,
        "POST /v3/demo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n",
    );
    is_refused(&gateway, "POST /v3/demo HTTP/1.1\r\nhost: x\r\ntransfer-encoding : chunked\r\n\r\n");
    is_refused(&gateway, "POST /v3/demo HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n");
}

#[test]
fn lines_that_end_or_begin_oddly() {
    let gateway = Gateway::start();
    is_refused(&gateway, "POST /v3/demo HTTP/1.1\nhost: x\ncontent-length: LEN\n\n");
    is_refused(&gateway, "POST /v3/demo HTTP/1.1\r\nhost: x\r\nx: y\ncontent-length: LEN\r\n\r\n");
    is_refused(&gateway, "POST /v3/demo HTTP/1.1\r\nhost: x\r\nx: y\r\n content-length: LEN\r\n\r\n");
    is_refused(&gateway, "POST /v3/demo HTTP/1.1\r\nhost: x\r\nx: y\r\n\tz\r\ncontent-length: LEN\r\n\r\n");
    is_refused(&gateway, "POST /v3/demo HTTP/1.1\r\nhost: x\r\n content-length: LEN\r\n\r\n");
    is_refused(&gateway, "POST /v3/demo HTTP/1.1\r\nhost: x\r\ncontent-length: LEN\r\nx\0y: z\r\n\r\n");
}

#[test]
fn an_honest_chunked_request_is_answered_and_is_the_last_on_its_connection() {
    let gateway = Gateway::start();
    let body = chain_id("1");
    let (first, second) = body.split_at(10);
    let chunks = format!("{:x}\r\n{first}\r\n{:X};ext=1\r\n{second}\r\n0\r\n\r\n", first.len(), second.len());
    let mut wire = TestConnection::connect(gateway.public);
    wire.send(format!(
        "POST /v3/demo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n{chunks}{}",
        canary()
    ));
    let reply = wire.reply();
    assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
    assert_eq!(reply.json()["id"], 1);
    assert!(wire.next_reply().is_none());
}

#[test]
fn an_upgrade_is_not_followed() {
    let gateway = Gateway::start();
    let body = chain_id("1");
    for upgrade in ["h2c", "websocket"] {
        let mut wire = TestConnection::connect(gateway.public);
        let head = format!(
            "POST /v3/demo HTTP/1.1\r\nhost: x\r\nupgrade: {upgrade}\r\nconnection: upgrade\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        assert_eq!(wire.send(head).send(&body).reply().status, 200, "{upgrade}");
    }
}

// A chunk's extensions and the trailers were skipped up to the next line feed. A reader in front that ends lines at a bare
// carriage return, or folds them, could see another request in there.
#[test]
fn chunk_extensions_and_trailers_that_another_reader_may_split() {
    let gateway = Gateway::start();
    let body = chain_id("1");
    let refused = |extension: &str, trailers: &str| {
        let size = body.len();
        let chunks = format!("{size:x}{extension}\r\n{body}\r\n0\r\n{trailers}\r\n");
        let mut wire = TestConnection::connect(gateway.public);
        wire.send(format!(
            "POST /v3/demo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n{chunks}{}",
            canary()
        ));
        let reply = wire.reply();
        assert_eq!((reply.status, reply.error().as_str()), (400, "-32600 ambiguous framing"), "{chunks:?}");
        assert!(wire.next_reply().is_none(), "{chunks:?}");
    };
    for extension in [";a\rb", ";\0", ";a=\r", " 5", ";", ";\x01"] {
        refused(extension, "");
    }
    for trailer in ["no colon", "x: y\rz: z", "x: \0", " folded: x", "\tfolded: x", "x : y", ": y", "x\0: y"]
    {
        refused("", &format!("a: b\r\n{trailer}\r\n"));
    }
}
