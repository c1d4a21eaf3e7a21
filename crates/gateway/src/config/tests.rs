use super::*;

#[test]
fn an_empty_file_is_the_demo_network_on_loopback_with_its_key() {
    let config = Config::parse("").unwrap();
    assert_eq!(config.listen.public.to_string(), "127.0.0.1:8545");
    assert_eq!(config.listen.operator.to_string(), "127.0.0.1:8546");
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.keys.len(), 1);
    assert!(config.network.is_demo());
}

#[test]
fn the_limits_are_those_that_callers_are_promised() {
    let Limits { http, answer, .. } = Limits::default();
    assert_eq!((http.body_bytes_max, http.batch_reply_bytes_max), (5 << 20, 25 << 20));
    assert_eq!((http.batch_calls_max, http.compress_bytes_min), (1_000, 1 << 10));
    assert_eq!((answer.log_params_max, answer.log_results_max), (5_000, 10_000));
    assert_eq!((answer.log_timeout.as_secs(), answer.log_blocks_max), (10, None));
    assert_eq!((answer.call_timeout.as_secs(), answer.call_gas_multiple), (5, 10));
}

#[test]
fn the_file_of_the_design_is_understood() {
    let text = r#"
        data_dir = "elsewhere"
        [network]
        name = "mainnet"
        family = "ethereum"
        unsupported_tags = { safe = ["eth_getStorageAt"] }
        [listen]
        public = "0.0.0.0:80"
        operator = "127.0.0.1:81"
        [[key]]
        key = "abc"
        plan = "growth"
        [[node]]
        url = "http://127.0.0.1:9545"
        [[partner]]
        url = "https://partner.example"
        [methods]
        failover = ["eth_getStorageAt", "eth_getTransactionByBlockNumberAndIndex"]
        eth_call_requires_from = true
        [limits]
        batch_calls_max = 10
        log_timeout_ms = 2_000
        [plans.growth]
        credits_per_second = 7
        [store]
        url = "postgres://user:password@host/db"
        [shared]
        redis_url = "redis://host"
    "#;
    let config = Config::parse(text).unwrap();
    assert_eq!(config.keys.len(), 1, "only the demo network has the demo key");
    assert_eq!(config.keys[0].plan.credits_per_second, Some(7));
    assert_eq!(config.keys[0].plan.credits_per_day, Some(250_000_000));
    assert_eq!(config.limits.http.batch_calls_max, 10);
    assert_eq!(config.limits.answer.log_timeout.as_secs(), 2);
    assert!(config.network.eth_call_requires_from);
    let printed = format!("{config:?}");
    assert!(
        !["password", "partner.example", "abc"].iter().any(|secret| printed.contains(secret)),
        "{printed}"
    );
}

#[test]
fn all_mistakes_are_told_at_once_each_with_its_line() {
    let text = "data_dir = 5\n\n[listen]\npublic = \"nonsense\"\nport = 1\n[limits]\nbatch_calls_max = -1\n[[key]]\nkey = \"a b\"\nplan = \"gold\"\n[network]\nfamily = \"doge\"\nunsupported_tags = { sure = [\"eth_call\"], safe = [\"eth_cal\"] }\n[methods]\nfailover = [\"eth_sendTransaction\"]\n";
    let mistakes = Config::parse(text).unwrap_err();
    let told = mistakes.to_string();
    let expected = [
        (1, "data_dir: a string is needed"),
        (4, "listen.public: an address and a port"),
        (5, "unknown key `listen.port`"),
        (7, "limits.batch_calls_max: a whole number"),
        (9, "key 1.key: a key is letters"),
        (10, "key 1.plan: no plan `gold`"),
        (12, "network.family: "),
        (13, "network.unsupported_tags"),
        (13, "network.unsupported_tags"),
        (15, "methods.failover: "),
    ];
    for (line, what) in expected {
        assert!(told.contains(&format!("line {line}: {what}")), "missing {line} {what} in:\n{told}");
    }
    assert_eq!(mistakes.0.len(), expected.len(), "{told}");
}

#[test]
fn what_is_not_toml_is_refused_with_its_line() {
    let mistakes = Config::parse("a = 1\nb = = 2\n").unwrap_err();
    assert!(mistakes.0.iter().any(|mistake| mistake.line == 2), "{mistakes}");
}

#[test]
fn a_key_takes_every_setting_and_none_is_a_restriction_by_default() {
    let text = r#"
        [[key]]
        key = "plain"
        [[key]]
        key = "abc"
        name = "shop"
        account = "acme"
        plan = "growth"
        secret = "canary-secret"
        networks = ["demo"]
        origins = ["https://*.example.com"]
        user_agents = ["wallet"]
        addresses = ["0x00000000000000000000000000000000000000aa"]
        methods = ["eth_call"]
        credits_per_second = 10
        credits_per_day = 1_000
    "#;
    let config = Config::parse(text).unwrap();
    assert!(config.keys[0].settings.is_none());
    assert!(config.keys[1].settings.is_some());
    assert_eq!((config.keys[1].name.as_str(), config.keys[1].account.as_str()), ("shop", "acme"));
    let printed = format!("{config:?} {:?}", config.keys[1].settings);
    assert!(!printed.contains("canary") && !printed.contains("abc"), "{printed}");
}

#[test]
fn mistakes_about_a_key_name_its_place_and_never_the_key() {
    let text = r#"[[key]]
key = "canary-1"
plan = "core"
account = "a"
[[key]]
key = "canary-1"
plan = "team"
account = "a"
secret = ""
origins = ["https://a b"]
addresses = ["0x1"]
methods = ["eth_cal"]
user_agents = []
jwt_public_keys = ["canary-2"]
[[key]]
key = "canary 3"
secret_required = true
jwt_required = true
jwt_audience = "x"
[[key]]
key = "other"
plan = "core"
account = "b"
[[key]]
key = "another"
plan = "core"
account = "b"
colour = "canary-4"
secret = 5
"#;
    let mistakes = Config::parse(text).unwrap_err();
    let told = mistakes.to_string();
    let expected = [
        (6, "key 2.key: this key stands here twice"),
        (7, "key 2.plan: an account has one plan"),
        (9, "key 2.secret: an empty secret"),
        (10, "key 2.origins: `https://a b` is not an origin"),
        (11, "key 2.addresses: `0x1` is not an address"),
        (12, "key 2.methods: `eth_cal` is not a method"),
        (13, "key 2.user_agents: an empty list allows nothing"),
        (14, "key 2.jwt_public_keys: number 1 is no PEM"),
        (16, "key 3.key: a key is letters"),
        (17, "key 3.secret_required: there is no secret"),
        (18, "key 3.jwt_required: there are no jwt_public_keys"),
        (19, "key 3.jwt_audience: there are no jwt_public_keys"),
        (27, "key 5.account: more keys than the 1 of the plan `core`"),
        (28, "unknown key `key 5.colour`"),
        (29, "key 5.secret: a string is needed"),
    ];
    for (line, what) in expected {
        assert!(told.contains(&format!("line {line}: {what}")), "missing {line} {what} in:\n{told}");
    }
    assert_eq!(mistakes.0.len(), expected.len(), "{told}");
    assert!(!told.contains("canary"), "{told}");
}

#[test]
fn a_secret_and_a_token_cannot_both_be_required() {
    let pem = include_str!("../../tests/stories/fixtures/rs256.pem");
    let key = |more: &str| {
        Config::parse(&format!(
            "[[key]]\nkey = \"k\"\nsecret = \"s\"\njwt_public_keys = ['''{pem}''']\n{more}"
        ))
    };
    assert!(key("").unwrap_err().to_string().contains("line 4: key 1.jwt_public_keys: a request has room"));
    assert!(key("secret_required = false").is_ok());
    assert!(key("jwt_required = false").is_ok());
}

#[test]
fn what_is_not_toml_does_not_show_a_key() {
    for text in [
        "[[key]]\nkey = canary\n",
        "[[key]]\nkey = \"canary\nplan = 1\n",
        "[[key]]\nkey = \"a\"\nkey = \"canary\"\n",
    ] {
        let told = Config::parse(text).unwrap_err().to_string();
        assert!(!told.contains("canary"), "{told}");
    }
}

/// These were called right, and then kept the gateway from starting, or from ever having a head.
#[test]
fn nodes_that_cannot_be_asked_are_mistakes_and_their_secrets_are_not_repeated() {
    let text = "[[node]]\nurl = \"http://host:99999/SECRET\"\n\
                [[node]]\nurl = \"http://a/SECRET\"\nheaders = [\"Bad Name: SECRET\"]\n\
                [[node]]\nurl = \"http://b\"\nws_url = \"http://b\"\n\
                [[node]]\nurl = \"http://b\"\n\
                [pool]\nquorum = 9\ncall_timeout_ms = 0\n";
    let said = Config::parse(text).unwrap_err().to_string();
    for mistake in [
        "node 1.url: this is no URL",
        "node 2.headers: this is no name of a header",
        "node 3.ws_url: the URL must begin with ws:// or wss://",
        "node 4.url: this node is listed already",
        "pool.quorum: there are fewer nodes",
        "pool.call_timeout_ms: no call",
    ] {
        assert!(said.contains(mistake), "{mistake}: {said}");
    }
    assert!(!said.contains("SECRET"), "{said}");
    let alone = Config::parse("[[partner]]\nurl = \"http://a\"\n").unwrap_err().to_string();
    assert!(alone.contains("there is no [[node]]"), "{alone}");
}
