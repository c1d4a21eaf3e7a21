//! Signs transactions and authorizations.

use alloy_consensus::{SignableTransaction, Signed, transaction::Recovered};
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use alloy_primitives::{Address, B256, Signature, keccak256};
use archive::Transaction;
use k256::ecdsa::SigningKey;
use std::fmt;

/// A key and the address that it signs for.
///
/// For chains that anybody can build again from a public seed; not for keys that guard anything.
#[derive(Clone)]
pub struct Signer {
    key: SigningKey,
    address: Address,
}

impl Signer {
    /// The signer of a seed. A seed that is not a valid key, such as zero, is hashed until it is one.
    pub fn from_seed(seed: B256) -> Self {
        let mut secret = seed;
        loop {
            if let Ok(key) = SigningKey::from_slice(secret.as_slice()) {
                let address = Address::from_public_key(key.verifying_key());
                return Self { key, address };
            }
            secret = keccak256(secret);
        }
    }

    /// The address that this key signs for.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Signs a transaction of any type. A legacy one is replay-protected (EIP-155) if it names a chain.
    pub fn sign<T>(&self, transaction: T) -> Recovered<Transaction>
    where
        T: SignableTransaction<Signature>,
        Transaction: From<Signed<T>>,
    {
        let signature = self.sign_hash(transaction.signature_hash());
        Recovered::new_unchecked(transaction.into_signed(signature).into(), self.address)
    }

    /// Signs an authorization to run a contract's code in the signer's account (EIP-7702).
    pub fn authorize(&self, authorization: Authorization) -> SignedAuthorization {
        let signature = self.sign_hash(authorization.signature_hash());
        authorization.into_signed(signature)
    }

    fn sign_hash(&self, hash: B256) -> Signature {
        // It fails when a nonce derived from key and hash leads to a zero, which has a chance of one in 2^255.
        let signed = self.key.sign_prehash_recoverable(hash.as_slice()).expect("a valid key signs any hash");
        signed.into()
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("address", &self.address).finish_non_exhaustive()
    }
}
