//! What a key may do beyond its plan. A key without settings has none of these, and costs one branch.

use std::collections::HashSet;

use alloy_primitives::Address;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header;

use super::hashed::Hashed;
use super::limits::Allowance;
use super::origins::OriginPattern;
use super::tokens::Tokens;
use crate::authenticate::Denied;
use crate::http::Headers;
use crate::methods::MethodId;
use crate::params::{BlockParam, Message, Query};
use crate::parse::Asked;

/// The settings of one key. An absent list allows everything.
#[derive(Debug, Default)]
pub struct Settings {
    pub(super) credentials: Credentials,
    /// Whether the networks that it is enabled for leave this one out.
    pub(super) other_network: bool,
    pub(super) origins: Option<Vec<OriginPattern>>,
    pub(super) user_agents: Option<Vec<String>>,
    pub(super) addresses: Option<HashSet<Address>>,
    pub(super) methods: Option<Vec<MethodId>>,
    pub(super) allowance: Allowance,
}

/// What a caller has to show besides the key.
#[derive(Debug, Default)]
pub(crate) struct Credentials {
    pub(super) secret: Option<Hashed>,
    pub(super) secret_required: bool,
    pub(super) tokens: Option<Tokens>,
    pub(super) token_required: bool,
}

impl Credentials {
    /// What is shown has to be right, and what is required has to be shown.
    pub(crate) fn check(&self, headers: Headers<'_>) -> Result<(), Denied> {
        let shown = headers.text(&header::AUTHORIZATION).unwrap_or_default();
        let (scheme, credentials) = shown.split_once(' ').unwrap_or((shown, ""));
        let basic = scheme.eq_ignore_ascii_case("basic");
        let bearer = scheme.eq_ignore_ascii_case("bearer");
        match &self.secret {
            Some(secret) if basic && !password(credentials).is_some_and(|given| secret.is(&given)) => {
                return Err(Denied::WrongSecret);
            }
            Some(_) if !basic && self.secret_required => return Err(Denied::NoSecret),
            _ => {}
        }
        match &self.tokens {
            Some(tokens) if bearer && !tokens.accept(credentials.trim()) => Err(Denied::BadToken),
            Some(_) if !bearer && self.token_required => Err(Denied::BadToken),
            _ => Ok(()),
        }
    }
}

/// The password of HTTP Basic; the user before the colon may be anything.
fn password(credentials: &str) -> Option<Vec<u8>> {
    let mut decoded = STANDARD.decode(credentials.trim()).ok()?;
    let colon = decoded.iter().position(|&byte| byte == b':')?;
    Some(decoded.split_off(colon + 1))
}

impl Settings {
    /// Whether any of them restricts anything.
    pub(super) fn is_any(&self) -> bool {
        let Credentials { secret, tokens, .. } = &self.credentials;
        let lists = [self.origins.is_some(), self.user_agents.is_some(), self.addresses.is_some()];
        secret.is_some()
            || tokens.is_some()
            || self.other_network
            || lists.contains(&true)
            || self.methods.is_some()
            || self.allowance.is_limited()
    }

    pub(crate) fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    pub(crate) fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    /// What can be told from the head of a request.
    pub(crate) fn allow_request(&self, headers: Headers<'_>) -> Result<(), Denied> {
        if self.other_network {
            return Err(Denied::OtherNetwork);
        }
        let origin = headers.text(&header::ORIGIN).unwrap_or_default();
        let agent = headers.text(&header::USER_AGENT).unwrap_or_default();
        let known_origin = any(&self.origins, |pattern| pattern.matches(origin));
        let known_agent = any(&self.user_agents, |part| agent.contains(part.as_str()));
        if known_origin && known_agent { Ok(()) } else { Err(Denied::Settings) }
    }

    /// What can be told from a call.
    pub(crate) fn allow_call(&self, asked: &Asked) -> bool {
        any(&self.methods, |&method| method == asked.method)
            && self.addresses.as_ref().is_none_or(|allowed| names_only(&asked.query, allowed))
    }
}

fn any<T>(list: &Option<Vec<T>>, is_it: impl Fn(&T) -> bool) -> bool {
    list.as_ref().is_none_or(|list| list.iter().any(is_it))
}

/// Whether all contracts that a call names are among those allowed. To name none where one can be named is to mean all.
fn names_only(query: &Query<BlockParam>, allowed: &HashSet<Address>) -> bool {
    match query {
        Query::StorageAt { address, .. } | Query::Balance { address, .. } | Query::Code { address, .. } => {
            allowed.contains(address)
        }
        Query::Logs { filter, .. } => {
            let addresses = &filter.addresses;
            !addresses.is_empty() && addresses.iter().all(|address| allowed.contains(address))
        }
        Query::Call { message, .. } | Query::EstimateGas { message, .. } => runs_only(message, allowed),
        _ => true,
    }
}

/// Code that comes with the call, as a creation or as an override, could call anything, so it is nobody's contract.
fn runs_only(message: &Message, allowed: &HashSet<Address>) -> bool {
    let to = message.request.to.as_ref().and_then(|to| to.to());
    let known = to.is_some_and(|to| allowed.contains(to));
    known && message.overrides.state.iter().flatten().all(|(_, account)| account.code.is_none())
}
