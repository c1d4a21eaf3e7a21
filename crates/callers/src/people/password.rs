//! Passwords: which ones are accepted, and their hashes.

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Argon2, Params};

use super::{PeopleError, invalid};
use crate::administration::credential;
use crate::policy::{HASH_MEMORY_KIB_MAX, PASSWORD_BYTES_MAX};

/// The shortest password. With the limits on attempts, ten characters cannot be guessed online.
pub const PASSWORD_CHARACTERS_MIN: usize = 10;

const SALT_BYTES: usize = 16;

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

/// The hash of a password with a new salt, as a PHC string. Takes tens of milliseconds: argon2id with 19 MiB and two passes, the
/// least that OWASP recommends.
pub(super) fn hash(password: &str) -> Result<String, PeopleError> {
    let salt = credential::random::<SALT_BYTES>()?;
    let hash = Argon2::default().hash_password_with_salt(password.as_bytes(), &salt);
    hash.map(|hash| hash.to_string()).map_err(|_| PeopleError::Busy)
}

/// Whether a password has this hash. Without a hash it takes as long and is `false`, so that the time does not tell whether
/// a user exists.
pub(super) fn verify(password: &str, stored: Option<&str>) -> bool {
    let password = if password.len() > PASSWORD_BYTES_MAX { "" } else { password };
    match stored.and_then(parsed) {
        Some(hash) => Argon2::default().verify_password(password.as_bytes(), &hash).is_ok(),
        None => {
            let unused = Argon2::default().hash_password_with_salt(password.as_bytes(), &[0; SALT_BYTES]);
            drop(std::hint::black_box(unused));
            false
        }
    }
}

/// A stored hash, unless it asks for too much memory.
fn parsed(text: &str) -> Option<PasswordHash> {
    let hash = PasswordHash::new(text).ok()?;
    let params = Params::try_from(&hash).ok()?;
    (params.m_cost() <= HASH_MEMORY_KIB_MAX).then_some(hash)
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
