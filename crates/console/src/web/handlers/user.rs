//! The password and the sessions of the user.

use std::sync::Arc;

use axum::response::Response;
use callers::people::{ActiveSession, PASSWORD_CHARACTERS_MIN, SessionSummary};
use http::header::SET_COOKIE;

use crate::pages::user_settings::{SessionRow, UserSettingsPage};
use crate::pages::{FormErrors, NavigationItem};
use crate::web::page_error::{PageError, Refusal, people_form_errors};
use crate::web::site::ConsoleSite;
use crate::web::web_request::WebRequest;
use crate::web::{notices, reply};

pub(in crate::web) async fn settings(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: ActiveSession,
) -> Result<Response, PageError> {
    reply::page(&settings_page(&site, &request, &session, FormErrors::default()).await?)
}

async fn settings_page(
    site: &ConsoleSite,
    request: &WebRequest,
    session: &ActiveSession,
    errors: FormErrors,
) -> Result<UserSettingsPage, PageError> {
    let mut sessions: Vec<_> = site.people.sessions(session).await?.into_iter().map(session_row).collect();
    sessions.sort_by_key(|session| !session.is_current);
    Ok(UserSettingsPage {
        frame: site.frame(request, Some(session), NavigationItem::UserSettings, "Settings").await?,
        sessions,
        password_characters_min: PASSWORD_CHARACTERS_MIN,
        errors,
    })
}

fn session_row(session: SessionSummary) -> SessionRow {
    SessionRow {
        id: session.id,
        browser: browser_name(&session.browser),
        address: session.address,
        signed_in_at: session.created_at,
        last_used_at: session.last_used_at,
        is_current: session.is_current,
    }
}

/// What people call the browser that describes itself like this. The order matters: most browsers name others, too.
fn browser_name(user_agent: &str) -> String {
    const BROWSERS: [(&str, &str); 7] = [
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chromium/", "Chromium"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
        ("curl/", "curl"),
    ];
    const SYSTEMS: [(&str, &str); 6] = [
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("Linux", "Linux"),
    ];
    let found = |names: &[(&str, &'static str)]| {
        names.iter().find(|(part, _)| user_agent.contains(part)).map(|(_, name)| *name)
    };
    match (found(&BROWSERS), found(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        (None, Some(system)) => format!("Unknown browser on {system}"),
        (None, None) => "Unknown browser".to_owned(),
    }
}

pub(in crate::web) async fn change_password(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: ActiveSession,
) -> Result<Response, PageError> {
    let (current, new) = (request.form.get("current_password"), request.form.get("new_password"));
    match site.people.change_password(&session, current, new, &request.visitor).await {
        Ok(()) => reply::redirect(&notices::path_with("/settings", "password-changed")),
        Err(error) => {
            let refusal = Refusal::of(&error);
            let mut errors = people_form_errors(error)?;
            for error in errors.fields.iter_mut().filter(|error| error.field == "password") {
                error.field = "new_password".to_owned();
            }
            reply::refused_with(refusal, &settings_page(&site, &request, &session, errors).await?)
        }
    }
}

pub(in crate::web) async fn end_session(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: ActiveSession,
) -> Result<Response, PageError> {
    site.people.end_session(&session, request.path_value("id")).await?;
    reply::redirect(&notices::path_with("/settings", "session-ended"))
}

pub(in crate::web) async fn sign_out(
    site: Arc<ConsoleSite>,
    _: WebRequest,
    session: ActiveSession,
) -> Result<Response, PageError> {
    site.people.sign_out(&session).await?;
    let mut response = reply::redirect(&notices::path_with("/sign-in", "signed-out"))?;
    if let Some(cookie) = site.cookies.delete_session() {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
