//! Who says which blocks one call means.

use std::sync::Arc;

use nodes::Canon;

use super::partner_view::PartnerView;
use crate::view::{Source, View};

/// Who says which blocks one call means.
#[derive(Clone, Copy)]
pub enum Sight<'a> {
    Embedded(&'a Arc<dyn Source>),
    Remote(&'a Arc<Canon>),
    /// The executed chain, and the picture of the nodes' chain that belongs to it.
    Executed {
        source: &'a Arc<dyn Source>,
        canon: Option<&'a Arc<Canon>>,
    },
    /// A partner, because nobody of our own can. What it says holds for this request only.
    Partner {
        view: &'a PartnerView,
        /// Until when it may be asked for the answer.
        deadline: tokio::time::Instant,
    },
}

impl Sight<'_> {
    pub fn view(&self) -> &dyn View {
        match self {
            Self::Embedded(source) | Self::Executed { source, .. } => &***source,
            Self::Remote(canon) => &***canon,
            Self::Partner { view, .. } => *view,
        }
    }
}

impl std::fmt::Debug for Sight<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Sight").field(&self.view().head()).finish()
    }
}
