//! Verifies JSON Web Tokens.
//!
//! The type of the public key determines the algorithm, never the token. Signatures are verified by ring, which TLS already
//! depends on.

use std::fmt;

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result as JwtResult};
use jsonwebtoken::signature::{Error as SignatureError, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey, VerificationAlgorithm,
};
use serde::de::IgnoredAny;

use crate::policy::TOKEN_LEEWAY_S;

/// The public keys that sign tokens for one key, each with the rules for its tokens.
#[derive(Clone)]
pub(crate) struct TokenVerifier(Vec<(DecodingKey, Validation)>);

impl TokenVerifier {
    /// Reads public keys in PEM. The error is the position of the first invalid one, counted from 1.
    pub(crate) fn new(pems: &[String], audience: Option<&str>) -> Result<Self, usize> {
        // Fails if it is already installed, which is harmless.
        let _already_installed = PROVIDER.install_default();
        let keys = pems.iter().enumerate().map(|(index, pem)| {
            let (key, algorithm) = public_key(pem).ok_or(index + 1)?;
            Ok((key, validation(algorithm, audience)))
        });
        keys.collect::<Result<_, _>>().map(Self)
    }

    /// Whether one of the keys has signed the token and the token is valid now.
    pub(crate) fn accepts(&self, token: &str) -> bool {
        names_no_extension(token)
            && self.0.iter().any(|(key, validation)| decode::<IgnoredAny>(token, key, validation).is_ok())
    }
}

impl fmt::Debug for TokenVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenVerifier({} keys)", self.0.len())
    }
}

/// Whether the header of a token has no `crit`. It names extensions that a reader must understand or refuse the token (RFC 7515,
/// section 4.1.11), and no extension is understood here.
fn names_no_extension(token: &str) -> bool {
    decode_header(token).is_ok_and(|header| header.crit.is_none())
}

fn validation(algorithm: Algorithm, audience: Option<&str>) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.leeway = TOKEN_LEEWAY_S;
    validation.validate_nbf = true;
    validation.validate_aud = audience.is_some();
    if let Some(audience) = audience {
        validation.set_audience(&[audience]);
        validation.set_required_spec_claims(&["exp", "aud"]);
    }
    validation
}

/// The shortest encoding of an RSA key with 2,048 bits; ring refuses shorter keys.
const RSA_DER_BYTES_MIN: usize = 256;

/// An uncompressed point of P-256.
const P256_POINT_BYTES: usize = 65;

fn public_key(pem: &str) -> Option<(DecodingKey, Algorithm)> {
    // `DecodingKey` also accepts private keys and certificates, which must not be in the configuration.
    if !pem.trim_start().starts_with("-----BEGIN PUBLIC KEY-----") {
        return None;
    }
    let pem = pem.trim().as_bytes();
    let len = |key: &DecodingKey| key.try_get_as_bytes().map_or(0, <[u8]>::len);
    if let Ok(key) = DecodingKey::from_rsa_pem(pem) {
        return (len(&key) >= RSA_DER_BYTES_MIN).then_some((key, Algorithm::RS256));
    }
    if let Ok(key) = DecodingKey::from_ec_pem(pem) {
        return (len(&key) == P256_POINT_BYTES).then_some((key, Algorithm::ES256));
    }
    DecodingKey::from_ed_pem(pem).ok().map(|key| (key, Algorithm::EdDSA))
}

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> JwtResult<Box<dyn JwtVerifier>> {
    let algorithm_of_ring: &'static dyn VerificationAlgorithm = match algorithm {
        Algorithm::RS256 => &RSA_PKCS1_2048_8192_SHA256,
        Algorithm::ES256 => &ECDSA_P256_SHA256_FIXED,
        Algorithm::EdDSA => &ED25519,
        _ => return Err(ErrorKind::UnsupportedAlgorithm.into()),
    };
    let key = UnparsedPublicKey::new(algorithm_of_ring, key.try_get_as_bytes()?.to_vec());
    Ok(Box::new(RingVerifier { algorithm: *algorithm, key }))
}

struct RingVerifier {
    algorithm: Algorithm,
    key: UnparsedPublicKey<Vec<u8>>,
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), SignatureError> {
        self.key.verify(message, signature).map_err(|_| SignatureError::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
