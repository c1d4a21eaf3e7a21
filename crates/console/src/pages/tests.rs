//! Rules for all templates and assets, and pages with hostile and with much data.

use std::fs;
use std::path::Path;

use askama::Template;
use callers::KeyRules;
use callers::administration::{AccountCounts, AuditEntry, KeySummary};
use callers::usage::Outcome;
use gateway::{
    FollowSnapshot, GatewaySnapshot, NodeSnapshot, NodesSnapshot, PartnerSnapshot, PoolNodeState,
    RemoteSnapshot, TaskSnapshot,
};
use resources::BUCKETS;
use serde_json::json;

use super::audit_log::AuditLogPage;
use super::credits_today::CreditsToday;
use super::keys::{FoundKeyCount, KeyListPage, KeyRow, KeyRowState, KeySettingsForm, KeySettingsPage};
use super::list_pages::ListLinks;
use super::live::{LivePage, LiveStatus};
use super::outcomes::OutcomeCounts;
use super::usage::{
    KeyChoice, TAGS_SHOWN_MAX, UsageOfTag, UsagePage, UsageRange, UsageRowByName, UsageSeries, UsageSum,
};
use super::*;

/// Bytes of style and script together, which a browser loads once.
const ASSET_BYTES_MAX: usize = 45_000;

/// Bytes of a page, so that it is fast on a phone.
const PAGE_BYTES_MAX: usize = 100_000;

const HOSTILE: &str = r#"</textarea></script><script>alert(1)</script>"'><img src=x onerror=alert(1)>"#;

fn templates() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let named = |path: std::path::PathBuf| (path.display().to_string(), fs::read_to_string(path).unwrap());
    let templates: Vec<_> = paths.map(named).collect();
    assert!(templates.len() > 15);
    templates
}

#[test]
fn templates_have_no_inline_script_and_no_inline_style() {
    for (path, text) in templates() {
        assert!(!text.contains("style=") && !text.contains("<style"), "{path}");
        assert!(
            !text.contains(" onclick") && !text.contains(" onload") && !text.contains("javascript:"),
            "{path}"
        );
        assert!(text.matches("<script").count() == text.matches("<script src=").count(), "{path}");
    }
}

/// Forms let nobody type more than 64 characters of a name, of the 100 that are accepted.
#[test]
fn forms_accept_the_names_that_the_rules_accept() {
    let length = format!("maxlength=\"{}\"", callers::administration::NAME_CHARACTERS_MAX);
    for html in [key_list().render().unwrap(), key_settings().render().unwrap()] {
        assert!(html.contains(&length), "{html}");
    }
    for (path, text) in templates() {
        let inputs = text
            .split("<input")
            .filter(|input| input.contains("name=\"name\"") || input.contains("name=\"account\""));
        for input in inputs {
            assert!(input.contains("NAME_CHARACTERS_MAX"), "{path}: {input}");
        }
    }
}

#[test]
fn every_form_that_changes_something_sends_the_token() {
    let mut forms = 0;
    for (path, text) in templates() {
        for form in text.split("<form").skip(1).filter(|form| form.contains("method=\"post\"")) {
            let form = form.split("</form>").next().unwrap_or_default();
            assert!(form.contains("m::csrf(frame)"), "{path}: {form}");
            forms += 1;
        }
    }
    assert!(forms > 15);
}

#[test]
fn assets_are_small() {
    let style = include_bytes!("../../assets/console.css").len();
    let script = include_bytes!("../../assets/console.js").len();
    assert!(style + script <= ASSET_BYTES_MAX, "{style} + {script}");
}

#[test]
fn hostile_texts_are_escaped() {
    let html = [
        key_list().render().unwrap(),
        key_settings().render().unwrap(),
        live().render().unwrap(),
        audit_log().render().unwrap(),
        usage(1, 1).render().unwrap(),
    ];
    for html in html {
        assert!(html.contains("alert(1)"), "the text is not there: {html}");
        assert!(!html.contains("<script>") && !html.contains("<img") && !html.contains("\"'>"), "{html}");
    }
}

#[test]
fn pages_with_much_data_are_small() {
    let name = "backend-of-the-shop-in-production".to_owned();
    let mut row = key();
    row.key = KeySummary { name, last_used_at: Some(0), ..row.key };
    row.today.add_calls("ok", 1 << 40, 0);
    let keys = vec![row; 70];
    let settings = format!("{{{}}}", r#""origins":["https://app.example.com"],"#.repeat(1_000));
    let [actor, action, subject] =
        ["user:ada@example.com", "key.settings", "k_8a41c0de55b2"].map(str::to_owned);
    let details = json!({ "settings": settings, "secret": "unchanged" });
    let entries = vec![AuditEntry { id: 1, at: 0, actor, action, subject, details }; 100];
    for html in [
        usage(7 * 24, 1_000).render().unwrap(),
        KeyListPage { keys, ..key_list() }.render().unwrap(),
        AuditLogPage { entries, ..audit_log() }.render().unwrap(),
    ] {
        assert!(html.len() <= PAGE_BYTES_MAX, "{} bytes: {}", html.len(), &html[..400]);
    }
}

fn frame() -> PageFrame {
    PageFrame {
        title: HOSTILE.to_owned(),
        network: HOSTILE.to_owned(),
        now: 1_794_935_000,
        csrf: "token".to_owned(),
        user: Some(SignedInUser {
            email: HOSTILE.to_owned(),
            is_operator: true,
            account: Some(HOSTILE.to_owned()),
        }),
        active: NavigationItem::Keys,
        flash: Some(Flash { is_error: true, text: HOSTILE.to_owned() }),
        assets: AssetPaths { style: "/style", script: "/script", icon: "/icon" },
    }
}

fn credits() -> CreditsToday {
    CreditsToday { used: 1, per_day: Some(10), per_second: None, plan: HOSTILE.to_owned(), resets_at: 0 }
}

fn key() -> KeyRow {
    let key = KeySummary {
        id: "k_1".to_owned(),
        account: HOSTILE.to_owned(),
        name: HOSTILE.to_owned(),
        prefix: "5f0c1d".to_owned(),
        status: "active",
        created_at: 0,
        last_used_at: None,
        expires_at: None,
        has_secret: false,
        settings: KeyRules::default(),
    };
    KeyRow { key, state: KeyRowState::Active, today: UsageSum::default() }
}

fn account() -> Option<(String, String)> {
    Some((HOSTILE.to_owned(), "/accounts/acme".to_owned()))
}

fn hostile_errors() -> FormErrors {
    let field = |name: &str| FieldError { field: name.to_owned(), message: HOSTILE.to_owned() };
    FormErrors { general: Some(HOSTILE.to_owned()), fields: vec![field("name"), field("origins")] }
}

fn key_list() -> KeyListPage {
    let (new_name, base_url) = (HOSTILE.to_owned(), HOSTILE.to_owned());
    KeyListPage {
        frame: frame(),
        path: "/keys".to_owned(),
        account: account(),
        keys: vec![key()],
        search: HOSTILE.to_owned(),
        found: Some(FoundKeyCount { count: 1, is_all: true }),
        pages: ListLinks { first: Some(HOSTILE.to_owned()), next: Some(HOSTILE.to_owned()) },
        counts: AccountCounts { valid_keys: 1, keys: 1, users: 1 },
        keys_max: None,
        new_name,
        errors: hostile_errors(),
        base_url,
    }
}

fn key_settings() -> KeySettingsPage {
    KeySettingsPage {
        frame: frame(),
        path: "/keys/k_1".to_owned(),
        list_path: "/keys".to_owned(),
        usage_path: "/usage".to_owned(),
        account: account(),
        row: key(),
        credits: credits(),
        form: KeySettingsForm::new(true, |_| HOSTILE.to_owned()),
        errors: hostile_errors(),
        method_names: vec![HOSTILE.to_owned()],
        base_url: HOSTILE.to_owned(),
    }
}

fn live() -> LivePage {
    let hostile = || Some(HOSTILE.to_owned());
    let node = NodeSnapshot {
        name: HOSTILE.to_owned(),
        client_version: hostile(),
        state: PoolNodeState::Down,
        not_used_because: hostile(),
        last_fault: hostile(),
        ..NodeSnapshot::default()
    };
    let task = TaskSnapshot {
        name: HOSTILE.to_owned(),
        state: "down",
        silent_seconds: 0,
        panics: 1,
        last_panic: hostile(),
        down_because: hostile(),
    };
    let nodes = NodesSnapshot { head_waits_because: hostile(), each: vec![node], ..NodesSnapshot::default() };
    let partner =
        PartnerSnapshot { name: HOSTILE.to_owned(), usable: true, calls_today: 1, calls_per_day: 2 };
    let follow = FollowSnapshot { state: HOSTILE.to_owned(), ..FollowSnapshot::default() };
    let remote =
        RemoteSnapshot { nodes, follow: Some(follow), partners: vec![partner], ..RemoteSnapshot::default() };
    let gateway = GatewaySnapshot {
        not_ready_because: hostile(),
        tasks: vec![task],
        remote: Some(remote),
        ..GatewaySnapshot::default()
    };
    LivePage { frame: frame(), status: LiveStatus { gateway, ..LiveStatus::default() } }
}

fn audit_log() -> AuditLogPage {
    let entry = AuditEntry {
        id: 1,
        at: 0,
        actor: HOSTILE.to_owned(),
        action: HOSTILE.to_owned(),
        subject: HOSTILE.to_owned(),
        details: json!({ HOSTILE: HOSTILE }),
    };
    AuditLogPage {
        frame: frame(),
        entries: vec![entry],
        search: HOSTILE.to_owned(),
        count: 1_000_001,
        pages: ListLinks { first: Some(HOSTILE.to_owned()), next: Some(HOSTILE.to_owned()) },
    }
}

/// The usage with this many steps, and this many methods and keys.
fn usage(steps: usize, rows: usize) -> UsagePage {
    let large = 1_234_567_890;
    let mut outcomes = OutcomeCounts::default();
    for outcome in [Outcome::Ok, Outcome::Invalid, Outcome::Refused, Outcome::Unavailable, Outcome::Abandoned]
    {
        outcomes.add(outcome, large);
    }
    let mut latency = [0; BUCKETS];
    (latency[9], latency[12]) = (99, 1);
    let sum = UsageSum { outcomes, credits: large, latency };
    let name = if rows > 1 { "eth_getTransactionByBlockNumberAndIndex" } else { HOSTILE };
    let row = UsageRowByName { name: name.to_owned(), href: Some("/keys/k_8a41c0de55b2".to_owned()), sum };
    UsagePage {
        frame: frame(),
        path: "/usage".to_owned(),
        account: account(),
        range: UsageRange::Hour,
        key: Some(HOSTILE.to_owned()),
        keys: vec![KeyChoice { id: "k_8a41c0de55b2".to_owned(), name: name.to_owned() }; rows.min(100)],
        credits: credits(),
        total: sum,
        series: UsageSeries { since: 1_794_931_200, step: 60, points: vec![sum; steps] },
        by_method: vec![row.clone(); rows],
        by_key: vec![row; rows],
        by_tag: vec![
            UsageOfTag { tag: name.to_owned(), calls: large, credits: large };
            rows.min(TAGS_SHOWN_MAX)
        ],
        base_url: HOSTILE.to_owned(),
    }
}
