//! Passwords: which ones are accepted, and their hashes as text (the format of the argon2 tools).

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use subtle::ConstantTimeEq;

use super::{PeopleError, invalid};
use crate::administration::credential;

/// The shortest password. With the limits on attempts, ten characters cannot be guessed online.
pub const PASSWORD_CHARACTERS_MIN: usize = 10;

/// The longest password, so that hashing takes the same time for all.
const PASSWORD_BYTES_MAX: usize = 256;

/// The cost of a hash: 19 MiB and two passes, the least that OWASP recommends for argon2id.
const MEMORY_KIB: u32 = 19 * 1_024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// The most memory that a stored hash may ask for, so that a row of the store cannot exhaust the process.
const MEMORY_KIB_MAX: u32 = 256 * 1_024;

const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;

/// Refuses passwords that are too short, too long, or the address of their user.
pub(super) fn check(password: &str, email: &str) -> Result<(), PeopleError> {
    if password.chars().count() < PASSWORD_CHARACTERS_MIN {
        return Err(invalid("password", format!("must have at least {PASSWORD_CHARACTERS_MIN} characters")));
    }
    if password.len() > PASSWORD_BYTES_MAX {
        return Err(invalid("password", format!("must have at most {PASSWORD_BYTES_MAX} bytes")));
    }
    let mut letters = password.chars();
    let first = letters.next();
    if password.eq_ignore_ascii_case(email) || letters.all(|letter| Some(letter) == first) {
        return Err(invalid("password", "is easy to guess; choose another one"));
    }
    Ok(())
}

/// The hash of a password with a new salt. Takes tens of milliseconds.
pub(super) fn hash(password: &str) -> Result<String, PeopleError> {
    let salt = credential::random::<SALT_BYTES>()?;
    let hash = argon2id(password, &salt, MEMORY_KIB, PASSES, LANES).ok_or(PeopleError::Busy)?;
    let (salt, hash) = (STANDARD_NO_PAD.encode(salt), STANDARD_NO_PAD.encode(hash));
    Ok(format!("$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p={LANES}${salt}${hash}"))
}

/// Whether a password has this hash. Without a hash it takes as long and is `false`, so that the time does not tell whether
/// a user exists.
pub(super) fn verify(password: &str, stored: Option<&str>) -> bool {
    let password = if password.len() > PASSWORD_BYTES_MAX { "" } else { password };
    match stored.and_then(StoredHash::parse) {
        Some(StoredHash { memory_kib, passes, lanes, salt, hash }) => {
            let found = argon2id(password, &salt, memory_kib, passes, lanes);
            found.is_some_and(|found| found[..].ct_eq(&hash).into())
        }
        None => {
            let unused = argon2id(password, &[0; SALT_BYTES], MEMORY_KIB, PASSES, LANES);
            std::hint::black_box(unused);
            false
        }
    }
}

/// `None` if the parameters are outside of what argon2 allows.
fn argon2id(
    password: &str,
    salt: &[u8],
    memory_kib: u32,
    passes: u32,
    lanes: u32,
) -> Option<[u8; HASH_BYTES]> {
    let params = Params::new(memory_kib, passes, lanes, Some(HASH_BYTES)).ok()?;
    let mut hash = [0; HASH_BYTES];
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    argon2.hash_password_into(password.as_bytes(), salt, &mut hash).ok()?;
    Some(hash)
}

/// The parts of a stored hash.
struct StoredHash {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

impl StoredHash {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix("$argon2id$v=19$")?.split('$');
        let (costs, salt, hash) = (parts.next()?, parts.next()?, parts.next()?);
        let mut costs = costs.split(',');
        let mut cost = |name: &str| costs.next()?.strip_prefix(name)?.parse().ok();
        let (memory_kib, passes, lanes) = (cost("m=")?, cost("t=")?, cost("p=")?);
        let (salt, hash) = (STANDARD_NO_PAD.decode(salt).ok()?, STANDARD_NO_PAD.decode(hash).ok()?);
        (memory_kib <= MEMORY_KIB_MAX).then_some(Self { memory_kib, passes, lanes, salt, hash })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_matches_its_hash() {
        let hashed = hash("correct horse").unwrap();
        assert!(hashed.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hashed}");
        assert!(verify("correct horse", Some(&hashed)));
        assert!(!verify("Correct horse", Some(&hashed)));
        assert!(!verify("", Some(&hashed)));
        assert!(!verify("", None));
        assert_ne!(hashed, hash("correct horse").unwrap(), "the salt is random");
    }

    /// A hash that the reference implementation makes with: echo -n password | argon2 somesalt -id -t 2 -k 256 -p 1
    #[test]
    fn hashes_of_other_programs_with_other_costs_are_read() {
        let other = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
        assert!(verify("password", Some(other)));
        assert!(!verify("Password", Some(other)));
        for broken in
            ["", "$argon2i$v=19$m=1,t=1,p=1$AA$AA", &other.replace("m=256", "m=99999999"), "$argon2id$v=19$"]
        {
            assert!(!verify("password", Some(broken)), "{broken}");
        }
    }

    #[test]
    fn short_long_and_obvious_passwords_are_refused() {
        let refused = |password: &str| check(password, "ada@example.com").is_err();
        assert!(refused("123456789") && refused(&"x1".repeat(200)));
        assert!(refused("aaaaaaaaaaaa") && refused("Ada@example.com"));
        assert!(!refused("correct horse") && !refused("ünïcödé passwörd"));
    }
}
