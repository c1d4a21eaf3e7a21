//! What all connections to one endpoint have in common.

use std::fmt;
use std::sync::Arc;

use tokio_rustls::rustls::RootCertStore;

use super::buffer::EndpointMemory;
use super::dial::Dialer;
use super::endpoint::Endpoint;
use super::limits::Limits;
use super::request::Template;
use super::target::Target;
use super::tls::Purpose;

pub(super) struct Setup {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) limits: Limits,
    pub(super) dialer: Dialer,
    pub(super) template: Template,
    pub(super) target: Target,
    pub(super) memory: EndpointMemory,
}

impl Setup {
    pub(super) fn new(
        endpoint: Endpoint,
        limits: Limits,
        roots: Option<Arc<RootCertStore>>,
        memory: EndpointMemory,
    ) -> Self {
        let endpoint = Arc::new(endpoint);
        Self {
            dialer: Dialer::new(&endpoint, roots, Purpose::Calls, limits.connect_timeout),
            template: Template::new(&endpoint),
            target: Target::new(Arc::clone(&endpoint)),
            limits,
            memory,
            endpoint,
        }
    }
}

impl fmt::Debug for Setup {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Setup({})", self.endpoint)
    }
}
