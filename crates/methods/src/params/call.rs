//! The call object of `eth_call` and `eth_estimateGas`, with state and block overrides.

use std::collections::BTreeMap;

use alloy_eips::eip2930::AccessList;
use alloy_eips::eip7702::SignedAuthorization;
use alloy_primitives::{B256, Bytes, TxKind};
use alloy_rpc_types_eth::{BlockOverrides, TransactionRequest, state::StateOverride};
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
        let read = state_overrides(state);
        overrides.state = Some(read.map_err(|reason| ParamFault::Invalid { position: 2, reason })?);
    }
    if let Some(block) = params.optional(object)? {
        overrides.texts[1] = block.raw().into();
        let read = block_overrides(block);
        overrides.block = Some(read.map_err(|reason| ParamFault::Invalid { position: 3, reason })?);
    }
    Ok(CallMessage { request, overrides })
}

fn object(value: Value<'_>) -> Result<Value<'_>, ValueError> {
    match value.kind() {
        ValueKind::Object => Ok(value),
        other => Err(format!("{} where an object is expected", value::kind_name(other)).into()),
    }
}

/// Reads state overrides. Of accounts and slots that occur twice, also in different spellings, serde would keep the last one.
fn state_overrides(object: Value<'_>) -> Result<StateOverride, ValueError> {
    let accounts: StateOverride = typed(object)?;
    if member_count(object) > accounts.len() {
        return Err("duplicate account".into());
    }
    let values = object.members().into_iter().flatten().map(|account| account.value);
    let maps = values.flat_map(|account| account.members().into_iter().flatten());
    let maps = maps.filter(|member| matches!(&*member.name, "state" | "stateDiff"));
    let slots: usize = maps.map(|member| member_count(member.value)).sum();
    let maps = accounts.values().flat_map(|account| [&account.state, &account.state_diff]);
    if slots > maps.flatten().map(|slots| slots.len()).sum() {
        return Err("duplicate slot".into());
    }
    Ok(accounts)
}

/// Reads block overrides, and refuses two hashes for one block.
fn block_overrides(object: Value<'_>) -> Result<Box<BlockOverrides>, ValueError> {
    let block: Box<BlockOverrides> = typed(object)?;
    let hashes = object.members().into_iter().flatten().find(|member| member.name == "blockHash");
    if hashes.map_or(0, |hashes| member_count(hashes.value))
        > block.block_hash.as_ref().map_or(0, BTreeMap::len)
    {
        return Err("duplicate block number in blockHash".into());
    }
    Ok(block)
}

fn member_count(object: Value<'_>) -> usize {
    object.members().map_or(0, Iterator::count)
}

/// Reads a nested value with serde; the position in the error is dropped, because it counts from the start of the value.
fn typed<T: DeserializeOwned>(value: Value<'_>) -> Result<T, ValueError> {
    serde_json::from_str(value.raw()).map_err(|error| {
        let text = error.to_string();
        let plain = text.rsplit_once(" at line ").map_or(text.as_str(), |(plain, _)| plain);
        shortened(plain).into()
    })
}

/// Characters of a reason that serde gives, which repeats the caller's text, with escapes that take up to seven times as much.
const REASON_CHARS_MAX: usize = 200;

fn shortened(reason: &str) -> String {
    match reason.char_indices().nth(REASON_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &reason[..end]),
        None => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error that these state overrides or block overrides are refused with, if any.
    fn fault<T>(json: &str, read: impl Fn(Value<'_>) -> Result<T, ValueError>) -> Option<ValueError> {
        read(Value::read(json).unwrap()).err()
    }

    /// The last of two equal accounts was used, and the other one ignored.
    #[test]
    fn an_account_or_slot_that_occurs_twice_is_refused() {
        let [account, upper] =
            ["0x00000000000000000000000000000000000000ab", "0x00000000000000000000000000000000000000AB"];
        let [slot, other] = [1, 2].map(|slot| format!("\"0x{slot:064x}\":\"0x{slot:064x}\""));
        let within = |map: &str| format!("{{\"{account}\":{map}}}");
        let cases = [
            (within("{}"), None),
            (format!("{{\"{account}\":{{}},\"{account}\":{{}}}}"), Some("duplicate account")),
            (format!("{{\"{account}\":{{}},\"{upper}\":{{}}}}"), Some("duplicate account")),
            (within(&format!("{{\"state\":{{{slot},{other}}}}}")), None),
            (within(&format!("{{\"state\":{{{slot}}},\"stateDiff\":{{{slot}}}}}")), None),
            (within("{\"state\":null}"), None),
            (within(&format!("{{\"state\":{{{slot},{slot}}}}}")), Some("duplicate slot")),
            (within(&format!("{{\"stateDiff\":{{{slot},{other},{slot}}}}}")), Some("duplicate slot")),
        ];
        for (json, expected) in cases {
            assert_eq!(fault(&json, state_overrides).as_deref(), expected, "{json}");
        }
        let hash = |number: &str| format!("\"{number}\":\"0x{:064x}\"", 1);
        let hashes = |[one, two]: [&str; 2]| format!("{{\"blockHash\":{{{},{}}}}}", hash(one), hash(two));
        assert_eq!(fault(&hashes(["1", "2"]), block_overrides), None);
        assert!(fault(&hashes(["1", "1"]), block_overrides).is_some());
    }

    /// 5 MiB of a caller's text came back as a message of 35 MB, which nobody was charged for.
    #[test]
    fn a_reason_repeats_only_the_beginning_of_a_long_text() {
        let long = format!("\"{}\"", "\\u0001".repeat(10_000));
        let reason = fault(&long, typed::<AccessList>).unwrap();
        assert!(reason.ends_with('…') && reason.chars().count() == REASON_CHARS_MAX + 1, "{reason}");
        assert_eq!(shortened("short"), "short");
    }
}
