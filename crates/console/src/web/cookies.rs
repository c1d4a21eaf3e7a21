//! The two cookies: the token of a session, and before the sign-in a random text that forms are bound to.

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};

/// Names of the cookies. Over TLS, the prefix makes browsers refuse cookies that another host of the domain sets.
#[derive(Clone, Copy, Debug)]
pub(super) struct CookieNames {
    session: &'static str,
    form: &'static str,
    is_secure: bool,
}

/// How long a browser keeps the cookie of a session; the session itself may end before.
const SESSION_S: u64 = 30 * 24 * 60 * 60;

impl CookieNames {
    pub(super) fn new(is_https: bool) -> Self {
        match is_https {
            true => Self { session: "__Host-chaingate", form: "__Host-chaingate-form", is_secure: true },
            false => Self { session: "chaingate", form: "chaingate-form", is_secure: false },
        }
    }

    pub(super) fn session(&self, headers: &HeaderMap) -> Option<String> {
        find(headers, self.session)
    }

    pub(super) fn form(&self, headers: &HeaderMap) -> Option<String> {
        find(headers, self.form)
    }

    /// Signs a browser in. `Lax` sends the cookie when somebody follows a link to the console, but not with forms of others.
    pub(super) fn set_session(&self, token: &str) -> Option<HeaderValue> {
        self.cookie(self.session, token, "Lax", &format!("; Max-Age={SESSION_S}"))
    }

    pub(super) fn delete_session(&self) -> Option<HeaderValue> {
        self.cookie(self.session, "", "Lax", "; Max-Age=0")
    }

    /// The text that forms before the sign-in are bound to, until the browser ends.
    pub(super) fn set_form(&self, token: &str) -> Option<HeaderValue> {
        self.cookie(self.form, token, "Strict", "")
    }

    fn cookie(&self, name: &str, value: &str, same_site: &str, age: &str) -> Option<HeaderValue> {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let text = format!("{name}={value}; Path=/; HttpOnly; SameSite={same_site}{secure}{age}");
        HeaderValue::from_str(&text).ok()
    }
}

/// The value of a cookie. If two have the name, one of them was planted by another page, and neither is used.
fn find(headers: &HeaderMap, name: &str) -> Option<String> {
    let texts = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(found, _)| *found == name).map(|(_, value)| value);
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_found_by_their_exact_name() {
        let headers = |text: &'static str| HeaderMap::from_iter([(COOKIE, HeaderValue::from_static(text))]);
        let names = CookieNames::new(false);
        assert_eq!(names.session(&headers("a=b; chaingate=1; c=d")).as_deref(), Some("1"));
        for absent in
            ["", "xchaingate=1", "chaingate-form=1", "__Host-chaingate=1", "chaingate=1; chaingate=2"]
        {
            assert_eq!(names.session(&headers(absent)), None, "{absent}");
        }
    }

    #[test]
    fn cookies_are_bound_to_the_site_and_hidden_from_scripts() {
        let text = |value: Option<HeaderValue>| value.unwrap().to_str().unwrap().to_owned();
        let set = text(CookieNames::new(true).set_session("t"));
        assert_eq!(set, "__Host-chaingate=t; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=2592000");
        assert!(!text(CookieNames::new(false).set_session("t")).contains("Secure"));
        assert!(text(CookieNames::new(true).set_form("t")).contains("SameSite=Strict"));
    }
}
