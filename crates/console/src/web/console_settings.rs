//! `[console]`: under which address people reach the console, and who may sign up.

use std::net::SocketAddr;
use std::str::FromStr;

use callers::Plans;
use callers::people::SignUp;
use settings::Section;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleSettings {
    /// The address under which people reach the console, without a path; `None` if that is the address that it listens on.
    pub url: Option<String>,
    /// The address under which callers reach the gateway, without a path.
    pub public_url: Option<String>,
    pub sign_up: SignUpMode,
    /// The plan of accounts that people create by themselves.
    pub sign_up_plan: String,
}

/// Who may create an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignUpMode {
    Invitation,
    Open,
}

impl ConsoleSettings {
    pub fn read(section: &mut Section<'_>, plans: &Plans) -> Self {
        let url = read_url(section, "url");
        let public_url = read_url(section, "public_url");
        let sign_up = match section.text("sign_up", "invitation").as_str() {
            "invitation" => SignUpMode::Invitation,
            "open" => SignUpMode::Open,
            _ => {
                section.error("sign_up", "must be \"invitation\" or \"open\"");
                SignUpMode::Invitation
            }
        };
        let sign_up_plan = section.text("sign_up_plan", "core");
        if plans.named(&sign_up_plan).is_none() {
            let names: Vec<_> = plans.names().collect();
            section.error("sign_up_plan", &format!("unknown plan; must be one of {}", names.join(", ")));
        }
        Self { url, public_url, sign_up, sign_up_plan }
    }

    /// The rule for new people.
    pub fn sign_up_rule(&self) -> SignUp {
        match self.sign_up {
            SignUpMode::Invitation => SignUp::Invitation,
            SignUpMode::Open => SignUp::Open { plan: self.sign_up_plan.clone() },
        }
    }

    /// Whether browsers reach the console only over TLS, so that cookies can be bound to it.
    pub fn is_https(&self) -> bool {
        self.url.as_deref().is_some_and(|url| url.starts_with("https://"))
    }

    /// The host name of the address, without a port.
    pub(super) fn host_name(&self) -> Option<String> {
        let authority = self.url.as_deref()?.split_once("://")?.1;
        let end = if authority.starts_with('[') {
            authority.find(']')? + 1
        } else {
            authority.find(':').unwrap_or(authority.len())
        };
        Some(authority[..end].to_owned())
    }
}

/// Where the console listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleAddress {
    Off,
    /// Nobody has named an address: the default, or a free port of loopback if another program, such as a second gateway,
    /// listens there.
    Default,
    Named(SocketAddr),
}

const ADDRESS_DEFAULT: &str = "127.0.0.1:8547";
const PORT_DEFAULT: u16 = 8547;

impl ConsoleAddress {
    /// Reads `console` of `[listen]`.
    pub fn read(section: &mut Section<'_>) -> Self {
        let text = section.text("console", ADDRESS_DEFAULT);
        if !section.keys().iter().any(|key| key == "console") {
            return Self::Default;
        }
        text.parse().unwrap_or_else(|error: InvalidConsoleAddress| {
            section.error("console", &error.to_string());
            Self::Off
        })
    }

    /// The address that is tried first; `None` without a console.
    pub fn preferred(self) -> Option<SocketAddr> {
        match self {
            Self::Off => None,
            Self::Default => Some(SocketAddr::from(([127, 0, 0, 1], PORT_DEFAULT))),
            Self::Named(address) => Some(address),
        }
    }
}

/// A text is neither an address nor `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an address and a port, such as {ADDRESS_DEFAULT}, or off")]
pub struct InvalidConsoleAddress;

impl FromStr for ConsoleAddress {
    type Err = InvalidConsoleAddress;

    fn from_str(text: &str) -> Result<Self, InvalidConsoleAddress> {
        match text {
            "off" => Ok(Self::Off),
            address => address.parse().map(Self::Named).map_err(|_| InvalidConsoleAddress),
        }
    }
}

fn read_url(section: &mut Section<'_>, key: &str) -> Option<String> {
    let url = section.optional_text(key)?;
    if is_bare_url(&url) {
        return Some(url);
    }
    section.error(key, "must be an address without a path, such as https://console.example.com");
    None
}

fn is_bare_url(url: &str) -> bool {
    let authority = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    authority.is_some_and(|authority| !authority.is_empty() && authority.bytes().all(is_allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_address_is_the_documented_one() {
        let default = ConsoleAddress::Default.preferred().unwrap();
        assert_eq!(default.to_string(), ADDRESS_DEFAULT);
        assert_eq!("off".parse(), Ok(ConsoleAddress::Off));
        assert_eq!(ADDRESS_DEFAULT.parse(), Ok(ConsoleAddress::Named(default)));
        assert_eq!("8547".parse::<ConsoleAddress>(), Err(InvalidConsoleAddress));
    }

    #[test]
    fn an_address_has_no_path_and_no_user() {
        for valid in ["https://console.example", "http://127.0.0.1:8547", "http://[::1]:80"] {
            assert!(is_bare_url(valid), "{valid}");
        }
        for wrong in [
            "",
            "console.example",
            "https://",
            "https://a/",
            "https://a/b",
            "https://u@a",
            "ftp://a",
            "https://a b",
        ] {
            assert!(!is_bare_url(wrong), "{wrong}");
        }
    }
}
