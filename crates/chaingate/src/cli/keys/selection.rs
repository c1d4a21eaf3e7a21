//! Which key a command means.

use clap::Args;
use console::KeyListDocument;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::cli::administration::{AdminConnection, path};

/// A key, by its id or by its account and name.
#[derive(Debug, Args)]
pub(super) struct KeyArgument {
    /// Id of the key, such as k_0123456789ab
    #[arg(value_name = "ID", required_unless_present_any = ["named_id", "account"])]
    id: Option<String>,
    /// The same as an option
    #[arg(long = "id", value_name = "ID", hide = true, conflicts_with_all = ["id", "account"])]
    named_id: Option<String>,
    /// Account of the key, instead of its id
    #[arg(long, value_name = "ACCOUNT", requires = "name", conflicts_with = "id")]
    account: Option<String>,
    /// Name of the key, with --account
    #[arg(long, value_name = "NAME", requires = "account")]
    name: Option<String>,
}

impl KeyArgument {
    /// The key as it was named, for a gateway that finds it in its memory.
    pub(super) fn unresolved(&self) -> Value {
        match self.id.as_ref().or(self.named_id.as_ref()) {
            Some(id) => json!({ "id": id }),
            None => json!({ "account": self.account, "name": self.name }),
        }
    }

    /// The id of the key. A name that several active keys of the account have is refused.
    pub(super) fn find(&self, connection: &AdminConnection) -> Result<String, String> {
        if let Some(id) = self.id.as_ref().or(self.named_id.as_ref()) {
            return Ok(id.clone());
        }
        let (account, name) = (self.account.as_deref().unwrap_or(""), self.name.as_deref().unwrap_or(""));
        let reply = connection.get_all(&path(&["accounts", account, "keys"]), "keys")?;
        let list = KeyListDocument::deserialize(&reply)
            .map_err(|error| format!("cannot read the reply: {error}"))?;
        let mut named: Vec<_> = list.keys.into_iter().filter(|key| key.name == name).collect();
        if named.iter().any(|key| key.status == "active") {
            named.retain(|key| key.status == "active");
        }
        match named.as_slice() {
            [] => Err(format!("account \"{account}\" has no key named \"{name}\"")),
            [only] => Ok(only.id.clone()),
            several => {
                let ids: Vec<_> = several.iter().map(|key| key.id.as_str()).collect();
                Err(format!(
                    "account \"{account}\" has several keys named \"{name}\": {}; give an id",
                    ids.join(", ")
                ))
            }
        }
    }
}
