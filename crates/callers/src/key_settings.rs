//! Restrictions of one key, in addition to its plan.

use std::collections::HashSet;
use std::sync::Arc;

use alloy_primitives::Address;
use alloy_rpc_types_eth::state::AccountOverride;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use methods::{BlockParam, CallMessage, MethodId, Query, StateQuery, StateValue};
use resources::MonoTime;

use crate::credit_limits::CreditLimits;
use crate::denied::{Denied, KeyRestriction};
use crate::hashed_secret::HashedSecret;
use crate::origins::{OriginPattern, RequestOrigin};
use crate::policy::AGENT_BYTES_MAX;
use crate::token_verifier::TokenVerifier;

/// The restrictions of one key. An absent list allows everything.
#[derive(Clone, Debug, Default)]
pub struct KeySettings {
    pub(super) credentials: Credentials,
    /// Whether the key is not enabled for the network of this gateway.
    pub(super) other_network: bool,
    pub(super) origins: Option<Vec<OriginPattern>>,
    /// Parts of the `User-Agent` header.
    pub(super) user_agents: Option<Vec<String>>,
    pub(super) addresses: Option<HashSet<Address>>,
    pub(super) methods: Option<Vec<MethodId>>,
    /// Whether replies name the node that answered.
    pub(super) shows_node: bool,
    /// Shared with the settings that replace these, so that a change does not forget what was used.
    pub(super) credit_limits: Arc<CreditLimits>,
}

/// The secret and the tokens that a caller has to send in addition to the key.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    pub(super) secret: Option<HashedSecret>,
    pub(super) secret_required: bool,
    pub(super) tokens: Option<TokenVerifier>,
    pub(super) token_required: bool,
}

impl Credentials {
    /// Rejects a wrong secret or token, and the absence of a required one.
    ///
    /// `authorization` is the value of the header `Authorization`; it may be empty.
    pub fn check(&self, authorization: &str) -> Result<(), Denied> {
        let (scheme, credentials) = authorization.split_once(' ').unwrap_or((authorization, ""));
        let basic = scheme.eq_ignore_ascii_case("basic");
        let bearer = scheme.eq_ignore_ascii_case("bearer");
        match &self.secret {
            Some(secret) if basic && !password(credentials).is_some_and(|given| secret.matches(&given)) => {
                return Err(Denied::WrongSecret);
            }
            Some(_) if !basic && self.secret_required => {
                return Err(Denied::Setting(KeyRestriction::Secret));
            }
            _ => {}
        }
        match &self.tokens {
            Some(tokens) if bearer && !tokens.accepts(credentials.trim()) => Err(Denied::BadToken),
            Some(_) if !bearer && self.token_required => Err(Denied::BadToken),
            _ => Ok(()),
        }
    }
}

/// The password of HTTP Basic authentication; the user name is ignored.
fn password(credentials: &str) -> Option<Vec<u8>> {
    let mut decoded = STANDARD.decode(credentials.trim()).ok()?;
    let colon = decoded.iter().position(|&byte| byte == b':')?;
    Some(decoded.split_off(colon + 1))
}

impl KeySettings {
    /// Whether the key differs from one without settings.
    pub(super) fn changes_anything(&self) -> bool {
        let Credentials { secret, tokens, .. } = &self.credentials;
        let lists = [self.origins.is_some(), self.user_agents.is_some(), self.addresses.is_some()];
        secret.is_some()
            || tokens.is_some()
            || self.other_network
            || self.shows_node
            || lists.contains(&true)
            || self.methods.is_some()
            || self.credit_limits.is_limited()
    }

    /// These settings in the place of others: their limits hold, and what was used of the limits before stays used.
    pub(crate) fn replacing(self, old: &Self, now: MonoTime) -> Self {
        let [per_second, per_day] = self.credit_limits.limits();
        old.credit_limits.set_limits(per_second, per_day, now);
        Self { credit_limits: Arc::clone(&old.credit_limits), ..self }
    }

    /// Whether replies name the node that answered.
    pub fn shows_node(&self) -> bool {
        self.shows_node
    }

    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    pub fn credit_limits(&self) -> &CreditLimits {
        &self.credit_limits
    }

    /// Checks the network, the origin and the user agent of a request; origin and user agent may be empty.
    pub fn check_request(&self, origin: &str, agent: &str) -> Result<(), KeyRestriction> {
        if self.other_network {
            return Err(KeyRestriction::Network);
        }
        if let Some(patterns) = &self.origins {
            let origin = RequestOrigin::parse(origin).ok_or(KeyRestriction::Origin)?;
            if !patterns.iter().any(|pattern| pattern.matches(&origin)) {
                return Err(KeyRestriction::Origin);
            }
        }
        let agent = &agent[..agent.floor_char_boundary(AGENT_BYTES_MAX)];
        if !allows(&self.user_agents, |part| agent.contains(part.as_str())) {
            return Err(KeyRestriction::Agent);
        }
        Ok(())
    }

    /// Checks the method and the addresses of a call.
    pub fn check_call(&self, method: MethodId, query: &Query<BlockParam>) -> Result<(), KeyRestriction> {
        if !allows(&self.methods, |&allowed| allowed == method) {
            return Err(KeyRestriction::Method);
        }
        match &self.addresses {
            Some(allowed) if !names_only_allowed(query, allowed) => Err(KeyRestriction::Address),
            _ => Ok(()),
        }
    }
}

/// Whether the list is absent or has an entry that matches.
fn allows<T>(list: &Option<Vec<T>>, is_match: impl Fn(&T) -> bool) -> bool {
    list.as_ref().is_none_or(|list| list.iter().any(is_match))
}

/// Whether all contracts that a call names are allowed. A log filter without addresses names all contracts.
///
/// Every kind of query is listed, so that a new one cannot be forgotten. Block data is allowed whatever contracts it is about.
/// `eth_getTransactionCount` is allowed for any address, because wallets need the nonce of the account that they send
/// from, which is never on a list of contracts.
fn names_only_allowed(query: &Query<BlockParam>, allowed: &HashSet<Address>) -> bool {
    match query {
        Query::State(StateQuery { address, value, .. }) => match value {
            StateValue::Balance | StateValue::Code | StateValue::Storage { .. } => allowed.contains(address),
            StateValue::TransactionCount => true,
        },
        Query::Simulation(query) => runs_only_allowed(&query.message, allowed),
        Query::Logs(query) => {
            let addresses = &query.filter.addresses;
            !addresses.is_empty() && addresses.iter().all(|address| allowed.contains(address))
        }
        Query::Gateway(_)
        | Query::Fees(_)
        | Query::Block(_)
        | Query::Transaction(_)
        | Query::RawTransactions(_) => true,
    }
}

/// Whether a simulation starts in an allowed contract and runs only code of the chain.
///
/// A contract creation contains its own code. Overrides and authorizations can also introduce code: as code, as a moved
/// precompile, as an authorization that delegates an account to the code of another, or as storage, because the storage of a
/// proxy contains the address of the code that it runs. Balances and nonces may be overridden.
fn runs_only_allowed(message: &CallMessage, allowed: &HashSet<Address>) -> bool {
    let to = message.request.to.as_ref().and_then(|to| to.to());
    let is_allowed = to.is_some_and(|to| allowed.contains(to));
    let delegates_code = message.request.authorization_list.as_ref().is_some_and(|list| !list.is_empty());
    let overrides = message.overrides.state.iter().flatten();
    is_allowed && !delegates_code && overrides.into_iter().all(|(_, account)| keeps_code(account))
}

fn keeps_code(account: &AccountOverride) -> bool {
    // All fields are named, so that a new one cannot be forgotten.
    let AccountOverride { balance: _, nonce: _, code, state, state_diff, move_precompile_to } = account;
    code.is_none() && state.is_none() && state_diff.is_none() && move_precompile_to.is_none()
}
