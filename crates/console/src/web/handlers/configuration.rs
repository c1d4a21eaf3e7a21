//! The configuration in effect.

use crate::pages::NavigationItem;
use crate::pages::configuration::ConfigurationPage;
use crate::web::operator_session::OperatorSession;
use crate::web::page_error::PageResult;
use crate::web::reply;
use crate::web::web_request::WebRequest;

pub(in crate::web) async fn page(request: WebRequest<OperatorSession>) -> PageResult {
    reply::page(&ConfigurationPage {
        frame: request.frame(NavigationItem::Configuration, "Configuration").await?,
        file: request.site.facts.config_file.clone(),
        sections: request.site.facts.configuration.clone(),
    })
}
