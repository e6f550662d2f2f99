//! Secrets of a server: the operators' tokens, and the master key, which encrypts all other keys.
//!
//! A secret is the text of a setting, the content of a file that a setting names, or the content of
//! a file in the data directory. That last file is made with the data, for its owner alone, when no
//! setting gives the secret.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use derived::checkpoint::unhex;
use store::write_whole;
use web::credential::{OpsTokens, OpsTokensError, Secret};

/// The file of the made operators' token, in the data directory.
pub const OPS_TOKEN_FILE: &str = "operator.token";
/// The file of the made master key, in the data directory.
pub const MASTER_KEY_FILE: &str = "master.key";

const PUT_IT_BACK: &str =
    "put the file back, or set CENTAVO_MASTER_KEY; without the key names and documents can't be read";

/// The place of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// A setting holds the text.
    Text(Secret),
    /// A setting names the file of the text. White space around the text does not count.
    File(PathBuf),
    /// No setting names it: a file in the data directory.
    Data,
}

/// Why a secret cannot be read or made.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file that a setting names cannot be read.
    #[error("the file {path} of a secret can't be read: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The data directory cannot be made or written to.
    #[error("the data directory {}: it can't be written to: {source}", data.display())]
    Unwritable {
        /// The data directory.
        data: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The operators' tokens cannot be used.
    #[error("the operators' tokens are wrong: {0}")]
    OpsTokens(#[from] OpsTokensError),
    /// The made operators' token was changed, and is none any more.
    #[error(
        "the file {path} of the operators' token is damaged: {error}; delete it, and the next start makes a new token"
    )]
    DamagedToken {
        /// The file, in the data directory.
        path: PathBuf,
        /// What is wrong with its content.
        error: OpsTokensError,
    },
    /// The master key is not one, or is missing beside data that it encrypts.
    #[error("the master key: {0}")]
    MasterKey(String),
    /// The secret in the paths of callbacks can't be used.
    #[error("the file {path} of the secret in the paths of callbacks: {defect}")]
    PathSecret {
        /// The file.
        path: PathBuf,
        /// The defect.
        defect: &'static str,
    },
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes: {0}")]
    Random(#[from] getrandom::Error),
}

/// The secret with which the paths of callbacks begin: 32 to 128 letters, digits, `-` and `_`, in a
/// file that only its owner reads.
pub fn path_secret(path: &Path) -> Result<Secret, SecretError> {
    let unreadable = |source| SecretError::Unreadable { path: path.to_owned(), source };
    let wrong = |defect| SecretError::PathSecret { path: path.to_owned(), defect };
    if fs::metadata(path).map_err(unreadable)?.permissions().mode() & 0o077 != 0 {
        return Err(wrong("others than its owner may read it; its mode must be 0600 or 0400"));
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    match std::str::from_utf8(bytes.trim_ascii()) {
        Ok(text) if (32..=128).contains(&text.len()) && text.bytes().all(|byte| is_plain(&byte)) => {
            Ok(Secret::from(text.to_owned()))
        }
        _ => Err(wrong("it must have 32 to 128 letters, digits, - and _ (`openssl rand -hex 32` makes one)")),
    }
}

impl SecretSource {
    /// The source that settings name: a text or a file, but not both. `name` is that of the
    /// setting, for the error.
    pub fn given(name: &'static str, text: Option<Secret>, file: Option<PathBuf>) -> Result<Self, TwoSources> {
        match (text, file) {
            (Some(_), Some(_)) => Err(TwoSources(name)),
            (Some(text), None) => Ok(Self::Text(text)),
            (None, Some(path)) => Ok(Self::File(path)),
            (None, None) => Ok(Self::Data),
        }
    }

    /// The file that holds it; `None` if a setting holds the text.
    pub fn path(&self, data: &Path, name: &str) -> Option<PathBuf> {
        match self {
            Self::Text(_) => None,
            Self::File(path) => Some(path.clone()),
            Self::Data => Some(data.join(name)),
        }
    }

    /// The secret; `None` if it is to be in the data directory, and is not there.
    pub fn read(&self, data: &Path, name: &str) -> Result<Option<Secret>, SecretError> {
        if let Self::Text(text) = self {
            return Ok(Some(text.clone()));
        }
        let Some(path) = self.path(data, name) else { return Ok(None) };
        match fs::read(&path) {
            // Bytes that are not UTF-8 become U+FFFD. No secret may contain it, so the caller
            // refuses the text with the error of that secret.
            Ok(bytes) => Ok(Some(Secret::from(String::from_utf8_lossy(&bytes).trim().to_owned()))),
            // Where there is no directory, there is no file. If it can't be made, making it gives
            // the error.
            Err(error)
                if *self == Self::Data && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Ok(None)
            }
            Err(source) => Err(SecretError::Unreadable { path, source }),
        }
    }
}

/// A setting that is given twice in one place, as a text and as a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} and {0}_FILE are both set; one of them must go")]
pub struct TwoSources(&'static str);

/// The operators' tokens, and the file of the token when this call made it: 256 random bits, the
/// token of an operator named `operator`.
pub fn ops_tokens(source: &SecretSource, data: &Path) -> Result<(OpsTokens, Option<PathBuf>), SecretError> {
    if let Some(tokens) = ops_tokens_if_any(source, data)? {
        return Ok((tokens, None));
    }
    let (made, path) = make(data, OPS_TOKEN_FILE)?;
    Ok((made.reveal().parse()?, Some(path)))
}

/// The operators' tokens, if there are any.
pub fn ops_tokens_if_any(source: &SecretSource, data: &Path) -> Result<Option<OpsTokens>, SecretError> {
    let Some(text) = source.read(data, OPS_TOKEN_FILE)? else { return Ok(None) };
    text.reveal().parse().map(Some).map_err(|error| wrong_tokens(source, data, error))
}

fn wrong_tokens(source: &SecretSource, data: &Path, error: OpsTokensError) -> SecretError {
    match source {
        SecretSource::Data => SecretError::DamagedToken { path: data.join(OPS_TOKEN_FILE), error },
        _ => SecretError::OpsTokens(error),
    }
}

/// The first of the operators' tokens, for a program that calls their server; `None` if there is
/// none yet.
pub fn first_ops_token(source: &SecretSource, data: &Path) -> Result<Option<Secret>, SecretError> {
    Ok(ops_tokens_in_order(source, data)?.into_iter().next())
}

/// The operators' tokens in their order, for a program that calls their server; none if there is
/// none yet.
pub fn ops_tokens_in_order(source: &SecretSource, data: &Path) -> Result<Vec<Secret>, SecretError> {
    let Some(text) = source.read(data, OPS_TOKEN_FILE)? else { return Ok(Vec::new()) };
    OpsTokens::in_order(text.reveal()).map_err(|error| wrong_tokens(source, data, error))
}

/// The master key: 64 hexadecimal digits. It is made with the data. Without it no personal data can
/// be read, by anybody.
pub fn master_key(source: &SecretSource, data: &Path) -> Result<[u8; 32], SecretError> {
    if let Some(key) = existing_master_key(source, data)? {
        return Ok(key);
    }
    // A new key would not open the data that is there.
    if data.join("journal").exists() {
        let path = data.join(MASTER_KEY_FILE);
        return Err(SecretError::MasterKey(format!("{} is missing: {PUT_IT_BACK}", path.display())));
    }
    key_of(source, data, &make(data, MASTER_KEY_FILE)?.0)
}

/// The master key, if there is one.
pub fn existing_master_key(source: &SecretSource, data: &Path) -> Result<Option<[u8; 32]>, SecretError> {
    source.read(data, MASTER_KEY_FILE)?.map(|text| key_of(source, data, &text)).transpose()
}

fn key_of(source: &SecretSource, data: &Path, text: &Secret) -> Result<[u8; 32], SecretError> {
    let wrong = || match source {
        SecretSource::Text(_) => "CENTAVO_MASTER_KEY must be 64 hexadecimal digits".to_owned(),
        SecretSource::File(path) => format!("{} must be 64 hexadecimal digits", path.display()),
        SecretSource::Data => {
            format!("{} is not 64 hexadecimal digits: {PUT_IT_BACK}", data.join(MASTER_KEY_FILE).display())
        }
    };
    unhex(text.reveal().trim()).ok_or_else(|| SecretError::MasterKey(wrong()))
}

/// Makes a secret of 256 random bits, as 64 hexadecimal digits in a file of the data directory.
fn make(data: &Path, name: &str) -> Result<(Secret, PathBuf), SecretError> {
    let mut random = [0; 32];
    getrandom::fill(&mut random)?;
    let text: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = data.join(name);
    // A power cut must not leave an empty secret behind.
    let written = fs::create_dir_all(data).and_then(|()| write_whole(&path, |out| out.write_all(text.as_bytes())));
    written.map_err(|source| SecretError::Unwritable { data: data.to_owned(), source })?;
    Ok((Secret::from(text), path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Secret {
        Secret::from(text.to_owned())
    }

    #[test]
    fn a_secret_is_a_text_or_a_file() {
        let file = || Some(PathBuf::from("/run/secret"));
        let cases = [
            (None, None, Ok(SecretSource::Data)),
            (Some(text("a")), None, Ok(SecretSource::Text(text("a")))),
            (None, file(), Ok(SecretSource::File("/run/secret".into()))),
            (Some(text("a")), file(), Err(TwoSources("CENTAVO_X"))),
        ];
        for (text, file, source) in cases {
            assert_eq!(SecretSource::given("CENTAVO_X", text, file), source);
        }
    }

    #[test]
    fn a_secret_in_paths_is_long_plain_and_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let read = |content: &[u8], mode| {
            let path = folder.path().join("path-secret");
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path_secret(&path).map(|secret| secret.reveal().to_owned()).map_err(|error| error.to_string())
        };
        let good = "a0-_".repeat(8);
        assert_eq!(read(format!("{good}\n").as_bytes(), 0o600), Ok(good.clone()));
        assert_eq!(read(good.as_bytes(), 0o400), Ok(good.clone()));
        let padded = format!("{good}/x");
        for (content, mode, defect) in [
            (good.as_bytes(), 0o640, "others than its owner"),
            (good.as_bytes(), 0o604, "others than its owner"),
            (&good.as_bytes()[1..], 0o600, "32 to 128 letters"),
            ("a".repeat(129).as_bytes(), 0o600, "32 to 128 letters"),
            (padded.as_bytes(), 0o600, "32 to 128 letters"),
            (&[0xff; 40], 0o600, "32 to 128 letters"),
            (b"", 0o600, "32 to 128 letters"),
        ] {
            let error = read(content, mode).unwrap_err();
            assert!(error.contains(defect) && error.contains("path-secret") && !error.contains(&good), "{error}");
            fs::remove_file(folder.path().join("path-secret")).unwrap();
        }
        assert!(path_secret(&folder.path().join("absent")).unwrap_err().to_string().contains("absent"));
    }

    #[test]
    fn a_secret_that_nobody_gave_is_made_once_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("books");
        let (_, made) = ops_tokens(&SecretSource::Data, &data).unwrap();
        let path = made.unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let first = fs::read(&path).unwrap();
        assert_eq!(ops_tokens(&SecretSource::Data, &data).unwrap().1, None, "it stays");
        assert_eq!(fs::read(&path).unwrap(), first);
        let key = master_key(&SecretSource::Data, &data).unwrap();
        assert_eq!(master_key(&SecretSource::Data, &data).unwrap(), key);
        assert_eq!(fs::read_dir(&data).unwrap().count(), 2, "nothing unfinished is left");
    }

    #[test]
    fn a_secret_that_cannot_be_used_is_told_with_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str, content: &str| {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            SecretSource::File(path)
        };
        let good = at("good", &format!(" {}\n", "0a".repeat(32)));
        assert_eq!(master_key(&good, folder.path()).unwrap(), [10; 32], "white space does not count");
        let error = |source: &SecretSource| master_key(source, folder.path()).unwrap_err().to_string();
        assert!(error(&at("short", "00")).contains("short must be 64 hexadecimal digits"));
        assert!(error(&SecretSource::File(folder.path().join("absent"))).contains("absent of a secret can't be read"));
        assert!(error(&SecretSource::Text(text("00"))).contains("CENTAVO_MASTER_KEY must be 64"));
        let tokens = ops_tokens(&at("tokens", "fifteen-letters\n"), folder.path()).unwrap_err().to_string();
        assert!(tokens.contains("at least 32 characters"), "{tokens}");
        fs::create_dir(folder.path().join("journal")).unwrap();
        assert!(error(&SecretSource::Data).contains("master.key is missing: put the file back"));
        fs::write(folder.path().join(MASTER_KEY_FILE), "").unwrap();
        let damaged = "master.key is not 64 hexadecimal digits: put the file back";
        assert!(error(&SecretSource::Data).contains(damaged));
        fs::write(folder.path().join(MASTER_KEY_FILE), [0xFF; 64]).unwrap();
        assert!(error(&SecretSource::Data).contains(damaged), "bytes that are not UTF-8");
        fs::write(folder.path().join(OPS_TOKEN_FILE), [0xFF; 64]).unwrap();
        let error = ops_tokens(&SecretSource::Data, folder.path()).unwrap_err().to_string();
        assert!(error.contains("operator.token of the operators' token is damaged") && error.contains("delete it"));
    }
}
