//! The signed transaction of what a node writes.

use alloy_consensus::{SignableTransaction, TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxLegacy};
use alloy_eips::eip2930::AccessList;
use alloy_primitives::{Address, Bytes, Signature, TxKind, U256};

use super::{Hex, RawTransaction};
use crate::proof_failure::ProofFailure;
use crate::raw::SignedTransaction;

/// From this value on, a legacy `v` includes the chain id (EIP-155).
const PROTECTED_V: u128 = 35;

impl RawTransaction {
    /// The signed transaction. `None` for unknown types, and for transactions of a chain that have no signature.
    pub(crate) fn envelope(&self) -> Result<Option<SignedTransaction>, ProofFailure> {
        if self.is_unsigned() {
            return Ok(None);
        }
        let built = match self.kind() {
            0 => self.legacy(),
            1 => self.eip2930(),
            2 => self.eip1559(),
            3 => self.eip4844(),
            4 => self.eip7702(),
            _ => return Ok(None),
        };
        built.map(Some).ok_or(ProofFailure::Malformed)
    }

    fn is_unsigned(&self) -> bool {
        let zero = |part: &Option<Hex<U256>>| part.as_ref().is_none_or(|part| part.0.is_zero());
        zero(&self.r) && zero(&self.s)
    }

    fn legacy(&self) -> Option<SignedTransaction> {
        let v = copy(&self.v)?;
        let chain_id = match v.checked_sub(PROTECTED_V) {
            Some(rest) => Some(u64::try_from(rest / 2).ok()?),
            None => None,
        };
        let odd = match v {
            27 | 28 => v == 28,
            PROTECTED_V.. => (v - PROTECTED_V) % 2 == 1,
            _ => return None,
        };
        if chain_id.is_some() && self.chain_id.as_ref().is_some_and(|said| Some(said.0.to()) != chain_id) {
            return None;
        }
        let transaction = TxLegacy {
            chain_id,
            nonce: copy(&self.nonce)?.to(),
            gas_price: copy(&self.gas_price)?,
            gas_limit: copy(&self.gas)?.to(),
            to: self.kind_of_call(),
            value: copy(&self.value)?,
            input: self.input()?,
        };
        Some(transaction.into_signed(self.signature(odd)?).into())
    }

    fn eip2930(&self) -> Option<SignedTransaction> {
        let transaction = TxEip2930 {
            chain_id: copy(&self.chain_id)?.to(),
            nonce: copy(&self.nonce)?.to(),
            gas_price: copy(&self.gas_price)?,
            gas_limit: copy(&self.gas)?.to(),
            to: self.kind_of_call(),
            value: copy(&self.value)?,
            access_list: self.access_list(),
            input: self.input()?,
        };
        Some(transaction.into_signed(self.signature(self.odd()?)?).into())
    }

    fn eip1559(&self) -> Option<SignedTransaction> {
        let transaction = TxEip1559 {
            chain_id: copy(&self.chain_id)?.to(),
            nonce: copy(&self.nonce)?.to(),
            gas_limit: copy(&self.gas)?.to(),
            max_fee_per_gas: copy(&self.max_fee_per_gas)?,
            max_priority_fee_per_gas: copy(&self.max_priority_fee_per_gas)?,
            to: self.kind_of_call(),
            value: copy(&self.value)?,
            access_list: self.access_list(),
            input: self.input()?,
        };
        Some(transaction.into_signed(self.signature(self.odd()?)?).into())
    }

    fn eip4844(&self) -> Option<SignedTransaction> {
        let hashes = self.blob_versioned_hashes.as_deref()?;
        let transaction = TxEip4844 {
            chain_id: copy(&self.chain_id)?.to(),
            nonce: copy(&self.nonce)?.to(),
            gas_limit: copy(&self.gas)?.to(),
            max_fee_per_gas: copy(&self.max_fee_per_gas)?,
            max_priority_fee_per_gas: copy(&self.max_priority_fee_per_gas)?,
            to: self.called()?,
            value: copy(&self.value)?,
            access_list: self.access_list(),
            blob_versioned_hashes: hashes.iter().map(|hash| hash.0).collect(),
            max_fee_per_blob_gas: copy(&self.max_fee_per_blob_gas)?,
            input: self.input()?,
        };
        Some(transaction.into_signed(self.signature(self.odd()?)?).into())
    }

    fn eip7702(&self) -> Option<SignedTransaction> {
        let transaction = TxEip7702 {
            chain_id: copy(&self.chain_id)?.to(),
            nonce: copy(&self.nonce)?.to(),
            gas_limit: copy(&self.gas)?.to(),
            max_fee_per_gas: copy(&self.max_fee_per_gas)?,
            max_priority_fee_per_gas: copy(&self.max_priority_fee_per_gas)?,
            to: self.called()?,
            value: copy(&self.value)?,
            access_list: self.access_list(),
            authorization_list: self.authorization_list.clone()?,
            input: self.input()?,
        };
        Some(transaction.into_signed(self.signature(self.odd()?)?).into())
    }

    fn called(&self) -> Option<Address> {
        copy(&self.to)
    }

    fn kind_of_call(&self) -> TxKind {
        self.called().map_or(TxKind::Create, TxKind::Call)
    }

    fn input(&self) -> Option<Bytes> {
        self.input.as_ref().map(|input| input.0.clone())
    }

    fn access_list(&self) -> AccessList {
        self.access_list.clone().unwrap_or_default()
    }

    fn signature(&self, odd: bool) -> Option<Signature> {
        Some(Signature::new(copy(&self.r)?, copy(&self.s)?, odd))
    }

    /// The parity of a typed transaction. Nodes write it as `yParity`, as `v`, or as both; some add 27 to `v`.
    fn odd(&self) -> Option<bool> {
        let v = match copy(&self.v) {
            Some(0 | 27) => Some(false),
            Some(1 | 28) => Some(true),
            Some(_) => return None,
            None => None,
        };
        let parity = match copy(&self.y_parity) {
            Some(parity @ (0 | 1)) => Some(parity == 1),
            Some(_) => return None,
            None => None,
        };
        match (v, parity) {
            (Some(v), Some(parity)) => (v == parity).then_some(v),
            (v, parity) => v.or(parity),
        }
    }
}

fn copy<T: Copy>(member: &Option<Hex<T>>) -> Option<T> {
    member.as_ref().map(|hex| hex.0)
}
