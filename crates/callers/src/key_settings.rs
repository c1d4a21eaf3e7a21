//! What a key may do beyond its plan. A key without settings has none of these, and costs one branch.

use std::collections::HashSet;

use alloy_primitives::Address;
use alloy_rpc_types_eth::state::AccountOverride;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use methods::{BlockParam, Message, MethodId, Query};

use crate::allowance::Allowance;
use crate::denied::{Denied, RefusingSetting};
use crate::hashed::Hashed;
use crate::origins::OriginPattern;
use crate::tokens::Tokens;

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
pub struct Credentials {
    pub(super) secret: Option<Hashed>,
    pub(super) secret_required: bool,
    pub(super) tokens: Option<Tokens>,
    pub(super) token_required: bool,
}

impl Credentials {
    /// What is shown has to be right, and what is required has to be shown.
    ///
    /// `shown` is the value of the header `Authorization`, which may be empty.
    pub fn check(&self, shown: &str) -> Result<(), Denied> {
        let (scheme, credentials) = shown.split_once(' ').unwrap_or((shown, ""));
        let basic = scheme.eq_ignore_ascii_case("basic");
        let bearer = scheme.eq_ignore_ascii_case("bearer");
        match &self.secret {
            Some(secret) if basic && !password(credentials).is_some_and(|given| secret.is(&given)) => {
                return Err(Denied::WrongSecret);
            }
            Some(_) if !basic && self.secret_required => {
                return Err(Denied::Setting(RefusingSetting::Secret));
            }
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

    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    pub fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    /// Checks the origin and the user agent of a request, each of which may be empty.
    pub fn allow_request(&self, origin: &str, agent: &str) -> Result<(), RefusingSetting> {
        if self.other_network {
            return Err(RefusingSetting::Network);
        }
        if !any(&self.origins, |pattern| pattern.matches(origin)) {
            return Err(RefusingSetting::Origin);
        }
        if !any(&self.user_agents, |part| agent.contains(part.as_str())) {
            return Err(RefusingSetting::Agent);
        }
        Ok(())
    }

    /// Checks what a call asks for.
    pub fn allow_call(&self, method: MethodId, query: &Query<BlockParam>) -> Result<(), RefusingSetting> {
        if !any(&self.methods, |&allowed| allowed == method) {
            return Err(RefusingSetting::Method);
        }
        match &self.addresses {
            Some(allowed) if !names_only(query, allowed) => Err(RefusingSetting::Address),
            _ => Ok(()),
        }
    }
}

fn any<T>(list: &Option<Vec<T>>, is_it: impl Fn(&T) -> bool) -> bool {
    list.as_ref().is_none_or(|list| list.iter().any(is_it))
}

/// Whether all contracts that a call names are among those allowed. A filter that names none means all of them.
///
/// Every query is listed, so that a new one has to be decided on. Block data is public whatever contracts it is about.
/// `eth_getTransactionCount` is allowed for any address, because wallets need the nonce of the account that they send
/// from, which is never on a list of contracts.
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
        Query::ChainId
        | Query::NetVersion
        | Query::BlockNumber
        | Query::Syncing
        | Query::ClientVersion
        | Query::Discover
        | Query::GasPrice
        | Query::MaxPriorityFeePerGas
        | Query::FeeHistory { .. }
        | Query::TransactionCount { .. }
        | Query::Block { .. }
        | Query::BlockTransactionCount { .. }
        | Query::BlockReceipts { .. }
        | Query::UncleCount { .. }
        | Query::Uncle { .. }
        | Query::TransactionByIndex { .. }
        | Query::TransactionByHash { .. }
        | Query::TransactionReceipt { .. }
        | Query::RawBlockTransactions { .. } => true,
    }
}

/// Whether a simulation runs only code of allowed contracts.
///
/// A creation brings code of its own. An override may do the same: as code, as a precompile that is moved, as an
/// authorization that lends an account the code of another, or as storage, because the storage of a proxy names the
/// contract whose code it runs. Balances and nonces may be changed.
fn runs_only(message: &Message, allowed: &HashSet<Address>) -> bool {
    let to = message.request.to.as_ref().and_then(|to| to.to());
    let is_allowed = to.is_some_and(|to| allowed.contains(to));
    let lends_code = message.request.authorization_list.as_ref().is_some_and(|list| !list.is_empty());
    let overrides = message.overrides.state.iter().flatten();
    is_allowed && !lends_code && overrides.into_iter().all(|(_, account)| keeps_code(account))
}

fn keeps_code(account: &AccountOverride) -> bool {
    // All fields are named, so that a new one has to be decided on.
    let AccountOverride { balance: _, nonce: _, code, state, state_diff, move_precompile_to } = account;
    code.is_none() && state.is_none() && state_diff.is_none() && move_precompile_to.is_none()
}
