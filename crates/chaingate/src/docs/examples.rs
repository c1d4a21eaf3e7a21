//! One call of each method, and the reply that a gateway with the demo chain gives.

use std::path::PathBuf;
use std::sync::Arc;
use std::{env, fs, process};

use gateway::gateway_state::GatewayState;
use gateway::server::serve_stream;
use jsonrpc::{Value, ValueKind};
use methods::METHODS;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

use crate::config::Config;
use crate::source;

/// A call and its reply.
pub(super) struct Example {
    pub(super) method: &'static str,
    /// The parameters as JSON.
    pub(super) params: &'static str,
    /// The whole reply as it came.
    pub(super) reply: String,
}

impl Example {
    pub(super) fn request(&self) -> String {
        let Self { method, params, .. } = self;
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
    }

    /// The result as JSON.
    pub(super) fn result(&self) -> &str {
        let mut members = Value::read(&self.reply).and_then(Value::members).into_iter().flatten();
        members.find(|member| member.name == "result").map_or("null", |member| member.value.raw())
    }

    /// The reply in several lines, with long strings and lists shortened.
    pub(super) fn shown_reply(&self) -> String {
        Value::read(&self.reply).map_or_else(String::new, |value| shown(value, 0))
    }
}

/// The parameters with which each method has a short and typical result on the demo chain.
const PARAMS: &[(&str, &str)] = &[
    ("eth_getStorageAt", r#"["0xA7918D253764E42d60C3ce2010a34d5a1e7C1398","0x0","latest"]"#),
    (
        "eth_getLogs",
        r#"[{"address":"0x93C7a6D00849c44Ef3E92E95DCEFfccd447909Ae","fromBlock":"0x21","toBlock":"0x21"}]"#,
    ),
    ("eth_getUncleByBlockNumberAndIndex", r#"["0x9","0x1"]"#),
    (
        "eth_getUncleByBlockHashAndIndex",
        r#"["0x273dc032ab73b3e23fae9c4ba873a075d41e8ca05df32ac7a0c7598ba6b36b5b","0x1"]"#,
    ),
    ("eth_getTransactionByBlockNumberAndIndex", r#"["0x48","0x0"]"#),
    (
        "eth_getTransactionByBlockHashAndIndex",
        r#"["0xc8266b6f482fbd9dcfc7f9d31af54038efa36aa85fcd88e7154497bad9eb4f56","0x0"]"#,
    ),
    ("eth_getTransactionByHash", r#"["0x75833d471ead0a61f9d0458257a3c1f7f3702365bb5611aa32284c31d7cf692f"]"#),
    (
        "eth_getTransactionReceipt",
        r#"["0x75833d471ead0a61f9d0458257a3c1f7f3702365bb5611aa32284c31d7cf692f"]"#,
    ),
    ("eth_getBlockReceipts", r#"["0x21"]"#),
    ("eth_call", r#"[{"to":"0xA7918D253764E42d60C3ce2010a34d5a1e7C1398","data":"0x85bb7d69"},"latest"]"#),
    (
        "eth_estimateGas",
        r#"[{"from":"0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266","to":"0x70997970C51812dc3A010C7d01b50e0d17dc79C8","value":"0x1"}]"#,
    ),
    ("zks_getRawBlockTransactions", "[241]"),
    ("eth_chainId", "[]"),
    ("net_version", "[]"),
    ("eth_syncing", "[]"),
    ("web3_clientVersion", "[]"),
    ("eth_blockNumber", "[]"),
    ("eth_gasPrice", "[]"),
    ("eth_maxPriorityFeePerGas", "[]"),
    ("eth_feeHistory", r#"["0x2","0x50",[50]]"#),
    ("eth_getBalance", r#"["0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266","latest"]"#),
    ("eth_getCode", r#"["0x90F79bf6EB2c4f870365E785982E1f101E93b906","latest"]"#),
    ("eth_getTransactionCount", r#"["0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266","latest"]"#),
    ("eth_getBlockByNumber", r#"["0x5",false]"#),
    ("eth_getBlockByHash", r#"["0x5d188de39fd4d4e36005680538cec8cb01d43396d9e0901f19ff2d08620c9304",false]"#),
    ("eth_getBlockTransactionCountByNumber", r#"["0x21"]"#),
    (
        "eth_getBlockTransactionCountByHash",
        r#"["0x2493ecf7e627e5576cb86006737f1d27ef70130cc2cc6c04384e940312820769"]"#,
    ),
    ("eth_getUncleCountByBlockNumber", r#"["0x9"]"#),
    (
        "eth_getUncleCountByBlockHash",
        r#"["0x273dc032ab73b3e23fae9c4ba873a075d41e8ca05df32ac7a0c7598ba6b36b5b"]"#,
    ),
];

/// The method without an example: its result is the OpenRPC document, which contains the examples.
const WITHOUT_EXAMPLE: &str = "rpc.discover";

/// An example of every method, in the order of the table. The demo chain is built in a temporary directory.
pub(super) fn examples() -> Result<Vec<Example>, String> {
    let directory = TemporaryDirectory::new()?;
    let mut config = Config::default();
    config.data_dir.clone_from(&directory.0);
    let sources = source::open(&config, |_, _| {})?;
    let state = Arc::new(config.gateway(sources).map_err(|error| error.to_string())?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let each = METHODS.iter().filter(|method| method.name != WITHOUT_EXAMPLE).map(|method| {
        let (method, params) = *PARAMS
            .iter()
            .find(|(name, _)| *name == method.name)
            .ok_or_else(|| format!("docs/examples.rs has no example of {}", method.name))?;
        let mut example = Example { method, params, reply: String::new() };
        example.reply = runtime.block_on(ask(&state, &example.request()))?;
        Ok(example)
    });
    each.collect()
}

/// Sends one request to the gateway, as a caller would.
async fn ask(state: &Arc<GatewayState>, body: &str) -> Result<String, String> {
    const BUFFER_BYTES: usize = 64 << 10;
    let (mut near, far) = duplex(BUFFER_BYTES);
    let request = format!(
        "POST /v3/demo HTTP/1.1\r\nhost: docs\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let exchange = async {
        near.write_all(request.as_bytes()).await?;
        let mut reply = String::new();
        near.read_to_string(&mut reply).await?;
        Ok::<_, std::io::Error>(reply)
    };
    let ((), reply) = tokio::join!(serve_stream(Arc::clone(state), far), exchange);
    let reply = reply.map_err(|error| format!("{body}: {error}"))?;
    match reply.split_once("\r\n\r\n") {
        Some((_, body)) if body.contains("\"result\":") => Ok(body.to_owned()),
        _ => Err(format!("{body} has no result: {reply}")),
    }
}

/// A directory that is removed at the end.
struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    fn new() -> Result<Self, String> {
        let path = env::temp_dir().join(format!("chaingate-docs-{}", process::id()));
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // If this fails, the system cleans up its temporary directory.
        let _removed = fs::remove_dir_all(&self.0);
    }
}

/// Longest hexadecimal string that is shown whole: three words, with `0x`.
const STRING_MAX: usize = 2 + 2 * 3 * 32;
/// Characters that a shortened string shows at each end.
const STRING_ENDS: (usize, usize) = (18, 8);
/// Longest list that is shown whole.
const LIST_MAX: usize = 2;
/// Longest value that is shown on one line.
const LINE_MAX: usize = 100;

fn shown(value: Value<'_>, indent: usize) -> String {
    let (open, close, parts) = match value.kind() {
        ValueKind::Null | ValueKind::Bool | ValueKind::Number => return value.raw().to_owned(),
        ValueKind::String => return shown_string(value.raw()),
        ValueKind::Array => ('[', ']', shown_elements(value, indent + 2)),
        ValueKind::Object => {
            let members = value.members().into_iter().flatten();
            let each =
                members.map(|member| format!("\"{}\": {}", member.name, shown(member.value, indent + 2)));
            ('{', '}', each.collect())
        }
    };
    let line = format!("{open}{}{close}", parts.join(", "));
    if indent + line.chars().count() <= LINE_MAX && !line.contains('\n') {
        return line;
    }
    let pad = " ".repeat(indent);
    format!("{open}\n{pad}  {}\n{pad}{close}", parts.join(&format!(",\n{pad}  ")))
}

fn shown_elements(list: Value<'_>, indent: usize) -> Vec<String> {
    let count = list.elements().into_iter().flatten().count();
    let shown_count = if count > LIST_MAX { 1 } else { count };
    let elements = list.elements().into_iter().flatten().take(shown_count);
    let mut parts: Vec<_> = elements.map(|element| shown(element, indent)).collect();
    if count > shown_count {
        parts.push(format!("… {} more", count - shown_count));
    }
    parts
}

fn shown_string(quoted: &str) -> String {
    let (head, tail) = STRING_ENDS;
    let text = quoted.trim_matches('"');
    if text.len() <= STRING_MAX || !text.is_ascii() {
        return quoted.to_owned();
    }
    format!("\"{}…{}\"", &text[..head], &text[text.len() - tail..])
}
