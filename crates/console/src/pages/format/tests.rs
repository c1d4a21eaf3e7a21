use super::*;

#[test]
fn numbers_have_separators_and_units() {
    for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
        assert_eq!(count(&number), text);
    }
    assert_eq!(count(&u64::MAX), "18,446,744,073,709,551,615");
    for (number, text) in [
        (0.0, "0"),
        (2.5, "2.5"),
        (950.0, "950"),
        (1_500.0, "1,500"),
        (12_500.0, "12.5k"),
        (3e6, "3M"),
        (2.5e9, "2.5G"),
    ] {
        assert_eq!(short(&number), text);
    }
    for (number, text) in [(0.0, "0"), (0.04, "0"), (12.34, "12.3"), (1204.4, "1,204")] {
        assert_eq!(rate(&number), text);
    }
    assert_eq!(counted(&1, "call", "calls"), "1 call");
    assert_eq!(counted(&1200, "call", "calls"), "1,200 calls");
}

#[test]
fn shares_are_never_rounded_to_all_or_nothing() {
    for (share, text) in [
        (0.0, "0%"),
        (0.0001, "<0.1%"),
        (0.5, "50%"),
        (0.984, "98.4%"),
        (0.99951, ">99.9%"),
        (1.0, "100%"),
        (f64::NAN, "NaN%"),
    ] {
        assert_eq!(percent(&share), text);
    }
    assert_eq!(percent_or_dash(&None), "–");
}

#[test]
fn milliseconds_have_two_digits_that_matter() {
    for (value, text) in [
        (0.0, "0 ms"),
        (0.004, "< 0.01 ms"),
        (0.412, "0.41 ms"),
        (0.999, "1 ms"),
        (1.25, "1.2 ms"),
        (12.4, "12 ms"),
        (999.9, "1 s"),
        (1_240.0, "1.2 s"),
        (30_000.0, "30 s"),
    ] {
        assert_eq!(milliseconds(&value), text);
    }
}

#[test]
fn sizes_have_decimal_units() {
    for (number, text) in
        [(1, "1 byte"), (999, "999 bytes"), (1_500, "1.5 kB"), (999_999, "1 MB"), (20_100_000_000, "20.1 GB")]
    {
        assert_eq!(bytes(&number), text);
    }
}

#[test]
fn spans_have_at_most_two_units() {
    for (seconds, text) in [
        (-5, "0 s"),
        (45, "45 s"),
        (200, "3 min"),
        (7_500, "2 h 5 min"),
        (7_200, "2 h"),
        (356_400, "4 d 3 h"),
    ] {
        assert_eq!(duration(&seconds), text);
    }
    for (at, text) in [
        (1_000_000, "just now"),
        (999_980, "20 s ago"),
        (999_800, "3 min ago"),
        (910_000, "25 h ago"),
        (500_000, "5 d ago"),
        (1_000_300, "in 5 min"),
        (i64::MIN, "106751991167300 d ago"),
    ] {
        assert_eq!(ago(&1_000_000, &at), text);
    }
}

#[test]
fn times_are_utc() {
    for (at, text) in [
        (0, "1970-01-01 00:00:00"),
        (951_782_400, "2000-02-29 00:00:00"),
        (1_709_164_800, "2024-02-29 00:00:00"),
        (1_794_934_923, "2026-11-17 17:02:03"),
        (-1, "1969-12-31 23:59:59"),
        (4_107_542_400, "2100-03-01 00:00:00"),
    ] {
        assert_eq!(time_with_seconds(&at), text);
    }
    assert_eq!(time(&1_794_934_923), "2026-11-17 17:02 UTC");
    assert_eq!(date(&1_794_934_923), "2026-11-17");
    assert_eq!(machine_time(&1_794_934_923), "2026-11-17T17:02:03Z");
    assert_eq!(step_label(&1_794_934_923, &60), "17:02");
    assert_eq!(step_label(&1_794_934_923, &86_400), "17 Nov");
    assert_eq!(step_label_with_day(&1_794_934_923, &3_600), "17 Nov 17:02");
}

#[test]
fn hashes_keep_their_ends() {
    assert_eq!(short_hash("0x5d18aabbccddeeff9304"), "0x5d18…9304");
    assert_eq!(short_hash("0x5d18"), "0x5d18");
    assert_eq!(short_hash("ééééééééééééééé"), "ééé…éé");
}

#[test]
fn browsers_have_the_names_that_people_know() {
    for (user_agent, name) in [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
        (
            "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0",
            "Edge on Windows",
        ),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 14_0) Version/17.0 Safari/605.1.15", "Safari on macOS"),
        ("curl/8.5.0", "curl"),
        ("<script>", "Unknown browser"),
    ] {
        assert_eq!(browser_name(user_agent), name);
    }
}
