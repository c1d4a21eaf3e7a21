//! A compressed body → the same decompressed.
//!
//! The cost does not depend on the size of the body: windows are allocated, tables are built, and a few bytes inflate
//! to the limit on bodies. It is therefore always done in the pool, in turn with other accounts, and paid for while it is done.
//! The job charges for it by itself, because the caller may reset its HTTP/2 stream and not wait for the result.

use std::sync::Arc;

use http_server::{Connection, ReceivedBody, RequestCoding, inflate};

use super::RequestCharge;
use crate::admit;
use crate::authenticate::Caller;
use crate::errors::ErrorReply;
use crate::gateway_state::GatewayState;
use crate::meter::Outcome;

/// Decompresses a body in the account's share of the pool.
pub(super) async fn inflated<'a>(
    gateway: &Arc<GatewayState>,
    connection: &Connection,
    caller: &Caller,
    coding: RequestCoding,
    ReceivedBody { bytes, charge }: ReceivedBody<'_>,
) -> Result<ReceivedBody<'a>, ErrorReply> {
    let (threads, account) = (gateway.answers.threads(), caller.account().id);
    let (gateway, caller, worker) = (Arc::clone(gateway), caller.clone(), connection.worker());
    let bytes = bytes.into_owned();
    let job = move || {
        // The received body stays in memory as long as the job.
        let _charge = charge;
        let counters = &gateway.worker_counters[worker];
        let mut paid =
            RequestCharge { gateway: &gateway, counters, caller: &caller, outcome: Outcome::Ok, credits: 0 };
        let received = bytes.len();
        let mut pay =
            |inflated| paid.raise_to(admit::inflate_credits(received, inflated), gateway.clock.now());
        let bytes_max = gateway.request_limits().body_bytes_max;
        let inflated =
            pay(0).and_then(|()| inflate(coding, &bytes, bytes_max, gateway.memory.of(account), pay));
        paid.outcome = match &inflated {
            Ok(_) => Outcome::Ok,
            // It is given back if there was no memory.
            Err(error) if error.outcome == Outcome::OverCapacity => Outcome::OverCapacity,
            Err(_) => Outcome::Invalid,
        };
        inflated
    };
    let inflated = threads.run(account, job).await??;
    Ok(inflated.into())
}
