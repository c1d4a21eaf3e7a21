//! The parts that all connections to one endpoint share.

use std::fmt;
use std::sync::Arc;

use tokio_rustls::rustls::RootCertStore;

use super::buffer::EndpointMemory;
use super::dial::Dialer;
use super::endpoint::Endpoint;
use super::limits::EndpointLimits;
use super::request::RequestTemplate;
use super::target::Http2Target;
use super::tls::Purpose;

pub(super) struct EndpointSetup {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) limits: EndpointLimits,
    pub(super) dialer: Dialer,
    pub(super) template: RequestTemplate,
    pub(super) target: Http2Target,
    pub(super) memory: EndpointMemory,
}

impl EndpointSetup {
    pub(super) fn new(
        endpoint: Endpoint,
        limits: EndpointLimits,
        roots: Option<Arc<RootCertStore>>,
        memory: EndpointMemory,
    ) -> Self {
        let endpoint = Arc::new(endpoint);
        Self {
            dialer: Dialer::new(&endpoint, roots, Purpose::Calls, limits.connect_timeout),
            template: RequestTemplate::new(&endpoint),
            target: Http2Target::new(Arc::clone(&endpoint)),
            limits,
            memory,
            endpoint,
        }
    }
}

impl fmt::Debug for EndpointSetup {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "EndpointSetup({})", self.endpoint)
    }
}
