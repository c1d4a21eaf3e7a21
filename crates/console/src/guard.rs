//! Who may use the admin API, and how often.
//!
//! The operator's listener has checked `Host` and `Origin` before.

use std::net::SocketAddr;
use std::time::Instant;

use http::{HeaderMap, Method, StatusCode, header};
use parking_lot::Mutex;
use resources::{BucketRate, Clock, MonoTime, RepeatedWarning, TokenBucket};

use crate::admin_token::AdminToken;
use crate::api_error::ApiError;

/// Requests with the right token: far more than people and scripts make, and few enough that changes of accounts cannot occupy
/// the store.
const REQUESTS: BucketRate = BucketRate { per_second: 50, capacity: 200 };

/// Requests without the right token that are answered with 401; further ones get 429. The right token is always accepted, so
/// that nobody can lock the operator out by sending wrong ones.
const FAILURES: BucketRate = BucketRate { per_second: 1, capacity: 10 };

/// The header in which a program states for whom it makes a change; it is recorded, not checked.
pub const ACTOR_HEADER: &str = "chaingate-actor";

/// Characters of that header.
const ACTOR_CHARACTERS_MAX: usize = 100;

/// Checks the token of a request, and limits the number of requests.
#[derive(Debug)]
pub(crate) struct AdminGuard {
    token: AdminToken,
    clock: Clock,
    rates: Mutex<AdminRates>,
    refused: RepeatedWarning,
}

#[derive(Debug)]
struct AdminRates {
    requests: TokenBucket,
    failures: TokenBucket,
}

/// Who makes a change, as the audit log records it. It proves that the request has passed the guard, or that it comes from
/// this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdminActor(pub(crate) String);

impl AdminGuard {
    pub(crate) fn new(token: AdminToken) -> Self {
        let rates =
            AdminRates { requests: TokenBucket::full(REQUESTS), failures: TokenBucket::full(FAILURES) };
        Self { token, clock: Clock::default(), rates: Mutex::new(rates), refused: RepeatedWarning::default() }
    }

    /// Refuses requests without the token, too many requests, and bodies that are not JSON.
    pub(crate) fn check(
        &self,
        method: &Method,
        headers: &HeaderMap,
        has_body: bool,
        peer: Option<SocketAddr>,
    ) -> Result<AdminActor, ApiError> {
        let now = self.clock.now();
        self.check_token(headers, peer, now)?;
        let taken = self.rates.lock().requests.take(1, now);
        taken.map_err(|exceeded| too_many_requests(exceeded.wait_ms))?;
        if has_body && *method != Method::GET && !is_json(headers) {
            let message = "send the header Content-Type: application/json";
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", message));
        }
        actor(headers, peer)
    }

    fn check_token(
        &self,
        headers: &HeaderMap,
        peer: Option<SocketAddr>,
        now: MonoTime,
    ) -> Result<(), ApiError> {
        let given = bearer(headers);
        if given.is_some_and(|given| self.token.matches(given)) {
            return Ok(());
        }
        if let Some(requests) = self.refused.count(Instant::now()) {
            let peer = peer.map(|peer| peer.ip().to_string());
            tracing::warn!(peer, requests, "refused requests to the admin API without the right token");
        }
        self.rates.lock().failures.take(1, now).map_err(|exceeded| too_many_requests(exceeded.wait_ms))?;
        let message = match given {
            None => {
                "send the header Authorization: Bearer, with the token from the file that admin_token_file in [listen] names, by default admin-token in the data directory"
            }
            Some(_) => {
                "the token is wrong; it is in the file that admin_token_file in [listen] names, by default admin-token in the data directory"
            }
        };
        Err(ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message))
    }
}

fn too_many_requests(wait_ms: u64) -> ApiError {
    let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", "too many requests; wait");
    error.retry_after(wait_ms)
}

/// The token of the only `Authorization` header.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(only), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

fn actor(headers: &HeaderMap, peer: Option<SocketAddr>) -> Result<AdminActor, ApiError> {
    let origin = peer.map_or_else(String::new, |peer| format!(" from {}", peer.ip()));
    let Some(stated) = headers.get(ACTOR_HEADER) else {
        return Ok(AdminActor(format!("admin API{origin}")));
    };
    match stated.to_str() {
        Ok(stated) if !stated.is_empty() && stated.len() <= ACTOR_CHARACTERS_MAX => {
            Ok(AdminActor(format!("{stated}, admin API{origin}")))
        }
        _ => {
            let message = format!("must be 1 to {ACTOR_CHARACTERS_MAX} visible ASCII characters");
            Err(ApiError::new(StatusCode::BAD_REQUEST, "invalid", message).about(ACTOR_HEADER))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn guard() -> AdminGuard {
        AdminGuard::new(AdminToken::from_text(TOKEN))
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn status(guard: &AdminGuard, method: Method, pairs: &[(&'static str, &str)]) -> u16 {
        let checked = guard.check(&method, &headers(pairs), true, None);
        checked.map_or_else(|error| error.status().as_u16(), |_| 200)
    }

    #[test]
    fn only_the_right_token_passes() {
        let right = format!("Bearer {TOKEN}");
        assert_eq!(status(&guard(), Method::GET, &[("authorization", &right)]), 200);
        assert_eq!(
            status(&guard(), Method::GET, &[("authorization", &right.replace("Bearer", "bearer"))]),
            200
        );
        assert_eq!(status(&guard(), Method::GET, &[]), 401);
        for wrong in ["", TOKEN, "Bearer", "Bearer x", &format!("Basic {TOKEN}"), &format!("{right}0")] {
            assert_eq!(status(&guard(), Method::GET, &[("authorization", wrong)]), 401, "{wrong}");
        }
        let twice = [("authorization", right.as_str()), ("authorization", right.as_str())];
        assert_eq!(status(&guard(), Method::GET, &twice), 401);
    }

    #[test]
    fn wrong_tokens_are_limited_and_the_right_one_still_passes() {
        let guard = guard();
        let wrong = || status(&guard, Method::GET, &[("authorization", "Bearer wrong")]);
        assert!((0..FAILURES.capacity).all(|_| wrong() == 401));
        assert!((0..100_000).any(|_| wrong() == 429));
        assert_eq!(status(&guard, Method::GET, &[("authorization", &format!("Bearer {TOKEN}"))]), 200);
    }

    #[test]
    fn requests_with_the_right_token_are_limited_too() {
        let (guard, right) = (guard(), format!("Bearer {TOKEN}"));
        let refused = (0..100_000).any(|_| status(&guard, Method::GET, &[("authorization", &right)]) == 429);
        assert!(refused);
    }

    #[test]
    fn the_body_of_a_change_is_json() {
        let right = format!("Bearer {TOKEN}");
        let post = |content_type: &str| {
            status(&guard(), Method::POST, &[("authorization", &right), ("content-type", content_type)])
        };
        assert_eq!(post("application/json"), 200);
        assert_eq!(post("Application/JSON; charset=utf-8"), 200);
        for wrong in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""] {
            assert_eq!(post(wrong), 415, "{wrong}");
        }
    }

    #[test]
    fn the_actor_names_the_address_and_what_the_program_states() {
        let peer = Some("127.0.0.1:5".parse().unwrap());
        let named = |pairs: &[(&'static str, &str)]| actor(&headers(pairs), peer).map(|actor| actor.0).ok();
        assert_eq!(named(&[]).as_deref(), Some("admin API from 127.0.0.1"));
        let stated = named(&[(ACTOR_HEADER, "command line, user root")]);
        assert_eq!(stated.as_deref(), Some("command line, user root, admin API from 127.0.0.1"));
        assert_eq!(named(&[(ACTOR_HEADER, &"x".repeat(101))]), None);
        assert_eq!(named(&[(ACTOR_HEADER, "")]), None);
    }
}
