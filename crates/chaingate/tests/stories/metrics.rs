//! `/metrics` to the letter of the exposition format, and with a number of series that no caller can change.

use std::collections::{BTreeMap, BTreeSet};

use gateway::{MetricDescription, metric_groups};
use testkit::http::{get, post};

use crate::demo::{Demo, metric};
use crate::gateway_under_test::{Gateway, call, chain_id};
use crate::pool::front::Front;

/// More than all series of all methods together.
const SERIES_MAX: usize = 2_000;

/// One sample: a name, its labels, a value.
#[derive(Debug)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// One family: what stands between two `# HELP` lines.
#[derive(Debug)]
struct Family {
    name: String,
    kind: String,
    help: String,
    samples: Vec<Sample>,
}

/// Reads a page, and panics at whatever a strict reader would refuse.
fn families(page: &str) -> Vec<Family> {
    assert!(page.ends_with('\n') && !page.contains('\r'));
    let mut families: Vec<Family> = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').unwrap();
            assert!(is_name(name) && !text.is_empty() && !text.contains('\\'), "{line}");
            let kind = lines.next().unwrap().strip_prefix(&format!("# TYPE {name} ")).unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{kind}");
            let (name, kind, help) = (name.to_owned(), kind.to_owned(), text.to_owned());
            families.push(Family { name, kind, help, samples: Vec::new() });
        } else {
            let sample = sample(line);
            let family = families.last_mut().unwrap();
            let suffix = sample.name.strip_prefix(&family.name).unwrap_or_else(|| panic!("{line}"));
            let allowed: &[&str] =
                if family.kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(allowed.contains(&suffix), "{line}");
            family.samples.push(sample);
        }
    }
    families
}

fn is_name(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    text.bytes().next().is_some_and(letter) && text.bytes().all(|byte| letter(byte) || byte.is_ascii_digit())
}

fn sample(line: &str) -> Sample {
    let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value: {line}"));
    let (name, labels) = match series.split_once('{') {
        None => (series, BTreeMap::new()),
        Some((name, rest)) => (name, labels(rest.strip_suffix('}').unwrap_or_else(|| panic!("{line}")))),
    };
    assert!(is_name(name), "{line}");
    Sample { name: name.to_owned(), labels, value: value.parse().unwrap_or_else(|_| panic!("{line}")) }
}

/// `a="b",c="d"`, with the three escapes that there are.
fn labels(mut text: &str) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"").unwrap();
        assert!(is_name(name), "{name}");
        let mut value = String::new();
        let mut characters = rest.char_indices();
        let end = loop {
            match characters.next().unwrap() {
                (at, '"') => break at,
                (_, '\\') => match characters.next().unwrap().1 {
                    'n' => value.push('\n'),
                    escaped @ ('\\' | '"') => value.push(escaped),
                    other => panic!("no such escape: {other}"),
                },
                (_, plain) => value.push(plain),
            }
        };
        assert!(labels.insert(name.to_owned(), value).is_none(), "{name} twice");
        text = rest[end + 1..].strip_prefix(',').unwrap_or(&rest[end + 1..]);
    }
    labels
}

/// A histogram's buckets rise to its count.
fn check_histogram(family: &Family) {
    let mut groups: BTreeMap<String, Vec<&Sample>> = BTreeMap::new();
    for sample in &family.samples {
        let mut labels = sample.labels.clone();
        labels.remove("le");
        groups.entry(format!("{labels:?}")).or_default().push(sample);
    }
    for (labels, samples) in groups {
        let of =
            |suffix: &str| samples.iter().filter(|sample| sample.name.ends_with(suffix)).collect::<Vec<_>>();
        let bounds: Vec<f64> =
            of("_bucket").iter().map(|sample| sample.labels["le"].parse().unwrap()).collect();
        let counts: Vec<f64> = of("_bucket").iter().map(|sample| sample.value).collect();
        assert!(bounds.is_sorted() && counts.is_sorted(), "{labels}");
        assert_eq!(bounds.last(), Some(&f64::INFINITY), "{labels}");
        assert_eq!((of("_count").len(), of("_sum").len()), (1, 1), "{labels}");
        assert_eq!(counts.last(), Some(&of("_count")[0].value), "{labels}");
    }
}

/// Every series of a page that is right in every line.
fn series(page: &str) -> BTreeSet<String> {
    let families = families(page);
    let names: BTreeSet<_> = families.iter().map(|family| &family.name).collect();
    assert_eq!(names.len(), families.len(), "no family stands in two places");
    let (mut series, rows) = (BTreeSet::new(), documented());
    for family in &families {
        let row = rows[&*family.name];
        assert_eq!((&*family.kind, &*family.help), (row.kind, row.help), "{}", family.name);
        if family.kind == "histogram" {
            check_histogram(family);
        }
        for sample in &family.samples {
            assert!(family.kind == "gauge" || sample.value >= 0.0, "{sample:?}");
            let mut names: Vec<_> = sample.labels.keys().filter(|name| *name != "le").collect();
            let is_documented = |name: &&String| {
                row.labels.iter().any(|label| label.split(" or ").any(|choice| choice == *name))
            };
            names.retain(|name| !is_documented(name));
            assert!(names.is_empty(), "{sample:?} has labels that are not documented");
            assert!(series.insert(format!("{} {:?}", sample.name, sample.labels)), "{sample:?} twice");
        }
    }
    series
}

/// Every metric of the documentation, by its name.
fn documented() -> BTreeMap<&'static str, MetricDescription> {
    let metrics = metric_groups().into_iter().flat_map(|group| group.metrics);
    metrics.map(|metric| (metric.name, metric)).collect()
}

#[test]
fn every_line_is_what_the_format_allows() {
    let gateway = Gateway::with("", "[network]\nname = \"a \\\"b\\\" \\\\ ü\"\n[[key]]\nkey = \"demo\"");
    gateway.post(chain_id("1"));
    gateway.post(call("eth_call", r#"[{"data":"0x01"}]"#));
    let page = get(gateway.operator, "/metrics");
    assert_eq!(page.header("content-type"), Some("text/plain; version=0.0.4"));
    let series = series(page.text());
    assert!(series.iter().any(|series| series.contains(r#""network": "a \"b\" \\ ü""#)), "{series:#?}");
}

#[test]
fn everything_that_an_operator_asks_for_is_there() {
    let demo = Demo::with("");
    demo.call("eth_getBalance", r#"["0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"]"#);
    demo.call("eth_call", r#"[{"data":"0x5f5ff3"},"latest",{}]"#);
    demo.call("eth_getLogs", r#"[{"fromBlock":"0x0","toBlock":"0x20"}]"#);
    let page = get(demo.operator, "/metrics");
    series(page.text());
    let count = |series: &str| -> f64 {
        let line = page.text().lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {series} in\n{}", page.text())).parse().unwrap()
    };
    for (series, expected) in [
        (r#"chaingate_calls_total{method="eth_call",outcome="ok"}"#, 1.0),
        (r#"chaingate_call_seconds_count{method="eth_getLogs"}"#, 1.0),
        (r#"chaingate_work_seconds_count{work="read"}"#, 1.0),
        (r#"chaingate_work_seconds_count{work="logs"}"#, 1.0),
        (r#"chaingate_work_seconds_count{work="evm"}"#, 1.0),
        ("chaingate_pool_waiting", 0.0),
        ("chaingate_calls_in_flight", 0.0),
        ("chaingate_connections_total", 3.0),
        ("chaingate_requests_total", 3.0),
        (r#"chaingate_responses_total{status="2xx"}"#, 3.0),
        ("chaingate_ready", 1.0),
        ("chaingate_head_block", 255.0),
    ] {
        assert_eq!(count(series), expected, "{series}");
    }
    assert!(count("chaingate_received_bytes_total") > 100.0 && count("chaingate_sent_bytes_total") > 100.0);
    assert!(count(r#"chaingate_work_seconds_sum{work="evm"}"#) > 0.0);
    assert!(count("chaingate_pool_wait_seconds_count") >= 1.0, "overrides are a reason to go to the pool");
    assert!(page.text().contains("chaingate_build_info{version=\""));
}

#[test]
fn callers_cannot_make_series() {
    let gateway = Gateway::start();
    let probe = |index: usize| {
        let name = format!("m{index:x}\\\"{{}}");
        gateway.post(call(&name, "[]"));
        post(gateway.public, &format!("/v3/k{index}"), chain_id("1"));
        post(gateway.public, &format!("/p{index}"), chain_id("1"));
        let odd = format!("origin: http://o{index}\r\nuser-agent: u{index}\r\nx-{index}: y\r\n");
        let request = testkit::http::request("/v3/demo", &odd, chain_id("1").as_bytes());
        testkit::http::TestConnection::connect(gateway.public).send(request).reply();
    };
    probe(0);
    let page = || get(gateway.operator, "/metrics");
    let before = series(page().text());
    (1..300).for_each(probe);
    let after = series(page().text());
    assert_eq!(before, after);
    assert!(after.len() < SERIES_MAX, "{}", after.len());
    assert_eq!(metric(gateway.operator, "chaingate_requests_total"), 1_200.0);
}

/// A gateway without nodes has none of these metrics.
#[test]
fn metrics_of_nodes_and_partners_are_as_documented() {
    let chain = Demo::with("");
    let url = format!("http://{}/v3/demo", chain.public);
    let front = Front::unready(
        std::slice::from_ref(&url),
        &format!("[[partner]]\nname = \"other\"\nurl = \"{url}\"\n"),
    );
    let series = series(get(front.operator, "/metrics").text());
    for name in ["chaingate_node_health", "chaingate_partner_usable"] {
        assert!(series.iter().any(|series| series.starts_with(name)), "no {name} in {series:#?}");
    }
}
