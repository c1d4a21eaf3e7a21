//! Calls on the demo chain.

/// The contract with 200 logs in each of the blocks 180 to 239.
const CHATTER: &str = "0x536F14E49e1Bb927003E83aDEBF295F3682ff121";

/// An address without code, which a call may override.
const LOOPER: &str = "0x00000000000000000000000000000000000010af";

pub(crate) fn call(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

pub(crate) fn balance() -> String {
    call("eth_getBalance", r#"["0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266","latest"]"#)
}

/// The cheapest call.
pub(crate) fn chain_id() -> String {
    call("eth_chainId", "[]")
}

/// 200 logs. Different numbers share no answer.
pub(crate) fn one_block_of_logs(number: u32) -> String {
    logs("0xb4", number)
}

/// 10,000 logs, 6.3 MB. Different numbers share no answer.
pub(crate) fn many_logs(number: u32) -> String {
    logs("0xe5", number)
}

fn logs(to: &str, number: u32) -> String {
    let addresses = format!(r#"["{CHATTER}","0x{number:040x}"]"#);
    call("eth_getLogs", &format!(r#"[{{"fromBlock":"0xb4","toBlock":"{to}","address":{addresses}}}]"#))
}

/// An execution that ends at once. Different numbers share no answer.
pub(crate) fn short_execution(number: u32) -> String {
    call("eth_call", &format!(r#"[{{"data":"0x5f5ff3{number:08x}"}}]"#))
}

/// An execution that only the gateway's limits end. Different numbers share no answer.
pub(crate) fn endless(number: u32) -> String {
    let message = format!(r#"{{"to":"{LOOPER}","data":"0x{number:08x}"}}"#);
    call("eth_call", &format!(r#"[{message},"latest",{{"{LOOPER}":{{"code":"0x5b5f56"}}}}]"#))
}

/// An execution that reverts with a reason of 8,000,000 zero bytes. Different numbers share no answer.
pub(crate) fn large_revert(number: u32) -> String {
    // Stores the selector of `Error(string)`, the offset and the length, and reverts with them and the memory behind.
    let code = "6308c379a060e01b5f526020600452627a1200602452627a12445ffd";
    call("eth_call", &format!(r#"[{{"data":"0x{code}{number:08x}"}}]"#))
}
