//! The ways in: sign-in, sign-up, and links that are valid once.

use callers::people::{ActiveSession, LinkForm, LinkSummary, NewSession};
use http::header::SET_COOKIE;

use crate::pages::entry::{LinkPage, SignInPage, SignUpPage};
use crate::pages::{FormErrors, NavigationItem};
use crate::web::page_error::{PageError, PageResult, Refusal, people_form_errors};
use crate::web::web_request::WebRequest;
use crate::web::{own_path, reply};

/// A request of somebody who may be signed in already.
type EntryRequest = WebRequest<Option<ActiveSession>>;

pub(in crate::web) async fn sign_in_page(request: EntryRequest) -> PageResult {
    let next = own_path::or_start(request.query.get("next"));
    match request.session {
        Some(_) => reply::redirect(next),
        None => reply::page(&sign_in_form(&request, next, FormErrors::default()).await?),
    }
}

pub(in crate::web) async fn sign_in(request: EntryRequest) -> PageResult {
    let (email, password) = (request.form.get("email"), request.form.get("password"));
    let next = own_path::or_start(request.form.get("next"));
    match request.site.people.sign_in(email, password, &request.visitor).await {
        Ok(session) => signed_in(&request, &session, next).await,
        Err(error) => {
            let refusal = Refusal::of(&error);
            let errors = people_form_errors(error)?;
            reply::refused_with(refusal, &sign_in_form(&request, next, errors).await?)
        }
    }
}

async fn sign_in_form(
    request: &EntryRequest,
    next: &str,
    errors: FormErrors,
) -> Result<SignInPage, PageError> {
    Ok(SignInPage {
        frame: request.frame(NavigationItem::None, "Sign in").await?,
        email: request.form.get("email").to_owned(),
        next: next.to_owned(),
        is_sign_up_open: request.site.people.is_sign_up_open(),
        errors,
    })
}

pub(in crate::web) async fn sign_up_page(request: EntryRequest) -> PageResult {
    match request.session {
        Some(_) => reply::redirect("/"),
        None => reply::page(&sign_up_form(&request, FormErrors::default()).await?),
    }
}

pub(in crate::web) async fn sign_up(request: EntryRequest) -> PageResult {
    let form = &request.form;
    let (email, password, account) = (form.get("email"), form.get("password"), form.get("account").trim());
    match request.site.people.sign_up(email, password, account, &request.visitor).await {
        Ok(session) => signed_in(&request, &session, "/").await,
        Err(error) => {
            let refusal = Refusal::of(&error);
            let page = sign_up_form(&request, people_form_errors(error)?).await?;
            reply::refused_with(refusal, &page)
        }
    }
}

async fn sign_up_form(request: &EntryRequest, errors: FormErrors) -> Result<SignUpPage, PageError> {
    Ok(SignUpPage {
        frame: request.frame(NavigationItem::None, "Sign up").await?,
        is_open: request.site.people.is_sign_up_open(),
        email: request.form.get("email").to_owned(),
        account: request.form.get("account").to_owned(),
        errors,
    })
}

pub(in crate::web) async fn link_page(request: EntryRequest) -> PageResult {
    let link = request.site.people.link(request.path_value("token")).await?;
    reply::page(&link_form(&request, link, FormErrors::default()).await?)
}

pub(in crate::web) async fn use_link(request: EntryRequest) -> PageResult {
    let (token, people) = (request.path_value("token"), &request.site.people);
    let form = LinkForm {
        email: request.form.get("email").to_owned(),
        account: request.form.get("account").trim().to_owned(),
        password: request.form.get("password").to_owned(),
    };
    match people.use_link(token, &form, &request.visitor).await {
        Ok(session) => signed_in(&request, &session, "/").await,
        Err(error) => {
            let refusal = Refusal::of(&error);
            let errors = people_form_errors(error)?;
            let link = people.link(token).await?;
            reply::refused_with(refusal, &link_form(&request, link, errors).await?)
        }
    }
}

async fn link_form(
    request: &EntryRequest,
    link: LinkSummary,
    errors: FormErrors,
) -> Result<LinkPage, PageError> {
    let title = match link {
        LinkSummary::Operator => "Become an operator",
        LinkSummary::Reset { .. } => "Choose a new password",
        LinkSummary::Invitation { .. } => "Invitation",
    };
    Ok(LinkPage {
        frame: request.frame(NavigationItem::None, title).await?,
        action: request.path.clone(),
        link,
        typed_email: request.form.get("email").to_owned(),
        typed_account: request.form.get("account").to_owned(),
        errors,
    })
}

/// Gives the browser the cookie of a new session, and ends the earlier one, whose cookie is lost.
async fn signed_in(request: &EntryRequest, session: &NewSession, next: &str) -> PageResult {
    let site = &request.site;
    if let Some(earlier) = &request.session
        && let Err(error) = site.people.sign_out(earlier).await
    {
        // The new session exists, and its link is used up: the browser must get it.
        tracing::warn!(%error, "cannot end the earlier session of a browser that has signed in again");
    }
    let mut response = reply::redirect(next)?;
    let cookie = site.cookies.set_session(&session.token);
    let cookie = cookie.ok_or_else(|| PageError::broken("a token is no header value"))?;
    response.headers_mut().append(SET_COOKIE, cookie);
    Ok(response)
}
