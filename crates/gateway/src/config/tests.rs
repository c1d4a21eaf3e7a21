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
        (9, "key.key: a key is letters"),
        (10, "key.plan: no plan `gold`"),
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
