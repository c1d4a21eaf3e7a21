//! Many connections and many bad keys from few addresses.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};

use socket2::{Domain, Socket, Type};
use testkit::http::{TestConnection, request};
use testkit::http2::{Frame, FrameConnection, INITIAL_WINDOW_SIZE};

use crate::demo::{metric, until};
use crate::gateway_under_test::{Gateway, call, chain_id};

/// Loopback has no limits of its own unless told so; every address of these stories is a loopback address.
const LIMITED: &str = "address_limits_exempt = []\n";

/// A connection from `127.0.0.last`.
fn connect_from(last: u8, to: SocketAddr) -> TestConnection {
    let from = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)), 0);
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&from.into()).unwrap();
    socket.connect(&to.into()).unwrap();
    TestConnection::over(TcpStream::from(socket)).unwrap()
}

fn open(gateway: &Gateway) -> f64 {
    metric(gateway.operator, "chaingate_connections_open")
}

/// Posts with a key that nobody has; `headers` are lines that end with `\r\n`.
fn guess(wire: &mut TestConnection, headers: &str) -> u16 {
    wire.send(request("/v3/nobody", headers, chain_id("1").as_bytes())).reply().status
}

/// Connections of one address could once take all places, and everybody else was refused.
#[test]
fn one_address_cannot_take_the_places_of_others() {
    let gateway =
        Gateway::with(&format!("{LIMITED}connections_max = 100\nconnections_per_address_max = 8"), "");
    let mut crowds = Vec::new();
    for last in 2..10 {
        crowds.extend((0..30).map(|_| connect_from(last, gateway.public)));
        let mut honest = connect_from(1, gateway.public);
        assert_eq!(honest.post("/v3/demo", chain_id("1")).status, 200, "during the attack of 127.0.0.{last}");
    }
    until("only the allowed ones are open", || open(&gateway) <= 8.0 * 8.0);
    let refused = || metric(gateway.operator, "chaingate_connections_refused_by_address_total");
    until("the others are refused", || refused() == 8.0 * 22.0);
    drop(crowds);
    until("all are gone", || open(&gateway) == 0.0);
    let mut again = connect_from(2, gateway.public);
    assert_eq!(again.post("/v3/demo", chain_id("1")).status, 200, "an address is not punished for long");
}

/// An attacker with many addresses could still take all places. Those who have shown a key keep theirs, and those who are
/// about to show one get the places of those who have been silent for longest.
#[test]
fn callers_with_a_key_come_before_silent_connections() {
    let gateway = Gateway::with(&format!("{LIMITED}connections_max = 20"), "");
    let mut known: Vec<_> = (0..10).map(|_| connect_from(1, gateway.public)).collect();
    assert!(known.iter_mut().all(|wire| wire.post("/v3/demo", chain_id("1")).status == 200));
    let accepted = || metric(gateway.operator, "chaingate_connections_total");
    for _ in 0..3 {
        let before = accepted();
        let silent: Vec<_> =
            (2..10).flat_map(|last| [last; 10]).map(|last| connect_from(last, gateway.public)).collect();
        // A silent connection that came after the new caller would be silent for a shorter time than that one.
        until("all of them are accepted", || accepted() == before + silent.len() as f64);
        let mut new = connect_from(1, gateway.public);
        assert_eq!(new.post("/v3/demo", chain_id("1")).status, 200, "there is a place for a new caller");
        assert!(known.iter_mut().all(|wire| wire.post("/v3/demo", chain_id("1")).status == 200));
    }
    assert!(metric(gateway.operator, "chaingate_connections_closed_for_others_total") > 0.0);
}

/// One account with enough connections, none of which it used, shut out everybody else for as long as it liked.
#[test]
fn idle_connections_of_an_account_make_room_for_another_account() {
    let other_key = "[[key]]\nkey = \"other\"\naccount = \"other\"";
    let gateway = Gateway::with("connections_max = 20\ncall_timeout_ms = 120000", other_key);
    let connect = |path: &str| {
        let mut wire = TestConnection::connect(gateway.public);
        assert_eq!(wire.post(path, chain_id("1")).status, 200, "{path}");
        wire
    };
    let mut idle: Vec<_> = (0..19).map(|_| connect("/v3/demo")).collect();
    let mut busy = TestConnection::connect(gateway.public);
    let endless = call("eth_call", r#"[{"data":"0x02"}]"#);
    busy.send(request("/v3/demo", "", endless.as_bytes()));
    until("a request is being answered", || metric(gateway.operator, "chaingate_calls_in_flight") == 1.0);

    let others: Vec<_> = (0..5).map(|_| connect("/v3/other")).collect();
    assert_eq!(metric(gateway.operator, "chaingate_connections_closed_for_others_total"), 5.0);
    assert!(idle[..5].iter_mut().all(TestConnection::is_closed), "the oldest ones are closed first");
    assert!(idle[5..].iter_mut().all(|wire| wire.post("/v3/demo", chain_id("1")).status == 200));
    assert_eq!(metric(gateway.operator, "chaingate_calls_in_flight"), 1.0, "the busy one goes on");
    drop(others);
}

/// One byte of a request made a connection busy, so an account could keep all places with a byte on each of them.
#[test]
fn connections_with_an_unfinished_head_make_room_for_another_account() {
    let other_key = "[[key]]\nkey = \"other\"\naccount = \"other\"";
    let gateway = Gateway::with("connections_max = 20\nheader_timeout_ms = 120000", other_key);
    let mut unfinished: Vec<_> = (0..20).map(|_| TestConnection::connect(gateway.public)).collect();
    for wire in &mut unfinished {
        assert_eq!(wire.post("/v3/demo", chain_id("1")).status, 200);
        wire.send("P");
    }
    let others = [(); 5].map(|()| {
        let mut wire = TestConnection::connect(gateway.public);
        (wire.post("/v3/other", chain_id("1")).status, wire)
    });
    assert_eq!(others.each_ref().map(|(status, _)| *status), [200; 5]);
    assert_eq!(metric(gateway.operator, "chaingate_connections_closed_for_others_total"), 5.0);
}

/// Two accounts beside that of the key `demo`.
const THREE_ACCOUNTS: &str =
    "[[key]]\nkey = \"second\"\naccount = \"second\"\n[[key]]\nkey = \"other\"\naccount = \"other\"";

/// A head whose body does not come made a connection busy until `body_timeout_ms`, so few accounts could keep all places at
/// no cost.
#[test]
fn connections_with_an_unfinished_body_make_room_for_another_account() {
    let gateway = Gateway::with("connections_max = 20\nbody_timeout_ms = 120000", THREE_ACCOUNTS);
    // Neither account has more than half of all connections.
    let paths = (0..20).map(|number| ["/v3/demo", "/v3/second"][number % 2]);
    let unfinished: Vec<_> = paths
        .map(|path| {
            let mut wire = TestConnection::connect(gateway.public);
            assert_eq!(wire.post(path, chain_id("1")).status, 200);
            wire.send(format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{{"));
            wire
        })
        .collect();
    let others = [(); 5].map(|()| {
        let mut wire = TestConnection::connect(gateway.public);
        (wire.post("/v3/other", chain_id("1")).status, wire)
    });
    assert_eq!(others.each_ref().map(|(status, _)| *status), [200; 5]);
    assert_eq!(metric(gateway.operator, "chaingate_connections_closed_for_others_total"), 5.0);
    drop(unfinished);
}

/// On HTTP/2, a stream whose body did not end made its connection busy, so that it made no room for others.
#[test]
fn http2_connections_with_unfinished_bodies_make_room_and_those_with_a_running_request_do_not() {
    let limits = "connections_max = 2\nbody_timeout_ms = 120000\ncall_timeout_ms = 120000";
    let gateway = Gateway::with(limits, THREE_ACCOUNTS);
    let connect = || {
        let mut wire = FrameConnection::connect(gateway.public);
        wire.greet(&Frame::setting(INITIAL_WINDOW_SIZE, 1 << 16));
        wire
    };
    let mut running = connect();
    running.post(1, "/v3/demo", call("eth_call", r#"[{"data":"0x02"}]"#));
    until("a request is being answered", || metric(gateway.operator, "chaingate_calls_in_flight") == 1.0);
    let mut unfinished = connect();
    unfinished.post(1, "/v3/second", chain_id("1"));
    assert!(unfinished.body(1).is_some());
    unfinished.send(&Frame::post(3, "/v3/second"));
    until("there is room for another account", || {
        let mut other = TestConnection::connect(gateway.public);
        other.post("/v3/other", chain_id("1")).status == 200
    });
    assert_eq!(metric(gateway.operator, "chaingate_calls_in_flight"), 1.0, "the running request goes on");
    assert!(unfinished.is_closed());
}

/// An account whose requests always run, such as endless calls, could keep out all others.
#[test]
fn an_account_with_more_than_half_of_all_connections_makes_room_even_if_all_are_busy() {
    let gateway = Gateway::with("connections_max = 4\ncall_timeout_ms = 120000", THREE_ACCOUNTS);
    let mut busy = [0, 1, 2, 3].map(|number| {
        let mut wire = TestConnection::connect(gateway.public);
        let endless = call("eth_call", &format!(r#"[{{"data":"0x02{number:02x}"}}]"#));
        wire.send(request("/v3/demo", "", endless.as_bytes()));
        until("it runs", || metric(gateway.operator, "chaingate_calls_in_flight") == f64::from(number + 1));
        wire
    });
    let mut other = TestConnection::connect(gateway.public);
    assert_eq!(other.post("/v3/other", chain_id("1")).status, 200);
    assert!(busy[0].is_closed(), "the oldest one");
    until("the others go on", || metric(gateway.operator, "chaingate_calls_in_flight") == 3.0);
}

/// The end of a reply is sent by the HTTP/2 library after its request has ended, and was lost when the connection was closed
/// then. So such a connection is idle only a little later.
#[test]
fn an_http2_connection_makes_room_once_its_last_reply_has_had_time_to_be_sent() {
    let other_key = "[[key]]\nkey = \"other\"\naccount = \"other\"";
    let gateway = Gateway::with("connections_max = 1", other_key);
    let mut wire = FrameConnection::connect(gateway.public);
    wire.greet(&Frame::setting(INITIAL_WINDOW_SIZE, 1 << 16));
    wire.post(1, "/v3/demo", chain_id("1"));
    assert!(wire.body(1).is_some());
    until("there is room for another account", || {
        let mut other = TestConnection::connect(gateway.public);
        other.post("/v3/other", chain_id("1")).status == 200
    });
    assert_eq!(metric(gateway.operator, "chaingate_connections_closed_for_others_total"), 1.0);
}

/// A proxy that does not name its callers once had one rate for all of them, which any of them could use up.
#[test]
fn a_trusted_proxy_without_the_header_is_not_slowed_down() {
    let gateway = Gateway::listening_with(
        "trusted_proxies = [\"127.0.0.2\"]",
        &format!("{LIMITED}unauthenticated_per_second_max = 1"),
    );
    let mut proxy = connect_from(2, gateway.public);
    assert!((0..50).all(|_| guess(&mut proxy, "") == 401));
}

#[test]
fn a_request_that_is_refused_for_its_path_counts_as_one_without_a_valid_key() {
    let gateway = Gateway::with(&format!("{LIMITED}unauthenticated_per_second_max = 1"), "");
    until("requests to an unknown path are refused", || {
        let mut wire = connect_from(2, gateway.public);
        let status = wire.post("/nowhere", chain_id("1")).status;
        assert!(matches!(status, 404 | 429), "{status}");
        status == 429
    });
}

#[test]
fn an_address_that_guesses_keys_is_slowed_down_and_its_valid_callers_are_not() {
    let gateway = Gateway::with(&format!("{LIMITED}unauthenticated_per_second_max = 1"), "");
    let mut refused = 0;
    until("guesses are refused", || {
        let mut wire = connect_from(2, gateway.public);
        let status = guess(&mut wire, "");
        assert!(matches!(status, 401 | 429), "{status}");
        if status == 429 {
            assert!(wire.is_closed(), "the connection ends with the refusal");
            refused += 1;
        }
        refused == 3
    });
    let mut neighbour = connect_from(2, gateway.public);
    assert_eq!(neighbour.post("/v3/demo", chain_id("1")).status, 200, "the same address with a valid key");
    assert_eq!(guess(&mut connect_from(3, gateway.public), ""), 401, "another address");
    assert_eq!(metric(gateway.operator, "chaingate_unauthenticated_refused_total"), 3.0);
}

/// Whoever is no trusted proxy does not change the address by a header.
#[test]
fn a_header_from_a_stranger_does_not_evade_the_limit_of_its_address() {
    let gateway = Gateway::with(&format!("{LIMITED}unauthenticated_per_second_max = 1"), "");
    let mut number = 0;
    until("guesses are refused", || {
        number += 1;
        let spoofed = format!("x-forwarded-for: 192.0.2.{}\r\nforwarded: for=192.0.2.1\r\n", number % 250);
        guess(&mut connect_from(2, gateway.public), &spoofed) == 429
    });
}

#[test]
fn callers_behind_a_trusted_proxy_have_limits_of_their_own() {
    let listen = "trusted_proxies = [\"127.0.0.2\"]";
    let limits = format!("{LIMITED}connections_per_address_max = 1\nunauthenticated_per_second_max = 1");
    let gateway = Gateway::listening_with(listen, &limits);
    let mut proxy: Vec<_> = (0..10).map(|_| connect_from(2, gateway.public)).collect();
    let guesser = "x-forwarded-for: 198.51.100.1, 192.0.2.1\r\n";
    until("guesses are refused", || guess(&mut proxy[0], guesser) == 429);
    for number in 2..20 {
        let spoofed = format!("x-forwarded-for: 198.51.100.{number}, 192.0.2.1\r\n");
        if guess(&mut proxy[1], &spoofed) == 429 {
            let other = "x-forwarded-for: 192.0.2.2\r\n";
            assert_eq!(guess(&mut proxy[0], other), 401, "another caller on the same connection");
            return;
        }
    }
    panic!("what a caller wrote before the proxy evaded the limit");
}

/// A proxy that appends to one header passes on what strangers write into the other.
#[test]
fn only_the_configured_header_of_a_proxy_is_read() {
    let listen = "trusted_proxies = [\"127.0.0.2\"]\nproxy_header = \"forwarded\"";
    let gateway = Gateway::listening_with(listen, &format!("{LIMITED}unauthenticated_per_second_max = 1"));
    let mut proxy = connect_from(2, gateway.public);
    let mut number = 0;
    until("guesses are refused", || {
        number += 1;
        let headers = format!("forwarded: for=192.0.2.1\r\nx-forwarded-for: 192.0.2.{}\r\n", number % 250);
        guess(&mut proxy, &headers) == 429
    });
    assert_eq!(guess(&mut proxy, "forwarded: for=192.0.2.2\r\n"), 401);
}

#[test]
fn a_proxy_that_passes_bytes_on_names_its_callers() {
    let listen = "trusted_proxies = [\"127.0.0.2\"]\nproxy_protocol = true";
    let gateway = Gateway::listening_with(listen, &format!("{LIMITED}connections_per_address_max = 2"));
    let via_proxy = |caller: u8| {
        let mut wire = connect_from(2, gateway.public);
        wire.send(format!("PROXY TCP4 192.0.2.{caller} 192.0.2.99 1 2\r\n"));
        wire.send(request("/v3/demo", "", chain_id("1").as_bytes()));
        wire
    };
    let mut first: Vec<_> = (0..3).map(|_| via_proxy(1)).collect();
    let answered =
        first.iter_mut().filter_map(TestConnection::next_reply).filter(|reply| reply.status == 200).count();
    assert_eq!(answered, 2, "the caller has two connections and no third one");
    assert_eq!(via_proxy(3).reply().status, 200, "another caller");

    let mut v2 = connect_from(2, gateway.public);
    v2.send(b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x04\xc0\0\x02\x63\0\x01\0\x02");
    v2.send(request("/v3/demo", "", chain_id("1").as_bytes()));
    assert_eq!(v2.reply().status, 200);

    let mut without = connect_from(2, gateway.public);
    without.send(request("/v3/demo", "", chain_id("1").as_bytes()));
    assert!(without.next_reply().is_none(), "a trusted proxy must send the header");

    let mut stranger = connect_from(3, gateway.public);
    stranger.send("PROXY TCP4 192.0.2.9 192.0.2.99 1 2\r\n");
    stranger.send(request("/v3/demo", "", chain_id("1").as_bytes()));
    assert_eq!(stranger.reply().status, 400, "a stranger's header is no HTTP");
    assert_eq!(connect_from(3, gateway.public).post("/v3/demo", chain_id("1")).status, 200);
}

#[test]
fn a_proxy_header_that_does_not_come_is_not_waited_for() {
    let listen = "trusted_proxies = [\"127.0.0.2\"]\nproxy_protocol = true";
    let gateway = Gateway::listening_with(listen, "header_timeout_ms = 200");
    for beginning in ["", "PROXY TCP4 192.0.2.1 ", "\r\n\r\n\0\r\nQUIT\n\x21"] {
        let mut slow = connect_from(2, gateway.public);
        slow.send(beginning);
        assert!(slow.is_closed(), "{beginning:?}");
    }
}
