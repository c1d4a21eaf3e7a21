//! Methods that other providers have and this gateway does not, with the reason that is returned to callers.

/// Why a method that is not in the table is not available; `None` for an unknown name.
///
/// The text is inserted into JSON without escaping, so it has no quotation marks or backslashes.
pub fn why_not_available(name: &str) -> Option<&'static str> {
    const SENDS: &str = "this service only reads; send transactions to a node or another provider";
    const SIGNS: &str = "no private keys are held here; sign in the wallet";
    const FILTERS: &str = "no filters are kept between requests; use eth_getLogs with a range of blocks";
    const SUBSCRIBES: &str = "subscriptions are not available over HTTP; poll eth_blockNumber or eth_getLogs";
    const NODE_ONLY: &str = "this method manages a node and is not available to callers";
    const ELSEWHERE: &str = "some nodes have this method, but it is not available here";
    Some(match name {
        "eth_sendRawTransaction"
        | "eth_sendRawTransactionSync"
        | "eth_sendRawTransactionConditional"
        | "eth_sendTransaction"
        | "eth_resend" => SENDS,
        "eth_sign"
        | "eth_signTransaction"
        | "eth_signTypedData"
        | "eth_signTypedData_v3"
        | "eth_signTypedData_v4"
        | "eth_accounts"
        | "eth_requestAccounts"
        | "eth_fillTransaction" => SIGNS,
        "eth_newFilter"
        | "eth_newBlockFilter"
        | "eth_newPendingTransactionFilter"
        | "eth_getFilterChanges"
        | "eth_getFilterLogs"
        | "eth_uninstallFilter" => FILTERS,
        "eth_subscribe" | "eth_unsubscribe" => SUBSCRIBES,
        "eth_getWork" | "eth_submitWork" | "eth_submitHashrate" | "eth_mining" | "eth_hashrate"
        | "eth_coinbase" | "eth_etherbase" | "net_listening" | "net_peerCount" => NODE_ONLY,
        "eth_blobBaseFee"
        | "eth_createAccessList"
        | "eth_getProof"
        | "eth_simulateV1"
        | "eth_getRawTransactionByHash"
        | "eth_getRawTransactionByBlockHashAndIndex"
        | "eth_getRawTransactionByBlockNumberAndIndex"
        | "eth_pendingTransactions"
        | "eth_protocolVersion"
        | "eth_callMany"
        | "eth_callBundle"
        | "eth_config"
        | "web3_sha3"
        | "debug_getRawBlock"
        | "debug_getRawHeader"
        | "debug_getRawReceipts"
        | "debug_getRawTransaction" => ELSEWHERE,
        _ => return why_namespace_not_available(name.split_once('_')?.0),
    })
}

fn why_namespace_not_available(namespace: &str) -> Option<&'static str> {
    match namespace {
        "debug" | "trace" => Some("traces are not available here"),
        "txpool" => Some("there is no transaction pool here"),
        "personal" | "wallet" => Some("no private keys are held here; sign in the wallet"),
        "admin" | "miner" | "engine" | "clique" | "les" | "rpc" | "parity" => {
            Some("this method manages a node and is not available to callers")
        }
        "erigon" | "ots" | "bor" | "arb" | "optimism" | "zks" | "alchemy" | "qn" => {
            Some("some nodes have this method, but it is not available here")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::METHODS;

    #[test]
    fn methods_of_the_table_are_not_listed_as_unavailable() {
        for method in METHODS.iter().filter(|method| !method.name.starts_with("zks_")) {
            assert_eq!(why_not_available(method.name), None, "{}", method.name);
        }
    }

    #[test]
    fn unknown_names_have_no_reason() {
        for name in ["", "_", "eth_", "eth_nonsense", "eth_chainid", "debugx_traceCall", "debug"] {
            assert_eq!(why_not_available(name), None, "{name}");
        }
    }

    #[test]
    fn reasons_need_no_escaping_in_json() {
        for name in [
            "eth_sendRawTransaction",
            "eth_sign",
            "eth_newFilter",
            "eth_subscribe",
            "eth_mining",
            "eth_getProof",
            "debug_traceCall",
            "trace_block",
            "txpool_status",
            "admin_peers",
            "ots_x",
        ] {
            let reason = why_not_available(name).unwrap_or_else(|| panic!("{name} has no reason"));
            assert!(!reason.contains(['"', '\\']) && !reason.chars().any(char::is_control), "{reason}");
        }
    }
}
