//! The ways in: sign-in, sign-up, and links that are valid once.

use std::sync::Arc;

use axum::response::Response;
use callers::people::{
    ActiveSession, InvitationTarget, LinkForm, LinkSummary, NewSession, PASSWORD_CHARACTERS_MIN,
};
use http::header::SET_COOKIE;

use crate::pages::entry::{LinkPage, LinkPurpose, SignInPage, SignUpPage};
use crate::pages::{FormErrors, NavigationItem};
use crate::web::page_error::{PageError, Refusal, people_form_errors};
use crate::web::site::ConsoleSite;
use crate::web::web_request::WebRequest;
use crate::web::{own_path, reply};

pub(in crate::web) async fn sign_in_page(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: Option<ActiveSession>,
) -> Result<Response, PageError> {
    let next = own_path::or_start(request.query.get("next"));
    if session.is_some() {
        return reply::redirect(next);
    }
    let next = next.to_owned();
    reply::page(&sign_in_form(&site, &request, String::new(), next, FormErrors::default()).await?)
}

pub(in crate::web) async fn sign_in(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    earlier: Option<ActiveSession>,
) -> Result<Response, PageError> {
    let (email, password) = (request.form.get("email"), request.form.get("password"));
    let next = own_path::or_start(request.form.get("next"));
    match site.people.sign_in(email, password, &request.visitor).await {
        Ok(session) => signed_in(&site, &session, earlier, next).await,
        Err(error) => {
            let refusal = Refusal::of(&error);
            let (errors, email) = (people_form_errors(error)?, email.to_owned());
            reply::refused_with(
                refusal,
                &sign_in_form(&site, &request, email, next.to_owned(), errors).await?,
            )
        }
    }
}

async fn sign_in_form(
    site: &ConsoleSite,
    request: &WebRequest,
    email: String,
    next: String,
    errors: FormErrors,
) -> Result<SignInPage, PageError> {
    let frame = site.frame(request, None, NavigationItem::None, "Sign in").await?;
    Ok(SignInPage { frame, email, next, is_sign_up_open: site.people.is_sign_up_open(), errors })
}

pub(in crate::web) async fn sign_up_page(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    session: Option<ActiveSession>,
) -> Result<Response, PageError> {
    if session.is_some() {
        return reply::redirect("/");
    }
    reply::page(&sign_up_form(&site, &request, FormErrors::default()).await?)
}

pub(in crate::web) async fn sign_up(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    earlier: Option<ActiveSession>,
) -> Result<Response, PageError> {
    let form = &request.form;
    let (email, password) = (form.get("email"), form.get("password"));
    match site.people.sign_up(email, password, form.get("account").trim(), &request.visitor).await {
        Ok(session) => signed_in(&site, &session, earlier, "/").await,
        Err(error) => {
            let refusal = Refusal::of(&error);
            let page = sign_up_form(&site, &request, people_form_errors(error)?).await?;
            reply::refused_with(refusal, &page)
        }
    }
}

async fn sign_up_form(
    site: &ConsoleSite,
    request: &WebRequest,
    errors: FormErrors,
) -> Result<SignUpPage, PageError> {
    let frame = site.frame(request, None, NavigationItem::None, "Sign up").await?;
    Ok(SignUpPage {
        frame,
        is_open: site.people.is_sign_up_open(),
        email: request.form.get("email").to_owned(),
        account: request.form.get("account").to_owned(),
        password_characters_min: PASSWORD_CHARACTERS_MIN,
        errors,
    })
}

pub(in crate::web) async fn link_page(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    _: Option<ActiveSession>,
) -> Result<Response, PageError> {
    let link = site.people.link(request.path_value("token")).await?;
    reply::page(&link_form(&site, &request, link, FormErrors::default()).await?)
}

pub(in crate::web) async fn use_link(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    earlier: Option<ActiveSession>,
) -> Result<Response, PageError> {
    let token = request.path_value("token");
    let form = LinkForm {
        email: request.form.get("email").to_owned(),
        account: request.form.get("account").trim().to_owned(),
        password: request.form.get("password").to_owned(),
    };
    match site.people.use_link(token, &form, &request.visitor).await {
        Ok(session) => signed_in(&site, &session, earlier, "/").await,
        Err(error) => {
            let refusal = Refusal::of(&error);
            let errors = people_form_errors(error)?;
            let link = site.people.link(token).await?;
            reply::refused_with(refusal, &link_form(&site, &request, link, errors).await?)
        }
    }
}

async fn link_form(
    site: &ConsoleSite,
    request: &WebRequest,
    link: LinkSummary,
    errors: FormErrors,
) -> Result<LinkPage, PageError> {
    let typed = |name: &str| request.form.get(name).to_owned();
    let (title, purpose, email) = match link {
        LinkSummary::Operator => ("Become an operator", LinkPurpose::Operator, None),
        LinkSummary::Reset { email } => ("Choose a new password", LinkPurpose::ResetPassword, Some(email)),
        LinkSummary::Invitation { email, target } => {
            let purpose = match target {
                InvitationTarget::Account(account) => LinkPurpose::JoinAccount { account },
                InvitationTarget::NewAccount { plan } => {
                    LinkPurpose::NewAccount { account: typed("account"), plan }
                }
            };
            ("Invitation", purpose, email)
        }
    };
    Ok(LinkPage {
        frame: site.frame(request, None, NavigationItem::None, title).await?,
        action: request.path.clone(),
        purpose,
        is_email_fixed: email.is_some(),
        email: email.unwrap_or_else(|| typed("email")),
        password_characters_min: PASSWORD_CHARACTERS_MIN,
        errors,
    })
}

/// Gives the browser the cookie of a new session, and ends the earlier one, whose cookie is lost.
async fn signed_in(
    site: &ConsoleSite,
    session: &NewSession,
    earlier: Option<ActiveSession>,
    next: &str,
) -> Result<Response, PageError> {
    if let Some(earlier) = earlier
        && let Err(error) = site.people.sign_out(&earlier).await
    {
        // The new session exists, and its link is used up: the browser must get it.
        tracing::warn!(%error, "cannot end the earlier session of a browser that has signed in again");
    }
    let mut response = reply::redirect(next)?;
    let cookie = site.cookies.set_session(&session.token);
    let cookie = cookie.ok_or_else(|| PageError::Broken("a token is no header value".to_owned()))?;
    response.headers_mut().append(SET_COOKIE, cookie);
    Ok(response)
}
