//! A body → its calls, typed. Large bodies are read in the pool.

use std::borrow::Cow;
use std::sync::Arc;

use jsonrpc::{BodyFault, Id, Request, RequestItem};
use resources::MemoryCharge;

use crate::authenticate::Caller;
use crate::errors::ErrorReply;
use crate::gateway_state::GatewayState;
use crate::parse::{ParsedCall, Unanswerable, parse, price};

/// One call, read as far as that is possible without the chain.
#[derive(Debug)]
pub(super) struct ReadCall<'t> {
    /// The id to answer under, as the caller wrote it; `None` for a notification.
    pub(super) id: Option<Cow<'t, str>>,
    pub(super) parsed: Result<ParsedCall, Unanswerable>,
    pub(super) credits: u64,
    /// The bytes of the body, divided by its calls.
    pub(super) bytes: usize,
}

impl<'t> ReadCall<'t> {
    /// Reads a call of a body that has `bytes` per call.
    pub(super) fn new(item: &RequestItem<'t>, bytes: usize, gateway: &GatewayState, caller: &Caller) -> Self {
        let id = id_of(item);
        let settings = gateway.settings();
        let parsed = parse(item, &settings.network, settings.log_params_max, caller.settings());
        let credits = price(&parsed, bytes);
        Self { id: id.map(|id| Cow::Borrowed(id.raw())), parsed, credits, bytes }
    }

    fn into_owned(self) -> ReadCall<'static> {
        let Self { id, parsed, credits, bytes } = self;
        ReadCall { id: id.map(|id| Cow::Owned(id.into_owned())), parsed, credits, bytes }
    }
}

/// The id to answer under; `None` for a notification.
pub(super) fn id_of<'t>(item: &RequestItem<'t>) -> Option<Id<'t>> {
    match item {
        Ok(call) => call.id,
        Err(bad) => Some(bad.id),
    }
}

/// The calls of a body that is not needed any more.
#[derive(Debug)]
pub(super) enum ReadRequest {
    Single(Box<ReadCall<'static>>),
    Batch(Vec<ReadCall<'static>>),
}

/// Reads a large body in the pool. The inner error says what is wrong with the body.
pub(super) async fn read_in_pool(
    gateway: &Arc<GatewayState>,
    caller: &Caller,
    text: Vec<u8>,
    charge: Option<Arc<MemoryCharge>>,
) -> Result<Result<ReadRequest, BodyFault>, ErrorReply> {
    let (account, pool) = (caller.account().id, gateway.answers.threads());
    let (gateway, caller) = (Arc::clone(gateway), caller.clone());
    let job = move || {
        // The job may outlive its caller, and the body stays in memory as long as the job.
        let _charge = charge;
        read_all(&text, &gateway, &caller)
    };
    Ok(pool.run(account, job).await?)
}

fn read_all(text: &[u8], gateway: &GatewayState, caller: &Caller) -> Result<ReadRequest, BodyFault> {
    let read = |item: &RequestItem<'_>, bytes| ReadCall::new(item, bytes, gateway, caller).into_owned();
    Ok(match jsonrpc::parse_within(text, gateway.request_limits().batch_calls_max)? {
        Request::Single(item) => ReadRequest::Single(Box::new(read(&item, text.len()))),
        Request::Batch(items) => {
            let bytes = text.len() / items.len();
            ReadRequest::Batch(items.iter().map(|item| read(item, bytes)).collect())
        }
    })
}
