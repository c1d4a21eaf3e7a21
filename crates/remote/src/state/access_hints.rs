//! Accounts and slots that calls are expected to read, from earlier calls of the same function or from a node. They only say
//! which proofs are worth asking for.

use std::sync::Arc;

use alloy_eips::eip2930::AccessList;
use alloy_primitives::Address;
use archive::StateParts;
use foldhash::quality::RandomState;
use quick_cache::UnitWeighter;
use quick_cache::sync::Cache as Store;
use serde::Deserialize;

/// Accounts and slots that are remembered of one function, and those that are taken from a node's suggestion.
const PARTS_MAX: usize = 128;

/// Functions that are remembered: with 128 parts each, some 15 MB, and mostly far less.
const FUNCTIONS_MAX: usize = 2_048;

/// A function of a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Function {
    pub(super) contract: Address,
    pub(super) selector: [u8; 4],
}

/// The accounts and slots that the last call of each function read.
pub(crate) struct AccessHints {
    functions: Store<Function, Arc<StateParts>, UnitWeighter, RandomState>,
}

impl Default for AccessHints {
    fn default() -> Self {
        // The hasher is keyed: callers choose what is looked up here.
        let hasher = RandomState::default();
        let functions =
            Store::with(FUNCTIONS_MAX, FUNCTIONS_MAX as u64, UnitWeighter, hasher, Default::default());
        Self { functions }
    }
}

impl AccessHints {
    pub(super) fn get(&self, function: Function) -> Option<Arc<StateParts>> {
        self.functions.get(&function)
    }

    pub(super) fn remember(&self, function: Function, mut parts: StateParts) {
        // The code of an account comes with it.
        parts.code.clear();
        if parts.accounts.len() + parts.slots.len() > PARTS_MAX {
            parts = first_of(parts);
        }
        self.functions.insert(function, Arc::new(parts));
    }
}

fn first_of(parts: StateParts) -> StateParts {
    let accounts: Vec<_> = parts.accounts.into_iter().take(PARTS_MAX / 2).collect();
    let slots = parts.slots.into_iter().take(PARTS_MAX - accounts.len()).collect();
    StateParts { accounts: accounts.into_iter().collect(), slots, ..StateParts::default() }
}

/// The members of a suggestion that are read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Suggestion {
    access_list: AccessList,
}

/// The accounts and slots in a reply to `eth_createAccessList`; empty if the reply is malformed.
pub(super) fn suggested(reply: &[u8]) -> StateParts {
    let mut parts = StateParts::default();
    let Ok(Suggestion { access_list }) = serde_json::from_slice(reply) else { return parts };
    for item in access_list.0 {
        parts.accounts.insert(item.address);
        parts.slots.extend(item.storage_keys.into_iter().map(|slot| (item.address, slot.into())));
        if parts.accounts.len() + parts.slots.len() > PARTS_MAX {
            return first_of(parts);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{B256, U256};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_suggestion_is_read_up_to_a_limit_and_nonsense_is_none() {
        let address = Address::repeat_byte(7);
        let list = |slots: usize| {
            let slots: Vec<_> = (0..slots).map(|slot| B256::from(U256::from(slot))).collect();
            let reply = json!({"accessList": [{"address": address, "storageKeys": slots}], "gasUsed": "0x1"});
            suggested(reply.to_string().as_bytes())
        };
        let read = list(2);
        assert_eq!((read.accounts.len(), read.slots.len()), (1, 2));
        assert!(read.slots.contains(&(address, U256::ONE)));
        assert_eq!(list(10_000).slots.len(), PARTS_MAX - 1);
        for nonsense in ["null", "{}", r#"{"accessList":7}"#, "0x"] {
            assert!(suggested(nonsense.as_bytes()).is_empty());
        }
    }
}
