//! The token of the admin API, and the file that holds it.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom, SystemRandom};
use subtle::ConstantTimeEq;

/// The file in the data directory, unless the configuration names another.
const TOKEN_FILE: &str = "admin-token";

/// Bytes of randomness in a new token.
const TOKEN_BYTES: usize = 32;

/// The shortest token that is accepted. Nobody guesses a random token of this length, so the right token need not be
/// refused while somebody tries wrong ones.
const TOKEN_CHARACTERS_MIN: usize = 32;

/// The longest token that is accepted: it has to fit into a header.
const TOKEN_CHARACTERS_MAX: usize = 1_024;

/// The secret that a request to the admin API must carry.
#[derive(Clone)]
pub struct AdminToken(String);

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AdminToken").finish_non_exhaustive()
    }
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum AdminTokenError {
    #[error("cannot read the admin token {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("cannot create the admin token {}: {error}", path.display())]
    NotCreated { path: PathBuf, error: io::Error },
    #[error("other users can read the admin token {0}; run: chmod 600 {0}", path.display())]
    Exposed { path: PathBuf },
    #[error(
        "the admin token {} must be one line of {TOKEN_CHARACTERS_MIN} to {TOKEN_CHARACTERS_MAX} visible ASCII characters",
        path.display()
    )]
    Malformed { path: PathBuf },
}

impl AdminToken {
    /// The file of the token in a data directory.
    pub fn default_path(data_dir: &Path) -> PathBuf {
        data_dir.join(TOKEN_FILE)
    }

    /// Reads the token, and creates it if there is none.
    pub fn load_or_create(path: &Path) -> Result<Self, AdminTokenError> {
        match create(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(AdminTokenError::NotCreated { path: path.to_owned(), error }),
        }
        Self::load(path)
    }

    /// Reads the token from a file that only its owner can read.
    pub fn load(path: &Path) -> Result<Self, AdminTokenError> {
        let (mode, text) =
            read(path).map_err(|error| AdminTokenError::Unreadable { path: path.to_owned(), error })?;
        if mode & 0o077 != 0 {
            return Err(AdminTokenError::Exposed { path: path.to_owned() });
        }
        let token = text.trim_end_matches(['\r', '\n']);
        let has_length = (TOKEN_CHARACTERS_MIN..=TOKEN_CHARACTERS_MAX).contains(&token.len());
        if !has_length || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(AdminTokenError::Malformed { path: path.to_owned() });
        }
        Ok(Self(token.to_owned()))
    }

    #[cfg(test)]
    pub(crate) fn from_text(token: &str) -> Self {
        Self(token.to_owned())
    }

    /// Compares in a time that does not depend on how much of the token is right.
    pub(crate) fn matches(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }

    /// The value of the header `Authorization` with this token.
    pub fn authorization(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

fn create(path: &Path) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut random = [0; TOKEN_BYTES];
    SystemRandom::new().fill(&mut random).map_err(|_| io::Error::other("the system has no randomness"))?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(format!("{}\n", const_hex::encode(random)).as_bytes())?;
    file.sync_all()
}

/// The permissions and the text of a file, both of the same opened file.
fn read(path: &Path) -> io::Result<(u32, String)> {
    let file = File::open(path)?;
    let mode = file.metadata()?.permissions().mode();
    let mut start = io::Read::take(&file, TOKEN_CHARACTERS_MAX as u64 + 2);
    let mut text = String::new();
    io::Read::read_to_string(&mut start, &mut text)?;
    Ok((mode, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, mode: u32) -> Result<AdminToken, AdminTokenError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        AdminToken::load_or_create(&path)
    }

    #[test]
    fn a_new_token_is_random_kept_and_readable_by_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = AdminToken::default_path(&folder.path().join("data"));
        let token = AdminToken::load_or_create(&path).unwrap();
        assert_eq!(token.0.len(), 2 * TOKEN_BYTES);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(AdminToken::load_or_create(&path).unwrap().matches(&token.0), "a second start keeps it");
        let other = AdminToken::load_or_create(&folder.path().join("other")).unwrap();
        assert!(!other.matches(&token.0));
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let text = "a".repeat(40);
        for mode in [0o640, 0o604, 0o660, 0o666, 0o601] {
            assert!(matches!(written(&text, mode), Err(AdminTokenError::Exposed { .. })), "{mode:o}");
        }
        assert!(written(&text, 0o600).unwrap().matches(&text));
        assert!(written(&text, 0o400).unwrap().matches(&text));
    }

    #[test]
    fn a_token_is_one_line_that_nobody_guesses() {
        for wrong in
            ["", "\n", "short", &"a b".repeat(20), &format!("{0}\n{0}", "a".repeat(40)), &"ü".repeat(40)]
        {
            assert!(matches!(written(wrong, 0o600), Err(AdminTokenError::Malformed { .. })), "{wrong:?}");
        }
        assert!(matches!(written(&"a".repeat(5_000), 0o600), Err(AdminTokenError::Malformed { .. })));
        assert!(written(&format!("{}\r\n", "a".repeat(32)), 0o600).is_ok());
    }

    #[test]
    fn only_the_exact_token_matches_and_debug_hides_it() {
        let text = "0123456789abcdef0123456789abcdef";
        let token = written(text, 0o600).unwrap();
        assert!(token.matches(text));
        for other in ["", &text[1..], &text.to_uppercase(), &format!("{text}0")] {
            assert!(!token.matches(other), "{other}");
        }
        assert!(!format!("{token:?}").contains("0123"));
    }
}
