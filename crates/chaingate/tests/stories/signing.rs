//! Tokens as callers would make them, and the public keys that go into the configuration.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};

/// An RSA key that was made once: `rs256.jwt` is a token of it that is valid until the year 2100.
pub(crate) const RSA_PEM: &str = include_str!("fixtures/rs256.pem");
pub(crate) const RSA_TOKEN: &str = include_str!("fixtures/rs256.jwt");

/// A key that signs tokens.
pub(crate) enum Signer {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    pub(crate) fn p256() -> Self {
        let (rules, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(rules, &random).unwrap();
        Self::P256(EcdsaKeyPair::from_pkcs8(rules, pkcs8.as_ref(), &random).unwrap())
    }

    pub(crate) fn ed25519() -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap())
    }

    pub(crate) fn public_pem(&self) -> String {
        let (kind, key) = match self {
            Self::P256(pair) => (P256_SPKI, pair.public_key().as_ref()),
            Self::Ed25519(pair) => (ED25519_SPKI, pair.public_key().as_ref()),
        };
        pem(&[kind, key].concat())
    }

    /// A token with this header and these claims, both JSON.
    pub(crate) fn token(&self, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = match self {
            Self::P256(pair) => {
                pair.sign(&SystemRandom::new(), message.as_bytes()).unwrap().as_ref().to_vec()
            }
            Self::Ed25519(pair) => pair.sign(message.as_bytes()).as_ref().to_vec(),
        };
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    pub(crate) fn good_token(&self) -> String {
        let algorithm = if matches!(self, Self::P256(_)) { "ES256" } else { "EdDSA" };
        self.token(&format!(r#"{{"alg":"{algorithm}"}}"#), &format!(r#"{{"exp":{}}}"#, in_seconds(600)))
    }
}

/// The bytes before the key in the encoding of a P-256 public key.
const P256_SPKI: &[u8] = b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00";
/// The bytes before the key in the encoding of an Ed25519 public key.
const ED25519_SPKI: &[u8] = b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00";

fn pem(der: &[u8]) -> String {
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der))
}

/// The time of a token, counted from now.
pub(crate) fn in_seconds(seconds: i64) -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64 + seconds
}
