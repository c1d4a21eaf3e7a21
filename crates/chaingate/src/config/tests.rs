use settings::ZeroMeaning;

use super::*;

#[test]
fn an_empty_file_is_the_demo_network_on_loopback_with_its_key() {
    let config = Config::parse("").unwrap();
    assert_eq!(config.listen.server.public.to_string(), "127.0.0.1:8545");
    assert_eq!(config.listen.operator.address.to_string(), "127.0.0.1:8546");
    assert_eq!(config.limits, GatewayLimits::default());
    assert_eq!(config.keys.len(), 1);
    assert!(config.network.is_demo());
}

#[test]
fn the_limits_are_those_that_callers_are_promised() {
    let GatewayLimits { http, answer, .. } = GatewayLimits::default();
    assert_eq!((http.body_bytes_max, http.batch_reply_bytes_max), (5 << 20, 25 << 20));
    assert_eq!(http.batch_calls_max, 1_000);
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
    "#;
    let config = Config::parse(text).unwrap();
    assert_eq!(config.keys.len(), 1, "only the demo network has the demo key");
    assert_eq!(config.keys[0].plan.credits_per_second, Some(7));
    assert_eq!(config.keys[0].plan.credits_per_day, Some(250_000_000));
    assert_eq!(config.limits.http.batch_calls_max, 10);
    assert_eq!(config.limits.answer.log_timeout.as_secs(), 2);
    assert!(config.network.eth_call_requires_from);
    let printed = format!("{config:?}");
    assert!(!["partner.example", "abc"].iter().any(|secret| printed.contains(secret)), "{printed}");
}

#[test]
fn all_errors_are_reported_at_once_each_with_its_line() {
    let text = "data_dir = 5\n\n[listen]\npublic = \"nonsense\"\nport = 1\n[limits]\nbatch_calls_max = -1\n[[key]]\nkey = \"a b\"\nplan = \"gold\"\n[network]\nfamily = \"doge\"\nunsupported_tags = { sure = [\"eth_call\"], safe = [\"eth_cal\"] }\n[methods]\nfailover = [\"eth_sendTransaction\"]\n";
    let errors = Config::parse(text).unwrap_err();
    let report = errors.to_string();
    let expected = [
        (1, "data_dir: must be a string"),
        (4, "listen.public: must be an address and a port"),
        (5, "unknown key `listen.port`"),
        (7, "limits.batch_calls_max: must be a whole number"),
        (9, "key 1.key: must be letters"),
        (10, "key 1.plan: unknown plan `gold`"),
        (12, "network.family: "),
        (13, "network.unsupported_tags"),
        (13, "network.unsupported_tags"),
        (15, "methods.failover: "),
    ];
    for (line, what) in expected {
        assert!(report.contains(&format!("line {line}: {what}")), "missing {line} {what} in:\n{report}");
    }
    assert_eq!(errors.0.len(), expected.len(), "{report}");
}

/// Somebody who upgrades is told what holds now.
#[test]
fn a_removed_key_is_an_error_that_says_what_holds_in_its_place() {
    let text = "[listen]\nruntime = \"per-core\"\n[limits]\nheaders_max = 50\n";
    let report = Config::parse(text).unwrap_err().to_string();
    let expected = [
        "line 2: listen.runtime: this key was removed: each connection stays on one worker; delete the line",
        "line 4: limits.headers_max: this key was removed: a request may have 100 headers; delete the line",
    ];
    assert_eq!(report.lines().collect::<Vec<_>>(), expected);
}

/// PostgreSQL refuses texts with the character NUL, so a key with one in its name kept all usage from being stored.
#[test]
fn no_name_has_the_character_nul() {
    let text = "[network]\nname = \"a\\u0000b\"\n[[key]]\nkey = \"k\"\nname = \"\\u0000\"\n";
    let report = Config::parse(text).unwrap_err().to_string();
    let expected = [
        "line 2: network.name: must not contain the character NUL",
        "line 5: key 1.name: must not contain the character NUL",
    ];
    assert_eq!(report.lines().collect::<Vec<_>>(), expected);
}

/// A missing key was told to be letters, and a misspelt one only that it is unknown.
#[test]
fn missing_keys_and_similar_names_are_reported() {
    let text = "[lsten]\n[listen]\npubilc = \"127.0.0.1:1\"\n[[key]]\nplan = \"core\"\n[[key]]\nkey = \"\"\n[[node]]\nname = \"one\"\n";
    let report = Config::parse(text).unwrap_err().to_string();
    let expected = [
        "line 1: unknown key `lsten`; did you mean `listen`?",
        "line 3: unknown key `listen.pubilc`; did you mean `public`?",
        "line 4: key 1.key: is missing: a long random text, which callers put into the path of the URL",
        "line 7: key 2.key: must not be empty",
        "line 8: node 1.url: is missing: the address for JSON-RPC, such as http://10.0.0.11:8545",
    ];
    assert_eq!(report.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn invalid_toml_is_reported_with_its_line() {
    let errors = Config::parse("a = 1\nb = = 2\n").unwrap_err();
    assert!(errors.0.iter().any(|error| error.line == 2), "{errors}");
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
fn errors_in_a_key_name_its_position_and_never_the_key() {
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
    let errors = Config::parse(text).unwrap_err();
    let report = errors.to_string();
    let expected = [
        (6, "key 2.key: duplicate key"),
        (7, "key 2.plan: conflicting plans for account \"a\""),
        (9, "key 2.secret: must not be empty"),
        (10, "key 2.origins: `https://a b` is not an origin"),
        (11, "key 2.addresses: `0x1` is not an address"),
        (12, "key 2.methods: `eth_cal` is not a method"),
        (13, "key 2.user_agents: an empty list allows nothing"),
        (14, "key 2.jwt_public_keys: number 1 must be the PEM"),
        (16, "key 3.key: must be letters"),
        (17, "key 3.secret_required: needs a secret"),
        (18, "key 3.jwt_required: needs jwt_public_keys"),
        (19, "key 3.jwt_audience: needs jwt_public_keys"),
        (27, "key 5.account: too many keys for this account: the plan `core` allows 1"),
        (28, "unknown key `key 5.colour`"),
        (29, "key 5.secret: must be a string"),
    ];
    for (line, what) in expected {
        assert!(report.contains(&format!("line {line}: {what}")), "missing {line} {what} in:\n{report}");
    }
    assert_eq!(errors.0.len(), expected.len(), "{report}");
    assert!(!report.contains("canary"), "{report}");
}

/// Two keys of one account with the same name used up each other's daily limit, and a key that is too long was never accepted.
#[test]
fn keys_that_could_not_work_are_refused() {
    let keys = |first: &str, second: &str| {
        let text = format!("[[key]]\nkey = \"a\"\n{first}\n[[key]]\nkey = \"b\"\n{second}\n");
        Config::parse(&text).map_err(|errors| errors.to_string())
    };
    let error = keys("name = \"n\"\naccount = \"x\"", "name = \"n\"\naccount = \"x\"").unwrap_err();
    assert!(error.contains("line 7: key 2.name: another key of this account has the same name"), "{error}");
    assert!(keys("name = \"n\"\naccount = \"x\"", "name = \"n\"\naccount = \"y\"").is_ok());
    let long = |bytes: usize| Config::parse(&format!("[[key]]\nkey = \"{}\"\n", "k".repeat(bytes)));
    assert!(long(128).is_ok());
    let error = long(129).unwrap_err().to_string();
    assert!(error.contains("line 2: key 1.key: must have at most 128 characters"), "{error}");
}

/// Both had the same label in the metrics, which a scraper refuses as a whole.
#[test]
fn partners_with_the_same_name_are_refused() {
    let partners = |more: &str| {
        let partner = "[[partner]]\nurl = \"https://p.example/one\"\n";
        let text = format!("[[node]]\nurl = \"http://127.0.0.1:1\"\n{partner}{partner}{more}");
        Config::parse(&text).map_err(|errors| errors.to_string())
    };
    let error = partners("").unwrap_err();
    assert!(error.contains("partner 2.name: another partner has the same name"), "{error}");
    assert!(partners("name = \"second\"\n").is_ok());
}

#[test]
fn a_secret_and_a_token_cannot_both_be_required() {
    let pem = include_str!("../../tests/stories/fixtures/rs256.pem");
    let key = |more: &str| {
        Config::parse(&format!(
            "[[key]]\nkey = \"k\"\nsecret = \"s\"\njwt_public_keys = ['''{pem}''']\n{more}"
        ))
    };
    assert!(key("").unwrap_err().to_string().contains("line 4: key 1.jwt_public_keys: a request carries"));
    assert!(key("secret_required = false").is_ok());
    assert!(key("jwt_required = false").is_ok());
}

#[test]
fn the_report_of_invalid_toml_shows_no_key() {
    for text in [
        "[[key]]\nkey = canary\n",
        "[[key]]\nkey = \"canary\nplan = 1\n",
        "[[key]]\nkey = \"a\"\nkey = \"canary\"\n",
    ] {
        let report = Config::parse(text).unwrap_err().to_string();
        assert!(!report.contains("canary"), "{report}");
    }
}

/// These were called right, and then kept the gateway from starting, or from ever having a head.
#[test]
fn nodes_that_cannot_be_called_are_errors_and_their_secrets_are_not_repeated() {
    let text = "[[node]]\nurl = \"http://host:99999/SECRET\"\n\
                [[node]]\nurl = \"http://a/SECRET\"\nheaders = [\"Bad Name: SECRET\"]\n\
                [[node]]\nurl = \"http://b\"\nws_url = \"http://b\"\n\
                [[node]]\nurl = \"http://b\"\n\
                [pool]\nquorum = 9\ncall_timeout_ms = 0\n";
    let report = Config::parse(text).unwrap_err().to_string();
    for error in [
        "node 1.url: invalid URL",
        "node 2.headers: invalid header name",
        "node 3.ws_url: the URL must begin with ws:// or wss://",
        "node 4.url: duplicate node",
        "pool.quorum: must be at most the number of nodes",
        "pool.call_timeout_ms: must be greater than 0",
    ] {
        assert!(report.contains(error), "{error}: {report}");
    }
    assert!(!report.contains("SECRET"), "{report}");
    let alone = Config::parse("[[partner]]\nurl = \"http://a\"\n").unwrap_err().to_string();
    assert!(alone.contains("partner: needs at least one [[node]]"), "{alone}");
}

#[test]
fn an_unknown_mode_names_those_that_exist() {
    let report = |mode: &str| {
        Config::parse(&format!("[integrity]\nmode = \"{mode}\"\n")).map_err(|error| error.to_string())
    };
    assert!(report("enforce").unwrap_err().contains("must be prove or off"));
    assert!(report("prove").is_ok() && report("off").is_ok());
}

/// Metrics had every figure of such nodes twice under the same labels, which monitoring systems refuse to read.
#[test]
fn nodes_that_would_be_shown_under_one_name_are_refused() {
    let key = "[[key]]\nkey = \"a-key-that-is-long-enough\"\n";
    let nodes =
        |lines: &str| Config::parse(&format!("{key}{lines}")).map(drop).map_err(|error| error.to_string());
    let error = "node 2.name: another node has the same name";
    let two_keys = "[[node]]\nurl = \"http://a/one\"\n[[node]]\nurl = \"http://a/two\"\n";
    assert!(nodes(two_keys).unwrap_err().contains(error));
    let one_name = "[[node]]\nname = \"n\"\nurl = \"http://a\"\n[[node]]\nname = \"n\"\nurl = \"http://b\"\n";
    assert!(nodes(one_name).unwrap_err().contains(error));
    assert_eq!(nodes(&format!("{two_keys}name = \"second\"\n")), Ok(()));
}

#[test]
fn the_address_of_redis_is_checked_and_never_shown() {
    let config = Config::parse("[shared]\nredis_url = \"redis://:SECRET@host\"\n").unwrap();
    assert!(config.redis.is_some() && !format!("{config:?}").contains("SECRET"));
    for url in ["", "SECRET", "http://SECRET@host", "redis://:SECRET@host:port/"] {
        let report = Config::parse(&format!("[shared]\nredis_url = \"{url}\"\n")).unwrap_err().to_string();
        assert!(report.contains("line 2: shared.redis_url: must be a URL"), "{report}");
        assert!(!report.contains("SECRET"), "{report}");
    }
}

#[test]
fn the_password_of_the_store_is_never_shown() {
    let config = Config::parse("[store]\nurl = \"postgres://user:SECRET@host/db\"\n").unwrap();
    assert_eq!(config.store_location().to_string(), "postgres://host:5432/db");
    assert!(!format!("{config:?}").contains("SECRET"));
    for url in ["SECRET", "postgres://user:SECRET@host:port/db", "mysql://user:SECRET@host/db"] {
        let report = Config::parse(&format!("[store]\nurl = \"{url}\"\n")).unwrap_err().to_string();
        assert!(report.contains("line 2: store.url: must"), "{report}");
        assert!(!report.contains("SECRET"), "{report}");
    }
}

#[test]
fn without_a_url_accounts_and_keys_are_stored_in_the_data_directory() {
    let config = Config::parse("data_dir = \"place\"\n").unwrap();
    assert_eq!(config.store_location().to_string(), "sqlite:place/callers.sqlite");
}

/// A configuration with this key in it. Tables of the file stand before the keys of an array's element.
fn with_value(path: &str, value: &str) -> String {
    let (section, key) = path.rsplit_once('.').unwrap_or(("", path));
    let others = "[[key]]\nkey = \"k\"\n[[node]]\nurl = \"http://127.0.0.1:1\"\n";
    match section {
        "" => format!("{key} = {value}\n{others}"),
        "key 1" => others.replace("[[key]]\n", &format!("[[key]]\n{key} = {value}\n")),
        "node 1" => others.replace("[[node]]\n", &format!("[[node]]\n{key} = {value}\n")),
        "partner 1" => format!("{others}[[partner]]\nurl = \"http://127.0.0.1:2\"\n{key} = {value}\n"),
        // A checkpoint has a hash, too.
        "network.checkpoint" => {
            format!("{others}[{section}]\nhash = \"0x{}\"\n{key} = {value}\n", "ab".repeat(32))
        }
        section => format!("{others}[{section}]\n{key} = {value}\n"),
    }
}

/// All keys that are numbers, with what 0 means.
fn numbers() -> Vec<(String, ZeroMeaning)> {
    let every_section = "[plans.NAME]\n[[key]]\n[[node]]\n[[partner]]";
    let keys = Config::keys_of(every_section).into_iter();
    let numbers: Vec<_> = keys.filter_map(|key| Some((key.path, key.zero?))).collect();
    assert!(numbers.len() > 30, "{numbers:?}");
    numbers
}

/// `body_bytes_max = 0` refused every call, and `workers = 0` was changed to 1 without a word.
#[test]
fn zero_is_no_limit_or_is_refused_for_every_number() {
    for (path, zero) in numbers() {
        let parsed = Config::parse(&with_value(&path, "0"));
        match zero {
            ZeroMeaning::Invalid => {
                let report = parsed.err().map(|errors| errors.to_string()).unwrap_or_default();
                assert!(report.contains(&format!("{path}: must be greater than 0")), "{path}: {report}");
            }
            ZeroMeaning::NoLimit | ZeroMeaning::NoDelay => assert!(parsed.is_ok(), "{path}: {parsed:?}"),
        }
        match Config::parse(&with_value(&path, "1")) {
            Ok(_) => {}
            // With less memory no block would fit.
            Err(errors) if path.ends_with("reply_memory_bytes") => {
                let report = errors.to_string();
                assert!(report.contains(&format!("{path}: must be at least 1048576 (1 MiB)")), "{report}");
                assert!(Config::parse(&with_value(&path, "1_048_576")).is_ok());
            }
            Err(errors) => panic!("{path}: {errors}"),
        }
    }
}

/// A timeout of 2^63 ms made the gateway panic when it added it to the time.
#[test]
fn a_number_so_large_that_sums_would_overflow_is_refused() {
    for (path, _) in numbers() {
        for large in ["18446744073709551615", "9223372036854775807"] {
            let report = Config::parse(&with_value(&path, large)).unwrap_err().to_string();
            assert!(report.contains(&format!("{path}: must be at most ")), "{path}: {report}");
        }
        if path.ends_with("_ms") {
            assert!(Config::parse(&with_value(&path, "31_536_000_000")).is_ok(), "{path}: a year is allowed");
            assert!(Config::parse(&with_value(&path, "31_622_400_001")).is_err(), "{path}");
        }
    }
}

/// With nodes and without a key, everybody had the unlimited key of the demo chain.
#[test]
fn only_the_demo_chain_has_a_key_by_itself() {
    let names = |text: &str| {
        let config = Config::parse(text).unwrap();
        config.keys.into_iter().map(|key| key.name).collect::<Vec<_>>()
    };
    assert_eq!(names(""), ["demo"]);
    assert_eq!(names("[[key]]\nkey = \"own\""), ["key-1", "demo"]);
    assert_eq!(names("[[key]]\nkey = \"demo\""), ["key-1"]);
    let node = "[[node]]\nurl = \"http://127.0.0.1:1\"\n";
    assert_eq!(names(&format!("[[key]]\nkey = \"own\"\n{node}")), ["key-1"]);
    for text in [node, "[network]\nname = \"mainnet\"\n"] {
        assert!(names(text).is_empty(), "{text}");
    }
}

#[test]
fn callers_and_the_operator_do_not_share_an_address() {
    let problems = |public: &str, operator: &str| {
        let text = format!("[listen]\npublic = \"{public}\"\noperator = \"{operator}\"\n");
        Config::parse(&text).unwrap().problems().join("\n")
    };
    let report = problems("0.0.0.0:8545", "127.0.0.1:8545");
    assert_eq!(
        report,
        "listen.public (0.0.0.0:8545) and listen.operator (127.0.0.1:8545) must not share an address and port"
    );
    assert_eq!(problems("127.0.0.1:0", "127.0.0.1:0"), "");
    assert_eq!(problems("127.0.0.1:8545", "127.0.0.1:8546"), "");
    assert_eq!(problems("127.0.0.1:8547", "127.0.0.1:8548"), "", "the console gives way if it is not named");
    let named = problems("127.0.0.1:8547", "127.0.0.1:8548\"\nconsole = \"127.0.0.1:8547");
    assert!(named.contains("listen.console (127.0.0.1:8547) and listen.public"), "{named}");
}

/// A new key was told with `0.0.0.0`, or without the address that callers know.
#[test]
fn the_url_of_callers_can_be_reached() {
    let url = |text: &str| {
        let config = Config::parse(text).unwrap();
        config.callers_url(config.listen.server.public)
    };
    assert_eq!(url(""), "http://127.0.0.1:8545/v3/");
    assert_eq!(url("[listen]\npublic = \"0.0.0.0:9000\""), "http://127.0.0.1:9000/v3/");
    assert_eq!(url("[listen]\npublic = \"[::]:9000\""), "http://[::1]:9000/v3/");
    assert_eq!(url("[console]\npublic_url = \"https://rpc.example.com\""), "https://rpc.example.com/v3/");
}

/// Nodes beyond the 128th were listed in the metrics and never asked.
#[test]
fn more_nodes_than_can_be_asked_are_refused() {
    let nodes = |count: usize| {
        let each = (0..count).map(|port| format!("[[node]]\nurl = \"http://127.0.0.1:{}\"\n", port + 1));
        Config::parse(&format!("[[key]]\nkey = \"k\"\n{}", each.collect::<String>()))
    };
    assert!(nodes(128).is_ok());
    assert!(nodes(129).unwrap_err().to_string().contains("node: must be at most 128 nodes"));
}

/// The output of `chaingate keys hash` can be written into the file, and is compared with the keys of the others.
#[test]
fn a_key_may_be_written_as_its_hash() {
    let hash = callers::ConfiguredKey::hash_text("own").unwrap();
    let hashed = format!("[[key]]\nkey_hash = \"{hash}\"\n");
    assert!(Config::parse(&hashed).unwrap().has_own_key());
    assert!(Config::parse(&format!("{hashed}key = \"own\"\n")).is_ok());
    let demo = callers::ConfiguredKey::hash_text("demo").unwrap();
    assert!(!Config::parse(&hashed.replace(&hash, &demo)).unwrap().has_own_key());
    for (text, expected) in [
        (format!("{hashed}key = \"other\"\n"), "line 2: key 1.key_hash: is not the hash of `key`"),
        (format!("{hashed}{hashed}"), "line 4: key 2.key_hash: duplicate key"),
        (format!("[[key]]\nkey = \"own\"\n{hashed}"), "line 4: key 2.key_hash: duplicate key"),
        (
            hashed.replace("sha256:", ""),
            "line 2: key 1.key_hash: must be `sha256:` and 64 hexadecimal digits",
        ),
    ] {
        let error = Config::parse(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
