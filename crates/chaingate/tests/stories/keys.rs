//! Requests that the settings of a key refuse, and the errors that callers get.

use std::io::Write;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testkit::http::{ReceivedReply, TestConnection, get, post, request};

use crate::gateway_under_test::{Gateway, call, chain_id};
use crate::signing::{RSA_PEM, RSA_TOKEN, Signer, in_seconds};

const ALLOWED: &str = "0x00000000000000000000000000000000000000aa";
const OTHER: &str = "0x00000000000000000000000000000000000000bb";

const NOT_BY_SETTINGS: (u16, &str) = (403, "-32002 rejected due to project ID settings");

/// A gateway with the key `k` and these settings of it.
fn with_key(settings: &str) -> Gateway {
    Gateway::with("", &format!("[[key]]\nkey = \"k\"\n{settings}"))
}

fn posted(gateway: &Gateway, headers: &str, body: &str) -> ReceivedReply {
    TestConnection::connect(gateway.public).send(request("/v3/k", headers, body.as_bytes())).reply()
}

/// Status and error of a reply, `200 ok` for a result.
fn told(reply: &ReceivedReply) -> (u16, String) {
    let json = reply.json();
    (reply.status, if json["error"].is_null() { "ok".to_owned() } else { reply.error() })
}

/// The `data` of a 403, which names the setting that refused the request.
fn refusing_setting(gateway: &Gateway, headers: &str, body: &str) -> Value {
    let reply = posted(gateway, headers, body);
    assert_eq!(reply.status, 403, "{reply:?}");
    reply.json()["error"]["data"].clone()
}

/// The file that is shown to others, or is in a repository, need not have the keys.
#[test]
fn a_key_of_which_the_file_has_only_the_hash_is_accepted() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chaingate"));
    command.args(["keys", "hash"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut hashing = command.spawn().unwrap();
    hashing.stdin.take().unwrap().write_all(b"a-long-random-key\n").unwrap();
    let output = hashing.wait_with_output().unwrap();
    let key_hash = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && !key_hash.contains("random"), "{key_hash}");
    let gateway = Gateway::with("", &format!("[[key]]\n{key_hash}"));
    let status = |key: &str| post(gateway.public, &format!("/v3/{key}"), chain_id("1")).status;
    let hash = key_hash.split(['"', ':']).nth(2).unwrap();
    assert_eq!([status("a-long-random-key"), status("a-long-random-kez"), status(hash)], [200, 401, 401]);
}

/// A developer with several settings could not tell from a 403 which of them to look at.
#[test]
fn a_403_says_which_kind_of_setting_refused_and_not_what_it_allows() {
    let all = format!(
        "origins = [\"a.example\"]\nuser_agents = [\"wallet\"]\nmethods = [\"eth_chainId\", \"eth_getCode\"]\naddresses = [\"{ALLOWED}\"]"
    );
    let gateway = with_key(&all);
    let (page, agent) = ("origin: https://a.example\r\n", "user-agent: wallet\r\n");
    let both = format!("{page}{agent}");
    assert_eq!(posted(&gateway, &both, &chain_id("1")).status, 200);
    let setting = |headers: &str, body: &str| refusing_setting(&gateway, headers, body);
    assert_eq!(setting(agent, &chain_id("1")), json!({"setting": "origin"}));
    assert_eq!(setting(page, &chain_id("1")), json!({"setting": "agent"}));
    assert_eq!(setting(&both, &call("eth_blockNumber", "[]")), json!({"setting": "method"}));
    let other = call("eth_getCode", &format!("[\"{OTHER}\"]"));
    assert_eq!(setting(&both, &other), json!({"setting": "address"}));
    let elsewhere = with_key("networks = [\"mainnet\"]");
    assert_eq!(refusing_setting(&elsewhere, "", &chain_id("1")), json!({"setting": "network"}));
    let secret = with_key("secret = \"s\"");
    assert_eq!(refusing_setting(&secret, "", &chain_id("1")), json!({"setting": "secret"}));
}

fn is_told(gateway: &Gateway, headers: &str, expected: (u16, &str)) {
    let reply = posted(gateway, headers, &chain_id("1"));
    assert_eq!(told(&reply), (expected.0, expected.1.to_owned()), "{headers}");
}

const OK: (u16, &str) = (200, "ok");

fn basic(user: &str, password: &str) -> String {
    format!("authorization: Basic {}\r\n", STANDARD.encode(format!("{user}:{password}")))
}

fn bearer(token: &str) -> String {
    format!("authorization: Bearer {}\r\n", token.trim())
}

#[test]
fn a_wrong_secret_is_401_and_a_missing_one_403() {
    let gateway = with_key("secret = \"s3:cret\"");
    let wrong = (401, "-32002 invalid project id or project secret");
    is_told(&gateway, &basic("", "s3:cret"), OK);
    is_told(&gateway, &basic("anybody", "s3:cret"), OK);
    is_told(&gateway, &basic("", "s3:cre"), wrong);
    is_told(&gateway, &basic("", ""), wrong);
    is_told(&gateway, "authorization: Basic s3:cret\r\n", wrong);
    is_told(&gateway, "authorization: Basic\r\n", wrong);
    is_told(&gateway, "", NOT_BY_SETTINGS);
    is_told(&gateway, "authorization: Bearer x\r\n", NOT_BY_SETTINGS);
    let reply = posted(&gateway, &basic("", "x"), &chain_id("1"));
    assert_eq!(reply.header("www-authenticate"), Some("Basic realm=\"chaingate\""));
}

#[test]
fn a_secret_that_is_not_required_may_be_left_out_but_not_be_wrong() {
    let gateway = with_key("secret = \"s3cret\"\nsecret_required = false");
    is_told(&gateway, "", OK);
    is_told(&gateway, &basic("", "wrong"), (401, "-32002 invalid project id or project secret"));
}

#[test]
fn a_key_without_a_secret_does_not_look_for_one() {
    is_told(&with_key(""), &basic("", "whatever"), OK);
}

const BAD_TOKEN: (u16, &str) = (401, "-32002 invalid JWT");

fn with_tokens(signers: &[&Signer], more: &str) -> Gateway {
    let pems: Vec<_> = signers.iter().map(|signer| format!("'''{}'''", signer.public_pem())).collect();
    with_key(&format!("jwt_public_keys = [{}]\n{more}", pems.join(",")))
}

#[test]
fn tokens_of_each_kind_of_key_are_accepted() {
    let (p256, ed25519) = (Signer::p256(), Signer::ed25519());
    let gateway = with_tokens(&[&p256, &ed25519], "");
    is_told(&gateway, &bearer(&p256.good_token()), OK);
    is_told(&gateway, &bearer(&ed25519.good_token()), OK);
    is_told(&with_key(&format!("jwt_public_keys = ['''{RSA_PEM}''']")), &bearer(RSA_TOKEN), OK);
}

#[test]
fn a_token_that_is_missing_expired_or_early_is_401() {
    let signer = Signer::ed25519();
    let gateway = with_tokens(&[&signer], "");
    let claims = |claims: String| bearer(&signer.token(r#"{"alg":"EdDSA"}"#, &claims));
    is_told(&gateway, "", BAD_TOKEN);
    is_told(&gateway, &basic("", "x"), BAD_TOKEN);
    is_told(&gateway, &claims(format!(r#"{{"exp":{}}}"#, in_seconds(-60))), BAD_TOKEN);
    is_told(&gateway, &claims("{}".to_owned()), BAD_TOKEN);
    is_told(&gateway, &claims(r#"{"exp":"never"}"#.to_owned()), BAD_TOKEN);
    let (soon, late) = (in_seconds(60), in_seconds(600));
    is_told(&gateway, &claims(format!(r#"{{"nbf":{soon},"exp":{late}}}"#)), BAD_TOKEN);
    is_told(&gateway, &claims(format!(r#"{{"nbf":{},"exp":{late}}}"#, in_seconds(-60))), OK);
    is_told(&gateway, &claims(format!(r#"{{"aud":"anyone","exp":{late}}}"#)), OK);
}

#[test]
fn a_token_of_another_signer_or_algorithm_is_401() {
    let (signer, stranger) = (Signer::p256(), Signer::p256());
    let gateway = with_tokens(&[&signer], "");
    is_told(&gateway, &bearer(&stranger.good_token()), BAD_TOKEN);
    is_told(&gateway, &bearer(RSA_TOKEN), BAD_TOKEN);
    let claims = format!(r#"{{"exp":{}}}"#, in_seconds(600));
    for algorithm in ["none", "HS256", "ES384", "EdDSA", "RS256", "es256"] {
        let token = signer.token(&format!(r#"{{"alg":"{algorithm}"}}"#), &claims);
        is_told(&gateway, &bearer(&token), BAD_TOKEN);
        let (unsigned, _) = token.rsplit_once('.').unwrap();
        is_told(&gateway, &bearer(&format!("{unsigned}.")), BAD_TOKEN);
    }
    for garbage in ["", "x", "..", "a.b.c", &signer.good_token()[1..]] {
        is_told(&gateway, &bearer(garbage), BAD_TOKEN);
    }
}

/// A token whose issuer demanded an extension, such as a confirmation of its holder, was accepted without it.
#[test]
fn a_token_that_demands_an_extension_is_401() {
    let signer = Signer::ed25519();
    let gateway = with_tokens(&[&signer], "");
    let claims = format!(r#"{{"exp":{}}}"#, in_seconds(600));
    for crit in [r#"["cnf"]"#, r#"["b64"],"b64":true"#, "[]", r#""exp""#, "null,\"crit\":[\"x\"]"] {
        let header = format!(r#"{{"alg":"EdDSA","crit":{crit}}}"#);
        is_told(&gateway, &bearer(&signer.token(&header, &claims)), BAD_TOKEN);
    }
    is_told(&gateway, &bearer(&signer.token(r#"{"alg":"EdDSA","typ":"JWT","other":1}"#, &claims)), OK);
}

/// Of two headers the first one was checked, and a proxy in front of the gateway may have checked the other one.
#[test]
fn of_two_equal_headers_none_is_believed() {
    let gateway = with_key("origins = [\"https://app.example.com\"]");
    let origin = "origin: https://app.example.com\r\n";
    is_told(&gateway, origin, OK);
    is_told(&gateway, &format!("{origin}{origin}"), NOT_BY_SETTINGS);
    is_told(&gateway, &format!("{origin}origin: https://other.example\r\n"), NOT_BY_SETTINGS);
    let gateway = with_key("user_agents = [\"app\"]");
    is_told(&gateway, "user-agent: app\r\n", OK);
    is_told(&gateway, "user-agent: app\r\nuser-agent: other\r\n", NOT_BY_SETTINGS);
    let gateway = with_key("secret = \"s3cret\"");
    is_told(&gateway, &format!("{}{}", basic("", "s3cret"), basic("", "other")), NOT_BY_SETTINGS);
}

#[test]
fn an_audience_is_checked_where_one_is_set() {
    let signer = Signer::ed25519();
    let gateway = with_tokens(&[&signer], "jwt_audience = \"us\"");
    let claims = |audience: &str| {
        let claims = format!(r#"{{{audience}"exp":{}}}"#, in_seconds(600));
        bearer(&signer.token(r#"{"alg":"EdDSA"}"#, &claims))
    };
    is_told(&gateway, &claims(r#""aud":"us","#), OK);
    is_told(&gateway, &claims(r#""aud":["them","us"],"#), OK);
    is_told(&gateway, &claims(r#""aud":"them","#), BAD_TOKEN);
    is_told(&gateway, &claims(""), BAD_TOKEN);
}

#[test]
fn a_token_that_is_not_required_may_be_left_out_but_not_be_wrong() {
    let signer = Signer::ed25519();
    let gateway = with_tokens(&[&signer], "jwt_required = false");
    is_told(&gateway, "", OK);
    is_told(&gateway, &bearer(&signer.good_token()), OK);
    is_told(&gateway, &bearer("a.b.c"), BAD_TOKEN);
}

#[test]
fn a_key_of_other_networks_is_403() {
    is_told(&with_key("networks = [\"demo\", \"mainnet\"]"), "", OK);
    let elsewhere = with_key("networks = [\"mainnet\"]");
    is_told(&elsewhere, "", (403, "-32002 project ID does not have access to this network"));
}

#[test]
fn other_origins_are_403() {
    let gateway = with_key("origins = [\"https://app.example.com\", \"*.example.org\"]");
    is_told(&gateway, "origin: https://app.example.com\r\n", OK);
    is_told(&gateway, "origin: https://x.example.org\r\n", OK);
    is_told(&gateway, "origin: https://evil.example.com\r\n", NOT_BY_SETTINGS);
    is_told(&gateway, "origin: null\r\n", NOT_BY_SETTINGS);
    is_told(&gateway, "", NOT_BY_SETTINGS);
    let reply = posted(&gateway, "origin: https://evil.example.com\r\n", &chain_id("1"));
    assert_eq!(reply.header("access-control-allow-origin"), Some("*"), "or the page could not read why");
    let preflight = "OPTIONS /v3/k HTTP/1.1\r\nhost: x\r\norigin: https://evil.example.com\r\n\r\n";
    assert_eq!(TestConnection::connect(gateway.public).send(preflight).reply().status, 204);
}

#[test]
fn other_user_agents_are_403() {
    let gateway = with_key("user_agents = [\"wallet/2\"]");
    is_told(&gateway, "user-agent: my wallet/2.1 (x)\r\n", OK);
    is_told(&gateway, "user-agent: curl/8\r\n", NOT_BY_SETTINGS);
    is_told(&gateway, "", NOT_BY_SETTINGS);
}

#[test]
fn other_methods_are_403_and_in_a_batch_the_elements_error() {
    let gateway = with_key("methods = [\"eth_chainId\"]");
    is_told(&gateway, "", OK);
    let number = call("eth_blockNumber", "[]");
    let reply = posted(&gateway, "", &number);
    assert_eq!(told(&reply), (403, NOT_BY_SETTINGS.1.to_owned()));
    assert_eq!(reply.json()["id"], 1);
    let batch = posted(&gateway, "", &format!("[{number},{}]", chain_id("2")));
    let refused = json!({
        "code": -32002,
        "message": "rejected due to project ID settings",
        "data": {"setting": "method"},
    });
    assert_eq!((batch.status, &batch.json()[0]["error"]), (200, &refused));
    assert_eq!(batch.json()[1]["result"], "0x539");
    let unknown = posted(&gateway, "", &call("eth_nonsense", "[]"));
    assert_eq!(unknown.json()["error"]["code"], -32601);
}

#[test]
fn other_contracts_are_403_wherever_a_call_names_them() {
    let gateway = with_key(&format!("addresses = [\"{ALLOWED}\"]"));
    let allowed = |method: &str, params: String| {
        let reply = posted(&gateway, "", &call(method, &params));
        match told(&reply) {
            (200, _) => true,
            (403, error) => {
                assert_eq!(error, NOT_BY_SETTINGS.1);
                false
            }
            other => panic!("{method} {params}: {other:?}"),
        }
    };
    for method in ["eth_getBalance", "eth_getCode"] {
        assert!(allowed(method, format!("[\"{ALLOWED}\"]")), "{method}");
        assert!(!allowed(method, format!("[\"{OTHER}\"]")), "{method}");
    }
    assert!(allowed("eth_getStorageAt", format!("[\"{ALLOWED}\",\"0x0\"]")));
    assert!(!allowed("eth_getStorageAt", format!("[\"{OTHER}\",\"0x0\"]")));
    for method in ["eth_call", "eth_estimateGas"] {
        assert!(allowed(method, format!("[{{\"to\":\"{ALLOWED}\"}}]")), "{method}");
        assert!(!allowed(method, format!("[{{\"to\":\"{OTHER}\"}}]")), "{method}");
        assert!(!allowed(method, "[{\"data\":\"0x6001\"}]".to_owned()), "{method}: a creation");
        let code = format!("[{{\"to\":\"{ALLOWED}\"}},\"latest\",{{\"{ALLOWED}\":{{\"code\":\"0x00\"}}}}]");
        assert!(!allowed(method, code), "{method}: another code for an allowed address");
        let harmless = format!(
            "[{{\"to\":\"{ALLOWED}\"}},\"latest\",{{\"{OTHER}\":{{\"balance\":\"0x1\",\"nonce\":\"0x1\"}}}}]"
        );
        assert!(allowed(method, harmless), "{method}: balances and nonces run no code");
    }
    assert!(allowed("eth_getLogs", format!("[{{\"address\":\"{ALLOWED}\"}}]")));
    assert!(allowed("eth_getLogs", format!("[{{\"address\":[\"{ALLOWED}\"]}}]")));
    assert!(!allowed("eth_getLogs", format!("[{{\"address\":[\"{ALLOWED}\",\"{OTHER}\"]}}]")));
    assert!(!allowed("eth_getLogs", "[{}]".to_owned()), "no address means any");
    assert!(
        allowed("eth_getTransactionCount", format!("[\"{OTHER}\"]")),
        "wallets need the nonce of the account that they send from"
    );
}

/// The code of an allowed proxy is in another contract, which a slot of the proxy names. With an override of that slot
/// a key that may only use the proxy ran any code.
#[test]
fn a_key_with_addresses_may_not_override_storage() {
    let gateway = with_key(&format!("addresses = [\"{ALLOWED}\"]"));
    let slot = format!("{{\"0x{:064x}\":\"0x{:064x}\"}}", 0, 0xbb);
    let moved = format!("{{\"movePrecompileToAddress\":\"{OTHER}\"}}");
    let lent = format!(
        "[{{\"chainId\":\"0x0\",\"address\":\"{OTHER}\",\"nonce\":\"0x0\",\"yParity\":\"0x0\",\"r\":\"0x1\",\"s\":\"0x1\"}}]"
    );
    for method in ["eth_call", "eth_estimateGas"] {
        for change in [format!("{{\"stateDiff\":{slot}}}"), format!("{{\"state\":{slot}}}"), moved.clone()] {
            for account in [ALLOWED, OTHER] {
                let params = format!("[{{\"to\":\"{ALLOWED}\"}},\"latest\",{{\"{account}\":{change}}}]");
                let data = refusing_setting(&gateway, "", &call(method, &params));
                assert_eq!(data, json!({"setting": "address"}), "{method} {params}");
            }
        }
        let params = format!("[{{\"to\":\"{ALLOWED}\",\"authorizationList\":{lent}}}]");
        assert_eq!(refusing_setting(&gateway, "", &call(method, &params)), json!({"setting": "address"}));
    }
}

#[test]
fn a_key_has_limits_of_its_own_below_those_of_its_account() {
    let gateway = Gateway::with(
        "",
        "[[key]]\nkey = \"k\"\naccount = \"a\"\ncredits_per_second = 100\n\
         [[key]]\nkey = \"day\"\naccount = \"a\"\ncredits_per_day = 100\n\
         [[key]]\nkey = \"free\"\naccount = \"a\"",
    );
    let number = call("eth_blockNumber", "[]");
    let post = |key: &str| post(gateway.public, &format!("/v3/{key}"), &number);
    assert_eq!(post("k").status, 200);
    // On a busy machine, the credits may be back before the second call.
    let reply = std::iter::repeat_with(|| post("k")).take(20).find(|reply| reply.status != 200).unwrap();
    assert_eq!(told(&reply), (429, "-32005 project ID request rate exceeded".to_owned()));
    assert_eq!(reply.json()["error"]["data"]["rate"]["allowed_rps"], 100);
    assert_eq!(post("day").status, 200);
    assert_eq!(post("day").status, 402);
    assert_eq!(post("free").status, 200);
}

fn credits(gateway: &Gateway) -> u64 {
    let page = get(gateway.operator, "/metrics");
    let lines = page.text().lines().filter(|line| line.starts_with("chaingate_credits_total"));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

#[test]
fn a_refused_call_costs_5_and_one_beyond_a_limit_nothing() {
    let gateway = with_key("methods = [\"eth_chainId\", \"eth_getLogs\"]\ncredits_per_day = 12");
    let number = call("eth_blockNumber", "[]");
    assert_eq!(posted(&gateway, "", &number).status, 403);
    assert_eq!(credits(&gateway), 5);
    let beyond = posted(&gateway, "", &call("eth_getLogs", "[{}]"));
    assert_eq!((beyond.status, credits(&gateway)), (402, 5));
    assert_eq!(posted(&gateway, "", &chain_id("1")).status, 200);
    assert_eq!(posted(&gateway, "", &chain_id("1")).status, 402, "2 of the 12 are left");
}

#[test]
fn a_request_refused_by_its_head_costs_5_but_strangers_cost_nothing() {
    let gateway = with_key("secret = \"s\"\norigins = [\"a.example\"]\ncredits_per_day = 12");
    for _ in 0..5 {
        assert_eq!(posted(&gateway, &basic("", "wrong"), &chain_id("1")).status, 401);
        assert_eq!(posted(&gateway, "", &chain_id("1")).status, 403);
    }
    assert_eq!(posted(&gateway, &basic("", "s"), &chain_id("1")).status, 403); // 5
    assert_eq!(posted(&gateway, &basic("", "s"), &chain_id("1")).status, 403); // 5
    assert_eq!(posted(&gateway, &basic("", "s"), &chain_id("1")).status, 402);
}

#[test]
fn what_is_refused_by_settings_is_counted_as_denied() {
    let gateway = with_key("methods = [\"eth_chainId\"]");
    posted(&gateway, "", &call("eth_blockNumber", "[]"));
    let line = "chaingate_calls_total{method=\"other\",outcome=\"denied\"} 1";
    assert!(get(gateway.operator, "/metrics").text().contains(line));
}

#[test]
fn a_refused_request_keeps_its_connection() {
    let gateway = with_key("secret = \"s\"");
    let mut wire = TestConnection::connect(gateway.public);
    let body = chain_id("7");
    assert_eq!(wire.send(request("/v3/k", &basic("", "x"), body.as_bytes())).reply().status, 401);
    let reply: Value = wire.send(request("/v3/k", &basic("", "s"), body.as_bytes())).reply().json();
    assert_eq!(reply["id"], 7);
}
