//! The call object of `eth_call` and `eth_estimateGas`, with state and block overrides.

use alloy_eips::eip2930::AccessList;
use alloy_eips::eip7702::SignedAuthorization;
use alloy_primitives::{B256, Bytes, TxKind};
use alloy_rpc_types_eth::TransactionRequest;
use jsonrpc::{Member, Value, ValueKind};
use serde::de::DeserializeOwned;

use super::value::{self, ValueError, quoted};
use super::{CallMessage, CallOverrides, ParamFault, ParamReader};

/// Reads a call object.
pub(super) fn request(object: Value<'_>) -> Result<TransactionRequest, ValueError> {
    let Some(members) = object.members() else {
        return Err(format!("{} where a call object is expected", value::kind_name(object.kind())).into());
    };
    let mut reader = CallObjectReader::default();
    for member in members {
        if member.repeated {
            return Err(format!("duplicate member {}", quoted(&member.name)).into());
        }
        if !member.value.is_null() {
            reader.member(&member).map_err(|error| in_member(&member, &error))?;
        }
    }
    reader.finish()
}

fn in_member(member: &Member<'_>, error: &str) -> ValueError {
    format!("{}: {error}", member.name.escape_debug()).into()
}

#[derive(Default)]
struct CallObjectReader {
    request: TransactionRequest,
    data: Option<Bytes>,
}

impl CallObjectReader {
    fn member(&mut self, member: &Member<'_>) -> Result<(), ValueError> {
        let (request, value) = (&mut self.request, member.value);
        match &*member.name {
            "from" => request.from = Some(value::address(value)?),
            "to" => request.to = Some(TxKind::Call(value::address(value)?)),
            "gas" => request.gas = Some(saturated_gas(value)?),
            "gasPrice" => request.gas_price = Some(value::u128(value)?),
            "maxFeePerGas" => request.max_fee_per_gas = Some(value::u128(value)?),
            "maxPriorityFeePerGas" => request.max_priority_fee_per_gas = Some(value::u128(value)?),
            "maxFeePerBlobGas" => request.max_fee_per_blob_gas = Some(value::u128(value)?),
            "value" => request.value = Some(value::u256(value)?),
            "data" => self.data = Some(value::data(value)?),
            "input" => request.input.input = Some(value::data(value)?),
            "nonce" => request.nonce = Some(value::u64(value)?),
            "chainId" => request.chain_id = Some(value::u64(value)?),
            "type" => request.transaction_type = Some(transaction_type(value)?),
            "accessList" => request.access_list = Some(typed::<AccessList>(value)?),
            "blobVersionedHashes" => request.blob_versioned_hashes = Some(typed::<Vec<B256>>(value)?),
            "authorizationList" => {
                request.authorization_list = Some(typed::<Vec<SignedAuthorization>>(value)?);
            }
            // Clients send whole transactions as call objects; a simulation does not use the other members.
            _ => {}
        }
        Ok(())
    }

    fn finish(mut self) -> Result<TransactionRequest, ValueError> {
        let request = &mut self.request;
        if request.gas_price.is_some()
            && (request.max_fee_per_gas.is_some() || request.max_priority_fee_per_gas.is_some())
        {
            return Err("both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified".into());
        }
        // `input` takes precedence over `data`; later steps read only `input`.
        request.input.input = request.input.input.take().or(self.data);
        Ok(self.request)
    }
}

/// Gas beyond 64 bits saturates, because gas above the cap is lowered to the cap anyway.
fn saturated_gas(value: Value<'_>) -> Result<u64, ValueError> {
    value::u256(value).map(|gas| gas.saturating_to())
}

fn transaction_type(value: Value<'_>) -> Result<u8, ValueError> {
    u8::try_from(value::u64(value)?).map_err(|_| "transaction type larger than 255".into())
}

/// Reads the optional overrides and adds them to the request.
pub(super) fn message(
    request: TransactionRequest,
    params: &mut ParamReader<'_>,
) -> Result<CallMessage, ParamFault> {
    let mut overrides = CallOverrides::default();
    if let Some(state) = params.optional(object)? {
        overrides.texts[0] = state.raw().into();
        overrides.state = Some(typed(state).map_err(|reason| ParamFault::Invalid { position: 2, reason })?);
    }
    if let Some(block) = params.optional(object)? {
        overrides.texts[1] = block.raw().into();
        overrides.block = Some(typed(block).map_err(|reason| ParamFault::Invalid { position: 3, reason })?);
    }
    Ok(CallMessage { request, overrides })
}

fn object(value: Value<'_>) -> Result<Value<'_>, ValueError> {
    match value.kind() {
        ValueKind::Object => Ok(value),
        other => Err(format!("{} where an object is expected", value::kind_name(other)).into()),
    }
}

/// Reads a nested value with serde; the position in the error is dropped, because it counts from the start of the value.
fn typed<T: DeserializeOwned>(value: Value<'_>) -> Result<T, ValueError> {
    serde_json::from_str(value.raw()).map_err(|error| {
        let text = error.to_string();
        let plain = text.rsplit_once(" at line ").map_or(text.as_str(), |(plain, _)| plain);
        plain.to_owned().into()
    })
}
