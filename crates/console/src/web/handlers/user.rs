//! The password and the sessions of the user.

use callers::people::ActiveSession;
use http::header::SET_COOKIE;

use crate::pages::user_settings::UserSettingsPage;
use crate::pages::{FormErrors, NavigationItem};
use crate::web::page_error::{PageError, PageResult, Refusal, people_form_errors};
use crate::web::reply;
use crate::web::web_request::WebRequest;

pub(in crate::web) async fn settings(request: WebRequest<ActiveSession>) -> PageResult {
    reply::page(&settings_page(&request, FormErrors::default()).await?)
}

async fn settings_page(
    request: &WebRequest<ActiveSession>,
    errors: FormErrors,
) -> Result<UserSettingsPage, PageError> {
    let mut sessions = request.site.people.sessions(&request.session).await?;
    sessions.sort_by_key(|session| !session.is_current);
    Ok(UserSettingsPage {
        frame: request.frame(NavigationItem::UserSettings, "Settings").await?,
        sessions,
        errors,
    })
}

pub(in crate::web) async fn change_password(request: WebRequest<ActiveSession>) -> PageResult {
    let (current, new) = (request.form.get("current_password"), request.form.get("new_password"));
    let WebRequest { site, session, visitor, .. } = &request;
    match site.people.change_password(session, current, new, visitor).await {
        Ok(()) => reply::done("/settings", "password-changed"),
        Err(error) => {
            let refusal = Refusal::of(&error);
            let errors = people_form_errors(error)?.renamed("password", "new_password");
            reply::refused_with(refusal, &settings_page(&request, errors).await?)
        }
    }
}

pub(in crate::web) async fn end_session(request: WebRequest<ActiveSession>) -> PageResult {
    request.site.people.end_session(&request.session, request.path_value("id")).await?;
    reply::done("/settings", "session-ended")
}

pub(in crate::web) async fn sign_out(request: WebRequest<ActiveSession>) -> PageResult {
    request.site.people.sign_out(&request.session).await?;
    let mut response = reply::done("/sign-in", "signed-out")?;
    if let Some(cookie) = request.site.cookies.delete_session() {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(response)
}
