//! The configuration in effect.

use std::sync::Arc;

use axum::response::Response;

use crate::pages::NavigationItem;
use crate::pages::configuration::ConfigurationPage;
use crate::web::operator_session::OperatorSession;
use crate::web::page_error::PageError;
use crate::web::reply;
use crate::web::site::ConsoleSite;
use crate::web::web_request::WebRequest;

pub(in crate::web) async fn page(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    operator: OperatorSession,
) -> Result<Response, PageError> {
    let session = operator.session();
    reply::page(&ConfigurationPage {
        frame: site.frame(&request, Some(session), NavigationItem::Configuration, "Configuration").await?,
        file: site.facts.config_file.clone(),
        sections: site.facts.configuration.clone(),
    })
}
