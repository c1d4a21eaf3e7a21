//! The example of each method, and the reply that a gateway with the demo chain gives.

use std::path::PathBuf;
use std::sync::Arc;
use std::{env, fs, process};

use gateway::{GatewayState, serve_stream};
use jsonrpc::{Value, ValueKind};
use methods::{BlockParam, GatewayQuery, METHODS, Method, Query};
use resources::Supervisor;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

use chaingate::config::Config;
use chaingate::source;

/// The example of a method, and the reply to it.
pub(crate) struct Example {
    pub(crate) method: &'static Method,
    /// The query that the parameters are read into.
    pub(crate) query: Query<BlockParam>,
    /// The whole reply as it came. `rpc.discover` has none: its result is the OpenRPC document, which contains the examples.
    reply: Option<String>,
}

impl Example {
    /// The result as JSON.
    pub(crate) fn result(&self) -> Option<&str> {
        let mut members = Value::read(self.reply.as_deref()?).and_then(Value::members)?;
        members.find(|member| member.name == "result").map(|member| member.value.raw())
    }

    /// The reply in several lines, with long strings and lists shortened.
    pub(crate) fn shown_reply(&self) -> Option<String> {
        Some(shown(Value::read(self.reply.as_deref()?)?, 0))
    }
}

/// An example of every method, in the order of the table. The demo chain is built in a temporary directory.
pub(crate) fn examples() -> Result<Vec<Example>, String> {
    let directory = TemporaryDirectory::new()?;
    let mut config = Config::default();
    config.data_dir.clone_from(&directory.0);
    let supervisor = Supervisor::default();
    let sources = source::open(&config, &supervisor, |_, _| {})?;
    let state = Arc::new(config.gateway(sources, &supervisor).map_err(|error| error.to_string())?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let mut examples = examples_without_replies()?;
    for example in &mut examples {
        if example.query != Query::Gateway(GatewayQuery::Discover) {
            example.reply = Some(runtime.block_on(ask(&state, &example.method.example_request()))?);
        }
    }
    Ok(examples)
}

pub(crate) fn examples_without_replies() -> Result<Vec<Example>, String> {
    let each = METHODS.iter().map(|method| {
        let query = method.example_query().map_err(|fault| format!("{}: {fault:?}", method.name))?;
        Ok(Example { method, query, reply: None })
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
