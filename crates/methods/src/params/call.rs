//! The call object of `eth_call` and `eth_estimateGas`, with state and block overrides.

use alloy_eips::eip2930::AccessList;
use alloy_eips::eip7702::SignedAuthorization;
use alloy_primitives::{B256, Bytes, TxKind};
use alloy_rpc_types_eth::TransactionRequest;
use jsonrpc::{Kind, Member, Value};
use serde::de::DeserializeOwned;

use super::value::{self, What, quoted};
use super::{Args, Message, Overrides, ParamFault};

/// Reads a call object.
pub(super) fn request(object: Value<'_>) -> Result<TransactionRequest, What> {
    let Some(members) = object.members() else {
        return Err(format!("{} where a call object is expected", value::kind_name(object.kind())).into());
    };
    let mut reading = Reading::default();
    for member in members {
        if member.repeated {
            return Err(format!("duplicate member {}", quoted(&member.name)).into());
        }
        if !member.value.is_null() {
            reading.member(&member).map_err(|what| in_member(&member, &what))?;
        }
    }
    reading.finish()
}

fn in_member(member: &Member<'_>, what: &str) -> What {
    format!("{}: {what}", member.name.escape_debug()).into()
}

#[derive(Default)]
struct Reading {
    request: TransactionRequest,
    data: Option<Bytes>,
}

impl Reading {
    fn member(&mut self, member: &Member<'_>) -> Result<(), What> {
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
            // Clients send whole transactions as call objects; a simulation has no use for the rest of them.
            _ => {}
        }
        Ok(())
    }

    fn finish(mut self) -> Result<TransactionRequest, What> {
        let request = &mut self.request;
        if request.gas_price.is_some()
            && (request.max_fee_per_gas.is_some() || request.max_priority_fee_per_gas.is_some())
        {
            return Err("both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified".into());
        }
        // `input` wins; one of the two is all that the next step has to look at.
        request.input.input = request.input.input.take().or(self.data);
        Ok(self.request)
    }
}

/// Gas beyond 64 bits is more than any cap, and above the cap it is lowered without a word.
fn saturated_gas(value: Value<'_>) -> Result<u64, What> {
    value::u256(value).map(|gas| gas.saturating_to())
}

fn transaction_type(value: Value<'_>) -> Result<u8, What> {
    u8::try_from(value::u64(value)?).map_err(|_| "transaction type larger than 255".into())
}

/// The optional third and fourth parameters.
pub(super) fn message(request: TransactionRequest, args: &mut Args<'_>) -> Result<Message, ParamFault> {
    let mut overrides = Overrides::default();
    if let Some(state) = args.optional(object)? {
        overrides.written[0] = state.raw().into();
        overrides.state = Some(typed(state).map_err(|what| ParamFault::Wrong { position: 2, what })?);
    }
    if let Some(block) = args.optional(object)? {
        overrides.written[1] = block.raw().into();
        overrides.block = Some(typed(block).map_err(|what| ParamFault::Wrong { position: 3, what })?);
    }
    Ok(Message { request, overrides })
}

fn object(value: Value<'_>) -> Result<Value<'_>, What> {
    match value.kind() {
        Kind::Object => Ok(value),
        other => Err(format!("{} where an object is expected", value::kind_name(other)).into()),
    }
}

/// Rare and deeply structured values are read by their own types.
fn typed<T: DeserializeOwned>(value: Value<'_>) -> Result<T, What> {
    serde_json::from_str(value.raw()).map_err(|error| {
        let text = error.to_string();
        let plain = text.rsplit_once(" at line ").map_or(text.as_str(), |(plain, _)| plain);
        plain.to_owned().into()
    })
}
