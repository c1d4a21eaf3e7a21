//! The way of a command to accounts and keys: through the running gateway, or directly into the store.

use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use callers::LocalRevocations;
use console::{ACTOR_HEADER, AddressFile, AdminRouter, AdminToken, AnnouncedListener, ErrorDocument};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::client::AdminClient;
use crate::cli::new_runtime;
use crate::config::Config;

/// How long a request is sent again and again while the gateway has too many. A list of a million accounts takes 2,000 requests.
const THROTTLED_MAX: Duration = Duration::from_secs(60);

/// Where requests of the admin API are answered.
#[derive(Debug)]
pub(crate) struct AdminConnection {
    runtime: Runtime,
    target: AdminTarget,
    /// Who makes changes, for the audit log.
    actor: String,
}

#[derive(Debug)]
enum AdminTarget {
    Gateway(AdminClient),
    Store(AdminRouter),
}

impl AdminConnection {
    /// Finds the gateway that runs with the data directory of the configuration; opens the store if there is none.
    pub(super) fn open(config: &Config) -> Result<Self, String> {
        let runtime = new_runtime()?;
        let running = AddressFile::find_running(&config.data_dir, AnnouncedListener::Admin)
            .map_err(|error| format!("cannot find the running gateway: {error}"))?;
        let target = match running {
            Some(address) => {
                let token =
                    AdminToken::load(&config.admin_token_path()).map_err(|error| error.to_string())?;
                AdminTarget::Gateway(AdminClient { address, token })
            }
            None => {
                let revoked_here = LocalRevocations::open(&config.data_dir)?;
                let administration = config.administration().with_local_revocations(revoked_here);
                AdminTarget::Store(AdminRouter::new(administration))
            }
        };
        Ok(Self { runtime, target, actor: command_line_actor() })
    }

    pub(crate) fn get(&self, path: &str) -> Result<Value, String> {
        self.send(Method::GET, path, Bytes::new())
    }

    /// All entries of a list that comes in pages; `field` is the name of the list.
    pub(crate) fn get_all(&self, path: &str, field: &str) -> Result<Value, String> {
        let (mut entries, mut after) = (Vec::new(), String::new());
        loop {
            let mut page = self.get(&format!("{path}{after}"))?;
            let Value::Array(found) = page[field].take() else {
                return Err(format!("the reply has no {field}"));
            };
            entries.extend(found);
            after = match &page["next"] {
                Value::String(next) => format!("?after={}", encoded(next)),
                Value::Number(next) => format!("?after={next}"),
                _ => return Ok(json!({ field: entries })),
            };
        }
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value, String> {
        self.send(Method::POST, path, body.to_string().into())
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Result<Value, String> {
        self.send(Method::PUT, path, body.to_string().into())
    }

    pub(crate) fn patch(&self, path: &str, body: &Value) -> Result<Value, String> {
        self.send(Method::PATCH, path, body.to_string().into())
    }

    /// Sends a request. If the gateway has had too many, it is sent again after the time that the gateway names.
    fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Value, String> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(ACTOR_HEADER, &self.actor)
            .body(body)
            .map_err(|error| error.to_string())?;
        let give_up_at = Instant::now() + THROTTLED_MAX;
        loop {
            let request = request.clone();
            let response = match &self.target {
                AdminTarget::Gateway(gateway) => self.runtime.block_on(gateway.send(request))?,
                AdminTarget::Store(store) => self.runtime.block_on(store.answer(request, &self.actor)),
            };
            match throttled_for(&response) {
                Some(pause) if pause < give_up_at.saturating_duration_since(Instant::now()) => {
                    thread::sleep(pause);
                }
                _ => return read(&response),
            }
        }
    }
}

/// How long to wait, if the gateway has refused a request because there were too many before it.
fn throttled_for(response: &Response<Bytes>) -> Option<Duration> {
    if response.status() != StatusCode::TOO_MANY_REQUESTS {
        return None;
    }
    let seconds = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// The JSON of a reply, or the message of its error.
fn read(response: &Response<Bytes>) -> Result<Value, String> {
    if response.status().is_success() {
        return serde_json::from_slice(response.body())
            .map_err(|error| format!("cannot read the reply: {error}"));
    }
    Err(match serde_json::from_slice::<ErrorDocument>(response.body()) {
        Ok(ErrorDocument { error }) => match error.field {
            Some(field) => format!("{field}: {}", error.message),
            None => error.message,
        },
        Err(_) => {
            format!("the gateway answers with status {}; is another version running?", response.status())
        }
    })
}

/// A path of the admin API.
pub(crate) fn path(segments: &[&str]) -> String {
    let segments: Vec<_> = segments.iter().map(|segment| encoded(segment)).collect();
    format!("/admin/v1/{}", segments.join("/"))
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// How the audit log names whoever runs the command. The name is recorded, not checked.
pub(crate) fn command_line_actor() -> String {
    let names = ["SUDO_USER", "USER", "LOGNAME"].iter().filter_map(|name| std::env::var(name).ok());
    let mut visible =
        names.filter(|name| name.bytes().all(|byte| byte.is_ascii_graphic()) && name.len() <= 32);
    let user = visible.find(|name| !name.is_empty());
    let user = user.unwrap_or_else(|| rustix::process::getuid().as_raw().to_string());
    format!("command line, user {user}")
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// A command that listed more than 100,000 keys sent more requests than the gateway takes at once, and failed.
    #[test]
    fn a_command_waits_while_the_gateway_has_too_many_requests() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let gateway = thread::spawn(move || {
            for head in ["429 Too Many Requests\r\nretry-after: 0", "200 OK"] {
                let (mut stream, _) = listener.accept().unwrap();
                let _read = stream.read(&mut [0; 4_096]).unwrap();
                let reply = format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: 2\r\n\r\n[]");
                stream.write_all(reply.as_bytes()).unwrap();
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let token = AdminToken::load_or_create(&folder.path().join("token")).unwrap();
        let connection = AdminConnection {
            runtime: new_runtime().unwrap(),
            target: AdminTarget::Gateway(AdminClient { address, token }),
            actor: "test".to_owned(),
        };
        assert_eq!(connection.get("/admin/v1/accounts"), Ok(json!([])));
        gateway.join().unwrap();
    }

    #[test]
    fn names_in_paths_are_encoded() {
        assert_eq!(path(&["accounts", "a/b ü?", "suspend"]), "/admin/v1/accounts/a%2Fb%20%C3%BC%3F/suspend");
        assert_eq!(path(&["keys", "k_1"]), "/admin/v1/keys/k%5F1");
    }
}
